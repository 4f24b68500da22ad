//! What all five have in common: cases that run, ratios with their rows, claims with verdicts.

use thalweg_measure::statistics::{Interval, median};
use thalweg_measure::table::Table;

use super::page::{Chart, Figure, Section, interval, page};
use super::place::Cores;
use super::verdict::{Claim, Finding};
use crate::experiment::Settings;
use crate::report::{Report, times};
use crate::runner::{Metric, Subject, Trial};

/// A run of the whole experiment.
pub(super) struct Course<'s> {
    pub(super) settings: &'s Settings,
    pub(super) report: Report,
    sections: Vec<Section>,
}

/// A trial on one core and on two, as far as they ran.
pub(super) type Both = [Option<Trial>; 2];

impl<'s> Course<'s> {
    pub(super) fn new(settings: &'s Settings, report: Report) -> Self {
        Self {
            settings,
            report,
            sections: Vec::new(),
        }
    }

    /// What follows is about this principle.
    pub(super) fn principle(&mut self, title: &'static str, says: &'static str) {
        self.sections.push(Section {
            title,
            says,
            ..Section::default()
        });
    }

    fn section(&mut self) -> &mut Section {
        self.sections.last_mut().expect("a principle was named")
    }

    /// Runs the wanted subjects of a case; `None` if there are none, or none can run.
    pub(super) fn case<L: Sync>(
        &mut self,
        [case, heading]: [&str; 2],
        metrics: &'static [Metric],
        subjects: &[Box<dyn Subject<L>>],
        load: &L,
        repetitions: [usize; 2],
    ) -> Option<Trial> {
        let trial = self
            .settings
            .trial(case, metrics, subjects, load, repetitions)?;
        self.report.figures(&format!("{case}: {heading}"), &trial);
        (!trial.series.is_empty()).then_some(trial)
    }

    /// The same on one core and on two; the case's name gets the number.
    pub(super) fn both<L: Sync>(
        &mut self,
        [case, heading]: [&str; 2],
        metrics: &'static [Metric],
        subjects: &[Box<dyn Subject<L>>],
        load: impl Fn(Cores) -> L,
        repetitions: [usize; 2],
    ) -> Both {
        Cores::EACH.map(|cores| {
            let case = format!("{case}/{}", cores.name());
            let load = load(cores);
            self.case([&case, heading], metrics, subjects, &load, repetitions)
        })
    }

    /// The ratio of two subjects of a trial, with its row.
    pub(super) fn ratio(
        &mut self,
        trial: Option<&Trial>,
        sides: [&str; 2],
        metric: usize,
    ) -> Option<Interval> {
        self.report.compare(trial?, sides, metric)
    }

    /// The ratios on one core and on two.
    pub(super) fn ratios(
        &mut self,
        both: &Both,
        sides: [&str; 2],
        metric: usize,
    ) -> [Option<Interval>; 2] {
        let [one, two] = both;
        [one, two].map(|trial| self.ratio(trial.as_ref(), sides, metric))
    }

    /// That a figure is not below its limit.
    pub(super) fn claim(&mut self, what: impl Into<String>, limit: f64, on: [Option<Interval>; 2]) {
        let what = what.into();
        self.section().claims.push(Claim { what, limit, on });
    }

    pub(super) fn figure(&mut self, title: impl Into<String>, chart: Chart) {
        let title = title.into();
        self.section().figures.push(Figure { title, chart });
    }

    /// The end of a principle: its claims as a table and as rows.
    pub(super) fn conclude(&mut self) {
        let section = self.sections.last().expect("a principle was named");
        let ran = |claim: &&Claim| claim.on.iter().any(Option::is_some);
        if !section.claims.iter().any(|claim| ran(&claim)) {
            return;
        }
        let mut table = Table::new(["claim", "limit", "1 core", "2 cores", "verdict"]);
        for claim in section.claims.iter().filter(ran) {
            let [one, two] = claim.on.map(interval);
            let limit = format!("≥ {}", times(claim.limit));
            let verdict = claim.verdict().to_string();
            table.row([
                claim.what.clone().into(),
                limit.into(),
                one.into(),
                two.into(),
                verdict.into(),
            ]);
            for (cores, found) in Cores::EACH.into_iter().zip(claim.findings()) {
                let name = match cores {
                    Cores::One => "holds on 1 core",
                    Cores::Two => "holds on 2 cores",
                };
                let holds = match found {
                    Some(Finding::Holds) => 1.0,
                    Some(Finding::Fails) => 0.0,
                    Some(Finding::Open) | None => continue,
                };
                let metric = Metric::higher(name, "truth");
                self.report
                    .measured("claims", &claim.what, metric, &[holds]);
            }
        }
        self.report
            .say(format!("{}. {}", section.title, section.says));
        self.report.append(&table);
    }

    /// The report, with its page.
    pub(super) fn end(mut self, machine: &str) -> Report {
        let page = page(machine, &self.sections);
        self.report.set_page(page);
        self.report
    }
}

/// The median of a metric of a subject.
pub(super) fn middle(trial: Option<&Trial>, subject: &str, metric: usize) -> Option<f64> {
    median(&trial?.of(subject)?.values(metric))
}

/// Medians of a metric as bars, a subject each.
pub(super) fn bars(trial: &Trial, metric: usize, show: fn(f64) -> String) -> Chart {
    let value = |name: &str| middle(Some(trial), name, metric).unwrap_or(0.0);
    let names = trial.series.iter().map(|series| series.subject.clone());
    let rows = names.map(|name| {
        let value = value(&name);
        (name, value)
    });
    Chart::Bars {
        show,
        rows: rows.collect(),
    }
}
