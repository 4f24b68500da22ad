//! The cost of a pipeline's statistics: three stages that do next to nothing, with the default
//! sampling and with practically none.

use thalweg::pipeline::{Placement, SAMPLE_EVERY_MAX};
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::median;

use super::Experiment;
use super::pipeline::stages;
use crate::case::{Case, Limit, Settings};
use crate::pipelines::{CAPACITY, Event, Stamp};
use crate::report::{Report, ns};
use crate::runner::{Metric, Ran, Run, Trial, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "attribution",
    shows: "what a pipeline's statistics cost per event",
    peers: &[],
    notes: "",
    cases,
};

const WITH: &str = "with attribution";
const WITHOUT: &str = "without";

const METRICS: &[Metric] = &[Metric::lower("elapsed", "ns/event")];
const COST: Metric = Metric::lower("cost", "ns/event");

#[derive(Debug)]
struct Load {
    batch: usize,
    placement: Placement,
    span_ns: u64,
}

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 64] {
        for placement in [Placement::inline(), Placement::threads(1)] {
            let name = format!("0-ns batch-{batch} {placement}");
            let heading = "three stages that do next to nothing";
            let load = Load {
                batch,
                placement,
                span_ns: settings.count(150_000_000),
            };
            let way = |name, is_sampled| subject(name, move |load| run(load, is_sampled));
            let subjects = vec![way(WITHOUT, false), way(WITH, true)];
            cases.push(Case::of(name, heading, METRICS, subjects, load).footer(cost));
        }
    }
    cases
}

fn run(load: &Load, is_sampled: bool) -> Ran {
    let mut builder = stages(0, |_| ()).placement(load.placement.clone());
    if !is_sampled {
        builder = builder.sample_every(SAMPLE_EVERY_MAX);
    }
    let mut pipeline = builder.build().map_err(text)?;
    let clock = Clock::global();
    let begin = clock.ticks();
    let end = begin + clock.ticks_from_ns(load.span_ns);
    let mut sent = 0;
    while clock.ticks() < end {
        for _ in 0..(CAPACITY / load.batch).min(512) {
            let set = |at: usize, event: &mut Event| event.set(Stamp::untimed(sent + at as u64));
            let published = match load.batch {
                1 => pipeline.publish(|event| set(0, event)),
                batch => pipeline.publish_batch(batch, set),
            };
            published.map_err(text)?;
            sent += load.batch as u64;
        }
    }
    pipeline.drain().map_err(text)?;
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin));
    let stats = pipeline.join().map_err(text)?;
    let passed = stats.stages.last().map_or(0, |stage| stage.events);
    let elapsed = took_ns as f64 / sent as f64;
    Ok(Run::of([elapsed]).with_lost(sent.abs_diff(passed)))
}

/// Adds the difference of the two, pair by pair.
fn cost(trial: &Trial, report: &mut Report) {
    let pairs = trial.pairs([WITH, WITHOUT], 0).into_iter();
    let costs: Vec<f64> = pairs.map(|(with, without)| with - without).collect();
    if !costs.is_empty() {
        report.measured(&trial.case, WITH, COST, &costs);
        let what = format!("{}: cost of attribution an event", trial.case);
        report.target(what, Limit::Shown, median(&costs), ns);
    }
}
