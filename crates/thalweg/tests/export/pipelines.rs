//! Figures of pipelines.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use serde_json::Value;
use thalweg::pipeline::{Pipeline, PipelineBuilder, Placement, StageStats};
use thalweg::wait::WaitStrategy;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use crate::export::{Directory, names};

fn three(capacity: usize) -> PipelineBuilder<u64> {
    Pipeline::builder(capacity, || 0_u64)
        .stage("first", |event, _| *event += 1)
        .stage("\"second\"\n", |event, _| *event *= 3)
        .after("first")
        .observe("third", |event, _| assert!(*event > 0))
        .after("\"second\"\n")
        .sample_every(4)
}

/// That the times are these; fractions are written to three places.
fn assert_times(exported: &Value, times: &Histogram, mean_ns: f64) {
    let summary = times.summary();
    assert_eq!(exported["count"], summary.count);
    assert_eq!(exported["p50_ns"], summary.p50);
    assert_eq!(exported["p90_ns"], summary.p90);
    assert_eq!(exported["p99_ns"], summary.p99);
    assert_eq!(exported["p999_ns"], summary.p999);
    assert_eq!(exported["p9999_ns"], summary.p9999);
    assert_eq!(exported["max_ns"], summary.max);
    assert_near(&exported["mean_ns"], mean_ns);
}

fn assert_near(exported: &Value, expected: f64) {
    let exported = exported.as_f64().expect("a number");
    assert!(
        (exported - expected).abs() <= 0.000_5,
        "{exported} {expected}"
    );
}

fn assert_stage(exported: &Value, stage: &StageStats) {
    assert_eq!(exported["name"], *stage.name);
    assert_eq!(exported["events"], stage.events);
    assert_eq!(exported["busy_ns"], stage.busy_ns);
    assert_times(
        &exported["queueing"],
        &stage.queueing_ns,
        stage.queueing_mean_ns,
    );
    assert_times(
        &exported["service"],
        &stage.service_ns,
        stage.service_mean_ns,
    );
    assert_eq!(exported["batches"]["count"], stage.batch_events.count());
    assert_near(&exported["batches"]["mean"], stage.batch_events.mean());
    assert_eq!(exported["waiting"], 0);
}

#[test]
fn the_last_snapshot_is_what_join_returns() {
    let placements = [
        Placement::inline(),
        Placement::auto(),
        Placement::threads(3),
        Placement::caller_and_threads(1, 1),
    ];
    for placement in placements {
        let directory = Directory::new();
        let pipeline = three(64).placement(placement).export_to(&*directory.0);
        let mut pipeline = pipeline.build().expect("a valid pipeline");
        for event in 0..10_000 {
            pipeline.publish(|it| *it = event).expect("it runs");
        }
        let stats = pipeline.join().expect("no stage fails");
        let exported = directory.only();
        assert_eq!(exported["format"], "thalweg-export");
        assert_eq!(exported["version"], thalweg::export::FORMAT_VERSION);
        assert_eq!(exported["kind"], "pipeline");
        assert_eq!(exported["process"], std::process::id());
        assert_eq!(exported["has_ended"], true);
        assert_eq!(exported["failed_stage"], "");
        assert_eq!(exported["published"], 10_000);
        assert_eq!(exported["capacity"], 64);
        assert_eq!(exported["in_flight"], 0);
        assert_eq!(exported["sampled_every"], stats.sampled_every);
        assert_times(
            &exported["end_to_end"],
            &stats.end_to_end_ns,
            stats.end_to_end_mean_ns,
        );
        let all = stats.breakdown_of_all().expect("events were sampled");
        let waited: f64 = all.parts.iter().map(|part| part.queueing_ns).sum();
        assert_near(&exported["waited_mean_ns"], all.publish_delay_ns + waited);
        let stages = exported["stages"].as_array().expect("stages");
        assert_eq!(stages.len(), 3);
        for (exported, stage) in stages.iter().zip(&stats.stages) {
            assert_stage(exported, stage);
        }
    }
}

#[test]
fn a_snapshot_is_whole_whenever_it_is_read() {
    const ENOUGH: u64 = 5;
    let directory = Directory::new();
    let (seen, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = || {
            let (mut last, mut looks) = (0, 0_u64);
            while !is_over.load(SeqCst) {
                for (_, value) in directory.read() {
                    let snapshot = value["snapshot"].as_u64().expect("its number");
                    assert!(snapshot >= last, "{snapshot} after {last}");
                    last = snapshot;
                }
                looks += 1;
                seen.store(last, SeqCst);
                std::thread::yield_now();
            }
            looks
        };
        let reader = scope.spawn(reader);
        let pipeline = three(64)
            .placement(Placement::threads(1))
            .export_to(&*directory.0);
        let mut pipeline = pipeline.build().expect("a valid pipeline");
        while seen.load(SeqCst) < ENOUGH && !reader.is_finished() {
            pipeline.publish(|it| *it = 1).expect("it runs");
        }
        drop(pipeline);
        is_over.store(true, SeqCst);
        let looks = reader.join().expect("each snapshot was whole");
        assert!(looks > 0);
    });
    assert_eq!(directory.only()["has_ended"], true);
    assert_eq!(names(&directory.0).len(), 1, "nothing is left half-written");
}

