//! The promises of a pipeline, whatever the placement.

mod anywhere;
#[cfg(not(sanitized))]
mod attribution;
#[cfg(not(sanitized))]
mod auto;
mod ending;
mod failure;
mod options;
mod room;
mod shards;
mod state;
pub(crate) use crate::channel::watchdog;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::{Flow, Pipeline, PipelineBuilder, Placement};
use thalweg::wait::WaitStrategy;

#[derive(Default, Debug)]
struct Event {
    number: u64,
    trail: Vec<u8>,
    sum: u64,
}

fn placements() -> Vec<Placement> {
    let mut all = vec![
        Placement::inline(),
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::threads(3),
        Placement::caller_and_threads(1, 1),
        Placement::caller_and_threads(2, 1),
        Placement::caller_and_threads(1, 2),
        Placement::explicit().on_caller(["b"]).on_thread(["a", "c"]),
        Placement::threads(3).unpinned(),
    ];
    for strategy in [
        WaitStrategy::Yield,
        WaitStrategy::Park,
        WaitStrategy::Adaptive,
    ] {
        all.push(Placement::threads(2).waiting(strategy));
    }
    all
}

/// Three stages in a row, each of which adds its mark; the last notes what it sees.
fn chain(capacity: usize) -> (PipelineBuilder<Event>, Arc<Mutex<Vec<u64>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let out = Arc::clone(&seen);
    let builder = Pipeline::builder(capacity, Event::default)
        .stage("a", |event: &mut Event, _| {
            event.trail.clear();
            event.trail.push(b'a');
            event.sum = event.number;
        })
        .stage("b", |event, _| {
            event.trail.push(b'b');
            event.sum = event.sum * 31 + 7;
        })
        .after("a")
        .observe("c", move |event, context| {
            assert_eq!(event.trail, b"ab");
            assert_eq!(event.number, context.sequence());
            out.lock().expect("no panic").push(event.sum);
        })
        .after("b");
    (builder, seen)
}

#[test]
fn every_placement_gives_the_same_results_in_order() {
    for placement in placements() {
        let (builder, seen) = chain(64);
        let mut pipeline = builder.placement(placement.clone()).build().unwrap();
        let count = 3_000;
        for number in 0..count / 2 {
            pipeline.publish(|event| event.number = number).unwrap();
        }
        let half = count / 2;
        pipeline
            .publish_batch(half as usize, |at, event| event.number = half + at as u64)
            .unwrap();
        pipeline.flush().unwrap();
        assert_eq!(seen.lock().unwrap().len() as u64, count, "{placement}");
        let stats = pipeline.join().unwrap();
        let expected: Vec<u64> = (0..count).map(|n| n * 31 + 7).collect();
        assert_eq!(*seen.lock().unwrap(), expected, "{placement}");
        for stage in &stats.stages {
            assert_eq!(stage.events, count, "{placement} {}", stage.name);
        }
    }
}

#[test]
fn several_producers_lose_nothing_and_keep_their_own_order() {
    for placement in placements() {
        let seen = Arc::new(Mutex::new(vec![Vec::new(); 4]));
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(32, || (0usize, 0u64))
            .stage("a", |event: &mut (usize, u64), _| event.1 += 1)
            .stage("b", |event, _| event.1 += 1)
            .after("a")
            .observe("c", move |event, _| {
                out.lock().unwrap()[event.0].push(event.1)
            })
            .after("b")
            .placement(placement.clone())
            .producers(3)
            .build()
            .unwrap();
        let threads: Vec<_> = pipeline
            .take_producers()
            .into_iter()
            .enumerate()
            .map(|(at, mut producer)| {
                std::thread::spawn(move || {
                    for number in 0..500 {
                        producer.publish(|event| *event = (at, number)).unwrap();
                    }
                })
            })
            .collect();
        for number in 0..500 {
            pipeline.publish(|event| *event = (3, number)).unwrap();
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            pipeline.drive().unwrap();
            std::thread::yield_now();
        }
        pipeline.flush().unwrap();
        assert_eq!(
            seen.lock().unwrap()[3].len(),
            500,
            "the handle's own events are through"
        );
        let stats = pipeline.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        for lane in &*seen.lock().unwrap() {
            assert_eq!(*lane, (2..502).collect::<Vec<u64>>(), "{placement}");
        }
        assert_eq!(stats.stages[2].events, 2_000);
        assert!(stats.end_to_end_ns.count() > 0);
    }
}

