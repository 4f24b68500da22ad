//! What the pipeline promises, and which of it the runs show.

use super::{
    AUTO, BATCHES, CALLER_AND_THREAD, INLINE, ONE, P50, P99, P999, RATES, Ratio, TARGET_RATE, THREE,
};
use crate::report::{ns, per_second, times};
use crate::runner::Trial;
use crate::subject::{Alone, Disruptor, Waiting};
use crate::target::{Limit, Target};
use crate::workload::STAGES;
use thalweg_measure::statistics::Better;

/// The placements that `auto` chooses between, or could.
pub(super) const PLACEMENTS: [&str; 5] =
    [INLINE, CALLER_AND_THREAD, ONE, "thalweg threads:2", THREE];

/// The case of this name.
fn case<'t>(trials: &'t [Trial], name: &str) -> Option<&'t Trial> {
    trials.iter().find(|trial| trial.case == name)
}

/// Which of a spread's figures.
#[derive(Clone, Copy)]
enum Of {
    Median,
    BestQuartile,
}

fn figure(trials: &[Trial], in_case: &str, subject: &str, metric: usize, of: Of) -> Option<f64> {
    let trial = case(trials, in_case)?;
    let spread = trial
        .of(subject)?
        .spread(metric, trial.metrics[metric].better);
    Some(match of {
        Of::Median => spread.median,
        Of::BestQuartile => spread.best_quartile,
    })
}

/// Every promise, beside what was measured.
pub(super) fn targets(trials: &[Trial], ratios: &[Ratio]) -> Vec<Target> {
    let mut targets = tails(trials);
    for (rate, _) in RATES {
        let what = format!("{rate}: auto's p99 over that of the best placement (best quartiles)");
        targets.push(Target::new(
            what,
            Limit::AtMost(1.5),
            auto_ratio(trials, rate),
            times,
        ));
    }
    targets.push(Target::none_lost("events", trials));
    targets.extend(against_peer(ratios));
    targets.extend(winners(trials));
    targets
}

/// Tails at [`TARGET_RATE`] over those of the same work in a plain loop, which are the machine's.
fn tails(trials: &[Trial]) -> Vec<Target> {
    let mut targets = Vec::new();
    for (what, metric) in [("p99", P99), ("p99.9", P999)] {
        let of = |subject| figure(trials, TARGET_RATE, subject, metric, Of::BestQuartile);
        let alone = of(Alone::NAME);
        let shown = format!("{TARGET_RATE}: the machine alone, best-quartile {what}");
        targets.push(Target::new(shown, Limit::Shown, alone, ns));
        let what = format!("{TARGET_RATE}: inline's best-quartile {what} over the machine's alone");
        let over = of(INLINE).zip(alone).map(|(inline, alone)| inline / alone);
        targets.push(Target::new(what, Limit::AtMost(1.25), over, times));
    }
    targets
}

/// Ratios of p99 at [`TARGET_RATE`] to the peer with three processors.
fn against_peer(ratios: &[Ratio]) -> Vec<Target> {
    let limits = [
        (Waiting::BusySpin, false, Limit::AtLeast(100.0)),
        (Waiting::Sleep, false, Limit::AtLeast(5.0)),
        (Waiting::Yield, true, Limit::Shown),
    ];
    let target = |(waiting, pinned, limit)| {
        let versus = Disruptor::name_of(waiting, STAGES, pinned);
        let what = format!("{TARGET_RATE}: p99 of 3 stage threads, times below {versus}");
        let is_it = |ratio: &&Ratio| {
            ratio.case == TARGET_RATE && ratio.metric == P99 && ratio.versus == versus
        };
        let measured = ratios.iter().find(is_it).map(|ratio| ratio.interval.value);
        Target::new(what, limit, measured, times)
    };
    limits.map(target).into()
}

/// Auto's best-quartile p99 over the best of the placements.
fn auto_ratio(trials: &[Trial], rate: &str) -> Option<f64> {
    let p99 = |subject| figure(trials, rate, subject, P99, Of::BestQuartile);
    let best = PLACEMENTS
        .iter()
        .filter_map(|subject| p99(subject))
        .reduce(f64::min)?;
    Some(p99(AUTO)? / best)
}

