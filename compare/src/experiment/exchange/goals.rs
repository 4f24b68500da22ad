//! What the exchange promises, and which of it the runs show. Times are medians.

use super::cores::{self, PLAIN, STAGES, TWO_THREADS};
use super::engine::{PER_COMMAND, PER_TRADE, Part, RULES};
use super::large;
use super::mixes::IDS;
use super::service_time;
use super::{paced, paced::RATES, peers};
use crate::report::{ns, small_ns};
use crate::runner::Trial;
use crate::target::{Limit, Target};
use thalweg_measure::statistics::median;

/// The rate that the promises about latency are of.
const TARGET_RATE: &str = RATES[1].0;

fn case<'t>(trials: &'t [Trial], name: &str) -> Option<&'t Trial> {
    trials.iter().find(|trial| trial.case == name)
}

fn figure(trials: &[Trial], name: &str, subject: &str, metric: usize) -> Option<f64> {
    median(&case(trials, name)?.of(subject)?.values(metric))
}

/// Every promise whose case ran.
pub(super) fn targets(trials: &[Trial]) -> Vec<Target> {
    let mut targets = core(trials);
    targets.extend(ids(trials));
    targets.extend(service(trials));
    targets.extend(large(trials));
    targets.extend(against_peers(trials));
    targets.extend(second_core(trials));
    targets.extend(latency(trials));
    targets
}

/// Limits of CPU time, ns.
fn core(trials: &[Trial]) -> Vec<Target> {
    let mended = Part::all_name(RULES[0].0);
    let reference = Part::all_name(RULES[1].0);
    let alone = Part::MATCHING.to_owned();
    let batches = Part::BATCHES.to_owned();
    let most = Limit::AtMost;
    let all = [&mended, &batches, &reference];
    let pairs = all.map(|part| ("core/perf_exchange_1m", part, PER_COMMAND, most(25.0)));
    let margin = all.map(|part| ("core/perf_margin_1m", part, PER_COMMAND, most(32.0)));
    let resting = [&mended, &batches];
    let resting = resting.map(|part| ("core/resting_1m", part, PER_COMMAND, most(70.0)));
    let alone = ("core/perf_exchange_1m", &alone, PER_COMMAND, most(20.0));
    let others = [
        ("core/trading", &mended, PER_COMMAND, Limit::Shown),
        ("core/trades", &mended, 0, most(20.0)),
        ("core/sweeps", &mended, PER_TRADE, most(20.0)),
        ("core/levels_100k", &mended, PER_COMMAND, Limit::Shown),
        ("core/one_level_1m", &mended, PER_COMMAND, Limit::Shown),
    ];
    let limits = pairs
        .into_iter()
        .chain([alone])
        .chain(margin)
        .chain(others)
        .chain(resting);
    let ran = limits.filter(|(name, ..)| case(trials, name).is_some());
    let target = |(name, subject, metric, limit): (&str, &String, usize, Limit)| {
        let unit = match name {
            "core/trades" => "time a trade",
            _ if metric == PER_TRADE => "CPU time a trade",
            _ => "CPU time a command",
        };
        let what = format!("{name}: {subject}, {unit}");
        Target::new(what, limit, figure(trials, name, subject, metric), small_ns)
    };
    ran.map(target).collect()
}

/// Chosen ids must not cost more than random ones by much: an unkeyed hash would make it 20 times.
fn ids(trials: &[Trial]) -> Vec<Target> {
    let subject = Part::all_name(RULES[0].0);
    let of = |ids: &str| {
        let name = format!("core/hostile_ids/{ids}");
        figure(trials, &name, &subject, PER_COMMAND)
    };
    let (random, _) = IDS[0];
    let chosen = IDS[1..].iter().filter_map(|(ids, _)| Some((ids, of(ids)?)));
    let target = |(ids, ns): (&&str, f64)| {
        let over = of(random).map(|random| ns / random);
        let what = format!("core/hostile_ids: {subject}, {ids} over random ids");
        Target::new(what, Limit::AtMost(2.0), over, crate::report::times)
    };
    chosen.map(target).collect()
}

