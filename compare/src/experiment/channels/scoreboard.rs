//! The table of a case, who is best on each side, and the ratios between them.

use thalweg_measure::statistics::{Interval, median, median_interval};
use thalweg_measure::table::{Cell, Nanoseconds, Table};

use crate::channels::OURS;
use crate::report::Report;
use crate::runner::{Metric, Run, Series, Trial};

/// Our best beside the best peer.
#[derive(Debug, Clone)]
pub(crate) struct Headline {
    pub(crate) case: String,
    pub(crate) metric: &'static str,
    pub(crate) ours: String,
    pub(crate) peer: String,
    pub(crate) ratio: Interval,
}

impl Headline {
    /// Whether [`show_trial`] told the ratio of these two too, as it does of our best beside each
    /// peer, and of all of ours beside the best peer.
    pub(crate) fn tells(&self, metric: &str, [ours, peer]: [&str; 2]) -> bool {
        self.metric == metric && (self.ours == ours || self.peer == peer)
    }
}

/// What a subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
    /// Neither, shown for scale.
    Floor,
}

/// What the names of floors begin with.
const FLOORS: &str = "raw ";

fn side(subject: &str) -> Side {
    match subject {
        name if name.starts_with(OURS) => Side::Ours,
        name if name.starts_with(FLOORS) => Side::Floor,
        _ => Side::Peer,
    }
}

/// A series' median of a metric; what is not a number comes last.
pub(crate) fn middle(series: &Series, metric: usize) -> f64 {
    sum_middle(series, &[metric])
}

/// The median of the sum of some metrics; what is not a number comes last.
pub(super) fn sum_middle(series: &Series, metrics: &[usize]) -> f64 {
    let sum = |run: &Run| metrics.iter().map(|&at| run.values[at]).sum();
    let sums: Vec<f64> = series.runs.iter().map(sum).collect();
    let middle = median(&sums).unwrap_or(f64::INFINITY);
    if middle.is_nan() {
        f64::INFINITY
    } else {
        middle
    }
}

/// The best of one side by the median, among those that lost nothing.
fn best(trial: &Trial, on: Side, metric: usize) -> Option<&Series> {
    best_of(trial, |name| side(name) == on, &[metric])
}

/// The best of the subjects with these names by the median of the sum of some metrics, among those
/// that lost nothing.
pub(crate) fn best_of<'t>(
    trial: &'t Trial,
    wanted: impl Fn(&str) -> bool,
    metrics: &[usize],
) -> Option<&'t Series> {
    let series = trial.series.iter();
    let whole = series.filter(|series| wanted(&series.subject) && series.lost() == 0);
    whole.min_by(|left, right| sum_middle(left, metrics).total_cmp(&sum_middle(right, metrics)))
}

/// The best peer by the sum of some metrics.
pub(super) fn best_peer<'t>(trial: &'t Trial, metrics: &[usize]) -> Option<&'t Series> {
    best_of(trial, |name| side(name) == Side::Peer, metrics)
}

/// A figure of this metric as text.
fn show(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "ns" => Nanoseconds(value).to_string(),
        _ if value.is_finite() => format!("{value:.1}"),
        _ => "-".to_owned(),
    }
}

fn figure(series: &Series, at: usize, metric: &Metric) -> Cell {
    let values = series.values(at);
    let middle = show(metric, median(&values).unwrap_or(f64::NAN));
    Cell::Number(match median_interval(&values) {
        Some(interval) => format!("{middle} {}", interval.bounds(|at| show(metric, at))),
        None => middle,
    })
}

/// Columns of the widest table.
const COLUMNS: usize = 11;

