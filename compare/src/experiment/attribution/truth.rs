//! A pipeline's own figures beside what a run without them takes.
//!
//! The run without samples hardly anything, and its caller reads the clock around one call of
//! `publish` in [`TIMED_EVERY`]: from the last event's write to the return is the stages' work.
//! Where they have a thread of their own, and more to do than the publisher, that thread is at work
//! as long as the run takes. The run with has the default sampling, and what it says is compared.

use thalweg::pipeline::{Pipeline, Placement, SAMPLE_EVERY_MAX, Stats};
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::median;
use thalweg_measure::table::{Cell, Table};

use crate::experiment::{Settings, progress_note};
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Run, Trial, interleave, subject};
use crate::target::{Limit, Target};
use crate::workload::{CAPACITY, Event, STAGES, Stamp, Step, rounds_for};

/// What a stage takes, ns.
const STAGE_NS: [f64; 3] = [10.0, 100.0, 1_000.0];
const BATCHES: [usize; 3] = [1, 16, 64];
/// One call in so many is timed by the caller.
const TIMED_EVERY: u64 = 61;
/// How far a figure may be off.
const OFF_MAX: f64 = 0.05;

const WITH: &str = "with attribution";
const WITHOUT: &str = "without";

/// All for one event: the run's time, the stages' work by their means of service and by the time
/// that they were busy, and from the call of `publish` to the end of the last stage.
const METRICS: &[Metric] = &[
    Metric::lower("elapsed", "ns/event"),
    Metric::lower("served", "ns/event"),
    Metric::lower("busy", "ns/event"),
    Metric::lower("end_to_end", "ns"),
];
const SHOWN: [&str; 4] = ["elapsed", "served", "busy", "end to end"];

#[derive(Debug, Clone)]
struct Load {
    batch: usize,
    rounds: u32,
    placement: Placement,
    span_ns: u64,
}

impl Load {
    fn is_inline(&self) -> bool {
        self.placement == Placement::inline()
    }

    fn pipeline(&self, sample_every: Option<u64>) -> Result<Pipeline<Event>, String> {
        let mut steps = (0..STAGES).map(|place| Step::new(place, self.rounds));
        let mut step = || steps.next().unwrap_or_else(|| Step::new(0, self.rounds));
        let (mut first, mut second, mut third) = (step(), step(), step());
        let builder = Pipeline::builder(CAPACITY, Event::default)
            .stage("first", move |event, _| first.work(event))
            .stage("second", move |event, _| second.work(event))
            .after("first")
            .stage("third", move |event, _| third.work(event))
            .after("second")
            .placement(self.placement.clone());
        let builder = match sample_every {
            Some(every) => builder.sample_every(every),
            None => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }
}

/// Sums of the calls that the caller timed.
#[derive(Debug, Default)]
struct Timed {
    calls: u64,
    work_ticks: u64,
    call_ticks: u64,
}

fn run_of(load: &Load, is_sampled: bool) -> Result<Run, String> {
    let sampling = (!is_sampled).then_some(SAMPLE_EVERY_MAX);
    let mut pipeline = load.pipeline(sampling)?;
    let clock = Clock::global();
    let begin = clock.ticks();
    let end = begin + clock.ticks_from_ns(load.span_ns);
    let (mut calls, mut timed, mut now) = (0_u64, Timed::default(), begin);
    while now < end {
        for _ in 0..(CAPACITY / load.batch).min(512) {
            let is_timed = !is_sampled && calls % TIMED_EVERY == 0;
            publish(
                &mut pipeline,
                load.batch,
                calls,
                is_timed.then_some(&mut timed),
            )?;
            calls += 1;
        }
        now = clock.ticks();
    }
    pipeline.drain().map_err(|stopped| stopped.to_string())?;
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin));
    let stats = pipeline.join().map_err(|failure| failure.to_string())?;
    let events = calls * load.batch as u64;
    let elapsed = took_ns as f64 / events as f64;
    let values = match is_sampled {
        true => said(&stats, elapsed),
        false => truth(&timed, load, elapsed),
    };
    let passed = stats.stages.last().map_or(0, |stage| stage.events);
    Ok(Run::of(values).with_lost(events.abs_diff(passed)))
}

