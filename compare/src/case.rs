//! The tables of cases: what an experiment runs, how often, and what is expected of it.

use thalweg_measure::statistics::REPETITIONS_MIN;

use crate::report::Report;
use crate::runner::{Metric, Subject, Subjects, Trial, interleave};

/// How much to run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) cases: Patterns,
    pub(crate) quick: bool,
    /// Runs of each subject and case, in place of the case's own number.
    pub(crate) repetitions: Option<usize>,
    /// By how much lengths of runs and sizes of loads differ from the full ones.
    pub(crate) scale: Option<f64>,
}

impl Settings {
    const QUICK_SCALE: f64 = 0.2;
    const QUICK_REPETITIONS: usize = 3;

    fn scale(&self) -> f64 {
        let scale = if self.quick { Self::QUICK_SCALE } else { 1.0 };
        self.scale.unwrap_or(scale)
    }

    /// Returns how many there are where a full run has this many: one at least.
    pub(crate) fn count(&self, full: u64) -> u64 {
        ((full as f64 * self.scale()) as u64).max(1)
    }

    fn repetitions(&self, full: usize) -> usize {
        let quick = if self.quick {
            Self::QUICK_REPETITIONS
        } else {
            full
        };
        self.repetitions.unwrap_or(full.min(quick))
    }

    /// Returns whether figures can be held against limits: a quick run is for a first look.
    pub(crate) fn decides(&self) -> bool {
        !self.quick && self.scale() >= 1.0 && self.repetitions(REPETITIONS_MIN) >= REPETITIONS_MIN
    }
}

/// On which side of its limit a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// Shown without judgement.
    Shown,
}

/// What a case is expected to show.
#[derive(Debug, Clone)]
pub(crate) enum Goal {
    /// A subject's median.
    Figure(String, usize, Limit),
    /// The ratio of two subjects; above 1 the first is better.
    Ratio([String; 2], usize, Limit),
    /// The ratio of the best of ours and the best peer.
    Best(usize, Limit),
}

impl Goal {
    pub(crate) fn at_most(subject: &str, metric: usize, limit: f64) -> Self {
        Self::Figure(subject.to_owned(), metric, Limit::AtMost(limit))
    }

    pub(crate) fn at_least(subject: &str, metric: usize, limit: f64) -> Self {
        Self::Figure(subject.to_owned(), metric, Limit::AtLeast(limit))
    }

    pub(crate) fn ratio(sides: [&str; 2], metric: usize, at_least: f64) -> Self {
        let limit = Limit::AtLeast(at_least);
        Self::Ratio(sides.map(str::to_owned), metric, limit)
    }

    pub(crate) fn shown(sides: [&str; 2], metric: usize) -> Self {
        Self::Ratio(sides.map(str::to_owned), metric, Limit::Shown)
    }
}

type Runner = Box<dyn FnOnce(&[usize], usize) -> Result<Trial, String>>;
type Footer = Box<dyn FnOnce(&Trial, &mut Report)>;

/// One line of an experiment's table: subjects under the same load.
pub(crate) struct Case {
    pub(crate) name: String,
    heading: String,
    pub(crate) subjects: Vec<String>,
    repetitions: usize,
    judged: &'static [usize],
    goals: Vec<Goal>,
    run: Runner,
    footer: Option<Footer>,
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
        let names = subjects.iter().map(|subject| subject.name());
        Self {
            heading: heading.into(),
            subjects: names.collect(),
            repetitions: 11,
            judged: &[],
            goals: Vec::new(),
            footer: None,
            run: Box::new(move |wanted, repetitions| {
                let load = load()?;
                let wanted = wanted.iter().map(|&at| &*subjects[at]);
                let wanted: Vec<&dyn Subject<L>> = wanted.collect();
                Ok(interleave(&case, metrics, &wanted, &load, repetitions))
            }),
            name,
        }
    }

    /// Makes a case whose load is there already.
    pub(crate) fn of<L: Sync + 'static>(
        name: impl Into<String>,
        heading: impl Into<String>,
        metrics: &'static [Metric],
        subjects: Subjects<L>,
        load: L,
    ) -> Self {
        Self::new(name, heading, metrics, subjects, || Ok(load))
    }

    /// Sets the runs of each subject; 11 without it.
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

    /// Adds what is shown below the table.
    pub(crate) fn footer(self, footer: impl FnOnce(&Trial, &mut Report) + 'static) -> Self {
        let footer: Option<Footer> = Some(Box::new(footer));
        Self { footer, ..self }
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
        match (self.run)(&wanted, repetitions) {
            Ok(trial) => {
                report.trial(&self.heading, &trial, self.judged);
                if let Some(footer) = self.footer {
                    footer(&trial, report);
                }
                report.goals(self.goals, trial);
            }
            Err(why) => report.skip(&self.name, &why),
        }
        true
    }
}

/// Patterns separated by commas, each a part of `experiment/case/subject`, where `*` stands for
/// anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns(Vec<Vec<String>>);

impl Patterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// A pattern is empty.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let patterns = text.split(',').map(str::trim);
        if patterns.clone().any(str::is_empty) {
            return Err(format!("pattern {text:?} has an empty part"));
        }
        let pieces = |pattern: &str| pattern.split('*').map(str::to_owned).collect();
        Ok(Self(patterns.map(pieces).collect()))
    }

    /// Returns whether one of them fits; without any, everything does.
    pub(crate) fn wants(&self, path: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_of_the_path() {
        let wants = |text: &str, path: &str| Patterns::parse(text).unwrap().wants(path);
        assert!(wants("inline", "pipeline/1M/s/thalweg inline"));
        assert!(!wants("inline", "pipe/1M/s/thalweg auto"));
        assert!(wants("1M*inline", "pipeline/1M/s/thalweg inline"));
        assert!(!wants("inline*1M", "pipe/1M/s/thalweg inline"));
        assert!(wants("2M, auto", "1M/s/thalweg auto"));
        assert!(wants("*", "1M/s/thalweg auto"));
        assert!(Patterns::default().wants("1M/s/thalweg auto"));
        for text in ["", ",", "a,", "a,,b", " "] {
            let error = Patterns::parse(text).unwrap_err();
            assert_eq!(error, format!("pattern {text:?} has an empty part"));
        }
    }

    #[test]
    fn short_runs_do_not_decide() {
        let settings = |quick, repetitions, scale| Settings {
            quick,
            repetitions,
            scale,
            ..Settings::default()
        };
        assert!(settings(false, None, None).decides());
        assert!(!settings(true, None, None).decides());
        assert!(!settings(false, Some(5), None).decides());
        assert!(!settings(false, None, Some(0.5)).decides());
        assert_eq!(settings(true, None, None).count(10), 2);
        assert_eq!(settings(true, None, None).count(1), 1);
        assert_eq!(settings(true, None, None).repetitions(11), 3);
        assert_eq!(settings(true, None, None).repetitions(1), 1);
    }
}
