//! Where the time goes.

use crate::pipeline::{chain, placements};
use std::time::Duration;
use thalweg::pipeline::{Pipeline, PipelineBuilder, Placement, Stats, TimeKind};

#[test]
fn the_parts_of_the_time_add_up() {
    for placement in placements() {
        for every in [1, 32] {
            let (builder, _) = chain(256);
            let mut pipeline = builder
                .placement(placement.clone())
                .sample_every(every)
                .build()
                .unwrap();
            for number in 0..20_000 {
                pipeline.publish(|event| event.number = number).unwrap();
            }
            let stats = pipeline.join().unwrap();
            let sampled = 20_000 / every;
            assert_eq!(stats.end_to_end_ns.count(), sampled);
            let mut parts = stats.publish_delay_mean_ns;
            for stage in &stats.stages {
                assert_eq!(stage.queueing_ns.count(), sampled, "no event is missed");
                assert_eq!(stage.service_ns.count(), sampled);
                parts += stage.queueing_mean_ns + stage.service_mean_ns;
            }
            let off = (parts / stats.end_to_end_mean_ns - 1.0).abs();
            assert!(
                off < 0.005,
                "{placement}: parts {parts}, {}",
                stats.end_to_end_mean_ns
            );
        }
    }
}

#[test]
fn the_parts_add_up_where_the_last_stage_releases_within_the_round() {
    // The publisher is right behind the last stage then, and takes rows of the timeline again while
    // the round that has to read them is not over.
    // Short blocks find soonest that there are too few rows (docs/notes/seeded-faults.md).
    for capacity in [64, 256, 1024] {
        for producers in [0, 1] {
            for (every, samples) in [(None, 200), (Some(8), 1_000), (Some(64), 1_000)] {
                let builder = Pipeline::builder(capacity, || 0u64)
                    .stage("a", |_, _| ())
                    .observe("b", |_, _| ())
                    .after("a")
                    .progress(1)
                    .producers(producers)
                    .placement(Placement::threads(1));
                let builder = match every {
                    Some(every) => builder.sample_every(every),
                    None => builder,
                };
                the_parts_add_up(builder, samples, every.is_none());
            }
        }
    }
}

/// Runs a pipeline until there are as many samples; they are weighted where blocks grow.
fn the_parts_add_up(builder: PipelineBuilder<u64>, samples: u64, is_weighted: bool) {
    let mut pipeline = builder.build().expect("a valid pipeline");
    drop(pipeline.take_producers());
    let every = pipeline.stats().sampled_every;
    pipeline
        .publish_batch((samples * every) as usize, |_, _| ())
        .expect("it runs");
    let stats = pipeline.join().expect("no stage panics");
    let means = stats.stages.iter();
    let parts: f64 = means.map(|s| s.queueing_mean_ns + s.service_mean_ns).sum();
    let parts = parts + stats.publish_delay_mean_ns;
    let off = (parts / stats.end_to_end_mean_ns - 1.0).abs();
    let whole = stats.end_to_end_mean_ns;
    assert!(off < 0.005, "{every}: parts {parts}, whole {whole}");
    // Every block is over, and has had its sample.
    let counted = samples * if is_weighted { every } else { 1 };
    assert_eq!(stats.end_to_end_ns.count(), counted, "{every}");
}

#[test]
fn every_sample_of_a_lane_is_seen_by_every_stage() {
    let (every, samples) = (64, 5_000);
    let mut pipeline = Pipeline::builder(1024, || 0u64)
        .stage("a", |_, _| ())
        .stage("b", |_, _| ())
        .after("a")
        .observe("c", |_, _| ())
        .after("b")
        .sample_every(every)
        .producers(1)
        .placement(Placement::threads(3))
        .build()
        .unwrap();
    drop(pipeline.take_producers());
    pipeline
        .publish_batch((every * samples) as usize, |_, _| ())
        .unwrap();
    let stats = pipeline.join().unwrap();
    for stage in &stats.stages {
        assert_eq!(stage.service_ns.count(), samples, "{}", stage.name);
        assert_eq!(stage.queueing_ns.count(), samples, "{}", stage.name);
    }
    assert_eq!(stats.end_to_end_ns.count(), samples);
}

