//! The arithmetic of the figures, on a clock that only the stages and the looks at it move.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::pipeline::timeline::driven::Driven;
use crate::pipeline::{Pipeline, PipelineBuilder, Placement, Stats};

/// The time that the write of an event takes, ns.
const WRITE: u64 = 3;
const EVERY: u64 = 64;

/// Publishes a number of batches inline; `stages` adds stages that let time pass.
fn run(
    look: u64,
    batch: usize,
    stages: impl Fn(PipelineBuilder<u64>, &Driven) -> PipelineBuilder<u64>,
) -> Stats {
    let clock = Driven::install(look);
    let builder = Pipeline::builder(256, || 0_u64).sample_every(EVERY);
    let builder = stages(builder, &clock).placement(Placement::inline());
    let mut pipeline = builder.build().expect("a valid pipeline");
    let batches = 64 * 1024 / batch;
    for number in 0..batches {
        let write = |at: usize, event: &mut u64| {
            *event = (number * batch + at) as u64;
            clock.pass(WRITE);
        };
        let published = match batch {
            1 => pipeline.publish(|event| write(0, event)),
            _ => pipeline.publish_batch(batch, write),
        };
        published.expect("it runs");
    }
    pipeline.join().expect("no panic")
}

/// Returns three stages in a row, each `ns` an event.
fn row(ns: [u64; 3]) -> impl Fn(PipelineBuilder<u64>, &Driven) -> PipelineBuilder<u64> {
    move |builder, clock| {
        let [a, b, c] = ns.map(|ns| {
            let clock = clock.clone();
            move || clock.pass(ns)
        });
        let builder = builder.stage("a", move |_, _| a());
        let builder = builder.stage("b", move |_, _| b()).after("a");
        builder.observe("c", move |_, _| c()).after("b")
    }
}

fn close(found: f64, expected: f64, percent: f64) -> bool {
    (found - expected).abs() <= expected * percent / 100.0
}

#[test]
fn what_the_clock_costs_is_in_no_figure() {
    for look in [0, 8, 25] {
        for batch in [1, 16, 64] {
            for ns in [[10, 10, 10], [10, 100, 1_000], [1_000, 10, 100]] {
                let stats = run(look, batch, row(ns));
                let case = format!("look {look}, batches of {batch}, {ns:?}: {stats}");
                for (stage, ns) in stats.stages.iter().zip(ns) {
                    assert_eq!(stage.service_mean_ns, ns as f64, "{case}");
                    assert_eq!(stage.service_ns.max(), ns, "{case}");
                    let busy = stage.busy_ns as f64 / stage.events as f64;
                    assert!(close(busy, ns as f64, 1.0), "{case}");
                }
                let all: u64 = ns.iter().sum();
                let first = stats.end_to_end_ns.min();
                assert!(first >= WRITE * batch as u64 + all, "{case}");
                if batch == 1 {
                    assert_eq!(stats.end_to_end_mean_ns, (WRITE + all) as f64, "{case}");
                }
            }
        }
    }
}

#[test]
fn the_stages_of_a_thread_were_at_work_for_as_long_as_it_ran_and_no_longer() {
    for batch in [1, 16, 64] {
        for look in [0, 8] {
            let stats = run(look, batch, row([10, 100, 40]));
            let busy: f64 = stats.stages.iter().map(|stage| stage.utilisation).sum();
            let event = stats.elapsed_ns as f64 / stats.stages[0].events as f64;
            let expected = 150.0 / event;
            assert!(busy <= 1.0 && close(busy, expected, 1.0), "{busy}: {stats}");
        }
    }
}

#[test]
fn an_event_of_a_chunk_is_served_for_its_share_and_waits_for_the_rest() {
    let stats = run(8, 16, |builder, clock| {
        let (first, second) = (clock.clone(), clock.clone());
        let builder = builder.stage_chunks("chunks", move |chunk| {
            first.pass(160);
            chunk.for_each(|_, _| first.pass(20))
        });
        builder
            .observe("last", move |_, _| second.pass(5))
            .after("chunks")
    });
    let [chunks, last] = &stats.stages[..] else {
        panic!("two stages");
    };
    assert_eq!([chunks.service_mean_ns, last.service_mean_ns], [30.0, 5.0]);
    // Each event has the whole batch written and both stages pass over it.
    let whole = (16 * (WRITE + 30 + 5)) as f64;
    assert_eq!(stats.end_to_end_mean_ns, whole);
    assert_eq!(chunks.queueing_mean_ns, 16.0 * (WRITE as f64 + 30.0) - 30.0);
    assert_eq!(last.queueing_mean_ns, 15.0 * 5.0);
}

#[test]
fn a_shard_serves_its_own_events_and_the_next_stage_has_waited_for_all_shards() {
    let stats = run(8, 16, |builder, clock| {
        let clock = clock.clone();
        let builder = builder.sharded(
            "shard",
            2,
            |event| *event as usize % 2,
            |_| {
                let clock = clock.clone();
                move |event: &mut u64, _| {
                    *event += 1;
                    clock.pass(100);
                }
            },
        );
        builder.observe("last", |_, _| ()).after("shard")
    });
    for shard in &stats.stages[..2] {
        assert_eq!(shard.service_mean_ns, 100.0, "{stats}");
    }
    for slow in &stats.slowest {
        let parts = slow
            .parts
            .iter()
            .map(|part| part.queueing_ns + part.service_ns);
        assert_eq!(parts.sum::<u64>(), slow.end_to_end_ns, "{slow:?}");
    }
}

