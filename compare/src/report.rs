//! A report has text for people, and rows for programs.

use std::collections::BTreeSet;
use std::fmt::Display;

use thalweg_measure::statistics::{Interval, median_interval};
use thalweg_measure::table::{Cell, Comparison, Measurement, Nanoseconds, Table, three_digits};

use crate::goal::{Goal, Limit};
use crate::runner::{Metric, Series, Trial};

/// Figures are called noisy where gaps took a larger share of a sender's waiting.
const NOISY: f64 = 0.01;

/// A figure beside its limit.
struct Target {
    what: String,
    limit: Limit,
    measured: Option<f64>,
    show: fn(f64) -> String,
}

/// The results of an experiment, in the order in which they are shown.
#[derive(Default)]
pub struct Report {
    pub(crate) experiment: &'static str,
    /// The tables and paragraphs.
    pub text: String,
    /// Each row is a JSON object.
    pub rows: Vec<String>,
    targets: Vec<Target>,
    /// The comparisons that have a row.
    compared: BTreeSet<(String, [String; 2], usize)>,
    /// The number of events that this project's subjects lost.
    lost: u64,
}

impl Report {
    /// Makes a report without results.
    pub fn new(experiment: &'static str) -> Self {
        Self {
            experiment,
            ..Self::default()
        }
    }

    /// Adds a paragraph.
    pub(crate) fn say(&mut self, text: impl Display) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += text.to_string().trim_end();
        self.text.push('\n');
    }

    /// Reports that a case did not run, also on standard error.
    pub(crate) fn skip(&mut self, case: &str, why: &str) {
        let text = format!("{case} skipped: {why}");
        eprintln!("{}/{text}", self.experiment);
        self.say(text);
    }

    /// Adds the row of a figure.
    pub(crate) fn measured(&mut self, case: &str, subject: &str, metric: Metric, values: &[f64]) {
        let path = [self.experiment, case, subject];
        let row = Measurement::new(path, [metric.name, metric.unit], values);
        self.rows.push(row.json());
    }

    /// Adds the rows of a trial, its table under a heading, and comparisons by the judged metrics.
    pub fn trial(&mut self, heading: &str, trial: &Trial, judged: &[usize]) {
        for series in &trial.series {
            self.series(trial, series);
        }
        let ratios = judged.iter().map(|&metric| self.judge(trial, metric));
        let ratios: Vec<_> = ratios.flatten().collect();
        self.say(format!("{}: {heading}", trial.case));
        self.text += &table(trial, &ratios).to_string();
        for (subject, why) in &trial.skipped {
            let text = format!("{subject} skipped: {why}\n");
            eprint!("{}/{}/{text}", self.experiment, trial.case);
            self.text += &text;
        }
        let noise = trial.series.iter().map(Series::disturbance);
        let noise = noise.fold(0.0, f64::max);
        if noise > NOISY {
            self.text += &format!(
                "noisy: gaps above 5 µs took up to {:.1} % of a sender's waiting (median of a \
                 subject's runs); other programs were at work\n",
                100.0 * noise
            );
        }
    }

    fn series(&mut self, trial: &Trial, series: &Series) {
        let (case, subject) = (trial.case.as_str(), series.subject.as_str());
        for (at, metric) in trial.metrics.iter().enumerate() {
            self.measured(case, subject, *metric, &series.values(at));
        }
        let lost = Metric::lower("lost", "events");
        self.measured(case, subject, lost, &[series.lost() as f64]);
        if series.is_ours() {
            self.lost += series.lost();
        }
    }

    /// Compares our best with every peer, and all of ours with the best peer. Returns each ratio
    /// with the subject that is compared with the best.
    fn judge(&mut self, trial: &Trial, metric: usize) -> Vec<(String, usize, Interval)> {
        let ours = trial.best(metric, Series::is_ours);
        let peer = trial.best(metric, Series::is_peer);
        let sides = trial.series.iter().filter_map(|series| {
            let name = series.subject.as_str();
            match series {
                _ if series.is_peer() => Some((name, [ours?, name])),
                _ if series.is_ours() => Some((name, [name, peer?])),
                _ => None,
            }
        });
        let sides: Vec<_> = sides.collect();
        let ratio = |(name, sides): (&str, [&str; 2])| {
            let ratio = self.compare(trial, sides, metric)?;
            Some((name.to_owned(), metric, ratio))
        };
        sides.into_iter().filter_map(ratio).collect()
    }

    /// Returns the ratio of two subjects of a trial, if both ran, and adds its row once.
    fn compare(&mut self, trial: &Trial, sides: [&str; 2], metric: usize) -> Option<Interval> {
        let ratio = trial.ratio(sides, metric)?;
        let key = (trial.case.clone(), sides.map(str::to_owned), metric);
        if self.compared.insert(key) {
            let Metric { name, better, .. } = trial.metrics[metric];
            let path = [self.experiment, &trial.case, name];
            let row = Comparison::new(path, sides, &trial.pairs(sides, metric), better)?;
            self.rows.push(row.json());
        }
        Some(ratio)
    }

    /// Adds the goals of a case to the targets.
    pub fn goals(&mut self, goals: Vec<Goal>, trial: Trial) {
        for goal in goals {
            let of = |metric: usize| format!("{} {}", trial.case, trial.metrics[metric].name);
            let (what, limit, sides, metric) = match goal {
                Goal::Figure(subject, metric, limit) => {
                    let measured = trial.of(&subject).and_then(|series| series.middle(metric));
                    let what = format!("{}: {subject}", of(metric));
                    self.target(what, limit, measured, show(trial.metrics[metric].unit));
                    continue;
                }
                Goal::Ratio(sides, metric, limit) => (of(metric), limit, sides, metric),
                Goal::Best(metric, limit) => {
                    let best = |side: fn(&Series) -> bool| trial.best(metric, side);
                    let sides = [best(Series::is_ours), best(Series::is_peer)];
                    let sides = sides.map(|side| side.unwrap_or("-").to_owned());
                    (of(metric), limit, sides, metric)
                }
            };
            let ratio = self.compare(&trial, [&sides[0], &sides[1]], metric);
            let bounds = ratio.map_or(String::new(), |ratio| ratio.bounds(times));
            let what = format!("{what}: {} over {} {bounds}", sides[0], sides[1]);
            self.target(what, limit, ratio.map(|ratio| ratio.value), times);
        }
    }

    /// Adds a figure with its limit.
    pub fn target(
        &mut self,
        what: impl Into<String>,
        limit: Limit,
        measured: Option<f64>,
        show: fn(f64) -> String,
    ) {
        let what = what.into();
        let target = Target {
            what,
            limit,
            measured,
            show,
        };
        self.targets.push(target);
    }

    /// Adds the table of targets, with verdicts if the run decides.
    pub fn finish(&mut self, decides: bool) {
        let lost = Some(self.lost as f64);
        let what = "events lost by this project's subjects, all cases";
        self.target(what, Limit::AtMost(0.0), lost, three_digits);
        let mut table = Table::new(["target", "limit", "measured", ""]);
        for target in &self.targets {
            let limit = match target.limit {
                Limit::AtMost(limit) => format!("≤ {}", (target.show)(limit)),
                Limit::AtLeast(limit) => format!("≥ {}", (target.show)(limit)),
                Limit::Shown => String::new(),
            };
            let measured = target.measured.map_or("-".to_owned(), target.show);
            let (what, verdict) = (target.what.trim_end(), verdict(target, decides));
            table.row([what.into(), limit.into(), measured.into(), verdict.into()]);
        }
        self.say("Targets");
        self.text += &table.to_string();
    }
}

