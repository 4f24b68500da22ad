//! The work of a pipeline for each measured event.

use std::hint::black_box;

use thalweg_measure::histogram::{Histogram, Recorder};

use super::{Cases, rounds};

/// Values of all magnitudes up to a second, in nanoseconds.
const SPREAD: u64 = 976_562;

pub(super) fn add(cases: &mut Cases) {
    cases.insert("measure/histogram/record".to_owned(), || {
        let mut histogram = Histogram::new();
        rounds(move |number| histogram.record(black_box(number % 1024 * SPREAD)))
    });
    cases.insert("measure/recorder/record".to_owned(), || {
        let recorder = Recorder::new();
        rounds(move |number| {
            recorder.record(black_box(number % 1024 * SPREAD));
            black_box(&recorder);
        })
    });
}
