//! A shard that fails, and a stage that looks at its chunk before it works on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::pipeline::{Chunk, Pipeline, Placement};

use crate::pipeline::watchdog::watched;

#[test]
fn a_shard_that_panics_is_named_and_no_thread_hangs() {
    for threads in 0..=5 {
        let mut pipeline = Pipeline::builder(64, || 0_usize)
            .stage_chunks("first", |chunk| chunk.for_each(|event, _| *event += 1))
            .sharded(
                "check",
                3,
                |event| *event,
                |shard| move |_, context| assert!(shard != 1 || context.sequence() < 500, "seeded"),
            )
            .after("first")
            .observe("last", |_, _| ())
            .after("check")
            .placement(match threads {
                0 => Placement::inline(),
                threads => Placement::threads(threads),
            })
            .build()
            .unwrap();
        let failure = watched(move || {
            // It gets the error sooner or later.
            let _ = (0..100_000).find_map(|n| pipeline.publish(|event| *event = n).err());
            pipeline.join().unwrap_err()
        });
        assert_eq!(failure.stage, "check[1]");
        assert!(failure.message.contains("seeded"));
    }
}

#[test]
fn a_stage_looks_at_a_chunk_before_it_works_on_it() {
    for placement in [Placement::inline(), Placement::threads(1)] {
        let total = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&total);
        let work = move |mut chunk: Chunk<'_, u64>| {
            let (first, mut looked) = (chunk.first_sequence(), 0);
            chunk.inspect(|event| {
                assert_eq!(*event, 0);
                looked += 1;
            });
            assert_eq!(looked, chunk.len());
            let end = first + chunk.len() as u64;
            chunk.for_each(|event, context| {
                assert!((first..end).contains(&context.sequence()));
                *event += 1;
                sum.fetch_add(1, SeqCst);
            })
        };
        let builder = Pipeline::builder(64, || 0).stage_chunks("work", work);
        let mut pipeline = builder.placement(placement).build().unwrap();
        watched(move || {
            for at in 0..500 {
                pipeline
                    .publish_batch(at % 70, |_, event| *event = 0)
                    .unwrap();
            }
            pipeline.join().unwrap()
        });
        assert_eq!(
            total.load(SeqCst),
            (0..500_u64).map(|at| at % 70).sum::<u64>()
        );
    }
}

/// Where a route panics for event 1, which is tried once in each way.
fn with_a_route_that_panics(seen: &Arc<AtomicU64>, producers: usize) -> Pipeline<u64> {
    let sum = Arc::clone(seen);
    let route = |event: &u64| {
        assert!(*event != 1, "seeded");
        0
    };
    Pipeline::builder(256, || 0_u64)
        .sharded("add", 2, route, move |_| {
            let sum = Arc::clone(&sum);
            move |event: &mut u64, _| _ = sum.fetch_add(*event, SeqCst)
        })
        .producers(producers)
        .placement(Placement::threads(1))
        .build()
        .expect("a valid pipeline")
}

#[test]
fn a_panic_of_a_route_publishes_nothing_and_the_pipeline_goes_on() {
    let seen = Arc::new(AtomicU64::new(0));
    let mut pipeline = with_a_route_that_panics(&seen, 0);
    pipeline.publish(|event| *event = 10).expect("it runs");
    let one = |event: &mut u64| *event = 1;
    for way in 0..3 {
        let outcome = catch_unwind(AssertUnwindSafe(|| match way {
            0 => pipeline.publish(one).is_ok(),
            1 => pipeline.try_publish(one).is_ok(),
            _ => (pipeline.publish_batch(70, |at, event| *event = if at == 66 { 1 } else { 2 }))
                .is_ok(),
        }));
        assert!(outcome.is_err(), "{way}");
    }
    pipeline.publish(|event| *event = 5).expect("it runs");
    watched(move || pipeline.join().expect("no stage panicked"));
    // The first piece of the batch has 64 events, and the second one the panic.
    assert_eq!(seen.load(SeqCst), 10 + 64 * 2 + 5);
}

#[test]
fn a_panic_of_a_route_for_a_producer_stops_the_pipeline() {
    let seen = Arc::new(AtomicU64::new(0));
    let mut pipeline = with_a_route_that_panics(&seen, 1);
    let mut producer = pipeline.take_producers().remove(0);
    let failure = watched(move || {
        let _ = producer.publish(|event| *event = 1);
        drop(producer);
        pipeline.join().expect_err("the route panicked")
    });
    assert_eq!(failure.stage, "(moving events from the producers)");
    assert!(failure.message.contains("seeded"));
    assert_eq!(seen.load(SeqCst), 0);
}