fn verdict(target: &Target, decides: bool) -> &'static str {
    let is_met = match (target.limit, target.measured) {
        (_, None) => return "not run",
        (Limit::Shown, _) => return "",
        (Limit::AtMost(limit), Some(measured)) => measured <= limit,
        (Limit::AtLeast(limit), Some(measured)) => measured >= limit,
    };
    match (decides, is_met) {
        (false, _) => "too few runs",
        (true, true) => "met",
        (true, false) => "MISSED",
    }
}

/// Returns a ratio as text.
pub fn times(value: f64) -> String {
    match value {
        10.0.. => format!("{value:.0}×"),
        _ => format!("{value:.2}×"),
    }
}

/// Returns nanoseconds as text, with tenths where those count.
pub fn ns(value: f64) -> String {
    match value {
        10_000.0.. => Nanoseconds(value).to_string(),
        _ => format!("{value:.1} ns"),
    }
}

/// Returns how a figure of this unit is shown.
pub fn show(unit: &str) -> fn(f64) -> String {
    match unit {
        "ns" | "ns/event" => ns,
        "bytes" => |bytes| format!("{:.1} MiB", bytes / f64::from(1 << 20)),
        "1/s" | "events/s" | "commands/s" => |per_s| format!("{:.3} M/s", per_s / 1e6),
        _ => three_digits,
    }
}

/// Makes a table with a line for each subject and metric.
fn table(trial: &Trial, ratios: &[(String, usize, Interval)]) -> Table {
    let mut table = Table::new([
        "subject",
        "metric",
        "median",
        "interval",
        "best quartile",
        "best",
        "ratio to our best, or to the best peer",
        "lost",
        "cut",
    ]);
    for series in &trial.series {
        for (at, metric) in trial.metrics.iter().enumerate() {
            let show = show(metric.unit);
            let [median, quartile, best] = series.spread(at, metric.better).map(show);
            let interval = median_interval(&series.values(at));
            let interval = interval.map_or("-".to_owned(), |interval| interval.bounds(show));
            let of_it = |(subject, metric, _): &&(String, usize, Interval)| {
                (subject.as_str(), *metric) == (series.subject.as_str(), at)
            };
            let ratio = ratios.iter().find(of_it).map(|(.., ratio)| *ratio);
            table.row([
                series.subject.as_str().into(),
                metric.name.into(),
                Cell::Number(median),
                Cell::Number(interval),
                Cell::Number(quartile),
                Cell::Number(best),
                ratio.map_or(Cell::from(""), Cell::from),
                series.lost().into(),
                Cell::Number(format!("{}/{}", series.cut(), series.runs.len())),
            ]);
        }
    }
    table
}