fn service(trials: &[Trial]) -> Vec<Target> {
    let name = "core/service_time";
    if case(trials, name).is_none() {
        return Vec::new();
    }
    let of = |subject: &str, metric| figure(trials, name, subject, metric);
    let clock = of(service_time::EMPTY, service_time::P50);
    let net = || Some(of(service_time::APPLY, service_time::P999)? - clock?);
    let what = format!(
        "{name}: {}, p99.9 less the clock's own cost",
        service_time::APPLY
    );
    let own = format!("{name}: the clock's own cost, {} p50", service_time::EMPTY);
    vec![
        Target::new(what, Limit::AtMost(500.0), net(), ns),
        Target::new(own, Limit::Shown, clock, ns),
    ]
}

/// The same service over itself on a small book.
fn large(trials: &[Trial]) -> Vec<Target> {
    let of = |name: &str| figure(trials, name, large::INLINE, 0);
    let ran = large::CASES
        .into_iter()
        .filter(|(name, ..)| case(trials, name).is_some());
    let target = |(name, most, _): (&str, f64, &str)| {
        let over = of(large::PLAIN).and_then(|plain| Some(of(name)? / plain));
        let what = format!("{name}: {} over {}", large::INLINE, large::PLAIN);
        Target::new(what, Limit::AtMost(most), over, crate::report::times)
    };
    ran.map(target).collect()
}

fn against_peers(trials: &[Trial]) -> Vec<Target> {
    let mut targets = Vec::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.case.starts_with("peers/"))
    {
        for peer in peers::NAMES {
            let sides = [Part::MATCHING, peer];
            let ratio = trial.interval(sides, PER_COMMAND);
            targets.push(Target::ratio(
                &trial.case,
                sides,
                Limit::AtLeast(1.0),
                ratio,
            ));
        }
    }
    targets
}

/// The subject on two threads with the highest median.
pub(super) fn best_of_two_threads(trial: &Trial) -> Option<&'static str> {
    let ran = TWO_THREADS.into_iter().filter_map(|subject| {
        let per_s = median(&trial.of(subject)?.values(0))?;
        Some((subject, per_s))
    });
    let best = ran.max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(subject, _)| subject)
}

fn second_core(trials: &[Trial]) -> Vec<Target> {
    let mut targets = Vec::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.case.starts_with("cores/"))
    {
        let name = &trial.case;
        let Some(two) = best_of_two_threads(trial) else {
            continue;
        };
        let (sides, at_least) = if name.starts_with("cores/engine") {
            ([cores::INLINE, two], 1.0)
        } else {
            ([two, cores::INLINE], 1.3)
        };
        let ratio = trial.interval(sides, 0);
        targets.push(Target::ratio(name, sides, Limit::AtLeast(at_least), ratio));
        if name.starts_with("cores/bytes") {
            let sides = [two, PLAIN];
            let ratio = trial.interval(sides, 0);
            targets.push(Target::ratio(name, sides, Limit::Shown, ratio));
        }
        let added = trial.pairs(cores::INLINE, PLAIN, 0).into_iter();
        let added = added.map(|(inline, plain)| (1e9 / inline - 1e9 / plain) / STAGES as f64);
        let added = median(&added.collect::<Vec<_>>());
        let what = format!("{name}: what the pipeline adds inline, a stage");
        targets.push(Target::new(what, Limit::AtMost(5.0), added, small_ns));
    }
    targets
}

/// Over the quieter half of the runs.
fn latency(trials: &[Trial]) -> Vec<Target> {
    let name = format!("open/{TARGET_RATE}");
    let Some(trial) = case(trials, &name) else {
        return Vec::new();
    };
    let of = |subject: &str, metric| median(&trial.of(subject)?.quiet_values(metric));
    let two = paced::TWO_THREADS.into_iter();
    let two = two.filter_map(|subject| Some((subject, of(subject, paced::P99)?)));
    let two = two.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut targets = Vec::new();
    let subjects = [paced::INLINE, paced::AUTO].into_iter();
    for subject in subjects.chain(two.map(|(subject, _)| subject)) {
        let limits = [("p50", paced::P50, 1e3), ("p99", paced::P99, 20e3)];
        targets.extend(limits.map(|(quantile, metric, at_most)| {
            let what = format!("{name}: {subject}, {quantile} of the quieter half's median run");
            Target::new(what, Limit::AtMost(at_most), of(subject, metric), ns)
        }));
    }
    targets.push(Target::none_lost("commands", trials));
    targets
}

