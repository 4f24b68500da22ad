//! Delays as they are drawn.

use std::time::Duration;

use thalweg_measure::random::SplitMix;

/// The longest delay, which is also that of a longer one that was drawn.
pub const DELAY_MAX: Duration = Duration::from_secs(60);

/// How long bytes are on their way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always the same time.
    Fixed(Duration),
    /// A time by the normal distribution; 0 where that is below.
    Normal {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        deviation: Duration,
    },
    /// A time whose logarithm has the normal distribution.
    LogNormal {
        /// The median.
        median: Duration,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

/// The delays of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// That of what a client sends.
    pub inbound: Delay,
    /// That of what it gets.
    pub outbound: Delay,
}

impl Delay {
    /// Returns the mean, or the median.
    pub(crate) const fn middle(&self) -> Duration {
        match self {
            Self::Fixed(middle)
            | Self::Normal { mean: middle, .. }
            | Self::LogNormal { median: middle, .. } => *middle,
        }
    }

    /// Draws a delay.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        let seconds = match self {
            Self::Fixed(delay) => return *delay,
            Self::Normal { mean, deviation } => deviation
                .as_secs_f64()
                .mul_add(random.normal(), mean.as_secs_f64()),
            Self::LogNormal { median, sigma } => {
                median.as_secs_f64() * (sigma * random.normal()).exp()
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, DELAY_MAX.as_secs_f64()))
    }
}

/// Numbers that follow from a seed: SplitMix64.
#[derive(Debug)]
pub(crate) struct Random(SplitMix);

impl Random {
    /// Returns the numbers of a seed of several parts.
    pub(crate) fn new(seed: [u64; 3]) -> Self {
        let mix = |state, part| SplitMix::new(state ^ part).next_u64();
        Self(SplitMix::new(seed.into_iter().fold(0, mix)))
    }

    /// Returns a number from 0 to 1, without 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number by the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn drawn(delay: Delay) -> Vec<Duration> {
        let mut random = Random::new([1, 2, 3]);
        let mut drawn: Vec<_> = (0..10_000).map(|_| delay.draw(&mut random)).collect();
        drawn.sort_unstable();
        drawn
    }

    #[test]
    fn delays_have_their_distributions() {
        assert!(drawn(Delay::Fixed(5 * MS)).iter().all(|d| *d == 5 * MS));
        let (mean, deviation) = (5 * MS, MS);
        let normal = drawn(Delay::Normal { mean, deviation });
        // 15.9 % are more than a deviation below the mean.
        let below = normal.iter().filter(|delay| **delay < 4 * MS).count();
        assert!((1_450..1_730).contains(&below), "{below}");
        let (median, sigma) = (5 * MS, 0.5);
        let lognormal = drawn(Delay::LogNormal { median, sigma });
        let at = lognormal[5_000].as_secs_f64() * 1e3;
        assert!((4.8..5.2).contains(&at), "{at}");
        let above = lognormal
            .iter()
            .filter(|d| d.as_secs_f64() > 0.005 * 0.5_f64.exp());
        let above = above.count();
        assert!((1_450..1_730).contains(&above), "{above}");
    }

    #[test]
    fn delays_are_neither_below_0_nor_above_the_longest() {
        let (mean, deviation) = (MS, 100 * MS);
        let normal = drawn(Delay::Normal { mean, deviation });
        assert_eq!(normal[0], Duration::ZERO);
        let (median, sigma) = (DELAY_MAX, 5.0);
        assert_eq!(drawn(Delay::LogNormal { median, sigma })[9_999], DELAY_MAX);
    }
}
