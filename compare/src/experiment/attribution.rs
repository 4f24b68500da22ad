//! What it costs that a pipeline knows where its time goes, and whether what it says is true: three
//! stages with the default sampling, beside the same with practically none.
//!
//! The caller of the run without reads the clock around one call of `publish` in [`TIMED_EVERY`]:
//! from the last event's write to the return is the stages' work. Where they have a thread of their
//! own, and more to do than the publisher, that thread is at work as long as the run takes.

use thalweg::pipeline::{Pipeline, Placement, SAMPLE_EVERY_MAX};
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::median;

use super::Experiment;
use crate::case::{Case, Limit, Settings};
use crate::pipelines::{CAPACITY, Event, STAGES, Stamp, Step, rounds_for};
use crate::report::{Report, ns, percent};
use crate::runner::{Metric, Ran, Run, Trial, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "attribution",
    shows: "what knowing where the time goes costs per event, and whether it is true",
    peers: &[],
    notes: "",
    cases,
};

/// What a stage takes, ns; 0 for one that does next to nothing, which shows the cost.
const STAGE_NS: [f64; 3] = [0.0, 10.0, 100.0];
const BATCHES: [usize; 2] = [1, 64];
/// One call in this many is timed by the caller.
const TIMED_EVERY: u64 = 61;
/// How far a figure may be off.
const OFF_MAX: f64 = 0.05;
/// How far the sum of the stages' means may be from the end-to-end mean.
const PARTS_OFF_MAX: f64 = 0.005;

const WITH: &str = "with attribution";
const WITHOUT: &str = "without";

/// All for one event: the run's time, the stages' work by their means of service and by the time
/// that they were busy, and from the call of `publish` to the end of the last stage; and by how
/// much the parts miss that sum.
const METRICS: &[Metric] = &[
    Metric::lower("elapsed", "ns/event"),
    Metric::lower("served", "ns/event"),
    Metric::lower("busy", "ns/event"),
    Metric::lower("end_to_end", "ns"),
    Metric::lower("parts_off", "fraction"),
];
const COST: Metric = Metric::lower("cost", "ns/event");

#[derive(Debug, Clone)]
struct Load {
    stage_ns: f64,
    batch: usize,
    rounds: u32,
    placement: Placement,
    span_ns: u64,
}

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for stage_ns in STAGE_NS {
        let rounds = match stage_ns {
            0.0 => 0,
            _ => rounds_for(stage_ns),
        };
        for batch in BATCHES {
            for placement in [Placement::inline(), Placement::threads(1)] {
                let name = format!("{stage_ns:.0}-ns batch-{batch} {placement}");
                let heading = "what a pipeline says of itself, beside a run that hardly samples";
                let load = Load {
                    stage_ns,
                    batch,
                    rounds,
                    placement,
                    span_ns: settings.count(150_000_000),
                };
                let way = |name, is_sampled| subject(name, move |load| run(load, is_sampled));
                let subjects = vec![way(WITHOUT, false), way(WITH, true)];
                let case = Case::of(name, heading, METRICS, subjects, load.clone());
                cases.push(case.footer(move |trial, report| judge(&load, trial, report)));
            }
        }
    }
    cases
}

impl Load {
    fn is_inline(&self) -> bool {
        self.placement == Placement::inline()
    }
}

/// Sums of the calls that the caller timed.
#[derive(Debug, Default)]
struct Timed {
    calls: u64,
    work_ticks: u64,
    call_ticks: u64,
}