/// A run that begins slowly, as most do: the samples of its beginning are many, and must not count
/// for more than the events that they stand for.
#[test]
fn a_run_of_any_length_has_samples_that_stand_for_all_its_events() {
    for events in [1, 10, 512, 1_000, 5_000, 100_000, 600_000_u64] {
        let clock = Driven::install(8);
        let stage = clock.clone();
        let slow = events / 10;
        let mut pipeline = Pipeline::builder(256, || 0_u64)
            .stage("a", move |event, _| {
                let ns = if *event < slow { 1_000 } else { 100 };
                stage.pass(ns);
            })
            .placement(Placement::inline())
            .build()
            .expect("a valid pipeline");
        for number in 0..events {
            pipeline.publish(|event| *event = number).expect("it runs");
        }
        let stats = pipeline.join().expect("no panic");
        let (case, stage) = (format!("{events} events: {stats}"), &stats.stages[0]);
        let mean = (900 * slow + 100 * events) as f64 / events as f64;
        assert!(close(stage.service_mean_ns, mean, 5.0), "{case}");
        let busy = stage.busy_ns as f64 / stage.events as f64;
        assert!(close(busy, mean, 5.0), "{case}");
        assert!(close(stats.end_to_end_mean_ns, mean, 5.0), "{case}");
        let all = stats.breakdown_of_all().expect("there are samples");
        assert_eq!(all.end_to_end_ns, stats.end_to_end_mean_ns, "{case}");
        for times in [&stage.service_ns, &stats.end_to_end_ns] {
            assert!(times.count().abs_diff(events) < 512, "{case}");
            assert_eq!(times.quantile(0.5), 100, "{case}");
            assert_eq!(times.quantile(0.85), 100, "{case}");
        }
        assert_eq!(stage.effective_samples, stats.effective_samples, "{case}");
        assert!(stats.effective_samples >= events.min(512), "{case}");
        let percentiles = "end to end: p50 100 ns, p99 1.00 µs, p99.9 -, p99.99 -";
        assert_eq!(case.contains(percentiles), events >= 5_000, "{case}");
        let of = format!(": as good as {} even samples\n", stats.effective_samples);
        let of =
            "times and batches are of one event in 512, more of the first 261632".to_owned() + &of;
        assert!(case.contains(&of), "{case}");
    }
}

#[test]
fn an_interrupted_sample_counts_for_no_more_than_the_time_that_went_by() {
    let mut span = Span {
        ticks: 1_000,
        owed: 600,
    };
    assert_eq!([span.part(400), span.part(200)], [400, 200]);
    span.owed = 8_000;
    assert_eq!([span.part(6_000), span.part(2_000)], [750, 250]);
}

#[test]
fn an_event_counts_from_when_it_was_due() {
    let clock = Driven::install(8);
    let stage = clock.clone();
    let mut pipeline = Pipeline::builder(256, || 0_u64)
        .sample_every(1)
        .stage("a", move |_, _| stage.pass(100))
        .placement(Placement::inline())
        .build()
        .expect("a valid pipeline");
    for number in 0..1_000_u64 {
        // One in twenty is late by 5,000.
        let late = if number % 20 == 19 { 5_000 } else { 0 };
        let due = clock.peek();
        clock.pass(late);
        let published = pipeline.publish_due(due, |event| *event = number);
        published.expect("it runs");
    }
    // Those without a due time count from the call, also after one that had one.
    for _ in 0..1_000 {
        pipeline.publish(|_| ()).expect("it runs");
    }
    let stats = pipeline.join().expect("no panic");
    assert_eq!(stats.end_to_end_ns.max(), 5_104, "{stats}");
    assert_eq!(stats.end_to_end_ns.quantile(0.5), 100, "{stats}");
    let slow = &stats.slowest[0];
    assert_eq!((slow.end_to_end_ns, slow.publish_delay_ns), (5_104, 5_004));
    let tail = stats.breakdown(0.99).expect("every event is sampled");
    assert_eq!(
        (tail.events, tail.publish_delay_ns),
        (50, 5_004.0),
        "{stats}"
    );
    assert_eq!(tail.parts[0].service_ns, 100.0);
    let all = stats.breakdown_of_all().expect("every event is sampled");
    assert_eq!(all.end_to_end_ns, stats.end_to_end_mean_ns);
    let text = stats.to_string();
    assert!(
        text.contains("the p99 is 98 % waiting to be sent, 2 % served by \"a\""),
        "{text}"
    );
    assert!(
        text.contains("took 5.10 µs, 5.00 µs of it waiting to be sent"),
        "{text}"
    );
}

#[test]
fn a_write_that_panics_leaves_no_time_for_the_next_event() {
    let clock = Driven::install(8);
    // Which event is sampled hangs on its number: with one in 2, some are and some are not.
    for every in [1, 2] {
        let stage = clock.clone();
        let mut pipeline = Pipeline::builder(256, || ())
            .sample_every(every)
            .stage("a", move |(), _| stage.pass(100))
            .placement(Placement::inline())
            .build()
            .expect("a valid pipeline");
        for _ in 0..200 {
            let due = clock.peek();
            clock.pass(5_000);
            for way in 0..3 {
                let panicked = catch_unwind(AssertUnwindSafe(|| match way {
                    0 => pipeline.publish(|()| panic!("a writer")),
                    1 => pipeline.publish_due(due, |()| panic!("a writer")),
                    _ => pipeline.publish_batch(2, |_, ()| panic!("a writer")),
                }));
                assert!(panicked.is_err());
                clock.pass(50_000);
                pipeline.publish(|()| ()).expect("it runs");
            }
        }
        let stats = pipeline.join().expect("no panic");
        assert_eq!(stats.stages[0].events, 600);
        assert_eq!(stats.end_to_end_ns.count(), 600 / every);
        assert_eq!(stats.end_to_end_ns.max(), 100, "{stats}");
    }
}
