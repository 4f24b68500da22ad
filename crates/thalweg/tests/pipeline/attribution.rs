//! Where the time goes.

use crate::{chain, placements};
use thalweg::pipeline::{Pipeline, Placement, Spent};

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
            let mut parts = 0.0;
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
    for capacity in [64, 256, 1024] {
        for producers in [0, 1] {
            let mut pipeline = Pipeline::builder(capacity, || 0u64)
                .stage("a", |_, _| ())
                .observe("b", |_, _| ())
                .after("a")
                .progress(1)
                .producers(producers)
                .placement(Placement::threads(1))
                .build()
                .unwrap();
            drop(pipeline.take_producers());
            let every = pipeline.stats().sampled_every;
            let samples = 5_000;
            pipeline
                .publish_batch((samples * every) as usize, |_, _| ())
                .unwrap();
            let stats = pipeline.join().unwrap();
            let means = stats.stages.iter();
            let parts: f64 = means.map(|s| s.queueing_mean_ns + s.service_mean_ns).sum();
            let off = (parts / stats.end_to_end_mean_ns - 1.0).abs();
            let whole = stats.end_to_end_mean_ns;
            assert!(off < 0.005, "{capacity}: parts {parts}, whole {whole}");
            assert_eq!(stats.end_to_end_ns.count(), samples, "{capacity}");
        }
    }
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
    assert_eq!((stage, spent), ("sleepy", Spent::Served));
    assert!(ns >= 9_000_000);
    assert!(
        stats.to_string().contains("served by \"sleepy\""),
        "{stats}"
    );
}