fn run(load: &Load, is_sampled: bool) -> Ran {
    let step = |place| Step::new(place, load.rounds);
    let [mut first, mut second, mut third]: [Step; STAGES] = std::array::from_fn(step);
    let mut builder = Pipeline::builder(CAPACITY, Event::default)
        .stage("first", move |event, _| first.work(event))
        .stage("second", move |event, _| second.work(event))
        .after("first")
        .stage("third", move |event, _| third.work(event))
        .after("second")
        .placement(load.placement.clone());
    if !is_sampled {
        builder = builder.sample_every(SAMPLE_EVERY_MAX);
    }
    let mut pipeline = builder.build().map_err(text)?;
    let clock = Clock::global();
    let begin = clock.ticks();
    let end = begin + clock.ticks_from_ns(load.span_ns);
    let (mut calls, mut timed, mut now) = (0_u64, Timed::default(), begin);
    while now < end {
        for _ in 0..(CAPACITY / load.batch).min(512) {
            let is_timed = !is_sampled && calls.is_multiple_of(TIMED_EVERY);
            let timed = is_timed.then_some(&mut timed);
            publish(&mut pipeline, load.batch, calls, timed)?;
            calls += 1;
        }
        now = clock.ticks();
    }
    pipeline.drain().map_err(text)?;
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin));
    let stats = pipeline.join().map_err(text)?;
    let events = calls * load.batch as u64;
    let elapsed = took_ns as f64 / events as f64;
    let passed = stats.stages.last().map_or(0, |stage| stage.events);
    let values = if is_sampled {
        let stages = stats.stages.iter();
        let served: f64 = stages.clone().map(|stage| stage.service_mean_ns).sum();
        let queued: f64 = stages.clone().map(|stage| stage.queueing_mean_ns).sum();
        let busy: f64 = stages.map(|stage| stage.busy_ns_per_event()).sum();
        let whole = stats.end_to_end_mean_ns;
        let parts = served + queued + stats.unsent_mean_ns;
        let parts_off = ((parts - whole) / whole.max(1e-9)).abs();
        [elapsed, served, busy, whole, parts_off]
    } else {
        truth(&timed, load, elapsed)
    };
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
        event.set(Stamp::untimed(call * batch as u64 + at as u64));
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
    published.map_err(text)
}

/// Returns what the caller saw of a run without attribution.
fn truth(timed: &Timed, load: &Load, elapsed: f64) -> [f64; 5] {
    let clock = Clock::global();
    let look_ns = clock.read_after_cost_ns();
    let calls = timed.calls.max(1) as f64;
    let work_ns = clock.ns(timed.work_ticks) as f64 / calls - look_ns;
    let call_ns = clock.ns(timed.call_ticks) as f64 / calls - 2.0 * look_ns;
    let work = match load.is_inline() {
        true => work_ns / load.batch as f64,
        false => elapsed,
    };
    [elapsed, work, work, call_ns, 0.0]
}

/// Holds the figures against each other in the median run, where there is a truth for them: a stage
/// thread with less to do than the publisher is not always at work, and the end to end of a batch
/// depends on the event's place in it.
fn judge(load: &Load, trial: &Trial, report: &mut Report) {
    let over = |of: fn((f64, f64)) -> f64, metric: usize| {
        let pairs = trial.pairs([WITH, WITHOUT], metric).into_iter();
        pairs.map(of).collect::<Vec<f64>>()
    };
    let costs = over(|(with, without)| with - without, 0);
    if !costs.is_empty() {
        report.measured(&trial.case, WITH, COST, &costs);
        let what = format!("{}: cost of attribution an event", trial.case);
        report.target(what, Limit::Shown, median(&costs), ns);
    }
    let parts_off = trial.of(WITH).and_then(|with| with.middle(4));
    let what = format!("{}: parts off the end-to-end mean", trial.case);
    report.target(what, Limit::AtMost(PARTS_OFF_MAX), parts_off, percent);
    let is_served_known = load.stage_ns >= if load.is_inline() { 10.0 } else { 100.0 };
    let is_whole_known = load.is_inline() && load.batch == 1 && load.stage_ns > 0.0;
    let known = [
        (1, is_served_known),
        (2, is_served_known),
        (3, is_whole_known),
    ];
    for (metric, _) in known.into_iter().filter(|(_, is_known)| *is_known) {
        let off = median(&over(|(with, without)| with / without - 1.0, metric));
        let name = METRICS[metric].name;
        let what = format!("{}: {name} off a run without attribution", trial.case);
        report.target(what, Limit::AtMost(OFF_MAX), off.map(f64::abs), percent);
    }
}
