//! No collapse: the same three stages under every placement, beside the `disruptor` crate, with
//! more threads than cores and without.
//!
//! Four stage threads need four stages: that subject splits the same work into four.

use thalweg::pipeline::Placement;
use thalweg::wait::{Strategy, cores};

use super::{Experiment, Settings, progress_note};
use crate::report::{Report, ns, per_second, times};
use crate::runner::{Subject, Trial, interleave};
use crate::sender::{LATENCY, Load, THROUGHPUT};
use crate::subject::{Disruptor, Thalweg, Waiting};
use crate::target::{self, Limit, Target};
use crate::workload::{STAGES, Workload};
use thalweg_measure::statistics::{Better, Interval};
use thalweg_measure::table::{Cell, Table};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pipeline",
    shows: "tails of one 3-stage pipeline on any number of threads, beside the disruptor crate",
    run,
};

/// Rates of the open loop, events a second, and the names of their cases.
const RATES: [(&str, u64); 4] = [
    ("100k/s", 100_000),
    ("500k/s", 500_000),
    ("1M/s", 1_000_000),
    ("2M/s", 2_000_000),
];
/// Batches of the closed loop, and the names of their cases.
const BATCHES: [(&str, usize); 2] = [("max, batch 1", 1), ("max, batch 64", 64)];
/// The rate that most targets are about.
const TARGET_RATE: &str = "1M/s";
/// Where p99 and p99.9 are among the metrics of an open loop.
const P50: usize = 0;
const P99: usize = 1;
const P999: usize = 2;

const INLINE: &str = "thalweg inline";
const CALLER_AND_THREAD: &str = "thalweg caller:1+threads:1";
const THREE: &str = "thalweg threads:3";
const FOUR: &str = "thalweg threads:4 (4 stages)";
const AUTO: &str = "thalweg auto";
/// The placements that `auto` chooses between, or could.
const PLACEMENTS: [&str; 5] = [
    INLINE,
    CALLER_AND_THREAD,
    "thalweg threads:1",
    "thalweg threads:2",
    THREE,
];

fn subjects(workload: Workload) -> Vec<Box<dyn Subject<Load>>> {
    let three = || Placement::threads(3);
    let ours = [
        ("inline", Placement::inline()),
        ("caller:1+threads:1", Placement::caller_and_threads(1, 1)),
        ("threads:1", Placement::threads(1)),
        ("threads:2", Placement::threads(2)),
        ("threads:3", three()),
        ("auto", Placement::auto()),
        // What the library does not choose, to show why.
        ("threads:3 unpinned", three().unpinned()),
        ("threads:3 spin", three().waiting(Strategy::Spin)),
    ];
    let mut subjects: Vec<Box<dyn Subject<Load>>> = Vec::new();
    for (name, placement) in ours {
        subjects.push(Box::new(Thalweg::new(name, placement, workload)));
    }
    let mut four = Thalweg::new("threads:4 (4 stages)", Placement::threads(4), workload);
    four.stages = 4;
    subjects.insert(5, Box::new(four));
    for processors in [1, STAGES] {
        for waiting in [Waiting::BusySpin, Waiting::Sleep, Waiting::Yield] {
            for pinned in [false, true] {
                subjects.push(Box::new(Disruptor {
                    waiting,
                    processors,
                    pinned,
                    workload,
                }));
            }
        }
    }
    subjects
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let workload = Workload::calibrate();
    let subjects = subjects(workload);
    report.say(format!(
        "{STAGES} stages of {:.1} ns ({} rounds) on {} cores; {} interleaved runs of {:.0} ms each",
        workload.stage_ns,
        workload.rounds,
        cores::usable().count(),
        settings.repetitions,
        settings.span_ns as f64 / 1e6,
    ));
    let mut trials = Vec::new();
    let span_ns = settings.span_ns;
    let loads = RATES
        .map(|(case, per_s)| (case, LATENCY, Load::Open { per_s, span_ns }))
        .into_iter()
        .chain(BATCHES.map(|(case, batch)| (case, THROUGHPUT, Load::Closed { batch, span_ns })));
    for (case, metrics, load) in loads {
        let wanted = settings.wanted(case, &subjects);
        if wanted.is_empty() {
            continue;
        }
        progress_note(&format!("{case}: {} subjects", wanted.len()));
        let trial = interleave(case, metrics, &wanted, &load, settings.repetitions);
        let heading = match load {
            Load::Open { .. } => format!("Open loop, {case}: latency from the intended send time"),
            Load::Closed { .. } => format!("Closed loop, {case}"),
        };
        report.trial(&heading, &trial);
        trials.push(trial);
    }
    let ratios = ratios(&mut report, &trials);
    report.say("Targets");
    report.say(target::table(&targets(&trials, &ratios)));
    report
}

