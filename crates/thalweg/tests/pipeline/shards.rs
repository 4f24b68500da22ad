//! Sharded stages and lookers that work on chunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::pipeline::{Flow, Pipeline, Placement};

use super::ends;

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
        let stats = ends(move || {
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
fn a_shard_that_panics_is_named_and_nobody_hangs() {
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
        let failure = ends(move || {
            // It is told sooner or later.
            let _ = (0..100_000).find_map(|n| pipeline.publish(|event| *event = n).err());
            pipeline.join().unwrap_err()
        });
        assert_eq!(failure.stage, "check[1]");
        assert!(failure.message.contains("seeded"));
    }
}
