//! Commands on schedule: latency from the intended time until a command's result is published, and
//! where the time goes, stage by stage.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Placement, Stats};
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{Command, Events, Rules, State, apply};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Reader, recorder};
use thalweg_measure::statistics::median;
use thalweg_measure::table::{Cell, Nanoseconds, Table};

use super::engine::Load;
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, Trial};
use crate::sender::{self, Line, Sent, WARM_UP_NS, send};
use crate::workload::{CAPACITY, Event, Stamp, Tail, Tally};

/// Rates, commands a second, and their names.
pub(super) const RATES: [(&str, u64); 5] = [
    ("125k/s", 125_000),
    ("1M/s", 1_000_000),
    ("2M/s", 2_000_000),
    ("4M/s", 4_000_000),
    ("7.5M/s", 7_500_000),
];

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p90", "ns"),
    Metric::lower("latency_p99", "ns"),
    Metric::lower("latency_p999", "ns"),
    Metric::lower("latency_max", "ns"),
];
pub(super) const P50: usize = 0;
pub(super) const P99: usize = 2;

pub(super) const INLINE: &str = "thalweg inline";
pub(super) const AUTO: &str = "thalweg auto";

/// A schedule over a flow.
#[derive(Debug)]
pub(super) struct Paced<'l> {
    pub(super) load: &'l Load,
    pub(super) per_s: u64,
    pub(super) span_ns: u64,
}

impl Paced<'_> {
    /// As long as asked for, or as the commands last.
    fn schedule(&self) -> sender::Load {
        let commands = self.load.flow.commands.len() as u128 - 1;
        let lasts_ns = (commands * 1_000_000_000 / u128::from(self.per_s)) as u64;
        let span_ns = self.span_ns.min(lasts_ns.saturating_sub(WARM_UP_NS)).max(1);
        sender::Load::Open {
            per_s: self.per_s,
            span_ns,
        }
    }
}

/// Mean and p99 of the waiting before a stage and of its service, ns.
type StageFigures = [f64; 4];

const STAGE_METRICS: [Metric; 4] = [
    Metric::lower("queueing_mean", "ns"),
    Metric::lower("queueing_p99", "ns"),
    Metric::lower("service_mean", "ns"),
    Metric::lower("service_p99", "ns"),
];

fn stage_figures(stats: &Stats) -> Vec<(String, StageFigures)> {
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

/// The service under a placement, or no pipeline at all.
#[derive(Debug)]
pub(super) struct Served {
    name: String,
    placement: Option<Placement>,
    /// Of each run, its stages.
    attribution: Mutex<Vec<Vec<(String, StageFigures)>>>,
}

pub(super) fn subjects() -> Vec<Served> {
    let placements = [
        Placement::inline(),
        Placement::caller_and_threads(1, 1),
        Placement::threads(1),
        Placement::threads(2),
        Placement::auto(),
    ];
    let named = |placement: Option<Placement>| Served {
        name: match &placement {
            Some(placement) => format!("thalweg {placement}"),
            None => "a loop, no pipeline".to_owned(),
        },
        placement,
        attribution: Mutex::default(),
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
        let state = flow.ready(Rules::MENDED)?;
        let (writer, reader) = recorder();
        let (tail, tally) = Tail::new(writer);
        let end = End {
            tail,
            event: Event::default(),
        };
        let schedule = paced.schedule();
        let sent = match &self.placement {
            None => send(Looped::new(state, &flow.commands, end), schedule),
            Some(placement) => {
                let told = Arc::default();
                let line = Submitted::start(state, &flow.commands, (placement, end), &told)?;
                let sent = send(line, schedule);
                let told = told.lock().unwrap_or_else(PoisonError::into_inner).take();
                let stats = told.ok_or("the service ended with a failure")?;
                let mut all = self
                    .attribution
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                all.push(stage_figures(&stats));
                sent
            }
        };
        let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(figures(sent, tally, &reader))
    }
}

fn figures(sent: Sent, tally: Tally, latency_ticks: &Reader) -> Run {
    let clock = Clock::global();
    let summary = latency_ticks.snapshot(|ticks| clock.ns(ticks)).summary();
    // A run cut before its first measured command has no latency.
    let ns = |value: u64| {
        if summary.count > 0 {
            value as f64
        } else {
            f64::INFINITY
        }
    };
    let values = [
        summary.p50,
        summary.p90,
        summary.p99,
        summary.p999,
        summary.max,
    ];
    Run {
        values: values.map(ns).to_vec(),
        disturbance: sent.gaps.disturbance(),
        lost: sent.events.abs_diff(tally.events) + tally.misplaced,
        cut: sent.cut,
    }
}

/// Where results arrive.
struct End {
    tail: Tail,
    event: Event,
}

impl End {
    #[inline]
    fn take(&mut self, number: u64, intended_ticks: u64) {
        self.event.set(Stamp {
            number,
            intended_ticks,
        });
        self.tail.end(&self.event);
    }
}

/// The engine in the sender's loop.
struct Looped<'c> {
    state: State,
    events: Events,
    commands: &'c [Command],
    end: End,
}

impl<'c> Looped<'c> {
    fn new(state: State, commands: &'c [Command], end: End) -> Self {
        let events = Events::with_capacity(1024);
        Self {
            state,
            events,
            commands,
            end,
        }
    }
}

