//! Medians and ratios with their intervals: what a few noisy runs show.
//!
//! # How an interval is computed
//! The value is the median of the repetitions. Its interval lies between two of the repetitions, in
//! order of size: the `k`-th smallest and the `k`-th largest, with the largest `k` for which the
//! true median is outside in at most 5 % of all series. Since each repetition is above the true
//! median as often as below it, that is a count of coin tosses (the sign test; H. A. David, "Order
//! Statistics", section 7.1), exact for every `n`, whatever the noise is like, as long as
//! repetitions are independent. 6 values: the smallest and the largest, 96.9 %; 7: 98.4 %; 9: the
//! second of each end, 96.1 %; 11: 98.8 %; 31: the tenth, 97.1 %.
//!
//! Fewer than [`REPETITIONS_MIN`] values have no such interval: even their whole range misses the
//! true median more often than that. Then the bounds are infinite, and the run cannot distinguish
//! the two.
//!
//! # How a ratio is computed
//! Two subjects are measured in turn, so that a disturbance meets both: each repetition is a pair.
//! Each pair gives one ratio, turned so that more than 1 means that the first is better: other /
//! subject where lower is better (latency), subject / other where higher is better (throughput).
//! The ratio of the comparison is the median of those (the geometric mean of the middle two, so
//! that it is 1 / ratio the other way round), its interval as above. Where the interval holds 1,
//! the runs do not distinguish the two ([`Interval::excludes`]).
//!
//! # Differences
//! Where a ratio has no meaning (a count that may be 0), [`shift_interval`] says by how much the
//! second of two is larger, and [`rank_sum`] whether it is at all; [`holm`] is for several such
//! questions at once.

mod ranks;
mod shift;

pub use ranks::{RankSum, holm, rank_sum};
pub use shift::{RESAMPLES, relative_shift_interval, shift, shift_interval};

/// The least number of values that have an interval.
pub const REPETITIONS_MIN: usize = 6;

/// In how many of all series an interval may miss the true median.
const MISSES_MAX: f64 = 0.05;

/// A value and the bounds that the true one lies between, with at least 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Interval {
    /// The value itself, from all repetitions.
    pub value: f64,
    /// The lower bound; minus infinity for fewer than [`REPETITIONS_MIN`] values.
    pub low: f64,
    /// The upper bound; infinity for fewer than [`REPETITIONS_MIN`] values.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval lies wholly on one side of `other`: then the runs distinguish
    /// the two.
    #[must_use]
    pub fn excludes(&self, other: f64) -> bool {
        other < self.low || other > self.high
    }

    /// Returns whether both bounds are finite: there were enough values for them.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Returns the bounds as text, each as `show` has it: `[1.48, 1.57]`, or `-` where there are
    /// none.
    #[must_use]
    pub fn bounds(&self, show: impl Fn(f64) -> String) -> String {
        if self.is_bounded() {
            format!("[{}, {}]", show(self.low), show(self.high))
        } else {
            "-".to_owned()
        }
    }
}

/// The direction of a metric that is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latency, cost, size.
    Lower,
    /// Throughput.
    Higher,
}

/// Returns the median; `None` for no values. The mean of the two middle ones for an even number.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the value at the fraction `q` (clamped to 0..=1) of the sorted values, between two of
/// them by linear interpolation (R's type 7, its default); `None` for no values. It sorts a copy.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let part = position - below as f64;
    // Not a weighted sum where both are equal or nothing is to be mixed: that would turn an
    // infinite value into a NaN.
    if part == 0.0 || sorted[below] == sorted[above] {
        return Some(sorted[below]);
    }
    Some(sorted[below] + (sorted[above] - sorted[below]) * part)
}

/// Returns the median and its interval; `None` for no values. See the [module](self).
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    interval_of(values, |lower, upper| {
        if lower == upper {
            lower
        } else {
            lower + (upper - lower) / 2.0
        }
    })
}

/// Returns the ratio of paired runs, `(subject, other)`, with its interval; more than 1 means that
/// the subject is better. See the [module](self) for the computation.
///
/// `None` for no pairs, and where a ratio has no meaning: a value that is not finite, or not above
/// 0.
///
/// ```
/// use thalweg_measure::statistics::{Better, paired_ratio};
/// let mut latencies_ns = vec![(100.0, 210.0), (110.0, 220.0), (90.0, 175.0)];
/// let ratio = paired_ratio(&latencies_ns, Better::Lower).expect("three sound pairs");
/// assert_eq!(ratio.value, 2.0);
/// assert!(!ratio.excludes(1.0), "three pairs show nothing");
/// latencies_ns.extend_from_within(..);
/// let ratio = paired_ratio(&latencies_ns, Better::Lower).expect("six sound pairs");
/// assert!(ratio.excludes(1.0));
/// ```
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], better: Better) -> Option<Interval> {
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
    interval_of(&ratios?, |lower, upper| {
        if lower == upper {
            lower
        } else {
            lower.sqrt() * upper.sqrt()
        }
    })
}

