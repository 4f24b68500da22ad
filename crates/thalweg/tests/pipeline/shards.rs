//! Sharded stages and lookers that work on chunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::pipeline::{Chunk, Flow, Pipeline, Placement};

use crate::pipeline::watchdog::watched;

fn placements() -> [Placement; 5] {
    [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::threads(3),
        Placement::threads(6),
    ]
}

const SHARDS: usize = 3;

/// Each shard lets event n pass only when its own looker is done with everything before n: what a
/// risk check that waits for settlements does.
#[test]
fn a_shard_that_waits_is_offered_its_events_again_and_nothing_is_lost() {
    for placement in placements() {
        let done: Arc<Vec<AtomicU64>> = Arc::new((0..SHARDS).map(|_| AtomicU64::new(0)).collect());
        let waits = Arc::new(AtomicU64::new(0));
        let (see, count) = (Arc::clone(&done), Arc::clone(&waits));
        let mut builder = Pipeline::builder(64, || (0_usize, 0_u64)).sharded_chunks(
            "check",
            SHARDS,
            |event: &(usize, u64)| event.0,
            move |shard| {
                let (see, count) = (Arc::clone(&see), Arc::clone(&count));
                move |chunk| {
                    chunk.try_for_each(|event, context| {
                        assert_eq!(event.0 % SHARDS, shard);
                        if event.0 % 7 == 0 && see[shard].load(SeqCst) < context.sequence() {
                            count.fetch_add(1, SeqCst);
                            return Flow::Retry;
                        }
                        event.1 += 1;
                        Flow::Next
                    })
                }
            },
        );
        for shard in 0..SHARDS {
            let done = Arc::clone(&done);
            builder = builder
                .observe_chunks(format!("book[{shard}]"), move |view| {
                    assert!(view.len() > 0);
                    view.for_each(|event, context| {
                        assert_eq!(event.1, context.sequence() / 50 + 1);
                        done[shard].store(context.sequence() + 1, SeqCst);
                    })
                })
                .after("check");
        }
        let name = placement.to_string();
        let mut pipeline = builder.placement(placement).build().unwrap();
        let stats = watched(move || {
            for round in 0..40_u64 {
                pipeline
                    .publish_batch(50, |at, event| *event = (at * 5, round))
                    .unwrap();
            }
            pipeline.join().unwrap()
        });
        for shard in &*done {
            assert_eq!(shard.load(SeqCst), 2_000, "{name}");
        }
        assert!(waits.load(SeqCst) > 0, "{name}");
        assert!(stats.stages[SHARDS..].iter().all(|s| s.events == 2_000));
    }
}

#[test]
fn a_shard_that_panics_is_named_and_no_thread_hangs() {
    for placement in placements() {
        let mut pipeline = Pipeline::builder(64, || 0_usize)
            .stage_chunks("first", |chunk| chunk.for_each(|event, _| *event += 1))
            .sharded_chunks(
                "check",
                SHARDS,
                |event: &usize| *event,
                |shard| {
                    move |chunk| {
                        chunk.for_each(|_, context| {
                            assert!(shard != 1 || context.sequence() < 500, "seeded");
                        })
                    }
                },
            )
            .after("first")
            .observe_chunks("last", |view| view.for_each(|_, _| ()))
            .after("check")
            .placement(match placement {
                // One stage fewer than in the other test.
                placement if placement == Placement::threads(6) => Placement::threads(5),
                placement => placement,
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
fn a_stage_looks_at_its_share_of_a_chunk_before_it_works_on_it() {
    for placement in placements() {
        let work = |shard| {
            move |mut chunk: Chunk<'_, (usize, u64)>| {
                let (first, mut looked) = (chunk.first_sequence(), 0);
                chunk.look(|event| {
                    assert_eq!((event.0 % SHARDS, event.1), (shard, 0));
                    looked += 1;
                });
                let end = first + chunk.len() as u64;
                chunk.for_each(|event, context| {
                    assert!((first..end).contains(&context.sequence()));
                    event.1 += 1;
                    looked -= 1;
                    assert!(looked >= 0);
                })
            }
        };
        let route = |event: &(usize, u64)| event.0;
        let builder = Pipeline::builder(64, || (0, 0));
        let builder = builder.sharded_chunks("work", SHARDS, route, work);
        let total = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&total);
        let mut pipeline = builder
            .observe("sum", move |event, _| {
                sum.fetch_add(event.1, SeqCst);
            })
            .after("work")
            .placement(match placement {
                placement if placement == Placement::threads(6) => Placement::threads(4),
                placement => placement,
            })
            .build()
            .unwrap();
        watched(move || {
            for at in 0..500 {
                let count = at % 70;
                let write = |at, event: &mut (usize, u64)| *event = (at * 5, 0);
                pipeline.publish_batch(count, write).unwrap();
            }
            pipeline.join().unwrap()
        });
        let expected = (0..500_u64).map(|at| at % 70).sum::<u64>();
        assert_eq!(total.load(SeqCst), expected);
    }
}
