//! What an experiment says: text for people, rows for programs.

use std::fmt::Display;
use std::io::{self, Write};

use thalweg_measure::statistics::{Interval, median_interval};
use thalweg_measure::table::{Cell, Comparison, Measurement, Nanoseconds, Table};

use crate::experiment::Settings;
use crate::runner::{Metric, Trial};
use crate::target::{self, Target};

/// Above this median share of the sender's waiting lost to gaps, figures are called noisy.
const NOISY: f64 = 0.01;

/// Collects what an experiment found, in the order in which it is shown.
#[derive(Debug, Default)]
pub(crate) struct Report {
    experiment: &'static str,
    text: String,
    rows: Vec<String>,
    page: Option<String>,
    has_failed: bool,
}

impl Report {
    pub(crate) fn new(experiment: &'static str) -> Self {
        Self {
            experiment,
            ..Self::default()
        }
    }

    /// A line of text, or a table, in its own paragraph.
    pub(crate) fn say(&mut self, text: impl Display) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += text.to_string().trim_end();
        self.text.push('\n');
    }

    /// Something that must hold does not: the program will say so with its exit code.
    pub(crate) fn fail(&mut self, what: &str) {
        self.has_failed = true;
        self.say(format!("FAILED {what}"));
    }

    /// Whether something [failed](Self::fail).
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Text in the same paragraph.
    pub(crate) fn append(&mut self, text: &impl Display) {
        self.text += &text.to_string();
    }

    /// A row for a figure that is not of a trial.
    pub(crate) fn measured(&mut self, case: &str, subject: &str, metric: Metric, values: &[f64]) {
        let path = [self.experiment, case, subject];
        let row = Measurement::new(path, [metric.name, metric.unit], values);
        self.rows.push(row.json());
    }

    /// The rows of a trial.
    pub(crate) fn rows(&mut self, trial: &Trial) {
        for series in &trial.series {
            for (at, &metric) in trial.metrics.iter().enumerate() {
                self.measured(&trial.case, &series.subject, metric, &series.values(at));
                if series.disturbance() > 0.0 {
                    let quiet = format!("{}_quiet_half", metric.name);
                    let path = [self.experiment, &trial.case, &series.subject];
                    let values = series.quiet_values(at);
                    let row = Measurement::new(path, [&quiet, metric.unit], &values);
                    self.rows.push(row.json());
                }
            }
            let lost = Metric::lower("lost", "events");
            self.measured(&trial.case, &series.subject, lost, &[series.lost() as f64]);
        }
    }

    /// The rows of a trial, and its table under a heading.
    pub(crate) fn trial(&mut self, heading: &str, trial: &Trial) {
        let table = if trial.metrics[0].unit == "ns" && trial.metrics.len() > 1 {
            latency_table(trial)
        } else {
            figure_table(trial)
        };
        self.show(heading, trial, &table);
    }

    /// The rows of a trial, and a line for each subject and metric under a heading.
    pub(crate) fn figures(&mut self, heading: &str, trial: &Trial) {
        self.show(heading, trial, &figure_table(trial));
    }

    fn show(&mut self, heading: &str, trial: &Trial, table: &Table) {
        self.rows(trial);
        self.say(heading);
        self.append(table);
        for (subject, why) in &trial.skipped {
            self.text += &format!("{subject} skipped: {why}\n");
        }
        let noise = trial.series.iter().map(|series| series.disturbance());
        let noise = noise.fold(0.0, f64::max);
        if noise > NOISY {
            let percent = 100.0 * noise;
            self.text += &format!(
                "noisy: gaps above 5 µs took up to {percent:.1} % of a sender's waiting (median of \
                 a subject's runs); other programs were at work\n"
            );
        }
    }

    /// A ratio of two subjects of a trial, if both ran, with its row.
    pub(crate) fn compare(
        &mut self,
        trial: &Trial,
        [subject, versus]: [&str; 2],
        metric: usize,
    ) -> Option<Interval> {
        let Metric { name, better, .. } = trial.metrics[metric];
        let pairs = trial.pairs(subject, versus, metric);
        let path = [self.experiment, &trial.case, name];
        let row = Comparison::new(path, [subject, versus], &pairs, better)?;
        self.rows.push(row.json());
        Some(Interval {
            low: row.low,
            value: row.ratio,
            high: row.high,
        })
    }

    /// The targets, if there are any, with verdicts if the run can give them.
    pub(crate) fn targets(&mut self, targets: &[Target], settings: &Settings) {
        if !targets.is_empty() {
            self.say("Targets");
            self.say(target::table(targets, settings.decides()));
        }
    }

    /// Adds a page for browsers.
    pub(crate) fn set_page(&mut self, page: String) {
        self.page = Some(page);
    }

    /// The page, if this experiment has one.
    pub(crate) fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Writes the text.
    ///
    /// # Errors
    /// As `out` has.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }

    /// Writes one JSON object a line.
    ///
    /// # Errors
    /// As `out` has.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        self.rows.iter().try_for_each(|row| writeln!(out, "{row}"))
    }
}

/// Nanoseconds as text.
pub(crate) fn ns(value: f64) -> String {
    Nanoseconds(value).to_string()
}

/// A ratio as text.
pub(crate) fn times(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}×")
    } else {
        format!("{value:.2}×")
    }
}

/// Nanoseconds below some hundred, where tenths count.
pub(crate) fn small_ns(value: f64) -> String {
    format!("{value:.1} ns")
}

