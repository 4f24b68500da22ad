//! The recorder against `hdrhistogram`, at its extremes, and read while it is written.

use proptest::prelude::*;
use std::sync::Arc;
use thalweg_measure::histogram::{Recorder, VALUE_MAX};

const QUANTILES: [f64; 7] = [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];

fn assert_close(found: u64, expected: u64, what: &str) {
    // Half a bucket of 1/128, and three digits on both sides.
    let bound = expected / 165 + 1;
    assert!(
        found.abs_diff(expected) <= bound,
        "{what}: {found} for {expected}"
    );
}

/// Values of every magnitude up to the range of the recorder.
fn values() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let value = (0_u32..=44, any::<u64>()).prop_map(|(bits, noise)| noise & ((1 << bits) - 1));
    prop::collection::vec((value, 1_u64..100), 1..300)
}

proptest! {
    #[test]
    fn snapshot_equals_hdrhistogram(values in values()) {
        let recorder = Recorder::new();
        let mut expected = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        let mut sum = 0_u128;
        for &(value, n) in &values {
            recorder.record_n(value, n);
            expected.record_n(value, n).unwrap();
            sum += u128::from(value) * u128::from(n);
        }
        let found = recorder.snapshot(|value| value);
        prop_assert_eq!(found.count(), expected.len());
        prop_assert_eq!(recorder.count(), expected.len());
        prop_assert_eq!(recorder.sum(), sum);
        for q in QUANTILES {
            assert_close(found.quantile(q), expected.value_at_quantile(q), &format!("q {q}"));
        }
        prop_assert_eq!(Some(found.min()), values.iter().map(|v| v.0).min());
        prop_assert_eq!(Some(found.max()), values.iter().map(|v| v.0).max());
        let mean = sum as f64 / expected.len() as f64;
        prop_assert!((found.mean() - mean).abs() <= mean * 1e-9, "{} {}", found.mean(), mean);
    }

    #[test]
    fn weights_are_repetitions(
        values in prop::collection::vec((0_u64..1 << 50, 0_u64..20), 0..50),
    ) {
        let (weighted, repeated) = (Recorder::new(), Recorder::new());
        for &(value, n) in &values {
            weighted.record_n(value, n);
            (0..n).for_each(|_| repeated.record(value));
        }
        prop_assert_eq!(weighted.snapshot(|v| v), repeated.snapshot(|v| v));
        prop_assert_eq!(weighted.sum(), repeated.sum());
    }
}

#[test]
fn scale_applies_to_everything() {
    let recorder = Recorder::new();
    for ticks in [200, 400, 600, 800] {
        recorder.record(ticks);
    }
    let summary = recorder.snapshot(|ticks| ticks * 10).summary();
    assert_eq!(
        (summary.min, summary.max, summary.mean),
        (2000, 8000, 5000.0)
    );
    assert_close(summary.p50, 4000, "median");
}

#[test]
fn extremes_are_kept() {
    let recorder = Recorder::new();
    assert_eq!((recorder.count(), recorder.sum()), (0, 0));
    recorder.record(0);
    assert_eq!(recorder.snapshot(|value| value).max(), 0);
    recorder.record(VALUE_MAX);
    recorder.record_n(u64::MAX, 3);
    recorder.record(VALUE_MAX + 1);
    assert_eq!(recorder.count(), 6);
    assert_eq!(
        recorder.sum(),
        u128::from(u64::MAX) * 3 + u128::from(VALUE_MAX) * 2 + 1
    );
    let snapshot = recorder.snapshot(|value| value);
    assert_eq!(
        (snapshot.min(), snapshot.max(), snapshot.count()),
        (0, u64::MAX, 6)
    );
    assert_eq!(snapshot.quantile(1.0), u64::MAX);
}

#[test]
fn readers_beside_the_writer_never_lose_counts() {
    const RECORDS: u64 = 300_000;
    const VALUE: u64 = 1 << 40;
    let recorder = Arc::new(Recorder::new());
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let reader = Arc::clone(&recorder);
            std::thread::spawn(move || {
                let (mut counted_before, mut sum_before) = (0, 0);
                let mut snapshots = 0;
                while counted_before < RECORDS * 3 {
                    let counted = reader.count();
                    let sum = reader.sum();
                    assert!(
                        counted >= counted_before,
                        "{counted} after {counted_before}"
                    );
                    assert!(sum >= sum_before, "{sum} after {sum_before}");
                    let snapshot = reader.snapshot(|value| value);
                    assert!(
                        snapshot.count() >= counted,
                        "{} of {counted}",
                        snapshot.count()
                    );
                    assert_eq!(snapshot.count() % 3, 0, "a weight came apart");
                    // The sum is read at another moment than the counts; the mean stays sound.
                    let off = (snapshot.mean() - VALUE as f64).abs();
                    assert!(
                        snapshot.is_empty() || off <= VALUE as f64 / 100.0,
                        "{off} off"
                    );
                    counted_before = counted;
                    sum_before = sum;
                    snapshots += 1;
                }
                snapshots
            })
        })
        .collect();
    for i in 0..RECORDS {
        recorder.record_n(VALUE + i, 3);
    }
    for reader in readers {
        assert!(reader.join().expect("the reader does not panic") > 0);
    }
    let expected = (0..RECORDS)
        .map(|i| u128::from(VALUE + i) * 3)
        .sum::<u128>();
    assert_eq!(recorder.sum(), expected);
}