#[cfg(test)]
mod tests {
    use super::super::engine::{SWEEPING_METRICS, TRADING_METRICS};
    use super::super::service_time::METRICS as SERVICE_METRICS;
    use super::*;
    use crate::target::Outcome;

    fn outcomes(trials: &[Trial]) -> Vec<(String, Outcome)> {
        let targets = targets(trials).into_iter();
        targets
            .map(|target| (target.what.clone(), target.outcome()))
            .collect()
    }

    #[test]
    fn limits_are_of_the_right_case_and_metric() {
        let subject = Part::all_name("");
        let trials = [
            Trial::scripted("core/trades", TRADING_METRICS, &[(&subject, &[19.0])]),
            Trial::scripted(
                "core/sweeps",
                SWEEPING_METRICS,
                &[(&subject, &[400.0, 21.0])],
            ),
            Trial::scripted(
                "core/resting_1m",
                &SWEEPING_METRICS[..1],
                &[(&subject, &[71.0])],
            ),
            Trial::scripted(
                "core/service_time",
                SERVICE_METRICS,
                &[
                    (service_time::APPLY, &[90.0, 200.0, 520.0]),
                    (service_time::EMPTY, &[20.0, 20.0, 30.0]),
                ],
            ),
        ];
        let expected = [
            ("core/trades: thalweg all parts, time a trade", Outcome::Met),
            (
                "core/sweeps: thalweg all parts, CPU time a trade",
                Outcome::Missed,
            ),
            (
                "core/resting_1m: thalweg all parts, CPU time a command",
                Outcome::Missed,
            ),
            (
                "core/resting_1m: thalweg all parts, batches of 256, CPU time a command",
                Outcome::NotRun,
            ),
            (
                "core/service_time: thalweg all parts, p99.9 less the clock's own cost",
                Outcome::Met,
            ),
            (
                "core/service_time: the clock's own cost, an empty body p50",
                Outcome::Shown,
            ),
        ];
        assert_eq!(
            outcomes(&trials),
            expected.map(|(what, told)| (what.to_owned(), told))
        );
    }

    #[test]
    fn the_engine_should_win_inline_and_bytes_on_two_threads() {
        let values: [(&str, &[f64]); 4] = [
            (PLAIN, &[20e6]),
            (cores::INLINE, &[10e6]),
            (TWO_THREADS[0], &[11e6]),
            (TWO_THREADS[1], &[14e6]),
        ];
        let trials = ["cores/engine/x", "cores/bytes/x"]
            .map(|case| Trial::scripted(case, cores::METRICS, &values));
        assert_eq!(best_of_two_threads(&trials[0]), Some(TWO_THREADS[1]));
        let outcomes = outcomes(&trials).into_iter().map(|(_, outcome)| outcome);
        // 50 ns more over four stages is too much.
        let expected = [
            Outcome::Missed,
            Outcome::Missed,
            Outcome::Met,
            Outcome::Shown,
            Outcome::Missed,
        ];
        assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_did_not_run_is_not_judged_and_latency_is_of_the_quieter_half() {
        assert!(targets(&[]).is_empty());
        let values: [(&str, &[f64]); 3] = [
            (paced::INLINE, &[900.0, 1e3, 21e3, 1e5, 1e6]),
            (paced::TWO_THREADS[0], &[900.0, 1e3, 30e3, 1e5, 1e6]),
            (paced::TWO_THREADS[1], &[1100.0, 1e3, 20e3, 1e5, 1e6]),
        ];
        let trials = [Trial::scripted("open/1M/s", paced::METRICS, &values)];
        let outcomes = outcomes(&trials).into_iter().map(|(_, outcome)| outcome);
        let expected = [
            Outcome::Met,
            Outcome::Missed,
            Outcome::NotRun,
            Outcome::NotRun,
            Outcome::Missed,
            Outcome::Met,
            Outcome::Met,
        ];
        assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    }
}