/// A ratio that the targets ask for.
#[derive(Debug, Clone)]
struct Ratio {
    case: String,
    versus: String,
    metric: usize,
    interval: Interval,
}

/// The library's own choice with three stage threads against the peer with three processors.
fn ratios(report: &mut Report, trials: &[Trial]) -> Vec<Ratio> {
    let mut table = Table::new(["case", "metric", "thalweg threads:3 versus", "ratio", ""]);
    let mut ratios = Vec::new();
    for trial in trials {
        for waiting in [Waiting::BusySpin, Waiting::Sleep, Waiting::Yield] {
            for pinned in [false, true] {
                let versus = Disruptor::name_of(waiting, STAGES, pinned);
                for metric in 0..trial.metrics.len() {
                    let Some(interval) = report.compare(trial, [THREE, &versus], metric) else {
                        continue;
                    };
                    let verdict = match interval.tells_from(1.0) {
                        true if interval.value > 1.0 => "better",
                        true => "worse",
                        false => "cannot tell",
                    };
                    table.row([
                        trial.case.as_str().into(),
                        trial.metrics[metric].name.into(),
                        versus.as_str().into(),
                        Cell::from(interval),
                        verdict.into(),
                    ]);
                    ratios.push(Ratio {
                        case: trial.case.clone(),
                        versus: versus.clone(),
                        metric,
                        interval,
                    });
                }
            }
        }
    }
    if !table.is_empty() {
        report.say("Ratios with 95 % intervals, run by run; above 1: threads:3 is better");
        report.say(table);
    }
    ratios
}

/// The case of this name.
fn case<'t>(trials: &'t [Trial], name: &str) -> Option<&'t Trial> {
    trials.iter().find(|trial| trial.case == name)
}

/// Which of a spread's figures.
#[derive(Clone, Copy)]
enum Of {
    Median,
    BestQuartile,
    Best,
}

fn figure(trials: &[Trial], in_case: &str, subject: &str, metric: usize, of: Of) -> Option<f64> {
    let trial = case(trials, in_case)?;
    let spread = trial
        .of(subject)?
        .spread(metric, trial.metrics[metric].better);
    Some(match of {
        Of::Median => spread.median,
        Of::BestQuartile => spread.best_quartile,
        Of::Best => spread.best,
    })
}

