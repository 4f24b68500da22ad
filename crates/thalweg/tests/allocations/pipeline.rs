//! No event makes a pipeline allocate once it is warm, on any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::pipeline::{Pipeline, Placement};
use thalweg_testkit::counting::{calls, so_far};

const WARM_UP: u64 = 20_000;
const EVENTS: u64 = 100_000;

/// Calls to the allocator by this thread between the warm-up and the end.
fn watch(number: u64, at_warm: &mut u64, total: &AtomicU64) {
    if number == WARM_UP {
        *at_warm = so_far();
    } else if number == EVENTS - 1 {
        total.fetch_add(so_far() - *at_warm, SeqCst);
    }
}

#[test]
fn a_warm_pipeline_does_not_allocate() {
    for (placement, every) in [
        (Placement::inline(), 1),
        (Placement::inline(), 64),
        (Placement::threads(1), 64),
        (Placement::threads(2), 64),
        (Placement::caller_and_threads(1, 1), 64),
    ] {
        let total = Arc::new(AtomicU64::new(0));
        let (first, second) = (Arc::clone(&total), Arc::clone(&total));
        let (mut first_warm, mut second_warm) = (0, 0);
        let mut pipeline = Pipeline::builder(1024, || 0u64)
            .stage("first", move |event: &mut u64, _| {
                watch(*event, &mut first_warm, &first);
            })
            .observe("second", move |event, _| {
                watch(*event, &mut second_warm, &second)
            })
            .after("first")
            .placement(placement.clone())
            .sample_every(every)
            .build()
            .expect("a valid pipeline");
        let mut publish = |from: u64, until: u64| {
            for number in from..until {
                pipeline
                    .publish(|event| *event = number)
                    .expect("no failure");
            }
        };
        publish(0, WARM_UP + 2_000);
        let by_caller = calls(|| publish(WARM_UP + 2_000, EVENTS));
        pipeline.join().expect("no failure");
        assert_eq!(by_caller, 0, "{placement}: the caller's thread");
        assert_eq!(total.load(SeqCst), 0, "{placement}: the stages' threads");
    }
}
