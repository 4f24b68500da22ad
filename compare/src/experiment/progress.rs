//! How often a stage should tell the next one how far it is: tail and throughput of several
//! intervals near saturation.

use thalweg::pipeline::Placement;
use thalweg_measure::statistics::median;
use thalweg_measure::table::{Cell, Table};

use super::{Experiment, REPETITIONS, Settings, progress_note};
use crate::report::{Report, ns, per_second};
use crate::runner::{Subject, Trial};
use crate::sender::{LATENCY, Load, THROUGHPUT};
use crate::subject::Thalweg;
use crate::workload::Workload;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "progress",
    shows: "progress intervals from 1 to the end of the batch, at 80 to 95 % of saturation",
    run,
};

/// Intervals in events, and their names.
const INTERVALS: [(&str, usize); 5] = [
    ("1", 1),
    ("16", 16),
    ("24", 24),
    ("64", 64),
    ("batch", usize::MAX),
];
/// The interval that saturation is measured with.
const REFERENCE: &str = "64";
/// Rates in percent of saturation.
const PERCENTS: [u64; 3] = [80, 90, 95];
/// Where p99.9 is among the metrics of an open loop.
const P999: usize = 2;

fn case_of(percent: u64) -> String {
    format!("{percent} % of saturation")
}

fn placements() -> [(&'static str, Placement); 2] {
    [
        ("caller:1+threads:1", Placement::caller_and_threads(1, 1)),
        ("threads:2", Placement::threads(2)),
    ]
}

fn subjects(name: &str, placement: &Placement, workload: Workload) -> Vec<Box<dyn Subject<Load>>> {
    let subject = |(interval, events): (&str, usize)| -> Box<dyn Subject<Load>> {
        let name = subject_name(name, interval);
        let mut subject = Thalweg::new(&name, placement.clone(), workload);
        subject.progress = Some(events);
        Box::new(subject)
    };
    INTERVALS.map(subject).into()
}

fn subject_name(placement: &str, interval: &str) -> String {
    format!("{placement} progress {interval}")
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let workload = Workload::calibrate();
    for (name, placement) in placements() {
        let subjects = subjects(name, &placement, workload);
        let span_ns = settings.span_ns;
        let closed = Load::Closed { batch: 1, span_ns };
        let case = "max batch 1";
        progress_note(&format!("{name}: saturation"));
        let most = settings.trial(case, THROUGHPUT, &subjects, &closed, [REPETITIONS; 2]);
        let Some(most) = most else { continue };
        report.trial(&format!("{name}, closed loop"), &most);
        let Some(saturation) = saturation(&most, name) else {
            continue;
        };
        let mut trials = Vec::new();
        for percent in PERCENTS {
            let case = case_of(percent);
            let per_s = (saturation * percent as f64 / 100.0) as u64;
            if per_s == 0 {
                continue;
            }
            let load = Load::Open { per_s, span_ns };
            let trial = settings.trial(&case, LATENCY, &subjects, &load, [REPETITIONS; 2]);
            let Some(trial) = trial else { continue };
            let heading = format!("{name}, open loop, {case}: {}", per_second(per_s as f64));
            report.trial(&heading, &trial);
            trials.push(trial);
        }
        report.say(format!("{name}, side by side"));
        report.say(side_by_side(name, &most, &trials));
    }
    report
}

/// The throughput of the reference interval, or of whatever ran.
fn saturation(most: &Trial, placement: &str) -> Option<f64> {
    let reference = format!("thalweg {}", subject_name(placement, REFERENCE));
    let series = most.of(&reference).or(most.series.first())?;
    median(&series.values(0))
}

/// Throughput, and p99.9 at each rate, a line an interval: median and best quartile of each.
fn side_by_side(placement: &str, most: &Trial, trials: &[Trial]) -> Table {
    let mut table = Table::new([
        "median / best quartile",
        "throughput",
        "p99.9 at 80 %",
        "p99.9 at 90 %",
        "p99.9 at 95 %",
    ]);
    for (interval, _) in INTERVALS {
        let subject = format!("thalweg {}", subject_name(placement, interval));
        let figure = |trial: &Trial, metric: usize, show: fn(f64) -> String| {
            let series = trial.of(&subject)?;
            let spread = series.spread(metric, trial.metrics[metric].better);
            let (median, quartile) = (show(spread.median), show(spread.best_quartile));
            Some(Cell::Number(format!("{median} / {quartile}")))
        };
        let cell = |cell: Option<Cell>| cell.unwrap_or(Cell::Number("-".into()));
        let name = format!("progress every {interval}");
        let mut row = vec![name.into(), cell(figure(most, 0, per_second))];
        for percent in PERCENTS {
            let of_percent = case_of(percent);
            let trial = trials.iter().find(|trial| trial.case == of_percent);
            row.push(cell(trial.and_then(|trial| figure(trial, P999, ns))));
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(values: &[(&str, f64)]) -> Trial {
        let named = |(interval, value): &(&str, f64)| {
            let subject = format!("thalweg {}", subject_name("threads:2", interval));
            (subject, [*value])
        };
        let runs: Vec<(String, [f64; 1])> = values.iter().map(named).collect();
        let runs: Vec<(&str, &[f64])> = runs
            .iter()
            .map(|(subject, values)| (subject.as_str(), &values[..]))
            .collect();
        Trial::scripted("max batch 1", THROUGHPUT, &runs)
    }

    #[test]
    fn saturation_is_that_of_the_reference() {
        assert_eq!(
            saturation(&trial(&[("1", 1e6), ("64", 9e6)]), "threads:2"),
            Some(9e6)
        );
        assert_eq!(saturation(&trial(&[("1", 1e6)]), "threads:2"), Some(1e6));
        assert_eq!(saturation(&trial(&[]), "threads:2"), None);
    }

    #[test]
    fn what_did_not_run_is_a_dash() {
        let most = trial(&[("64", 9e6)]);
        let table = side_by_side("threads:2", &most, &[]).to_string();
        let line = table
            .lines()
            .find(|line| line.starts_with("progress every 64"))
            .unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "progress", "every", "64", "9.00", "M/s", "/", "9.00", "M/s", "-", "-", "-"
            ]
        );
    }
}
