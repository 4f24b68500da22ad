//! Spans measured one by one, and their quantiles.

use thalweg_measure::clock::Clock;

/// Collects spans in memory that was touched before, so that taking one down is one store.
#[derive(Debug)]
pub(in crate::experiment) struct Samples {
    ticks: Vec<u32>,
}

impl Samples {
    /// Room for `max` spans; later ones are not taken.
    pub(in crate::experiment) fn with_room(max: usize) -> Self {
        let mut ticks = vec![1; max];
        ticks.clear();
        Self { ticks }
    }

    #[inline]
    pub(in crate::experiment) fn take(&mut self, ticks: u64) {
        if !self.is_full() {
            self.ticks.push(u32::try_from(ticks).unwrap_or(u32::MAX));
        }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ticks.len() == self.ticks.capacity()
    }

    /// All of these.
    pub(in crate::experiment) fn merged(all: impl IntoIterator<Item = Self>) -> Self {
        let ticks = all.into_iter().flat_map(|samples| samples.ticks).collect();
        Self { ticks }
    }

    /// The spans at these fractions, in ns where they are ticks; infinite where there are none.
    pub(in crate::experiment) fn quantiles_ns<const N: usize>(
        self,
        fractions: [f64; N],
    ) -> [f64; N] {
        let clock = Clock::global();
        self.quantiles(fractions, |ticks| clock.ns(ticks) as f64)
    }

    /// The spans at these fractions, where they were taken in ns.
    pub(in crate::experiment) fn quantiles_of_ns<const N: usize>(
        self,
        fractions: [f64; N],
    ) -> [f64; N] {
        self.quantiles(fractions, |ns| ns as f64)
    }

    fn quantiles<const N: usize>(
        mut self,
        fractions: [f64; N],
        ns: impl Fn(u64) -> f64,
    ) -> [f64; N] {
        self.ticks.sort_unstable();
        let Some(last) = self.ticks.len().checked_sub(1) else {
            return [f64::INFINITY; N];
        };
        fractions.map(|fraction| {
            let at = (fraction * last as f64).round() as usize;
            ns(u64::from(self.ticks[at]))
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
