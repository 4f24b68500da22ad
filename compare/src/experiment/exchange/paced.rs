//! Commands on schedule: latency from the intended time until a command's result is published, and
//! where the time goes, stage by stage.
//!
//! Many short runs, since the machine takes the core away every few milliseconds. Those of one
//! subject and rate go on through the stream with one exchange.

mod course;
mod line;
mod tables;

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Placement, Stats};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, recorder};

use self::course::Course;
use self::line::{End, Left, Looped, Seen, Submitted};
pub(super) use self::tables::Tables;
use super::engine::Load;
use crate::runner::{Metric, Run, Subject};
use crate::sender::{Sent, WARM_UP_NS, send_due};

/// Rates, commands a second, and their names. They end where no service keeps up.
pub(super) const RATES: [(&str, u64); 14] = [
    ("125k/s", 125_000),
    ("1M/s", 1_000_000),
    ("2M/s", 2_000_000),
    ("3M/s", 3_000_000),
    ("4M/s", 4_000_000),
    ("5M/s", 5_000_000),
    ("6M/s", 6_000_000),
    ("7.5M/s", 7_500_000),
    ("10M/s", 10_000_000),
    ("12M/s", 12_000_000),
    ("15M/s", 15_000_000),
    ("20M/s", 20_000_000),
    ("25M/s", 25_000_000),
    ("30M/s", 30_000_000),
];
/// Runs of a subject at a rate, `[full, quick]`.
pub(super) const REPETITIONS: [usize; 2] = [100, 20];
/// What of each is measured, ns, `[full, quick]`.
pub(super) const SPAN_NS: [u64; 2] = [1_000_000; 2];
/// Commands that are handed over together at most, where so many are due.
const BATCH: usize = 64;
/// Who reaches less of a rate than this does not keep up.
const KEEPS_UP: f64 = 0.95;

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p90", "ns"),
    Metric::lower("latency_p99", "ns"),
    Metric::lower("latency_p999", "ns"),
    Metric::lower("latency_p9999", "ns"),
    Metric::lower("latency_max", "ns"),
    Metric::higher("reached", "commands/s"),
];
pub(super) const P50: usize = 0;
pub(super) const P99: usize = 2;
const REACHED: usize = 6;

pub(super) const INLINE: &str = "thalweg inline";
pub(super) const AUTO: &str = "thalweg auto";
/// Subjects on two threads.
pub(super) const TWO_THREADS: [&str; 3] = super::cores::TWO_THREADS;

/// A schedule over a flow.
#[derive(Debug)]
pub(super) struct Paced<'l> {
    pub(super) load: &'l Load,
    pub(super) per_s: u64,
    pub(super) span_ns: u64,
}

impl Paced<'_> {
    /// How long it lasts: as asked for, or as the commands last.
    fn lasts_ns(&self) -> u64 {
        let commands = course::COMMANDS_MAX.min(self.load.flow.commands.len() / 2);
        let lasts_ns = (commands as u128 * 1_000_000_000 / u128::from(self.per_s)) as u64;
        self.span_ns.min(lasts_ns.saturating_sub(WARM_UP_NS)).max(1)
    }
}

/// Of each stage the waiting before it and its service: mean and p99, ns.
type StageFigures = Vec<(String, [f64; 4])>;

fn stage_figures(stats: &Stats) -> StageFigures {
    let figures = stats.stages.iter().map(|stage| {
        let figures = [
            stage.queueing_mean_ns,
            stage.queueing_ns.quantile(0.99) as f64,
            stage.service_mean_ns,
            stage.service_ns.quantile(0.99) as f64,
        ];
        (stage.name.clone(), figures)
    });
    figures.collect()
}

/// Of a run, what its [`Run`] has no place for.
#[derive(Debug)]
struct Kept {
    disturbance: f64,
    latency_ns: Histogram,
    stages: StageFigures,
}

/// The service under a placement, or no pipeline at all.
#[derive(Debug)]
pub(super) struct Served {
    name: String,
    placement: Option<Placement>,
    /// Of the runs at the present rate.
    kept: Mutex<Vec<Kept>>,
    course: Mutex<Option<Course>>,
}

