//! What the channels promise, beside what the runs show.

use super::scoreboard::{Headline, best_of, best_peer, middle, sum_middle};
use super::{idle, sparse};
use crate::channels::OURS;
use crate::report::ns;
use crate::runner::{Series, Trial};
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
        let what = format!("{case} {metric}");
        Some(Target::ratio(&what, [ours, peer], limit, Some(*ratio)))
    };
    let mut targets: Vec<Target> = headlines.iter().filter_map(of_headline).collect();
    for trial in trials {
        if trial.metrics == sparse::METRICS {
            targets.extend(sparse_targets(trial));
        } else if trial.metrics == idle::METRICS {
            targets.extend(idle_targets(trial));
        }
    }
    if !targets.is_empty() {
        targets.push(Target::none_lost("messages", trials));
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
        let rival = best_of(trial, |name| WAITING_RIVALS.contains(&name), &[metric]);
        let what = format!("{} {}", trial.case, trial.metrics[metric].name);
        for series in ours(trial) {
            let name = series.subject.as_str();
            if name.ends_with(LATENCY_MODE) && !shared && metric == sparse::P50 {
                let cpu = ns(middle(series, sparse::CPU));
                let beside = beside(rival, &[metric], ns);
                let what = format!("{what}: {name} at {cpu} of CPU a message{beside}");
                let limit = Limit::AtMost(LATENCY_MODE_NS);
                targets.push(Target::new(what, limit, Some(middle(series, metric)), ns));
                continue;
            }
            let Some(rival) = rival else { continue };
            let sides = [name, rival.subject.as_str()];
            let ratio = trial.interval(sides, metric);
            let has_mode = name.ends_with(LATENCY_MODE) || name.ends_with(POWER_MODE);
            let limit = if has_mode { Limit::Shown } else { limit };
            targets.push(Target::ratio(&what, sides, limit, ratio));
        }
    }
    targets
}

/// What each of ours costs when there is nothing to do: both ends together.
fn idle_targets(trial: &Trial) -> Vec<Target> {
    let mut targets = Vec::new();
    let count: fn(f64) -> String = |count| format!("{count:.0}");
    for (what, metrics, limit, show) in [
        ("cpu_per_s", idle::CPU, IDLE_CPU_NS, ns as fn(f64) -> String),
        ("switches_per_s", idle::SWITCHES, 0.0, count),
    ] {
        let beside = beside(best_peer(trial, metrics), metrics, show);
        for series in ours(trial) {
            let name = &series.subject;
            let what = format!("{} {what} of both ends: {name}{beside}", trial.case);
            let measured = Some(sum_middle(series, metrics));
            targets.push(Target::new(what, Limit::AtMost(limit), measured, show));
        }
    }
    targets
}

fn ours(trial: &Trial) -> impl Iterator<Item = &Series> {
    let is_ours = |series: &&Series| series.subject.starts_with(OURS);
    trial.series.iter().filter(is_ours)
}

/// Names a peer and its figure, where a limit is not a ratio.
fn beside(peer: Option<&Series>, metrics: &[usize], show: fn(f64) -> String) -> String {
    peer.map_or(String::new(), |peer| {
        let figure = show(sum_middle(peer, metrics));
        format!(" (best peer: {} {figure})", peer.subject)
    })
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

    /// Targets as lines: what is said, what was measured, how it came out.
    fn lines(targets: &[Target]) -> Vec<String> {
        let line = |target: &Target| {
            let measured = target.measured.map(target.show).unwrap_or_default();
            format!("{}: {measured} {:?}", target.what, target.outcome())
        };
        targets.iter().map(line).collect()
    }

    #[test]
    fn sparse_messages_are_held_against_the_best_of_those_that_wait() {
        // p50, p99, CPU of the receiver, of the sender, of both.
        let subjects: [(&str, &[f64]); 6] = [
            ("crossbeam", &[5e3, 0.0, 0.0, 0.0, 9e3]),
            ("tokio", &[6e3, 0.0, 0.0, 0.0, 8e3]),
            ("std", &[1e3, 0.0, 0.0, 0.0, 1e3]),
            ("thalweg spsc", &[5e3, 0.0, 0.0, 0.0, 10e3]),
            ("thalweg spsc latency", &[400.0, 0.0, 0.0, 0.0, 20e3]),
            ("thalweg spsc power", &[7e3, 0.0, 0.0, 0.0, 8e3]),
        ];
        let trial = Trial::scripted("sparse/20us/regular/across", sparse::METRICS, &subjects);
        let case = "sparse/20us/regular/across";
        let expected = [
            "latency_p50: thalweg spsc over crossbeam [1.00×, 1.00×]: 1.00× Met",
            "latency_p50: thalweg spsc latency at 20.0 µs of CPU a message (best peer: crossbeam \
             5.00 µs): 400 ns Met",
            "latency_p50: thalweg spsc power over crossbeam [0.71×, 0.71×]: 0.71× Shown",
            "cpu_per_message: thalweg spsc over tokio [0.80×, 0.80×]: 0.80× Missed",
            "cpu_per_message: thalweg spsc latency over tokio [0.40×, 0.40×]: 0.40× Shown",
            "cpu_per_message: thalweg spsc power over tokio [1.00×, 1.00×]: 1.00× Shown",
        ];
        let expected = expected.map(|line| format!("{case} {line}"));
        assert_eq!(lines(&sparse_targets(&trial)), expected);
        // On one core, 1.3 times as long is allowed.
        let shared = Trial::scripted("sparse/20us/regular/shared-core", trial.metrics, &subjects);
        let lines = lines(&sparse_targets(&shared));
        assert!(lines[3].ends_with("0.80× Met"), "{lines:?}");
    }

    #[test]
    fn both_idle_ends_are_counted() {
        let subjects: [(&str, &[f64]); 3] = [
            ("std", &[3e3, 2e3, 0.0, 1.0]),
            ("kanal", &[1e9, 1e9, 0.0, 0.0]),
            ("thalweg spsc", &[6e5, 6e5, 0.0, 0.0]),
        ];
        let trial = Trial::scripted("idle", idle::METRICS, &subjects);
        let expected = [
            "idle cpu_per_s of both ends: thalweg spsc (best peer: std 5.00 µs): 1.20 ms Missed",
            "idle switches_per_s of both ends: thalweg spsc (best peer: kanal 0): 0 Met",
        ];
        assert_eq!(lines(&idle_targets(&trial)), expected);
    }
}
