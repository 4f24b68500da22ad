//! Histograms as Prometheus has them.

use thalweg_measure::histogram::Histogram;

/// Upper bounds of histograms of times, in nanoseconds.
pub(crate) const BOUNDS_NS: [u64; 15] = [
    100,
    300,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];
/// The bounds of histograms of counts.
pub(crate) const BOUNDS_COUNT: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 256, 1_024, 4_096];

/// How many values are at most each bound, and above the one before; the last has no bound.
pub(crate) fn buckets(histogram: &Histogram, bounds: &[u64]) -> Vec<(Option<u64>, u64)> {
    let bounds = bounds.iter().map(|bound| Some(*bound)).chain([None]);
    let mut buckets: Vec<(Option<u64>, u64)> = bounds.map(|bound| (bound, 0)).collect();
    for (value, count) in histogram.iter_recorded() {
        let holds = |(bound, _): &&mut (Option<u64>, u64)| bound.is_none_or(|max| value <= max);
        if let Some((_, bucket)) = buckets.iter_mut().find(holds) {
            *bucket += count;
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_every_value_once() {
        let mut histogram = Histogram::new();
        for value in [1, 2, 3, 4, 5_000] {
            histogram.record(value);
        }
        let counts = buckets(&histogram, &[2, 4, 8]);
        assert_eq!(
            counts,
            [(Some(2), 2), (Some(4), 2), (Some(8), 0), (None, 1)]
        );
    }
}
