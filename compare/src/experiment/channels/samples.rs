//! Spans measured one by one, and their quantiles.

use thalweg_measure::clock::Clock;

/// Collects spans in memory that was touched before, so that taking one down is one store.
#[derive(Debug)]
pub(super) struct Samples {
    ticks: Vec<u32>,
}

impl Samples {
    /// Room for `max` spans; later ones are not taken.
    pub(super) fn with_room(max: usize) -> Self {
        let mut ticks = vec![1; max];
        ticks.clear();
        Self { ticks }
    }

    #[inline]
    pub(super) fn take(&mut self, ticks: u64) {
        if !self.is_full() {
            self.ticks.push(u32::try_from(ticks).unwrap_or(u32::MAX));
        }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ticks.len() == self.ticks.capacity()
    }

    /// The spans at these fractions, ns; infinite where there are none.
    pub(super) fn quantiles_ns<const N: usize>(mut self, fractions: [f64; N]) -> [f64; N] {
        self.ticks.sort_unstable();
        let Some(last) = self.ticks.len().checked_sub(1) else {
            return [f64::INFINITY; N];
        };
        let clock = Clock::global();
        fractions.map(|fraction| {
            let at = (fraction * last as f64).round() as usize;
            clock.ns(u64::from(self.ticks[at])) as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_taken() {
        let clock = Clock::global();
        let mut samples = Samples::with_room(101);
        for at in (1..=101).rev() {
            samples.take(clock.ticks_from_ns(at * 1_000_000));
        }
        assert!(samples.is_full());
        samples.take(0);
        let [low, middle, high] = samples.quantiles_ns([0.0, 0.5, 1.0]);
        for (found, expected) in [(low, 1e6), (middle, 51e6), (high, 101e6)] {
            assert!((found - expected).abs() < 10.0, "{found} {expected}");
        }
        assert_eq!(Samples::with_room(1).quantiles_ns([0.5]), [f64::INFINITY]);
    }
}