#[inline]
fn publish(
    pipeline: &mut Pipeline<Event>,
    batch: usize,
    call: u64,
    timed: Option<&mut Timed>,
) -> Result<(), String> {
    let clock = Clock::global;
    let before = timed.as_ref().map(|_| clock().ticks_after());
    let mut written = 0;
    let is_timed = timed.is_some();
    let mut write = |at: usize, event: &mut Event| {
        event.set(Stamp {
            number: call * batch as u64 + at as u64,
            intended_ticks: 0,
        });
        if is_timed && at + 1 == batch {
            written = clock().ticks_after();
        }
    };
    let published = match batch {
        1 => pipeline.publish(|event| write(0, event)),
        _ => pipeline.publish_batch(batch, write),
    };
    if let (Some(timed), Some(before)) = (timed, before) {
        let now = clock().ticks_after();
        timed.calls += 1;
        timed.work_ticks += now.saturating_sub(written);
        timed.call_ticks += now.saturating_sub(before);
    }
    published.map_err(|stopped| stopped.to_string())
}

/// What the run with attribution says of itself.
fn said(stats: &Stats, elapsed: f64) -> Vec<f64> {
    let stages = stats.stages.iter();
    let served: f64 = stages.clone().map(|stage| stage.service_mean_ns).sum();
    let busy: f64 = stages.map(|stage| stage.busy_ns_per_event()).sum();
    vec![elapsed, served, busy, stats.end_to_end_mean_ns]
}

/// The same of a run without.
fn truth(timed: &Timed, load: &Load, elapsed: f64) -> Vec<f64> {
    let clock = Clock::global();
    let look_ns = clock.read_after_cost_ns();
    let calls = timed.calls.max(1) as f64;
    let work_ns = clock.ns(timed.work_ticks) as f64 / calls - look_ns;
    let call_ns = clock.ns(timed.call_ticks) as f64 / calls - 2.0 * look_ns;
    let work = if load.is_inline() {
        work_ns / load.batch as f64
    } else {
        elapsed
    };
    vec![elapsed, work, work, call_ns]
}

