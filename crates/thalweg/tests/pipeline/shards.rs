//! A shard that fails, and a stage that looks at its chunk before it works on it.

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
            chunk.look(|event| {
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
