//! The experiments, one file each.

mod attribution;
mod pipeline;
mod progress;

use crate::case::Cases;
use crate::report::Report;
use crate::runner::Subject;

/// Something to compare.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// One line: what it shows.
    pub(crate) shows: &'static str,
    pub(crate) run: fn(&Settings) -> Report,
}

/// All experiments, in the order of `--list`.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    pipeline::EXPERIMENT,
    progress::EXPERIMENT,
    attribution::EXPERIMENT,
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
}

impl Settings {
    pub(crate) fn new(
        quick: bool,
        cases: Cases,
        repetitions: Option<usize>,
        seconds: Option<f64>,
    ) -> Self {
        let seconds = seconds.unwrap_or(if quick {
            RUN_SECONDS_QUICK
        } else {
            RUN_SECONDS
        });
        Self {
            repetitions: repetitions.unwrap_or(REPETITIONS),
            span_ns: (seconds * 1e9) as u64,
            cases,
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
}

/// Tells on standard error how far an experiment is.
fn progress_note(text: &str) {
    eprintln!("{text}");
}