/// Runs all cases; gives a target for each figure, the worst of the cases that it has.
pub(super) fn run(settings: &Settings, report: &mut Report) -> Vec<Target> {
    let mut table = Table::new([
        "stage",
        "batch",
        "placement",
        "elapsed",
        "without",
        "off",
        "served",
        "busy",
        "truth",
        "served off",
        "busy off",
        "end to end",
        "truth",
        "off",
    ]);
    let mut worst = [None::<f64>; SHOWN.len()];
    for stage_ns in STAGE_NS {
        let rounds = rounds_for(stage_ns);
        for batch in BATCHES {
            for placement in [Placement::inline(), Placement::threads(1)] {
                let case = format!("truth/{stage_ns:.0}-ns batch-{batch} {placement}");
                let load = Load {
                    batch,
                    rounds,
                    placement,
                    span_ns: settings.span_ns,
                };
                let Some(trial) = trial(settings, &case, &load) else {
                    continue;
                };
                let offs = offs(&trial, &load, stage_ns);
                for (worst, off) in worst.iter_mut().zip(offs) {
                    let off = off.map(f64::abs);
                    *worst = off.into_iter().chain(*worst).reduce(f64::max);
                }
                row(&mut table, &trial, &load, stage_ns, offs);
                for series in &trial.series {
                    for (at, metric) in METRICS.iter().enumerate() {
                        report.measured(&case, &series.subject, *metric, &series.values(at));
                    }
                }
            }
        }
    }
    report.say("Three stages, what a pipeline says of itself beside a run without attribution");
    report.say(table);
    let target = |(worst, what): (Option<f64>, &str)| {
        let what = format!("truth: {what} off a run without attribution (worst case)");
        Target::new(what, Limit::AtMost(OFF_MAX), worst, percent)
    };
    worst.into_iter().zip(SHOWN).map(target).collect()
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

fn trial(settings: &Settings, case: &str, load: &Load) -> Option<Trial> {
    let subjects = [
        subject(WITHOUT, |load| run_of(load, false)),
        subject(WITH, |load| run_of(load, true)),
    ];
    let wanted = settings.wanted(case, &subjects);
    if wanted.len() < subjects.len() {
        return None;
    }
    progress_note(case);
    Some(interleave(
        case,
        METRICS,
        &wanted,
        load,
        settings.repetitions,
    ))
}

/// By how much each figure is off in the median run, where there is a truth for it: a stage thread
/// whose stages have less to do than the publisher is not always at work, and the end to end of a
/// batch depends on the event's place in it.
fn offs(trial: &Trial, load: &Load, stage_ns: f64) -> [Option<f64>; SHOWN.len()] {
    let off = |metric: usize| {
        let pairs = trial.pairs(WITH, WITHOUT, metric);
        let offs = pairs.iter().map(|(with, without)| with / without - 1.0);
        median(&offs.collect::<Vec<f64>>())
    };
    let is_known = load.is_inline() || stage_ns > STAGE_NS[0];
    let is_single = load.is_inline() && load.batch == 1;
    [
        off(0),
        off(1).filter(|_| is_known),
        off(2).filter(|_| is_known),
        off(3).filter(|_| is_single),
    ]
}

fn row(
    table: &mut Table,
    trial: &Trial,
    load: &Load,
    stage_ns: f64,
    offs: [Option<f64>; SHOWN.len()],
) {
    let value = |subject: &str, metric: usize| {
        let value = trial
            .of(subject)
            .and_then(|series| median(&series.values(metric)));
        Cell::Number(value.map_or("-".into(), small_ns))
    };
    let off = |at: usize| Cell::Number(offs[at].map_or("-".into(), percent));
    let is_single = offs[3].is_some();
    let truth = |metric: usize, is_known: bool| match is_known {
        true => value(WITHOUT, metric),
        false => Cell::Number("-".into()),
    };
    table.row([
        Cell::Number(small_ns(stage_ns)),
        Cell::Number(load.batch.to_string()),
        load.placement.to_string().into(),
        value(WITH, 0),
        value(WITHOUT, 0),
        off(0),
        value(WITH, 1),
        value(WITH, 2),
        truth(1, offs[1].is_some()),
        off(1),
        off(2),
        value(WITH, 3),
        truth(3, is_single),
        off(3),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_and_one_without_give_the_same_figures_and_lose_nothing() {
        for (batch, placement) in [(1, Placement::inline()), (16, Placement::threads(1))] {
            let load = Load {
                batch,
                rounds: 8,
                placement,
                span_ns: 200_000,
            };
            for is_sampled in [false, true] {
                let run = run_of(&load, is_sampled).unwrap();
                assert_eq!((run.lost, run.values.len()), (0, METRICS.len()));
                assert!(run.values[0] > 0.0, "{:?}", run.values);
            }
        }
    }

    #[test]
    fn what_a_caller_cannot_know_is_not_judged() {
        let load = |placement: Placement, batch| Load {
            batch,
            rounds: 8,
            placement,
            span_ns: 1,
        };
        let (without, with) = ([10.0, 8.0, 8.0, 9.0], [11.0, 8.0, 6.0, 9.0]);
        let trial = Trial::scripted("a", METRICS, &[(WITHOUT, &without), (WITH, &with)]);
        let all = offs(&trial, &load(Placement::inline(), 1), 10.0);
        let expected = [0.1, 0.0, -0.25, 0.0];
        for (off, expected) in all.into_iter().zip(expected) {
            assert!((off.unwrap() - expected).abs() < 1e-9, "{all:?}");
        }
        let thread = offs(&trial, &load(Placement::threads(1), 1), 10.0);
        assert_eq!(thread.map(|off| off.is_some()), [true, false, false, false]);
    }
}
