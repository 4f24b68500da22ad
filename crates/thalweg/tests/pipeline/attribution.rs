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
