//! Medians and ratios with their intervals: what may be said after a few noisy runs.
//!
//! # How an interval is computed
//! The value is the median of the repetitions. Its interval is the percentile bootstrap (B. Efron,
//! 1979): draw as many repetitions as there are, with replacement, and take the median; do that
//! 2,000 times with a fixed seed; the 2.5th and 97.5th percentile of those medians are `low` and
//! `high`. It assumes nothing about the distribution of the noise, only that repetitions are
//! independent, and the same values always give the same interval. From 10 repetitions up it
//! holds the true median some 95 times in 100 (a test counts); below 6 it is too narrow,
//! since even the whole range of n values misses the true median once in 2^(n-1) times.
//!
//! # How a ratio is computed
//! Two subjects are measured in turn, so that a disturbance meets both: each repetition is a pair.
//! Each pair gives one ratio, turned so that more than 1 means that the first is better: other /
//! subject where lower is better (latency), subject / other where higher is better (throughput).
//! The ratio of the comparison is the median of those, its interval as above, drawn by pairs.
//! Where the interval holds 1, the runs do not tell the two apart ([`Interval::tells_from`]).

use crate::random::SplitMix;

/// A value and the bounds that the true one lies between, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The 2.5th percentile.
    pub low: f64,
    /// The value itself, from all repetitions.
    pub value: f64,
    /// The 97.5th percentile.
    pub high: f64,
}

impl Interval {
    /// Whether the interval lies wholly on one side of `other`: the runs tell the two apart.
    #[must_use]
    pub fn tells_from(&self, other: f64) -> bool {
        other < self.low || other > self.high
    }

    /// The width of the interval as a fraction of the value: how noisy the runs were.
    #[must_use]
    pub fn spread(&self) -> f64 {
        (self.high - self.low) / self.value.abs()
    }
}

/// Which way of a metric is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latency, cost, size.
    Lower,
    /// Throughput.
    Higher,
}

/// The median; `None` for no values. The mean of the two middle ones for an even number.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value at the fraction `q` (clamped to 0..=1) of the sorted values, between two of them by
/// linear interpolation (R's type 7, the usual one); `None` for no values. Sorts a copy.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let part = position - below as f64;
    // Not a weighted sum where both are equal or nothing is to be mixed: that would turn an
    // infinite neighbour into a NaN.
    if part == 0.0 || sorted[below] == sorted[above] {
        return Some(sorted[below]);
    }
    Some(sorted[below] + (sorted[above] - sorted[below]) * part)
}

/// The 95 % interval of the median by the default [`Bootstrap`]. `None` for fewer than 2 values:
/// one value says nothing about its own spread (take its [`median`] alone).
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    Bootstrap::default().median(values)
}

/// The ratio of paired runs, `(subject, other)`, with its interval by the default [`Bootstrap`];
/// more than 1 means that the subject is better. See the [module](self) for the computation.
///
/// `None` for fewer than 2 pairs, and where a ratio has no meaning: a value that is not finite, or
/// not above 0.
///
/// ```
/// use thalweg_measure::statistics::{Better, paired_ratio};
/// let latencies_ns = [(100.0, 210.0), (110.0, 220.0), (90.0, 175.0)];
/// let ratio = paired_ratio(&latencies_ns, Better::Lower).expect("three sound pairs");
/// assert_eq!(ratio.value, 2.0);
/// assert!(ratio.tells_from(1.0));
/// ```
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], better: Better) -> Option<Interval> {
    Bootstrap::default().paired_ratio(pairs, better)
}

/// How intervals are drawn: 2,000 resamples from a fixed seed by default.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// How many medians are drawn.
    pub resamples: usize,
    /// The seed of the draw.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap {
            resamples: 2_000,
            seed: 0x7468_616C_7765_6721,
        }
    }
}

impl Bootstrap {
    /// The 95 % interval of the median. `None` for fewer than 2 values or no resamples. Costs
    /// some 10 ns a value and resample.
    #[must_use]
    pub fn median(&self, values: &[f64]) -> Option<Interval> {
        if values.len() < 2 {
            return None;
        }
        let mut random = SplitMix::new(self.seed);
        let mut drawn = vec![0.0; values.len()];
        let mut medians = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            for value in &mut drawn {
                *value = values[random.below(values.len() as u64) as usize];
            }
            medians.push(median_in_place(&mut drawn));
        }
        medians.sort_by(f64::total_cmp);
        let value = median(values)?;
        // The median of all need not be among the drawn ones; an interval holds its own value.
        let low = quantile_of_sorted(&medians, 0.025)?.min(value);
        let high = quantile_of_sorted(&medians, 0.975)?.max(value);
        Some(Interval { low, value, high })
    }

    /// The ratio of paired runs. See [`paired_ratio`].
    #[must_use]
    pub fn paired_ratio(&self, pairs: &[(f64, f64)], better: Better) -> Option<Interval> {
        let ratios: Option<Vec<f64>> = pairs
            .iter()
            .map(|&(subject, other)| {
                let ratio = match better {
                    Better::Lower => other / subject,
                    Better::Higher => subject / other,
                };
                let sound = subject > 0.0 && other > 0.0 && ratio.is_finite() && ratio > 0.0;
                sound.then_some(ratio)
            })
            .collect();
        self.median(&ratios?)
    }
}