#[test]
fn shards_get_the_events_of_their_route_and_together_all() {
    for placement in [
        Placement::inline(),
        Placement::threads(2),
        Placement::threads(4),
    ] {
        let counts: Arc<Vec<AtomicU64>> = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect());
        let out = Arc::clone(&counts);
        let mut pipeline = Pipeline::builder(64, || (0u64, 0u64))
            .sharded(
                "match",
                3,
                |event: &(u64, u64)| event.0 as usize,
                move |shard| {
                    let out = Arc::clone(&out);
                    move |event: &mut (u64, u64), _| {
                        assert_eq!(event.0 % 3, shard as u64);
                        event.1 += 1;
                        out[shard].fetch_add(1, SeqCst);
                    }
                },
            )
            .observe("check", |event, _| assert_eq!(event.1, 1))
            .after("match")
            .placement(placement)
            .sample_every(1)
            .build()
            .unwrap();
        for number in 0..999 {
            pipeline.publish(|event| *event = (number, 0)).unwrap();
        }
        let stats = pipeline.join().unwrap();
        let counts: Vec<u64> = counts.iter().map(|count| count.load(SeqCst)).collect();
        assert_eq!(counts, [333, 333, 333]);
        let sampled: u64 = stats.stages[..3].iter().map(|s| s.service_ns.count()).sum();
        assert_eq!(sampled, 999, "each event is served by one shard");
        assert_eq!(stats.stages[3].name, "check");
        assert_eq!(stats.end_to_end_ns.count(), 999);
        assert!(stats.slowest.iter().all(|slow| slow.parts.len() == 2));
    }
}

#[test]
fn an_event_that_has_to_wait_is_offered_again_after_the_others_had_a_turn() {
    // "risk" lets event n pass only when "settle" is done with n - 1.
    for placement in [
        Placement::inline(),
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
    ] {
        let settled = Arc::new(AtomicU64::new(0));
        let (see, set) = (Arc::clone(&settled), Arc::clone(&settled));
        let mut pipeline = Pipeline::builder(64, || 0u64)
            .stage_chunks("risk", move |chunk| {
                chunk.try_for_each(|event, context| {
                    if see.load(SeqCst) < context.sequence() {
                        return Flow::Retry;
                    }
                    *event += 1;
                    Flow::Next
                })
            })
            .stage("settle", move |event, context| {
                assert_eq!(*event, 8);
                set.store(context.sequence() + 1, SeqCst);
            })
            .after("risk")
            .placement(placement)
            .build()
            .unwrap();
        pipeline
            .publish_batch(1_000, |_, event| *event = 7)
            .unwrap();
        pipeline.join().unwrap();
        assert_eq!(settled.load(SeqCst), 1_000);
    }
}

#[test]
fn a_full_pipeline_refuses_and_calls_nothing() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().unwrap();
    let inside = Arc::clone(&gate);
    let mut pipeline = Pipeline::builder(4, || 0u64)
        .stage("slow", move |_, _| drop(inside.lock().unwrap()))
        .placement(Placement::threads(1))
        .build()
        .unwrap();
    for _ in 0..4 {
        pipeline.try_publish(|_| ()).unwrap();
    }
    let refused = pipeline.try_publish(|_| panic!("must not be called"));
    assert_eq!(refused.unwrap_err().to_string(), "the pipeline is full");
    drop(held);
    pipeline.publish(|_| ()).unwrap();
    assert_eq!(pipeline.join().unwrap().stages[0].events, 5);
}

#[test]
fn a_slow_stage_holds_the_producer_back_and_loses_nothing() {
    for placement in [
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
    ] {
        let seen = Arc::new(AtomicU64::new(0));
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(8, || 0u64)
            .stage("quick", |_, _| ())
            .observe("slow", move |event, _| {
                let begin = std::time::Instant::now();
                while begin.elapsed().as_micros() < 200 {
                    std::thread::yield_now();
                }
                assert_eq!(out.fetch_add(1, SeqCst), *event, "in order, none left out");
            })
            .after("quick")
            .placement(placement)
            .build()
            .unwrap();
        for number in 0..1_000 {
            pipeline.publish(|event| *event = number).unwrap();
            assert!(number < seen.load(SeqCst) + 10, "at most a ring full ahead");
        }
        pipeline.join().unwrap();
        assert_eq!(seen.load(SeqCst), 1_000);
    }
}
