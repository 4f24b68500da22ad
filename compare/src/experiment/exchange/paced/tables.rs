//! The latency table of each subject, a line for each rate.

use std::fmt;
use std::sync::PoisonError;

use thalweg_measure::histogram::Histogram;
use thalweg_measure::noise::quieter_half;
use thalweg_measure::statistics::median;
use thalweg_measure::table::{Cell, Nanoseconds, Table};

use super::{KEEPS_UP, Kept, P99, REACHED, Served};
use crate::report::{Report, ns, per_second};
use crate::runner::{Metric, Trial};

/// Metrics of a stage, in the order of the figures.
const STAGE_METRICS: [Metric; 4] = [
    Metric::lower("queueing_mean", "ns"),
    Metric::lower("queueing_p99", "ns"),
    Metric::lower("service_mean", "ns"),
    Metric::lower("service_p99", "ns"),
];

const HEADS: [&str; 12] = [
    "rate",
    "reached",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "p99.99",
    "max",
    "run's p99",
    "gaps",
    "cut",
    "waiting + service",
];

/// One subject's table.
#[derive(Debug)]
struct Sheet {
    subject: String,
    rows: Vec<Vec<Cell>>,
}

/// The tables of all subjects, as far as they are.
#[derive(Debug, Default)]
pub(in super::super) struct Tables {
    sheets: Vec<Sheet>,
}

impl Tables {
    /// Takes in the runs of one rate, which the subjects then forget. Whether a service kept up.
    pub(in super::super) fn take(
        &mut self,
        report: &mut Report,
        rate: &str,
        per_s: u64,
        trial: &Trial,
        subjects: &[Served],
    ) -> bool {
        let mut keeps_up = false;
        for subject in subjects {
            let kept =
                std::mem::take(&mut *subject.kept.lock().unwrap_or_else(PoisonError::into_inner));
            let Some(series) = trial.of(&subject.name) else {
                continue;
            };
            let reached = median(&series.quiet_values(REACHED)).unwrap_or(0.0);
            keeps_up |= subject.placement.is_some() && reached >= KEEPS_UP * per_s as f64;
            let disturbances: Vec<f64> = kept.iter().map(|run| run.disturbance).collect();
            let quiet: Vec<&Kept> = quieter_half(&disturbances)
                .iter()
                .map(|&at| &kept[at])
                .collect();
            let mut row: Vec<Cell> = vec![rate.into(), Cell::Number(per_second(reached))];
            row.extend(latencies(&quiet));
            let p99 = median(&series.quiet_values(P99));
            row.push(Nanoseconds(p99.unwrap_or(f64::NAN)).into());
            row.push(Cell::Number(format!(
                "{:.2} %",
                100.0 * series.disturbance()
            )));
            row.push(Cell::Number(format!(
                "{}/{}",
                series.cut(),
                series.runs.len()
            )));
            let mut stages = Vec::new();
            for (name, figures) in attribution(&quiet) {
                for (metric, values) in STAGE_METRICS.iter().zip(&figures) {
                    let path = format!("{} {name}", subject.name);
                    report.measured(&trial.case, &path, *metric, values);
                }
                let [waiting, _, service, _] = figures.map(|values| median(&values));
                let text = |value: Option<f64>| ns(value.unwrap_or(f64::NAN));
                stages.push(format!("{name} {} + {}", text(waiting), text(service)));
            }
            row.push(stages.join(", ").into());
            self.sheet(&subject.name).rows.push(row);
        }
        keeps_up
    }

    fn sheet(&mut self, subject: &str) -> &mut Sheet {
        let known = self
            .sheets
            .iter()
            .position(|sheet| sheet.subject == subject);
        let at = known.unwrap_or_else(|| {
            self.sheets.push(Sheet {
                subject: subject.to_owned(),
                rows: Vec::new(),
            });
            self.sheets.len() - 1
        });
        &mut self.sheets[at]
    }

    /// Shows them.
    pub(in super::super) fn show(self, report: &mut Report, runs: usize, span_ns: u64) {
        for Sheet { subject, rows } in self.sheets {
            let span = ns(span_ns as f64);
            report.say(Heading(&subject, runs, &span));
            let mut table = Table::new(HEADS);
            for row in rows {
                table.row(row);
            }
            report.append(&table);
        }
    }
}

struct Heading<'h>(&'h str, usize, &'h str);

impl fmt::Display for Heading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(subject, runs, span) = self;
        write!(
            f,
            "open/{subject}: open loop, latency from the intended time: all commands of the \
             quieter half of {runs} runs of {span}; run's p99: of the median run of that half; \
             waiting + service of each stage: means"
        )
    }
}

/// Of all commands of these runs together.
fn latencies(runs: &[&Kept]) -> [Cell; 6] {
    let mut all = Histogram::new();
    runs.iter().for_each(|run| all.merge(&run.latency_ns));
    let summary = all.summary();
    let quantiles = [
        summary.p50,
        summary.p90,
        summary.p99,
        summary.p999,
        summary.p9999,
        summary.max,
    ];
    quantiles.map(|value| {
        let value = if summary.count > 0 {
            value as f64
        } else {
            f64::NAN
        };
        Nanoseconds(value).into()
    })
}

/// Of each stage its figures, run by run.
fn attribution(runs: &[&Kept]) -> Vec<(String, [Vec<f64>; 4])> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let stages = first.stages.iter().enumerate().map(|(at, (name, _))| {
        let values = |figure: usize| runs.iter().map(|run| run.stages[at].1[figure]).collect();
        (name.clone(), [0, 1, 2, 3].map(values))
    });
    stages.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{METRICS, Paced, subjects};
    use super::*;
    use crate::experiment::exchange::engine::Load;
    use crate::experiment::exchange::mixes;
    use crate::runner::{Subject, interleave};

    #[test]
    fn a_line_a_rate_with_latencies_and_stages() {
        let load = Load::new(mixes::trading(20_000));
        let subjects = subjects();
        let dynamic: Vec<&dyn Subject<Paced<'_>>> = subjects.iter().map(|s| s as _).collect();
        let mut report = Report::new("test");
        let mut tables = Tables::default();
        for (rate, per_s) in [("slow", 200_000), ("fast", 4_000_000)] {
            let paced = Paced {
                load: &load,
                per_s,
                span_ns: 500_000,
            };
            let trial = interleave(rate, METRICS, &dynamic, &paced, 2);
            tables.take(&mut report, rate, per_s, &trial, &subjects);
        }
        tables.show(&mut report, 2, 500_000);
        let mut text = Vec::new();
        report.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in [
            "open/thalweg inline: ",
            "p99.99",
            "publish",
            "\nslow",
            "\nfast",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