#[test]
fn arrivals_count_from_when_they_were_due() {
    const EVENTS: u64 = 1_000;
    const APART: u64 = 1_000;
    let directory = Directory::new();
    let pipeline = three(4_096)
        .sample_every(1)
        .placement(Placement::inline())
        .export_to(&*directory.0);
    let mut pipeline = pipeline.build().expect("a valid pipeline");
    let clock = Clock::global();
    let from = clock.ticks() - EVENTS * APART;
    for event in 0..EVENTS {
        let due = from + event * APART;
        pipeline.publish_due(due, |it| *it = 1).expect("it runs");
    }
    pipeline.join().expect("no stage fails");
    let exported = directory.only();
    assert_eq!(exported["arrived"], EVENTS - 1);
    assert_eq!(exported["arrived_ns"], clock.ns((EVENTS - 1) * APART));
}

#[test]
fn a_full_ring_and_the_stage_behind_it_are_seen() {
    let directory = Directory::new();
    let (sender, gate) = std::sync::mpsc::channel();
    let pipeline = Pipeline::builder(64, || ())
        .observe("fast", |(), _| ())
        .observe("stuck", move |(), context| {
            if context.sequence() == 0 {
                gate.recv().expect("the test opens it");
            }
        })
        .after("fast")
        .placement(Placement::threads(2))
        .export_to(&*directory.0);
    let mut pipeline = pipeline.build().expect("a valid pipeline");
    let handle = pipeline.handle();
    while pipeline.try_publish(|()| ()).is_ok() || handle.stats().stages[0].events < 64 {
        std::thread::yield_now();
    }
    // Some snapshot from now on shows it.
    let is_seen = |value: &Value| {
        let full = value["full_looks"].as_u64().is_some_and(|full| full > 0);
        full && value["in_flight"] == 64
            && value["stages"][0]["waiting"] == 0
            && value["stages"][1]["waiting"] == 64
    };
    while !directory.read().iter().any(|(_, value)| is_seen(value)) {
        std::thread::yield_now();
    }
    sender.send(()).expect("it waits");
    pipeline.join().expect("no stage fails");
    let exported = directory.only();
    assert_eq!(exported["in_flight"], 0);
    assert_eq!(exported["in_flight_max"], 64);
    assert_eq!(exported["stages"][1]["waiting_max"], 64);
}

#[test]
fn the_stage_that_failed_is_named() {
    let directory = Directory::new();
    let pipeline = three(64)
        .observe("fails", |_, _| panic!("on purpose"))
        .after("third")
        .placement(Placement::inline())
        .export_to(&*directory.0);
    let mut pipeline = pipeline.build().expect("a valid pipeline");
    pipeline.publish(|it| *it = 1).expect_err("the stage fails");
    pipeline.join().expect_err("the stage has failed");
    let exported = directory.only();
    assert_eq!(exported["failed_stage"], "fails");
    assert_eq!(exported["has_ended"], true);
}

#[test]
fn a_directory_that_is_not_there_stops_nothing() {
    let directory = Directory::new();
    let nowhere = directory.0.join("nowhere");
    let pipeline = three(64).placement(Placement::inline()).export_to(&nowhere);
    let mut pipeline = pipeline.build().expect("a valid pipeline");
    pipeline.publish(|it| *it = 1).expect("it runs");
    assert_eq!(pipeline.join().expect("no stage fails").stages[2].events, 1);
    assert!(!nowhere.exists());
}

/// Whatever the placement: a stage with two hundred times the work of the others has been at work
/// for longest.
#[test]
fn the_slow_stage_is_the_one_with_the_most_work() {
    let work = |turns: u64| (0..turns).fold(1, |sum, turn| black_box(sum ^ turn));
    for (capacity, placement) in [
        (64, Placement::threads(3).waiting(WaitStrategy::Yield)),
        (64, Placement::inline()),
        (4_096, Placement::caller_and_threads(1, 1)),
    ] {
        let directory = Directory::new();
        let pipeline = Pipeline::builder(capacity, || 0_u64)
            .stage("fast", move |event, _| *event = work(20))
            .progress(usize::MAX)
            .stage("slow", move |event, _| *event = work(4_000))
            .after("fast")
            .progress(usize::MAX)
            .observe("last", move |_, _| _ = work(20))
            .after("slow")
            .sample_every(8)
            .placement(placement)
            .export_to(&*directory.0);
        let mut pipeline = pipeline.build().expect("a valid pipeline");
        for _ in 0..5_000 {
            pipeline.publish(|it| *it = 1).expect("it runs");
        }
        pipeline.join().expect("no stage fails");
        let exported = directory.only();
        let stages = exported["stages"].as_array().expect("stages");
        let busiest = stages.iter().max_by_key(|stage| stage["busy_ns"].as_u64());
        assert_eq!(busiest.expect("three stages")["name"], "slow");
    }
}

/// Names of all members, in their order, with what they are in.
fn members(value: &Value, within: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{within}.{name}");
                members(value, &path, all);
                all.push(path);
            }
        }
        Value::Array(values) => members(&values[0], within, all),
        _ => {}
    }
}

#[test]
fn the_documented_example_has_what_is_exported() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export-format.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let block = text.split("```json\n").nth(1).expect("an example");
    let example = block.split("```").next().expect("its end");
    let example: Value = serde_json::from_str(example).expect("an object");
    let directory = Directory::new();
    let pipeline = three(64)
        .placement(Placement::inline())
        .export_to(&*directory.0);
    drop(pipeline.build().expect("a valid pipeline"));
    let [mut documented, mut exported] = [Vec::new(), Vec::new()];
    members(&example, "", &mut documented);
    members(&directory.only(), "", &mut exported);
    assert_eq!(documented, exported);
}