/// The median of values that may be reordered. The slice is not empty.
fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if !even {
        return upper;
    }
    let lower = below
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .unwrap_or(upper);
    if lower == upper {
        upper
    } else {
        lower + (upper - lower) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_with_known_answers() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 0.25), Some(17.5));
        assert_eq!(quantile(&values, 0.9), Some(37.0));
        assert_eq!(quantile(&values, 3.0), Some(40.0));
        assert_eq!(
            median(&[f64::INFINITY, 1.0, f64::INFINITY]),
            Some(f64::INFINITY)
        );
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(median_interval(&[]), None);
        assert_eq!(median_interval(&[3.0]), None);
        assert_eq!(paired_ratio(&[], Better::Lower), None);
        assert_eq!(paired_ratio(&[(1.0, 2.0)], Better::Lower), None);
        let equal = Interval {
            low: 3.0,
            value: 3.0,
            high: 3.0,
        };
        assert_eq!(median_interval(&[3.0, 3.0]), Some(equal));
        assert_eq!(
            Bootstrap {
                resamples: 0,
                seed: 1
            }
            .median(&[1.0, 2.0]),
            None
        );
    }

    #[test]
    fn two_values_span_their_interval() {
        // Of the resamples of two values, a quarter is all the one and a quarter all the other.
        let interval = median_interval(&[1.0, 9.0]);
        assert_eq!(
            interval,
            Some(Interval {
                low: 1.0,
                value: 5.0,
                high: 9.0
            })
        );
    }

    #[test]
    fn same_seed_same_interval() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i * i % 41)).collect();
        assert_eq!(median_interval(&values), median_interval(&values));
    }

    #[test]
    fn interval_covers_the_true_median_95_times_in_100() {
        const DRAWS: u64 = 1_000;
        for n in [11, 30] {
            let covered = (0..DRAWS)
                .filter(|&draw| {
                    let mut random = SplitMix::new(draw << 8 | n);
                    let values: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
                    let bootstrap = Bootstrap {
                        resamples: 400,
                        seed: draw,
                    };
                    let interval = bootstrap.median(&values).expect("enough values");
                    !interval.tells_from(std::f64::consts::LN_2)
                })
                .count();
            assert!(
                (920..=980).contains(&covered),
                "{covered} of {DRAWS} with {n} values"
            );
        }
    }

    #[test]
    fn ratio_above_one_means_that_the_subject_is_better() {
        let pairs = [(1.0, 4.0), (2.0, 8.0), (3.0, 12.0)];
        let by = |better| paired_ratio(&pairs, better).expect("sound pairs");
        assert_eq!(
            by(Better::Lower),
            Interval {
                low: 4.0,
                value: 4.0,
                high: 4.0
            }
        );
        assert_eq!(
            by(Better::Higher),
            Interval {
                low: 0.25,
                value: 0.25,
                high: 0.25
            }
        );
        assert!(by(Better::Lower).tells_from(1.0));
        assert!(by(Better::Higher).tells_from(1.0));
    }

    #[test]
    fn pairs_cancel_what_disturbs_both() {
        // Each run is up to 50 times slower than the last, but always both sides of it.
        let pairs: Vec<_> = (1..20)
            .map(|i| (f64::from(i), f64::from(i) * 1.25))
            .collect();
        let ratio = paired_ratio(&pairs, Better::Lower).expect("sound pairs");
        assert_eq!((ratio.low, ratio.value, ratio.high), (1.25, 1.25, 1.25));
    }

    #[test]
    fn runs_that_do_not_tell_say_so() {
        let pairs = [
            (1.0, 1.1),
            (1.0, 0.9),
            (1.0, 1.3),
            (1.0, 0.7),
            (1.0, 1.01),
            (1.0, 0.99),
        ];
        assert!(
            !paired_ratio(&pairs, Better::Lower)
                .expect("sound pairs")
                .tells_from(1.0)
        );
    }

    #[test]
    fn ratios_without_meaning_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            for better in [Better::Lower, Better::Higher] {
                assert_eq!(
                    paired_ratio(&[(1.0, 2.0), (bad, 2.0)], better),
                    None,
                    "{bad}"
                );
                assert_eq!(
                    paired_ratio(&[(1.0, 2.0), (2.0, bad)], better),
                    None,
                    "{bad}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn intervals_lie_within_the_values(values in prop::collection::vec(-1e9..1e9, 2..30)) {
            let interval = Bootstrap { resamples: 50, seed: 1 }.median(&values).expect("enough");
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(low <= interval.low && interval.low <= interval.value);
            prop_assert!(interval.value <= interval.high && interval.high <= high);
            let mut copy = values.clone();
            let quick = median_in_place(&mut copy);
            prop_assert!((quick - interval.value).abs() <= interval.value.abs() * 1e-12);
        }
    }
}
