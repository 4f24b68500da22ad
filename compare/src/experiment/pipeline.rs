//! No collapse: the same three stages under every placement, beside the `disruptor` crate, with
//! more threads than cores and without.
//!
//! Four stage threads need four stages: that subject splits the same work into four.

mod goals;

use thalweg::pipeline::Placement;
use thalweg::wait::{Strategy, cores};

use super::{Experiment, REPETITIONS, Settings};
use crate::report::Report;
use crate::runner::{Subject, Trial};
use crate::sender::{LATENCY, Load, THROUGHPUT};
use crate::subject::{Alone, Disruptor, Thalweg, Waiting};
use crate::workload::{STAGES, Workload};
use thalweg_measure::statistics::Interval;
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
const BATCHES: [(&str, usize); 2] = [("max batch 1", 1), ("max batch 64", 64)];
/// The rate that most targets are about.
const TARGET_RATE: &str = "1M/s";
/// Where p99 and p99.9 are among the metrics of an open loop.
const P50: usize = 0;
const P99: usize = 1;
const P999: usize = 2;

const INLINE: &str = "thalweg inline";
const CALLER_AND_THREAD: &str = "thalweg caller:1+threads:1";
const ONE: &str = "thalweg threads:1";
const THREE: &str = "thalweg threads:3";
const AUTO: &str = "thalweg auto";
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
    subjects.push(Box::new(Alone { workload }));
    for (name, placement) in ours {
        subjects.push(Box::new(Thalweg::new(name, placement, workload)));
    }
    let mut four = Thalweg::new("threads:4 (4 stages)", Placement::threads(4), workload);
    four.stages = 4;
    subjects.insert(6, Box::new(four));
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
        let Some(trial) = settings.trial(case, metrics, &subjects, &load, [REPETITIONS; 2]) else {
            continue;
        };
        let heading = match load {
            Load::Open { .. } => format!("Open loop, {case}: latency from the intended send time"),
            Load::Closed { .. } => format!("Closed loop, {case}"),
        };
        report.trial(&heading, &trial);
        trials.push(trial);
    }
    let ratios = ratios(&mut report, &trials);
    report.targets(&goals::targets(&trials, &ratios), settings);
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
                    if metric == P99 || trial.metrics.len() == 1 {
                        table.row([
                            trial.case.as_str().into(),
                            trial.metrics[metric].name.into(),
                            versus.as_str().into(),
                            Cell::from(interval),
                            verdict.into(),
                        ]);
                    }
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
        report.say("Ratios, run by run, with 95 % intervals; above 1: threads:3 is better");
        report.say(table);
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for named in goals::PLACEMENTS.iter().chain([&AUTO]) {
            assert!(names.contains(*named), "{named}");
        }
    }
}