/// Shows a trial, ratios of the `judged` metrics included: our best against every peer, and all of
/// ours against the best peer. Every metric's low values are the good ones.
pub(crate) fn show_trial(
    report: &mut Report,
    heading: &str,
    trial: &Trial,
    judged: &[usize],
) -> Vec<Headline> {
    report.rows(trial);
    let ours: Vec<_> = judged
        .iter()
        .map(|&at| best(trial, Side::Ours, at))
        .collect();
    let mut head = vec!["subject".to_owned()];
    head.extend(trial.metrics.iter().map(|metric| metric.name.to_owned()));
    head.extend(
        judged
            .iter()
            .map(|&at| format!("{} ratio", trial.metrics[at].name)),
    );
    head.push("lost".to_owned());
    head.resize(COLUMNS.max(head.len()), String::new());
    let columns: [&str; COLUMNS] = std::array::from_fn(|at| head[at].as_str());
    let mut table = Table::new(columns);
    let mut rows: Vec<&Series> = trial.series.iter().collect();
    if let Some(&first) = judged.first() {
        rows.sort_by(|left, right| middle(left, first).total_cmp(&middle(right, first)));
    }
    for series in rows {
        let mut row = vec![Cell::from(series.subject.as_str())];
        let figures = trial.metrics.iter().enumerate();
        row.extend(figures.map(|(at, metric)| figure(series, at, metric)));
        for (&at, ours) in judged.iter().zip(&ours) {
            let against = ours.filter(|_| side(&series.subject) == Side::Peer);
            let ratio = against
                .and_then(|ours| report.compare(trial, [&ours.subject, &series.subject], at));
            row.push(ratio.map_or(Cell::from(""), Cell::from));
        }
        row.push(match (series.lost(), series.cut()) {
            (0, 0) => Cell::from(""),
            (lost, 0) => Cell::from(format!("LOST {lost}")),
            (lost, cut) => Cell::from(format!("lost {lost}, cut {cut}/{}", series.runs.len())),
        });
        table.row(row);
    }
    report.say(heading);
    for (&at, ours) in judged.iter().zip(&ours) {
        if let Some(ours) = ours {
            let (name, metric) = (&ours.subject, trial.metrics[at].name);
            report.append(&format!("{metric} ratio: so many times better is {name}\n"));
        }
    }
    report.append(&table);
    for (subject, why) in &trial.skipped {
        report.append(&format!("{subject} skipped: {why}\n"));
    }
    headlines(report, trial, judged)
}

fn headlines(report: &mut Report, trial: &Trial, judged: &[usize]) -> Vec<Headline> {
    let mut headlines = Vec::new();
    for &at in judged {
        let best_of = |on| best(trial, on, at).map(|series| series.subject.clone());
        let (Some(best_of_ours), Some(peer)) = (best_of(Side::Ours), best_of(Side::Peer)) else {
            continue;
        };
        for series in &trial.series {
            if side(&series.subject) != Side::Ours {
                continue;
            }
            let is_best = series.subject == best_of_ours;
            // Those of the best are in the table and have their rows.
            let ratio = if is_best {
                trial.interval([&series.subject, &peer], at)
            } else {
                report.compare(trial, [&series.subject, &peer], at)
            };
            if let (true, Some(ratio)) = (is_best, ratio) {
                headlines.push(Headline {
                    case: trial.case.clone(),
                    metric: trial.metrics[at].name,
                    ours: series.subject.clone(),
                    peer: peer.clone(),
                    ratio,
                });
            }
        }
    }
    headlines
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[Metric] = &[
        Metric::lower("cost", "ns"),
        Metric::lower("switches", "count"),
    ];

    fn trial() -> Trial {
        let series = |subject: &str, scale: f64, lost: u64| Series {
            subject: subject.to_owned(),
            runs: [1.0, 1.1, 1.2, 1.0, 1.1, 1.2]
                .map(|value| Run::of(vec![value * scale, 3.0]).with_lost(lost))
                .to_vec(),
        };
        Trial {
            case: "case".to_owned(),
            metrics: METRICS,
            series: vec![
                series("slow", 8.0, 0),
                series("thalweg a", 4.0, 0),
                series("broken", 1.0, 7),
                series("thalweg b", 2.0, 0),
                series("fast", 6.0, 0),
                series("raw line", 0.5, 0),
            ],
            skipped: Vec::new(),
        }
    }

    #[test]
    fn the_best_of_each_side_are_compared_and_losers_do_not_count() {
        let mut report = Report::new("test");
        let found = show_trial(&mut report, "Heading", &trial(), &[0]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].ours.as_str(), found[0].peer.as_str()),
            ("thalweg b", "fast")
        );
        assert!((found[0].ratio.value - 3.0).abs() < 1e-9);
        let mut text = Vec::new();
        report.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = |subject: &str| {
            let found = text.lines().position(|line| line.starts_with(subject));
            found.unwrap_or_else(|| panic!("{subject}\n{text}"))
        };
        assert!(line("raw line") < line("broken") && line("thalweg b") < line("thalweg a"));
        assert!(text.contains("LOST 42"), "{text}");
        let mut json = Vec::new();
        report.write_json(&mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        for pair in [
            r#""subject":"thalweg b","versus":"fast""#,
            r#""subject":"thalweg b","versus":"slow""#,
            r#""subject":"thalweg a","versus":"fast""#,
        ] {
            assert_eq!(json.matches(pair).count(), 1, "{pair}\n{json}");
        }
    }
}
