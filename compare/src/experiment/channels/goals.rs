//! What the channels promise, beside what the runs show.

use thalweg_measure::statistics::median;

use super::scoreboard::Headline;
use super::{idle, sparse};
use crate::channels::OURS;
use crate::report::{ns, times};
use crate::runner::Trial;
use crate::target::{Limit, Target};

/// Whom sparse messages are held against: those that do not spin for long.
const WAITING_RIVALS: [&str; 3] = ["crossbeam", "tokio", "flume"];
/// How the names of our channels in these modes end.
const LATENCY_MODE: &str = " latency";
const POWER_MODE: &str = " power";
/// The p50 of the mode for latency, ns.
const LATENCY_MODE_NS: f64 = 500.0;
/// CPU time of an idle second, ns.
const IDLE_CPU_NS: f64 = 1e6;

/// The ratio that our best must have over the best peer; `None` where nothing is promised.
fn ratio_of(case: &str, metric: &str) -> Option<f64> {
    let (kind, rest) = case.split_once('/').unwrap_or((case, ""));
    match (kind, metric) {
        ("one", _) if rest.ends_with("/1024") => Some(1.3),
        ("one", _) => Some(1.0),
        // 1.0 is enough where the best is at the limit of the memory system.
        ("batch", _) => Some(1.3),
        ("roundtrip", "round_trip_p50") => Some(1.15),
        ("roundtrip", _) => Some(1.3),
        ("paced", "latency_p50") => Some(1.5),
        ("fanin" | "fanout" | "many", _) => Some(1.1),
        _ => None,
    }
}

/// Every promise, beside what was measured.
pub(super) fn targets(headlines: &[Headline], trials: &[Trial]) -> Vec<Target> {
    let of_headline = |headline: &Headline| {
        let Headline {
            case,
            metric,
            ours,
            peer,
            ratio,
        } = headline;
        let limit = Limit::AtLeast(ratio_of(case, metric)?);
        let (low, high) = (times(ratio.low), times(ratio.high));
        let what = format!("{case} {metric}: {ours} over {peer} [{low}, {high}]");
        Some(Target::new(what, limit, Some(ratio.value), times))
    };
    let mut targets: Vec<Target> = headlines.iter().filter_map(of_headline).collect();
    for trial in trials {
        if trial.metrics == sparse::METRICS {
            targets.extend(sparse_targets(trial));
        } else if trial.metrics == idle::METRICS {
            targets.extend(idle_targets(trial));
        }
    }
    targets
}

/// Each of ours against the best of the rivals, in latency and in CPU time; the mode for latency
/// has a limit of its own across cores, and what else the modes cost is shown.
fn sparse_targets(trial: &Trial) -> Vec<Target> {
    let shared = trial.case.ends_with(sparse::Placement::Shared.name());
    let limit = Limit::AtLeast(if shared { 1.0 / 1.3 } else { 1.0 });
    let mut targets = Vec::new();
    for &metric in sparse::JUDGED {
        let middle = |subject: &str| median(&trial.of(subject)?.values(metric));
        let rivals = WAITING_RIVALS.into_iter();
        let rival = rivals
            .filter_map(|name| Some((name, middle(name)?)))
            .min_by(|left, right| left.1.total_cmp(&right.1));
        let of_metric = trial.metrics[metric].name;
        for series in &trial.series {
            let name = series.subject.as_str();
            if !name.starts_with(OURS) {
                continue;
            }
            if name.ends_with(LATENCY_MODE) && !shared && metric == sparse::JUDGED[0] {
                let what = format!("{} {of_metric}: {name}", trial.case);
                let limit = Limit::AtMost(LATENCY_MODE_NS);
                targets.push(Target::new(what, limit, middle(name), ns));
                continue;
            }
            let Some((rival, _)) = rival else { continue };
            let ratio = trial.interval([name, rival], metric);
            let what = format!("{} {of_metric}: {name} over {rival}", trial.case);
            let has_mode = name.ends_with(LATENCY_MODE) || name.ends_with(POWER_MODE);
            let limit = if has_mode { Limit::Shown } else { limit };
            let measured = ratio.map(|ratio| ratio.value);
            targets.push(Target::new(what, limit, measured, times));
        }
    }
    targets
}

/// What each of ours costs when there is nothing to do.
fn idle_targets(trial: &Trial) -> Vec<Target> {
    let mut targets = Vec::new();
    for series in &trial.series {
        if !series.subject.starts_with(OURS) {
            continue;
        }
        for (at, metric) in trial.metrics.iter().enumerate() {
            let measured = median(&series.values(at));
            let what = format!("{} {}: {}", trial.case, metric.name, series.subject);
            targets.push(match metric.unit {
                "ns" => Target::new(what, Limit::AtMost(IDLE_CPU_NS), measured, ns),
                _ => Target::new(what, Limit::AtMost(0.0), measured, |count| {
                    format!("{count:.0}")
                }),
            });
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_case_has_its_limit() {
        for (case, metric, limit) in [
            ("one/8B/1024", "time_per_message", Some(1.3)),
            ("one/32B/65536", "time_per_message", Some(1.0)),
            ("batch/8B/1024", "time_per_message", Some(1.3)),
            ("roundtrip/8B", "round_trip_p50", Some(1.15)),
            ("roundtrip/8B", "round_trip_p99", Some(1.3)),
            ("paced/8B", "latency_p50", Some(1.5)),
            ("paced/8B", "latency_p99", None),
            ("fanin/4x1", "time_per_message", Some(1.1)),
            ("sparse/1ms/regular/across", "latency_p50", None),
        ] {
            assert_eq!(ratio_of(case, metric), limit, "{case} {metric}");
        }
    }
}
