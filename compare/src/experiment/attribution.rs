//! The cost of a pipeline's statistics: three stages that do next to nothing, with the default
//! sampling and with practically none.

use thalweg::pipeline::{Placement, SAMPLE_EVERY_MAX};
use thalweg_measure::statistics::median;

use super::Experiment;
use super::pipeline::ours;
use crate::case::{Case, Limit, Settings};
use crate::report::{Report, ns};
use crate::runner::{Metric, Trial, subject};
use crate::sender::Load;

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

fn cases(settings: &Settings) -> Vec<Case> {
    let span_ns = settings.count(150_000_000);
    let mut cases = Vec::new();
    for batch in [1, 64] {
        for placement in [Placement::inline(), Placement::threads(1)] {
            let name = format!("0-ns batch-{batch} {placement}");
            let heading = "three stages that do next to nothing";
            let subjects =
                [(WITHOUT, Some(SAMPLE_EVERY_MAX)), (WITH, None)].map(|(name, every)| {
                    let placement = placement.clone();
                    subject(name, move |load| {
                        let mut run = ours(0, load, |stages| {
                            let stages = stages.placement(placement.clone());
                            match every {
                                Some(every) => stages.sample_every(every),
                                None => stages,
                            }
                        })?;
                        run.values[0] = 1e9 / run.values[0];
                        Ok(run)
                    })
                });
            let load = Load::Closed { batch, span_ns };
            let case = Case::of(name, heading, METRICS, subjects.into(), load);
            cases.push(case.footer(cost));
        }
    }
    cases
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
