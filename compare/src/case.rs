//! A table of cases says what an experiment runs, how often, and what is expected of it.

use std::time::Duration;

use thalweg_measure::statistics::REPETITIONS_MIN;

pub use crate::goal::{Goal, Limit};
use crate::report::Report;
use crate::runner::{Metric, Subject, Subjects, Trial, interleave};

/// The arguments that decide how much runs.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Which cases and subjects run.
    pub cases: Patterns,
    /// Whether three short runs are enough.
    pub quick: bool,
    /// The runs of each subject, in place of the case's own number.
    pub repetitions: Option<usize>,
    /// The factor of the lengths of runs and the sizes of loads.
    pub scale: Option<f64>,
}

impl Settings {
    fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.quick { 0.2 } else { 1.0 })
    }

    /// Returns the time after which a run will not end, as where a wake-up was lost.
    fn hangs_after(&self) -> Duration {
        Duration::from_secs(180).mul_f64(self.scale().max(1.0))
    }

    /// Returns a number of events or nanoseconds from that of a full run: one at least.
    pub fn count(&self, full: u64) -> u64 {
        ((full as f64 * self.scale()) as u64).max(1)
    }

    /// Returns the runs of each subject from those of a full run.
    pub fn repetitions(&self, full: usize) -> usize {
        let most = if self.quick { 3 } else { full };
        self.repetitions.unwrap_or(full.min(most))
    }

    /// Returns whether figures can be held against limits: a quick run is for a first look.
    pub fn decides(&self) -> bool {
        !self.quick && self.scale() >= 1.0 && self.repetitions(REPETITIONS_MIN) >= REPETITIONS_MIN
    }
}

type Runner = Box<dyn FnOnce(&[usize], (usize, Duration)) -> Result<Trial, String>>;

/// A case is a line of an experiment's table: subjects under the same load.
pub(crate) struct Case {
    pub(crate) name: String,
    heading: String,
    pub(crate) subjects: Vec<String>,
    repetitions: usize,
    judged: &'static [usize],
    goals: Vec<Goal>,
    run: Runner,
}

impl Case {
    /// Makes a case whose load is built when it runs.
    pub(crate) fn new<L: Sync + 'static>(
        name: impl Into<String>,
        heading: impl Into<String>,
        metrics: &'static [Metric],
        subjects: Subjects<L>,
        load: impl FnOnce() -> Result<L, String> + 'static,
    ) -> Self {
        let name = name.into();
        let case = name.clone();
        let names = subjects.iter().map(|subject| subject.name.clone());
        Self {
            heading: heading.into(),
            subjects: names.collect(),
            repetitions: 11,
            judged: &[],
            goals: Vec::new(),
            run: Box::new(move |wanted, runs| {
                let load = load()?;
                let wanted: Vec<&Subject<L>> = wanted.iter().map(|&at| &subjects[at]).collect();
                Ok(interleave(&case, metrics, &wanted, &load, runs))
            }),
            name,
        }
    }

    /// Makes a case from a load that exists.
    pub(crate) fn of<L: Sync + 'static>(
        name: impl Into<String>,
        heading: impl Into<String>,
        metrics: &'static [Metric],
        subjects: Subjects<L>,
        load: L,
    ) -> Self {
        Self::new(name, heading, metrics, subjects, || Ok(load))
    }

    /// Sets the runs of each subject; the default is 11.
    pub(crate) fn repeated(self, repetitions: usize) -> Self {
        Self {
            repetitions,
            ..self
        }
    }

    /// Compares the best of ours with every peer, and all of ours with the best peer, by these
    /// metrics.
    pub(crate) fn judged(self, judged: &'static [usize]) -> Self {
        Self { judged, ..self }
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goals.push(goal);
        self
    }

    pub(crate) fn goals(mut self, goals: impl IntoIterator<Item = Goal>) -> Self {
        self.goals.extend(goals);
        self
    }

    /// Runs the wanted subjects, and reports. Returns whether there were any.
    pub(crate) fn run(self, settings: &Settings, report: &mut Report) -> bool {
        let wants = |at: &usize| {
            let path = format!("{}/{}/{}", report.experiment, self.name, self.subjects[*at]);
            settings.cases.wants(&path)
        };
        let wanted: Vec<usize> = (0..self.subjects.len()).filter(wants).collect();
        if wanted.is_empty() {
            return false;
        }
        let repetitions = settings.repetitions(self.repetitions);
        let (experiment, name, count) = (report.experiment, &self.name, wanted.len());
        eprintln!("{experiment}/{name}: {count} subjects, {repetitions} runs");
        match (self.run)(&wanted, (repetitions, settings.hangs_after())) {
            Ok(trial) => {
                report.trial(&self.heading, &trial, self.judged);
                report.goals(self.goals, trial);
            }
            Err(why) => report.skip(&self.name, &why),
        }
        true
    }
}

/// Patterns are separated by commas; each is a part of `experiment/case/subject`, where `*` stands
/// for any text.
#[derive(Debug, Clone, Default)]
pub struct Patterns(Vec<Vec<String>>);

impl Patterns {
    /// Parses patterns.
    ///
    /// # Errors
    /// A pattern is empty.
    pub fn parse(text: &str) -> Result<Self, String> {
        let patterns = text.split(',').map(str::trim);
        if patterns.clone().any(str::is_empty) {
            return Err(format!("pattern {text:?} has an empty part"));
        }
        let pieces = |pattern: &str| pattern.split('*').map(str::to_owned).collect();
        Ok(Self(patterns.map(pieces).collect()))
    }

    /// Returns whether one of the patterns matches; without any, every path does.
    pub fn wants(&self, path: &str) -> bool {
        let fits = |pieces: &Vec<String>| {
            let mut rest = Some(path);
            for piece in pieces {
                let split = rest.and_then(|rest| rest.split_once(piece.as_str()));
                rest = split.map(|(_, behind)| behind);
            }
            rest.is_some()
        };
        self.0.is_empty() || self.0.iter().any(fits)
    }
}