impl Line for Looped<'_> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        let command = &self.commands[stamp.number as usize];
        apply(&mut self.state, command, &mut self.events);
        self.end.take(stamp.number, stamp.intended_ticks);
        true
    }

    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        one_by_one(self, first, count, deadline_ticks)
    }

    fn finish(self) {}
}

fn one_by_one(line: &mut impl Line, first: u64, count: usize, deadline_ticks: u64) -> bool {
    let stamp = |number| Stamp {
        number,
        intended_ticks: 0,
    };
    (first..first + count as u64).all(|number| line.publish(stamp(number), deadline_ticks))
}

/// The service.
struct Submitted<'c> {
    service: Service,
    commands: &'c [Command],
    told: Arc<Mutex<Option<Stats>>>,
}

impl<'c> Submitted<'c> {
    fn start(
        state: State,
        commands: &'c [Command],
        (placement, mut end): (&Placement, End),
        told: &Arc<Mutex<Option<Stats>>>,
    ) -> Result<Self, String> {
        let options = Options {
            capacity: CAPACITY,
            placement: placement.clone(),
            events: 64,
            ..Options::default()
        };
        let publish = move |outcome: thalweg_exchange::service::Outcome<'_>| {
            end.take(outcome.sequence, outcome.tag);
        };
        let service = Service::start(state, options, publish);
        let service = service.map_err(|error| error.to_string())?;
        let told = Arc::clone(told);
        Ok(Self {
            service,
            commands,
            told,
        })
    }
}

impl Line for Submitted<'_> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        let command = &self.commands[stamp.number as usize];
        self.service.submit(command, stamp.intended_ticks).is_ok()
    }

    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        one_by_one(self, first, count, deadline_ticks)
    }

    fn finish(self) {
        if let Ok(finished) = self.service.join() {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished.stats);
        }
    }
}

/// Medians over the less disturbed half of the runs.
pub(super) fn table(trial: &Trial) -> Table {
    let heads = [
        "quieter half",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "gaps",
        "lost",
        "cut",
    ];
    let mut table = Table::new(heads);
    for series in &trial.series {
        let mut row: Vec<Cell> = vec![series.subject.as_str().into()];
        for metric in 0..METRICS.len() {
            let quiet = median(&series.quiet_values(metric));
            row.push(Nanoseconds(quiet.unwrap_or(f64::NAN)).into());
        }
        row.push(Cell::Number(format!(
            "{:.2} %",
            100.0 * series.disturbance()
        )));
        row.push(series.lost().into());
        row.push(Cell::Number(format!(
            "{}/{}",
            series.cut(),
            series.runs.len()
        )));
        table.row(row);
    }
    table
}

/// Rows and a table of where the time went: medians over the runs, which are then forgotten.
pub(super) fn attribution(report: &mut Report, case: &str, subjects: &[Served]) -> Table {
    let [queueing, queueing_p99, service, service_p99] = STAGE_METRICS.map(|metric| metric.name);
    let mut table = Table::new([
        "attribution",
        "stage",
        queueing,
        queueing_p99,
        service,
        service_p99,
    ]);
    for subject in subjects {
        let runs = std::mem::take(
            &mut *subject
                .attribution
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let Some(first) = runs.first() else { continue };
        for (at, (stage, _)) in first.iter().enumerate() {
            let mut row: Vec<Cell> = vec![subject.name.as_str().into(), stage.as_str().into()];
            for (metric, of) in STAGE_METRICS.iter().enumerate() {
                let values: Vec<f64> = runs.iter().map(|run| run[at].1[metric]).collect();
                let name = format!("{} {stage}", subject.name);
                report.measured(case, &name, *of, &values);
                row.push(Nanoseconds(median(&values).unwrap_or(f64::NAN)).into());
            }
            table.row(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_placement_publishes_every_command() {
        let load = Load::new(mixes::trading(5_000));
        let paced = Paced {
            load: &load,
            per_s: 1_000_000,
            span_ns: 1_000_000,
        };
        let subjects = subjects();
        for subject in &subjects {
            let run = subject.run(&paced).unwrap();
            assert_eq!(
                (run.lost, run.values.len()),
                (0, METRICS.len()),
                "{}",
                subject.name
            );
        }
        let mut report = Report::new("test");
        let table = attribution(&mut report, "case", &subjects).to_string();
        for stage in ["risk", "match", "settle", "publish"] {
            assert!(table.contains(stage), "{table}");
        }
        let names: Vec<&str> = subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect();
        assert!(names.contains(&INLINE) && names.contains(&AUTO));
    }

    #[test]
    fn a_schedule_ends_with_the_commands() {
        let load = Load::new(mixes::trading(5_000));
        let schedule = |per_s, span_ns| {
            Paced {
                load: &load,
                per_s,
                span_ns,
            }
            .schedule()
        };
        let span = |per_s, span_ns| match schedule(per_s, span_ns) {
            sender::Load::Open { span_ns, .. } => span_ns,
            sender::Load::Closed { .. } => 0,
        };
        assert_eq!(span(1_000_000, 1_000_000), 1_000_000);
        assert_eq!(span(1_000_000, 1_000_000_000), 2_999_000);
        assert_eq!(span(7_500_000, 1_000_000_000), 1);
    }
}