/// Which subject is ahead where one is expected to be: inline in latency, the caller with one
/// thread in throughput. Shown as its distance from the best.
fn winners(trials: &[Trial]) -> Vec<Target> {
    let ahead = |in_case: &str, subject: &str, metric: usize| {
        let trial = case(trials, in_case)?;
        let better = trial.metrics[metric].better;
        let own = trial.of(subject)?.spread(metric, better).median;
        let all = trial.series.iter().filter(|series| series.subject != AUTO);
        let all = all.map(|series| series.spread(metric, better).median);
        let best = match better {
            Better::Lower => all.fold(f64::INFINITY, f64::min) / own,
            Better::Higher => own / all.fold(0.0, f64::max),
        };
        Some(best)
    };
    let mut winners = Vec::new();
    for (rate, _) in RATES {
        let what = format!("{rate}: inline's p50 (median), best of all over it");
        winners.push(Target::new(
            what,
            Limit::Shown,
            ahead(rate, INLINE, P50),
            times,
        ));
    }
    for (batch, _) in BATCHES {
        let throughput = figure(trials, batch, CALLER_AND_THREAD, 0, Of::Median);
        let what = format!("{batch}: caller:1+threads:1 (median)");
        winners.push(Target::new(what, Limit::Shown, throughput, per_second));
        let what = format!("{batch}: the same over the highest of all");
        let over = ahead(batch, CALLER_AND_THREAD, 0);
        winners.push(Target::new(what, Limit::Shown, over, times));
    }
    for (batch, _) in BATCHES {
        winners.extend(closed_loop(trials, batch));
    }
    winners
}

/// Throughput of one stage thread, of a stage on the caller, and of `auto`, over what each should
/// come near to.
fn closed_loop(trials: &[Trial], batch: &str) -> [Target; 3] {
    let of = |subject: &str| figure(trials, batch, subject, 0, Of::Median);
    let best = |subjects: &[&str]| subjects.iter().filter_map(|name| of(name)).reduce(f64::max);
    let over = |own: Option<f64>, other: Option<f64>| Some(own? / other?);
    let peer = Disruptor::name_of(Waiting::BusySpin, 1, true);
    let goals = [
        (
            "threads:1 over disruptor busy-spin:1 pinned",
            ONE,
            of(&peer),
            0.95,
        ),
        (
            "caller:1+threads:1 over inline",
            CALLER_AND_THREAD,
            of(INLINE),
            1.15,
        ),
        ("auto over the best placement", AUTO, best(&PLACEMENTS), 0.9),
    ];
    goals.map(|(what, own, other, least)| {
        let what = format!("{batch}: {what} (medians)");
        Target::new(what, Limit::AtLeast(least), over(of(own), other), times)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::LATENCY;
    use crate::target::Outcome;
    use thalweg_measure::statistics::Interval;

    /// Each subject with equal runs: p50, p99 and p99.9 in ns.
    fn trials(runs: &[(&str, [f64; 3])]) -> Vec<Trial> {
        let runs: Vec<(&str, &[f64])> = runs
            .iter()
            .map(|(subject, values)| (*subject, &values[..]))
            .collect();
        vec![Trial::scripted(TARGET_RATE, LATENCY, &runs)]
    }

    fn outcome_of(targets: &[Target], part: &str) -> Outcome {
        let found: Vec<&Target> = targets.iter().filter(|t| t.what.contains(part)).collect();
        assert_eq!(found.len(), 1, "{part}");
        found[0].outcome()
    }

    #[test]
    fn targets_take_their_figures_from_the_right_subjects() {
        let trials = trials(&[
            (Alone::NAME, [90.0, 1_300.0, 19_000.0]),
            (INLINE, [100.0, 1_500.0, 25_000.0]),
            (ONE, [300.0, 11_000.0, 50_000.0]),
            (AUTO, [100.0, 2_000.0, 3_000.0]),
            (THREE, [900.0, 14_000.0, 90_000.0]),
        ]);
        let interval = Interval {
            low: 90.0,
            value: 120.0,
            high: 150.0,
        };
        let ratios = [Ratio {
            case: TARGET_RATE.to_owned(),
            versus: Disruptor::name_of(Waiting::BusySpin, STAGES, false),
            metric: P99,
            interval,
        }];
        let targets = targets(&trials, &ratios);
        let outcome = |part| outcome_of(&targets, part);
        assert_eq!(outcome("inline's best-quartile p99 over"), Outcome::Met);
        assert_eq!(outcome("inline's best-quartile p99.9"), Outcome::Missed);
        assert_eq!(outcome("max batch 1: auto over"), Outcome::NotRun);
        assert_eq!(outcome("1M/s: auto's p99"), Outcome::Met);
        assert_eq!(outcome("2M/s: auto's p99"), Outcome::NotRun);
        assert_eq!(outcome("events lost"), Outcome::Met);
        assert_eq!(outcome("busy-spin:3"), Outcome::Met);
        assert_eq!(outcome("sleep:3"), Outcome::NotRun);
    }

    #[test]
    fn auto_is_held_against_the_best_placement() {
        let trials = trials(&[
            (INLINE, [0.0, 1_000.0, 0.0]),
            (THREE, [0.0, 9_000.0, 0.0]),
            (AUTO, [0.0, 1_600.0, 0.0]),
        ]);
        assert_eq!(auto_ratio(&trials, TARGET_RATE), Some(1.6));
        assert_eq!(auto_ratio(&trials, "2M/s"), None);
    }
}
