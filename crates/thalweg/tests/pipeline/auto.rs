//! The placement that follows the load.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use thalweg::pipeline::{Pipeline, Placement};

use crate::pipeline::watchdog::watched;

#[test]
fn auto_gives_stages_away_under_load_and_takes_them_back() {
    let cores = thalweg::wait::cores::usable().count();
    if cores < 2 {
        println!("skipped: one usable core, auto stays inline");
        return;
    }
    let work = |turns: u64| {
        move |event: &mut u64, _| {
            for _ in 0..turns {
                *event = std::hint::black_box(event.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1);
            }
        }
    };
    let mut pipeline = Pipeline::builder(1024, || 0u64)
        .stage("a", work(100))
        .stage("b", work(100))
        .after("a")
        .placement(Placement::auto())
        .build()
        .unwrap();
    let mut published = 0;
    // Flat out until it moves: a core that does nothing else is busy enough.
    while pipeline.stats().placement_change_count == 0 && published < 200_000_000 {
        for _ in 0..10_000 {
            pipeline.publish(|event| *event = published).unwrap();
            published += 1;
        }
    }
    assert!(
        pipeline.stats().placement_change_count > 0,
        "after {published} events"
    );
    // Then at a trickle until it moves back: 50 us are long beside an event, also where a tool
    // makes everything slower.
    let mut trickle = 0;
    while pipeline.stats().placement_change_count % 2 == 1 && trickle < 2_000_000 {
        pipeline.publish(|event| *event = trickle).unwrap();
        trickle += 1;
        let next = Instant::now() + Duration::from_micros(50);
        while Instant::now() < next {
            std::thread::yield_now();
        }
    }
    assert_eq!(
        pipeline.stats().placement_change_count % 2,
        0,
        "after {trickle} events at a trickle"
    );
    let stats = pipeline.join().unwrap();
    assert!(
        stats
            .stages
            .iter()
            .all(|stage| stage.events == published + trickle)
    );
}

#[test]
fn auto_never_leaves_stages_in_the_hand_over_when_the_ring_is_full() {
    // A small ring, flat out, with the other core taken: splits fail and are undone again and
    // again, while the caller waits for room most of the time.
    let stop = Arc::new(AtomicU64::new(0));
    let hogs: Vec<_> = (0..2)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while stop.load(SeqCst) == 0 {
                    std::hint::black_box(
                        (0..100).fold(0u64, |a: u64, b: u64| a ^ b.wrapping_mul(a)),
                    );
                }
            })
        })
        .collect();
    let begin = std::time::Instant::now();
    let mut published = 0;
    let mut pipeline = Pipeline::builder(16, || 0u64)
        .stage("a", |event: &mut u64, _| {
            *event =
                std::hint::black_box((0..100).fold(*event, |a: u64, b: u64| a ^ b.wrapping_add(a)));
        })
        .stage("b", |event, _| {
            *event =
                std::hint::black_box((0..300).fold(*event, |a: u64, b: u64| a ^ b.wrapping_add(a)));
        })
        .after("a")
        .build()
        .unwrap();
    while begin.elapsed().as_millis() < 1_500 {
        pipeline
            .publish_batch(100, |_, event| *event = published)
            .unwrap();
        published += 100;
    }
    stop.store(1, SeqCst);
    for hog in hogs {
        hog.join().unwrap();
    }
    let stats = pipeline.join().unwrap();
    assert_eq!(stats.stages[1].events, published);
}

fn work_for(ns: u64) {
    let begin = Instant::now();
    while (begin.elapsed().as_nanos() as u64) < ns {
        std::hint::spin_loop();
    }
}

/// Publishes flat out until the stages have moved. Gives up after a while: on a loaded machine
/// there may be no reason to move.
fn moves_under_load(pipeline: &mut Pipeline<u64>) -> bool {
    let (before, begin) = (pipeline.stats().placement_change_count, Instant::now());
    while pipeline.stats().placement_change_count == before
        && begin.elapsed() < Duration::from_secs(4)
    {
        for _ in 0..200 {
            pipeline.publish(|_| ()).expect("no failure");
        }
    }
    pipeline.stats().placement_change_count != before
}

#[test]
fn an_answer_from_the_last_stage_comes_also_while_stages_are_taken_back() {
    // The caller publishes one event and waits for its answer without touching the pipeline, so
    // stages that no thread has meanwhile would never give it.
    let cost_ns = Arc::new(AtomicU64::new(0));
    let answered = Arc::new(AtomicU64::new(0));
    let (first, last, answer) = (cost_ns.clone(), cost_ns.clone(), answered.clone());
    let recalls = watched(move || {
        let mut pipeline = Pipeline::builder(64, || 0u64)
            .stage("a", move |_, _| work_for(first.load(SeqCst)))
            .stage("b", move |_, context| {
                work_for(last.load(SeqCst));
                answer.store(context.sequence() + 1, SeqCst);
            })
            .after("a")
            .sample_every(1)
            .build()
            .unwrap();
        let mut recalls = 0;
        for _ in 0..6 {
            cost_ns.store(10_000, SeqCst);
            if !moves_under_load(&mut pipeline) {
                break;
            }
            pipeline.flush().unwrap();
            cost_ns.store(5_000, SeqCst);
            let mut published = pipeline.stats().stages[0].events;
            while pipeline.stats().placement_change_count % 2 == 1 {
                pipeline.publish(|_| ()).unwrap();
                published += 1;
                while answered.load(SeqCst) < published {
                    std::hint::spin_loop();
                }
                // Little enough to do that one core is enough.
                let pause = Instant::now();
                while pause.elapsed() < Duration::from_micros(100) {
                    std::thread::yield_now();
                }
            }
            recalls += 1;
        }
        pipeline.join().unwrap();
        recalls
    });
    if recalls == 0 {
        println!("skipped: the stages never moved on this machine");
    }
}

#[test]
fn a_panic_of_the_callers_stage_ends_the_worker_wherever_the_later_stages_are() {
    for is_back in [false, true] {
        let (fault, slow) = (Arc::default(), Arc::default());
        let (seen, pause): (Arc<AtomicBool>, Arc<AtomicBool>) =
            (Arc::clone(&fault), Arc::clone(&slow));
        let failure = watched(move || {
            let mut pipeline = Pipeline::builder(256, || 0u64)
                .stage("a", move |_, _| {
                    assert!(!seen.load(SeqCst), "seeded");
                    work_for(8_000);
                })
                .stage("b", move |_, _| {
                    let is_slow = pause.swap(false, SeqCst);
                    work_for(if is_slow { 200_000_000 } else { 8_000 });
                })
                .after("a")
                .sample_every(1)
                .build()
                .unwrap();
            if !moves_under_load(&mut pipeline) {
                println!("skipped: the stages never moved on this machine");
                return None;
            }
            // At a low rate the split brings nothing, so "b" is called back, and that in the middle
            // of a long turn.
            slow.store(is_back, SeqCst);
            for _ in 0..if is_back { 30 } else { 0 } {
                let pause = Instant::now();
                while pause.elapsed() < Duration::from_micros(2_200) {
                    std::thread::yield_now();
                }
                pipeline.publish(|_| ()).unwrap();
            }
            fault.store(true, SeqCst);
            let stopped = pipeline.publish(|_| ()).unwrap_err();
            assert_eq!(stopped.failure.unwrap().stage, "a");
            Some(pipeline.join().unwrap_err())
        });
        if let Some(failure) = failure {
            assert_eq!((&*failure.stage, &*failure.message), ("a", "seeded"));
        }
    }
}
