//! The experiments, one file each.

mod append;
mod attribution;
mod burst;
mod bus;
mod channels;
mod exchange;
mod hash;
mod journal;
mod pipeline;
mod principles;
mod progress;
pub(crate) mod serve;
mod subjects;
mod tasks;

use thalweg_measure::statistics::REPETITIONS_MIN;

use crate::case::Cases;
use crate::report::Report;
use crate::runner::{Metric, Subject, Trial, interleave};

/// Something to compare.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// One line: what it shows.
    pub(crate) shows: &'static str,
    pub(crate) run: fn(&Settings) -> Report,
}

/// The one that has a page as well.
pub(crate) fn has_page(experiment: &Experiment) -> bool {
    experiment.name == principles::EXPERIMENT.name
}

/// All experiments, in the order of `--list`.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    pipeline::EXPERIMENT,
    progress::EXPERIMENT,
    attribution::EXPERIMENT,
    channels::EXPERIMENT,
    burst::EXPERIMENT,
    exchange::EXPERIMENT,
    hash::EXPERIMENT,
    append::EXPERIMENT,
    journal::EXPERIMENT,
    serve::EXPERIMENT,
    tasks::EXPERIMENT,
    principles::EXPERIMENT,
    bus::EXPERIMENT,
];

const REPETITIONS: usize = 11;
const RUN_SECONDS: f64 = 0.15;
const RUN_SECONDS_QUICK: f64 = 0.04;

/// How much to run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Runs of each subject and case.
    pub(crate) repetitions: usize,
    /// Load of each run, ns.
    pub(crate) span_ns: u64,
    pub(crate) cases: Cases,
    pub(crate) quick: bool,
    /// What was asked for, if anything was, of the two above.
    asked: (Option<usize>, Option<f64>),
}

impl Settings {
    pub(crate) fn new(
        quick: bool,
        cases: Cases,
        repetitions: Option<usize>,
        seconds: Option<f64>,
    ) -> Self {
        let asked = (repetitions, seconds);
        let seconds = seconds.unwrap_or(if quick {
            RUN_SECONDS_QUICK
        } else {
            RUN_SECONDS
        });
        Self {
            repetitions: repetitions.unwrap_or(REPETITIONS),
            span_ns: (seconds * 1e9) as u64,
            cases,
            quick,
            asked,
        }
    }

    /// Whether figures can be held against limits: a quick run is for a look.
    pub(crate) fn decides(&self) -> bool {
        let fewest = if self.quick { 1 } else { REPETITIONS_MIN };
        self.asked.0.unwrap_or(fewest) >= REPETITIONS_MIN
    }

    /// The repetitions asked for, or these: `[full, quick]`.
    fn repetitions_or(&self, [full, quick]: [usize; 2]) -> usize {
        self.asked
            .0
            .unwrap_or(if self.quick { quick } else { full })
    }

    /// The span asked for, or these, ns: `[full, quick]`.
    fn span_ns_or(&self, [full, quick]: [u64; 2]) -> u64 {
        match self.asked.1 {
            Some(seconds) => (seconds * 1e9) as u64,
            None if self.quick => quick,
            None => full,
        }
    }

    /// Those of the subjects that are wanted in this case.
    fn wanted<'s, L>(
        &self,
        case: &str,
        subjects: &'s [Box<dyn Subject<L>>],
    ) -> Vec<&'s dyn Subject<L>> {
        let wanted = subjects
            .iter()
            .filter(|subject| self.cases.wants(case, &subject.name()));
        wanted.map(|subject| &**subject).collect()
    }

    /// Runs the wanted subjects of a case `[full, quick]` times; `None` if there are none.
    fn trial<L: Sync>(
        &self,
        case: &str,
        metrics: &'static [Metric],
        subjects: &[Box<dyn Subject<L>>],
        load: &L,
        repetitions: [usize; 2],
    ) -> Option<Trial> {
        let wanted = self.wanted(case, subjects);
        if wanted.is_empty() {
            return None;
        }
        let repetitions = self.repetitions_or(repetitions);
        let count = wanted.len();
        progress_note(&format!("{case}: {count} subjects, {repetitions} runs"));
        Some(interleave(case, metrics, &wanted, load, repetitions))
    }
}

/// Tells on standard error how far an experiment is.
fn progress_note(text: &str) {
    eprintln!("{text}");
}