#[test]
fn the_slowest_event_is_blamed_on_the_stage_that_was_slow() {
    let mut pipeline = Pipeline::builder(64, || 0u64)
        .stage("quick", |_, _| ())
        .stage("sleepy", |event: &mut u64, _| {
            if *event == 777 {
                // The fault to be found: ten milliseconds in this stage.
                let begin = std::time::Instant::now();
                while begin.elapsed().as_millis() < 10 {
                    std::thread::yield_now();
                }
            }
        })
        .after("quick")
        .placement(Placement::inline())
        .sample_every(1)
        .build()
        .unwrap();
    for number in 0..2_000 {
        pipeline.publish(|event| *event = number).unwrap();
    }
    let stats = pipeline.join().unwrap();
    let slow = stats
        .slowest
        .iter()
        .find(|slow| slow.sequence == 777)
        .unwrap();
    let (stage, spent, ns) = slow.longest().unwrap();
    assert_eq!((stage, spent), ("sleepy", TimeKind::Served));
    assert!(ns >= 9_000_000);
    assert!(
        stats.to_string().contains("served by \"sleepy\""),
        "{stats}"
    );
}

/// Publishes more than there is room for, while the stage lets nothing through for this long.
fn held_back(pause: Duration) -> Stats {
    let gate = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let theirs = std::sync::Arc::clone(&gate);
    let mut pipeline = Pipeline::builder(4, || 0u64)
        .stage("gate", move |_, _| {
            // ORDERING: Relaxed; a flag and nothing else.
            while !theirs.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::yield_now();
            }
        })
        .placement(Placement::threads(1))
        .sample_every(1)
        .build()
        .expect("good options");
    let opener = std::thread::spawn(move || {
        let begin = std::time::Instant::now();
        while begin.elapsed() < pause {
            std::thread::yield_now();
        }
        gate.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    for _ in 0..8 {
        pipeline.publish(|_| ()).expect("it runs");
    }
    opener.join().expect("no panic");
    pipeline.join().expect("no panic")
}

#[test]
fn waiting_for_room_is_part_of_the_time() {
    // A publisher that has no core for as long does not wait.
    let pauses = [20, 200, 2_000, 20_000].map(Duration::from_millis);
    let waited = pauses.into_iter().find_map(|pause| {
        let stats = held_back(pause);
        let waited = stats.slowest.iter().find(|slow| slow.publish_delay_ns > 0);
        Some((waited?.sequence, stats))
    });
    let (sequence, stats) = waited.expect("it waited for room");
    assert!(sequence >= 4, "{stats}");
    assert!(stats.publish_delay_mean_ns > 0.0, "{stats}");
}

#[test]
fn what_the_automatic_placement_did_is_reported() {
    let mut pipeline = Pipeline::builder(1024, || 0u64)
        .stage("a", |event: &mut u64, _| *event = busy(*event))
        .stage("b", |event: &mut u64, _| *event = busy(*event))
        .after("a")
        .placement(Placement::auto())
        .build()
        .unwrap();
    let begin = std::time::Instant::now();
    let mut number = 0;
    while pipeline.stats().placement_change_count == 0 && begin.elapsed().as_secs() < 20 {
        for _ in 0..10_000 {
            number += 1;
            pipeline.publish(|event| *event = number).unwrap();
        }
    }
    let stats = pipeline.join().unwrap();
    assert_eq!(
        stats.placement_changes.len() as u64,
        stats.placement_change_count.min(64)
    );
    let Some(first) = stats.placement_changes.first() else {
        println!("skipped: the load of 20 s was not enough");
        return;
    };
    assert!(first.caller_stages < 2 && first.events > 0, "{first:?}");
    assert!(first.at_ns <= stats.elapsed_ns);
}

/// Some 200 ns.
fn busy(event: u64) -> u64 {
    (0..100).fold(event, |x, _| std::hint::black_box(x.wrapping_mul(3)))
}
