//! Histograms of latency: [`Recorder`] for the hot path, [`Histogram`] for reports.
//!
//! A [`Recorder`] takes ticks at some 3 ns a record and is read while it is written. A
//! [`Histogram`] belongs to one thread, keeps three significant digits, and answers for quantiles,
//! summaries and curves.

mod buckets;
mod recorder;
mod wide_sum;

pub use buckets::{VALUE_MAX, group_middle, group_of};
pub use recorder::Recorder;

/// The counts of an `hdrhistogram`, with the extremes and the sum kept exactly beside it.
///
/// Values are `u64` in whatever unit was recorded; a quantile is within 0.1 % of a recorded value.
///
/// ```
/// let mut latency_ns = thalweg_measure::histogram::Histogram::new();
/// (1..=1000).for_each(|ns| latency_ns.record(ns));
/// assert_eq!(latency_ns.summary().p50, 500);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

/// The main figures of a histogram, all in the unit that was recorded. Everything is 0 where
/// nothing was recorded, so look at `count`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Summary {
    /// The number of values.
    pub count: u64,
    /// Their exact mean.
    pub mean: f64,
    /// The smallest, exactly.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// The value that 9 in 10 values do not exceed.
    pub p90: u64,
    /// The value that 99 in 100 values do not exceed.
    pub p99: u64,
    /// The value that 999 in 1,000 values do not exceed.
    pub p999: u64,
    /// The value that 9,999 in 10,000 values do not exceed.
    pub p9999: u64,
    /// The greatest, exactly.
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// Returns an empty histogram. It grows with the greatest value recorded, up to some 450 KiB.
    #[must_use]
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new(3).expect("3 digits are within 0..=5");
        Histogram {
            counts,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `n` events of this value. Allocates where the value is a new greatest one.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        // Above that, hdrhistogram does not grow; the exact maximum is kept beside it.
        self.counts
            .record_n(value.min(COUNTED_MAX), n)
            .expect("hdrhistogram grows up to COUNTED_MAX");
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(n));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all that `other` has recorded.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts
            .add(&other.counts)
            .expect("hdrhistogram grows up to COUNTED_MAX");
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns what was recorded since `earlier`, a copy of this histogram at an earlier time. The
    /// extremes are within 0.1 %, as quantiles are.
    ///
    /// ```
    /// let mut times = thalweg_measure::histogram::Histogram::new();
    /// times.record(7);
    /// let earlier = times.clone();
    /// times.record(5);
    /// assert_eq!(times.since(&earlier).summary().max, 5);
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut found = Histogram::new();
        for (value, count) in self.iter_recorded() {
            let before = earlier.counts.count_at(value);
            found.record_n(value, count.saturating_sub(before));
        }
        found.sum = self.sum.saturating_sub(earlier.sum);
        found
    }

    /// Returns how many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the values that were recorded, each within 0.1 %, with how often; ascending.
    ///
    /// ```
    /// let mut times = thalweg_measure::histogram::Histogram::new();
    /// times.record_n(7, 3);
    /// assert_eq!(times.iter_recorded().collect::<Vec<_>>(), [(7, 3)]);
    /// ```
    pub fn iter_recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let values = self.counts.iter_recorded();
        values.map(|at| (at.value_iterated_to(), at.count_at_value()))
    }

    /// Returns whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the sum of all values, as far as 128 bits go.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the mean of all values; 0 where there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            0.0
        } else {
            self.sum as f64 / self.count() as f64
        }
    }

    /// Returns the smallest value; 0 where there are none.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.min }
    }

    /// Returns the greatest value; 0 where there are none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the value that a fraction `q` (0 to 1, clamped) of all values does not exceed; 0
    /// where there are none. Costs a walk over the counts.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        if q >= 1.0 {
            return self.max;
        }
        self.counts
            .value_at_quantile(q.max(0.0))
            .clamp(self.min, self.max)
    }

    /// Returns count, mean, extremes and the most used quantiles.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            mean: self.mean(),
            min: self.min(),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            p9999: self.quantile(0.9999),
            max: self.max(),
        }
    }

    /// Returns the curve of value by percentile (0 to 100): `points_per_half` points between 0 and
    /// 50, as many between 50 and 75, and so on, halving what is left up to 100. Both rise. Empty
    /// where nothing was recorded.
    ///
    /// # Panics
    /// Where `points_per_half` is 0.
    #[must_use]
    pub fn curve(&self, points_per_half: u32) -> Vec<(f64, u64)> {
        assert!(
            points_per_half > 0,
            "a curve needs at least 1 point per half, not 0"
        );
        if self.is_empty() {
            return Vec::new();
        }
        self.counts
            .iter_quantiles(points_per_half)
            .map(|point| {
                let percentile = point.quantile_iterated_to() * 100.0;
                (
                    percentile,
                    point.value_iterated_to().clamp(self.min, self.max),
                )
            })
            .collect()
    }

    /// Replaces what bucket middles say by what the recorder knows exactly.
    fn set_exact(&mut self, min: u64, max: u64, sum: u128) {
        self.min = min;
        self.max = max;
        self.sum = sum;
    }
}

/// The greatest value up to which `hdrhistogram` promises to grow.
const COUNTED_MAX: u64 = i64::MAX as u64 / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|value| histogram.record(value));
        let summary = histogram.summary();
        let expected = Summary {
            count: 1000,
            mean: 500.5,
            min: 1,
            p50: 500,
            p90: 900,
            p99: 990,
            p999: 999,
            p9999: 1000,
            max: 1000,
        };
        assert_eq!(summary, expected);
        assert_eq!(histogram.quantile(0.0), 1);
        assert_eq!(histogram.quantile(7.0), 1000);
    }

    #[test]
    fn empty_is_all_zero() {
        let empty = Histogram::new();
        assert_eq!(empty.summary(), Summary::default());
        assert_eq!((empty.quantile(0.5), empty.min(), empty.max()), (0, 0, 0));
        assert_eq!(empty.curve(5), []);
        let mut histogram = Histogram::new();
        histogram.record_n(5, 0);
        histogram.merge(&empty);
        assert_eq!(histogram, empty);
        assert_eq!(Recorder::new().snapshot(|ticks| ticks), empty);
    }

    #[test]
    fn merged_is_recorded_together() {
        let (mut left, mut right, mut both) =
            (Histogram::new(), Histogram::new(), Histogram::new());
        for value in [3, 70, 70, 1 << 40] {
            left.record(value);
            both.record(value);
        }
        for value in [0, 9_999, u64::MAX] {
            right.record_n(value, 3);
            both.record_n(value, 3);
        }
        left.merge(&right);
        assert_eq!(left.summary(), both.summary());
        assert_eq!((left.count(), left.max(), left.min()), (13, u64::MAX, 0));
    }

    #[test]
    fn curve_rises_to_the_maximum() {
        let mut histogram = Histogram::new();
        (0..100_000_u64).for_each(|i| histogram.record(i * i));
        let curve = histogram.curve(5);
        assert!(
            curve
                .windows(2)
                .all(|two| two[0].0 <= two[1].0 && two[0].1 <= two[1].1)
        );
        assert!(
            curve
                .iter()
                .filter(|&&(percentile, _)| percentile <= 50.0)
                .count()
                >= 5
        );
        let last = curve.last().expect("not empty");
        assert_eq!(*last, (100.0, histogram.max()));
    }

    #[test]
    #[should_panic(expected = "at least 1 point per half")]
    fn curve_without_points_is_refused() {
        let _ = Histogram::new().curve(0);
    }
}