/// Returns the median with its interval; `middle` is what lies between the middle two of an even
/// number.
fn interval_of(values: &[f64], middle: impl Fn(f64, f64) -> f64) -> Option<Interval> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let value = middle(sorted[last / 2], sorted[last - last / 2]);
    let (low, high) = match values_outside(sorted.len()) {
        Some(outside) => (sorted[outside], sorted[last - outside]),
        None => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Some(Interval { low, value, high })
}

/// Returns how many of `n` values in order lie outside the interval at each end; `None` for too
/// few.
fn values_outside(n: usize) -> Option<usize> {
    // How often at most `outside` of `n` tosses come up heads: the terms of (1/2 + 1/2)^n, in
    // logarithms, since 2^n has no room.
    let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
    let mut missed = 2.0 * ln_term.exp();
    let mut outside = None;
    for heads in 0..n / 2 {
        if missed > MISSES_MAX {
            break;
        }
        outside = Some(heads);
        ln_term += ((n - heads) as f64 / (heads + 1) as f64).ln();
        missed += 2.0 * ln_term.exp();
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix;
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
        assert_eq!(paired_ratio(&[], Better::Lower), None);
        let values: Vec<f64> = (1..10).map(f64::from).collect();
        for n in 1..REPETITIONS_MIN {
            let interval = median_interval(&values[..n]).expect("values");
            assert_eq!(Some(interval.value), median(&values[..n]));
            assert!(!interval.excludes(-1e300) && !interval.excludes(1e300));
            assert_eq!(interval.bounds(|bound| bound.to_string()), "-");
        }
        let seven = Interval {
            low: 1.0,
            value: 4.0,
            high: 7.0,
        };
        assert_eq!(median_interval(&values[..7]), Some(seven));
        assert_eq!(seven.bounds(|bound| bound.to_string()), "[1, 7]");
    }

    /// From the tables of the sign test.
    #[test]
    fn bounds_are_those_of_the_sign_test() {
        let outside = [5, 6, 8, 9, 11, 12, 15, 17, 20, 25, 31, 50, 100].map(values_outside);
        let tables = [0, 0, 1, 1, 2, 3, 4, 5, 7, 9, 17, 39].map(Some);
        assert_eq!(outside[0], None);
        assert_eq!(outside[1..], tables);
        // Where 2^n has no room; by the normal distribution, n / 2 - 0.98 √n - 1/2.
        let many = values_outside(10_000).expect("many values");
        assert!(many.abs_diff(4_901) <= 1, "{many}");
    }

    #[test]
    fn an_interval_covers_the_true_median_95_times_in_100() {
        const DRAWS: u64 = 2_000;
        for n in [6, 7, 8, 9, 11, 20, 30] {
            let covered = (0..DRAWS)
                .filter(|&draw| {
                    let mut random = SplitMix::new(draw << 8 | n);
                    let values: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
                    let interval = median_interval(&values).expect("values");
                    !interval.excludes(std::f64::consts::LN_2)
                })
                .count();
            // 95 % less three times the deviation of 2,000 draws.
            assert!(covered >= 1_870, "{covered} of {DRAWS} with {n} values");
        }
    }

    #[test]
    fn a_ratio_is_as_good_for_either_side() {
        let pairs = [(1.0, 1.0), (1.0, 4.0), (1.0, 2.0), (1.0, 8.0)];
        let turned = pairs.map(|(subject, other)| (other, subject));
        let ratio = |pairs: &[_]| {
            paired_ratio(pairs, Better::Lower)
                .expect("sound pairs")
                .value
        };
        // The mean of the middle two would be 3, and the other way round 0.375.
        assert!((ratio(&pairs) - 8.0_f64.sqrt()).abs() < 1e-12);
        assert!((ratio(&pairs) * ratio(&turned) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ratio_above_one_means_that_the_subject_is_better() {
        let pairs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|ns| (ns, 4.0 * ns));
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
        assert!(by(Better::Lower).excludes(1.0));
        assert!(by(Better::Higher).excludes(1.0));
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
    fn runs_that_do_not_differ_have_an_interval_that_includes_1() {
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
                .excludes(1.0)
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
        fn intervals_lie_within_the_values(values in prop::collection::vec(-1e9..1e9, 6..60)) {
            let interval = median_interval(&values).expect("enough");
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(low <= interval.low && interval.low <= interval.value);
            prop_assert!(interval.value <= interval.high && interval.high <= high);
            let by_quantile = median(&values).expect("enough");
            prop_assert!((by_quantile - interval.value).abs() <= interval.value.abs() * 1e-9);
        }
    }
}