/// Events a second, as text.
pub(crate) fn per_second(value: f64) -> String {
    format!("{:.2} M/s", value / 1e6)
}

fn interval_text(values: &[f64], show: fn(f64) -> String) -> String {
    median_interval(values).map_or("-".to_owned(), |interval| interval.bounds(show))
}

/// Median / best quartile / best of each quantile, the p99's interval, and how disturbed the runs
/// were.
fn latency_table(trial: &Trial) -> Table {
    let mut table = Table::new([
        "median / best quartile / best",
        "p50",
        "p99",
        "p99 interval",
        "quiet half p99",
        "p99.9",
        "gaps",
        "lost",
        "cut",
    ]);
    for series in &trial.series {
        let three = |metric: usize| -> Cell {
            let spread = series.spread(metric, trial.metrics[metric].better);
            let [median, quartile, best] =
                [spread.median, spread.best_quartile, spread.best].map(ns);
            Cell::Number(format!("{median} / {quartile} / {best}"))
        };
        let quiet = thalweg_measure::statistics::median(&series.quiet_values(1));
        table.row([
            series.subject.as_str().into(),
            three(0),
            three(1),
            Cell::Number(interval_text(&series.values(1), ns)),
            Nanoseconds(quiet.unwrap_or(f64::NAN)).into(),
            three(2),
            Cell::Number(format!("{:.2} %", 100.0 * series.disturbance())),
            series.lost().into(),
            Cell::Number(format!("{}/{}", series.cut(), series.runs.len())),
        ]);
    }
    table
}

fn tenths_or_rounded(value: f64) -> String {
    match value {
        10_000.0.. => ns(value),
        _ => small_ns(value),
    }
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Bytes, as text.
pub(crate) fn mebibytes(value: f64) -> String {
    format!("{:.1} MiB", value / f64::from(1 << 20))
}

fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

/// One line a subject and metric.
fn figure_table(trial: &Trial) -> Table {
    let mut table = Table::new([
        "subject",
        "metric",
        "median",
        "interval",
        "best quartile",
        "best",
        "lost",
        "cut",
    ]);
    for series in &trial.series {
        for (at, metric) in trial.metrics.iter().enumerate() {
            let show = match metric.unit {
                "ns" => tenths_or_rounded,
                "" | "requests" | "switches" | "percent" => two_decimals,
                "commits/s" | "switches/s" | "messages" | "commands" | "snapshots" => whole,
                "bytes" => mebibytes,
                _ => per_second,
            };
            let spread = series.spread(at, metric.better);
            table.row([
                series.subject.as_str().into(),
                metric.name.into(),
                Cell::Number(show(spread.median)),
                Cell::Number(interval_text(&series.values(at), show)),
                Cell::Number(show(spread.best_quartile)),
                Cell::Number(show(spread.best)),
                series.lost().into(),
                Cell::Number(format!("{}/{}", series.cut(), series.runs.len())),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{Run, Series};

    const COST: &[Metric] = &[Metric::lower("cost", "ns")];

    fn trial() -> Trial {
        let series = |subject: &str, values: [f64; 3]| Series {
            subject: subject.to_owned(),
            runs: values
                .map(|value| Run {
                    values: vec![value],
                    disturbance: 0.5,
                    lost: 2,
                    cut: false,
                })
                .to_vec(),
        };
        Trial {
            case: "case".to_owned(),
            metrics: COST,
            series: vec![series("a", [1.0, 2.0, 3.0]), series("b", [2.0, 4.0, 6.0])],
            skipped: vec![("c".to_owned(), "no core".to_owned())],
        }
    }

    #[test]
    fn a_trial_becomes_a_table_and_rows() {
        let mut report = Report::new("test");
        report.trial("Costs", &trial());
        let ratio = report.compare(&trial(), ["a", "b"], 0).unwrap();
        assert_eq!(ratio.value, 2.0);
        assert!(report.compare(&trial(), ["a", "z"], 0).is_none());
        let mut text = Vec::new();
        report.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("Costs\nsubject"), "{text}");
        assert!(text.contains("c skipped: no core"), "{text}");
        assert!(
            text.contains("noisy: gaps above 5 µs took up to 50.0 %"),
            "{text}"
        );
        let mut json = Vec::new();
        report.write_json(&mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        let first =
            r#"{"experiment":"test","case":"case","subject":"a","metric":"cost","unit":"ns""#;
        assert!(json.starts_with(first), "{json}");
        assert!(
            json.contains(r#""metric":"lost","unit":"events","value":6.0"#),
            "{json}"
        );
        let last = json.lines().last().unwrap();
        assert!(
            last.contains(r#""subject":"a","versus":"b","ratio":2.0"#),
            "{last}"
        );
    }

    #[test]
    fn what_failed_is_told_and_remembered() {
        let mut report = Report::new("test");
        report.say("fine");
        assert!(!report.has_failed());
        report.fail("case/a: 1 is not 2");
        assert!(report.has_failed());
        let mut text = Vec::new();
        report.write_text(&mut text).unwrap();
        assert_eq!(text, b"fine\n\nFAILED case/a: 1 is not 2\n");
    }

    #[test]
    fn figures_for_people() {
        assert_eq!(times(123.4), "123×");
        assert_eq!(times(1.234), "1.23×");
        assert_eq!(per_second(8_300_000.0), "8.30 M/s");
        assert_eq!(small_ns(3.97), "4.0 ns");
    }
}
