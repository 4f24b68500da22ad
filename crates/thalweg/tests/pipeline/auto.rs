//! The placement that follows the load.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use thalweg::pipeline::{Pipeline, Placement};

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
    while pipeline.stats().moves == 0 && published < 200_000_000 {
        for _ in 0..10_000 {
            pipeline.publish(|event| *event = published).unwrap();
            published += 1;
        }
    }
    assert!(pipeline.stats().moves > 0, "after {published} events");
    // Then at a trickle until it moves back.
    let mut trickle = 0;
    while pipeline.stats().moves % 2 == 1 && trickle < 20_000_000 {
        pipeline.publish(|event| *event = trickle).unwrap();
        trickle += 1;
        for _ in 0..20 {
            std::thread::yield_now();
        }
    }
    assert_eq!(
        pipeline.stats().moves % 2,
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
fn auto_never_leaves_stages_on_the_desk_when_the_ring_is_full() {
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