pub(super) fn subjects() -> Vec<Served> {
    let two = Placement::caller_and_threads;
    let placements = [
        Placement::inline(),
        two(super::cores::STAGES - 1, 1),
        two(1, 1),
        Placement::threads(1),
        Placement::auto(),
    ];
    let named = |placement: Option<Placement>| Served {
        name: match &placement {
            Some(placement) => format!("thalweg {placement}"),
            None => super::cores::PLAIN.to_owned(),
        },
        placement,
        kept: Mutex::default(),
        course: Mutex::default(),
    };
    let served = placements.map(|placement| named(Some(placement)));
    [named(None)].into_iter().chain(served).collect()
}

impl<'l> Subject<Paced<'l>> for Served {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&self, paced: &Paced<'l>) -> Result<Run, String> {
        let flow = &paced.load.flow;
        let (per_s, span_ns) = (paced.per_s, paced.lasts_ns());
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, commands) = Course::of(&mut course, flow, (per_s, span_ns));
        let (writer, reader) = recorder();
        let (end, seen) = End::new(writer);
        let (sent, left) = match &self.placement {
            None => {
                let left = Arc::default();
                let gate = Looped::new(state, commands, end, &left);
                (send_due(gate, per_s, span_ns, BATCH), left)
            }
            Some(placement) => {
                let left = Arc::default();
                let gate = Submitted::start(state, commands, (placement, end), &left)?;
                (send_due(gate, per_s, span_ns, BATCH), left)
            }
        };
        let left: Option<Left> = left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let left = left.ok_or("the service ended with a failure")?;
        if let Some(course) = &mut *course {
            course.go_on(left.state, sent.events as usize, flow);
        }
        let mut seen = *seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.placement.is_some() {
            seen.commands = seen.commands.saturating_sub(line::HELLOS);
        }
        let clock = Clock::global();
        let latency_ns = reader.snapshot(|ticks| clock.ns(ticks));
        let run = figures(sent, seen, &latency_ns);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(Kept {
            disturbance: run.disturbance,
            latency_ns,
            stages: left.stats.as_ref().map_or_else(Vec::new, stage_figures),
        });
        Ok(run)
    }
}

fn figures(sent: Sent, seen: Seen, latency_ns: &Histogram) -> Run {
    let summary = latency_ns.summary();
    // A run cut before its first measured command has no latency.
    let ns = |value: u64| {
        if summary.count > 0 {
            value as f64
        } else {
            f64::INFINITY
        }
    };
    let latencies = [
        summary.p50,
        summary.p90,
        summary.p99,
        summary.p999,
        summary.p9999,
        summary.max,
    ];
    let mut values = latencies.map(ns).to_vec();
    values.push(seen.reached_per_s());
    Run {
        values,
        disturbance: sent.gaps.disturbance(),
        lost: sent.events.abs_diff(seen.commands) + seen.misplaced,
        cut: sent.cut,
    }
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_placement_publishes_every_command_and_goes_on_through_the_stream() {
        let load = Load::new(mixes::trading(20_000));
        let paced = Paced {
            load: &load,
            per_s: 1_000_000,
            span_ns: 1_000_000,
        };
        for subject in &subjects() {
            for _ in 0..4 {
                let run = subject.run(&paced).unwrap();
                let lost = (run.lost, run.values.len());
                assert_eq!(lost, (0, METRICS.len()), "{}", subject.name);
            }
            let kept = subject.kept.lock().unwrap();
            let stages = kept[0].stages.iter().map(|(name, _)| name.as_str());
            let expected: &[&str] = match subject.placement {
                Some(_) => &["risk", "match", "settle", "publish"],
                None => &[],
            };
            assert_eq!(stages.collect::<Vec<_>>(), expected);
        }
        let names: Vec<String> = subjects().into_iter().map(|served| served.name).collect();
        for name in [INLINE, AUTO].iter().chain(&TWO_THREADS) {
            assert!(names.iter().any(|found| found == name), "{name}");
        }
    }

    #[test]
    fn a_schedule_ends_with_the_commands() {
        let load = Load::new(mixes::trading(10_000));
        let lasts_ns = |per_s, span_ns| {
            Paced {
                load: &load,
                per_s,
                span_ns,
            }
            .lasts_ns()
        };
        assert_eq!(lasts_ns(1_000_000, 1_000_000), 1_000_000);
        assert_eq!(lasts_ns(1_000_000, 1_000_000_000), 3_000_000);
        assert_eq!(lasts_ns(7_500_000, 1_000_000_000), 1);
    }
}