fn targets(trials: &[Trial], ratios: &[Ratio]) -> Vec<Target> {
    let at = |subject, metric, of| figure(trials, TARGET_RATE, subject, metric, of);
    let at_most = |what: &str, limit: f64, measured| {
        Target::new(
            format!("{TARGET_RATE}: {what}"),
            Limit::AtMost(limit),
            measured,
            ns,
        )
    };
    let mut targets = vec![
        at_most(
            "inline, best-quartile p99",
            2e3,
            at(INLINE, P99, Of::BestQuartile),
        ),
        at_most(
            "inline, best-quartile p99.9",
            20e3,
            at(INLINE, P999, Of::BestQuartile),
        ),
        at_most(
            "one stage thread, best-quartile p99",
            10e3,
            at("thalweg threads:1", P99, Of::BestQuartile),
        ),
    ];
    for (rate, _) in RATES {
        let what = format!("{rate}: auto's p99 over that of the best placement (best quartiles)");
        targets.push(Target::new(
            what,
            Limit::AtMost(1.5),
            auto_ratio(trials, rate),
            times,
        ));
    }
    for (name, subject) in [("3 stage threads", THREE), ("4 stage threads", FOUR)] {
        let median = at(subject, P99, Of::Median);
        targets.push(at_most(&format!("{name}, median p99"), 100e3, median));
        let best = at(subject, P99, Of::Best);
        targets.push(at_most(&format!("{name}, best p99"), 15e3, best));
    }
    targets.push(Target::new(
        "events lost by this library, all cases",
        Limit::AtMost(0.0),
        lost(trials),
        |lost| format!("{lost:.0}"),
    ));
    let ratio = |waiting, pinned| {
        let versus = Disruptor::name_of(waiting, STAGES, pinned);
        let is_it = |ratio: &&Ratio| {
            ratio.case == TARGET_RATE && ratio.metric == P99 && ratio.versus == versus
        };
        ratios.iter().find(is_it).map(|ratio| ratio.interval.value)
    };
    let versus = |what: &str, limit, measured| {
        let what = format!("{TARGET_RATE}: p99 of 3 stage threads, times below {what}");
        Target::new(what, limit, measured, times)
    };
    let (busy, sleep) = (
        ratio(Waiting::BusySpin, false),
        ratio(Waiting::Sleep, false),
    );
    targets.push(versus("disruptor busy-spin:3", Limit::AtLeast(100.0), busy));
    targets.push(versus("disruptor sleep:3", Limit::AtLeast(5.0), sleep));
    let yielding = ratio(Waiting::Yield, true);
    targets.push(versus(
        "disruptor yield:3 pinned by hand",
        Limit::Shown,
        yielding,
    ));
    targets.extend(winners(trials));
    targets
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

/// Events that this library lost in all cases that ran.
fn lost(trials: &[Trial]) -> Option<f64> {
    let series = trials.iter().flat_map(|trial| &trial.series);
    let ours = series.filter(|series| series.subject.starts_with("thalweg"));
    ours.map(|series| series.lost() as f64)
        .reduce(|sum, lost| sum + lost)
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
    winners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{Run, Series};
    use crate::target::Outcome;

    /// Each subject with one run: p50, p99 and p99.9 in ns.
    fn trials(runs: &[(&str, [f64; 3])]) -> Vec<Trial> {
        let series = runs.iter().map(|&(subject, values)| Series {
            subject: subject.to_owned(),
            runs: vec![Run {
                values: values.to_vec(),
                disturbance: 0.0,
                lost: 0,
                cut: false,
            }],
        });
        vec![Trial {
            case: TARGET_RATE.to_owned(),
            metrics: LATENCY,
            series: series.collect(),
            skipped: Vec::new(),
        }]
    }

    fn outcome_of(targets: &[Target], part: &str) -> Outcome {
        let found: Vec<&Target> = targets.iter().filter(|t| t.what.contains(part)).collect();
        assert_eq!(found.len(), 1, "{part}");
        found[0].outcome()
    }

    #[test]
    fn targets_take_their_figures_from_the_right_subjects() {
        let trials = trials(&[
            (INLINE, [100.0, 1_500.0, 25_000.0]),
            ("thalweg threads:1", [300.0, 11_000.0, 50_000.0]),
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
        assert_eq!(outcome("inline, best-quartile p99.9"), Outcome::Missed);
        assert_eq!(outcome("one stage thread"), Outcome::Missed);
        assert_eq!(outcome("1M/s: auto's p99"), Outcome::Met);
        assert_eq!(outcome("2M/s: auto's p99"), Outcome::NotRun);
        assert_eq!(outcome("3 stage threads, best p99"), Outcome::Met);
        assert_eq!(outcome("4 stage threads, best p99"), Outcome::NotRun);
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

    #[test]
    fn one_lost_event_misses_the_target() {
        let mut trials = trials(&[(THREE, [1.0, 1.0, 1.0])]);
        trials[0].series[0].runs[0].lost = 1;
        assert_eq!(
            outcome_of(&targets(&trials, &[]), "events lost"),
            Outcome::Missed
        );
    }

    #[test]
    fn every_subject_has_a_name_of_its_own() {
        let workload = Workload {
            rounds: 1,
            stage_ns: 1.0,
        };
        let subjects = subjects(workload);
        let names: std::collections::BTreeSet<String> =
            subjects.iter().map(|subject| subject.name()).collect();
        assert_eq!(names.len(), subjects.len());
        for named in PLACEMENTS.iter().chain([&FOUR, &AUTO]) {
            assert!(names.contains(*named), "{named}");
        }
    }
}
