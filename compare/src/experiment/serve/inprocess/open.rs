//! An open loop into an exchange, beside bare loops of commits on the same disk.

use std::path::Path;
use std::time::Duration;

use thalweg_exchange::durable::{Exchange, SyncMode};
use thalweg_measure::clock::Clock;

use super::super::bare::{self, Log, pause};
use super::flow::{BATCH, Flow, open_new, send};
use super::{Settings, Told, told};
use crate::experiment::journal::Scratch;
use crate::experiment::journal::load::settle;
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};

const CASE: &str = "in-process/500k";
const PER_S: u64 = 500_000;
const REPETITIONS: [usize; 2] = [11, 3];
/// Before a run counts, and how long it does, `[full, quick]`.
const WARM_UP: Duration = Duration::from_millis(300);
const SPAN_NS: [u64; 2] = [2_000_000_000, 300_000_000];
/// Who has more time than this until the next command is due sleeps.
const SPINS_NS: u64 = 10_000;

const METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("acknowledged p99.9", "ns"),
    Metric::lower("acknowledged longest", "ns"),
    Metric::higher("achieved", "commands/s"),
    Metric::lower("commits a second", "commits/s"),
];
const P50: usize = 0;
const P99: usize = 1;

const SYNCED: &str = "durable exchange";
const UNSYNCED: &str = "unsynced exchange";
const JOURNAL: &str = "bare loop into thalweg-journal";
const FILE: &str = "bare loop into a prepared file + fdatasync";

struct Load {
    flow: Flow,
    span: Duration,
}

/// When commands are due, and which of them count.
pub(super) struct Schedule {
    pub(super) per_s: u64,
    pub(super) warm_up: Duration,
    pub(super) span: Duration,
}

impl Schedule {
    /// Sends commands when they are due, waits for the last, and gives how long those that count
    /// took, ns. `look` is called where none is due.
    pub(super) fn keep(
        &self,
        exchange: &mut Exchange,
        flow: &Flow,
        mut look: impl FnMut(&mut Exchange),
    ) -> Told<u64> {
        let clock = Clock::global();
        let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
        let begin = clock.ticks();
        let (counts_from, end) = (
            begin + ticks(self.warm_up),
            begin + ticks(self.warm_up + self.span),
        );
        let due_of = |number: u64| begin + clock.ticks_from_ns(number * 1_000_000_000 / self.per_s);
        let mut batch = Vec::new();
        let mut next = 0;
        let mut due = due_of(next);
        while due < end {
            let now = clock.ticks();
            batch.clear();
            while due <= now && due < end && (batch.len() as u64) < BATCH {
                let tag = if due < counts_from { 0 } else { due };
                batch.push(flow.request(next, tag));
                next += 1;
                due = due_of(next);
            }
            if !batch.is_empty() {
                send(exchange, &batch)?;
                continue;
            }
            exchange.idle().map_err(told)?;
            look(exchange);
            let left_ns = clock.ns(due.saturating_sub(clock.ticks()));
            if left_ns > SPINS_NS {
                pause(left_ns)?;
            }
        }
        exchange.drain().map_err(told)?;
        Ok(clock.ns(clock.ticks().saturating_sub(counts_from)))
    }
}

fn exchange(sync: SyncMode, load: &Load) -> Told<Run> {
    settle()?;
    let place = Scratch::new("in-process");
    let (mut exchange, acknowledged) = open_new(&place.0, sync)?;
    let schedule = Schedule {
        per_s: PER_S,
        warm_up: WARM_UP,
        span: load.span,
    };
    let ns = schedule.keep(&mut exchange, &load.flow, |_| {})?;
    let clock = Clock::global();
    let latency_ns = acknowledged.snapshot(|ticks| clock.ns(ticks));
    let stats = exchange.stats().ok_or("it is closed")?;
    let all = (WARM_UP + load.span).as_secs_f64();
    Ok(Run::of(vec![
        latency_ns.quantile(0.5) as f64,
        latency_ns.quantile(0.99) as f64,
        latency_ns.quantile(0.999) as f64,
        latency_ns.max() as f64,
        latency_ns.count() as f64 * 1e9 / ns.max(1) as f64,
        stats.journal.commits as f64 / all,
    ]))
}

fn bare(make: fn(&Path) -> Told<Box<dyn Log>>, load: &Load) -> Told<Run> {
    settle()?;
    let place = Scratch::new("bare-loop");
    let (ran, commits) = bare::open(&mut *make(&place.0)?, PER_S, [WARM_UP, load.span])?;
    Ok(Run::of(vec![
        ran.latency_ns.quantile(0.5) as f64,
        ran.latency_ns.quantile(0.99) as f64,
        ran.latency_ns.quantile(0.999) as f64,
        ran.latency_ns.max() as f64,
        ran.latency_ns.count() as f64 * 1e9 / ran.ns.max(1) as f64,
        commits as f64 / load.span.as_secs_f64(),
    ]))
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(SYNCED, |load| exchange(SyncMode::Always, load)),
        subject(UNSYNCED, |load| exchange(SyncMode::Never, load)),
        subject(JOURNAL, |load| bare(bare::journal, load)),
        subject(FILE, |load| bare(bare::prepared, load)),
    ]
}

/// The case `in-process/500k`.
pub(super) fn run(report: &mut Report, settings: &Settings) {
    let load = Load {
        flow: Flow::new(),
        span: Duration::from_nanos(settings.span_ns_or(SPAN_NS)),
    };
    let Some(trial) = settings.trial(CASE, METRICS, &subjects(), &load, REPETITIONS) else {
        return;
    };
    let heading = format!("{CASE}: {PER_S} commands a second of 8 sessions, open loop");
    report.figures(&heading, &trial);
    for bare in [JOURNAL, FILE] {
        for metric in [P50, P99] {
            report.compare(&trial, [SYNCED, bare], metric);
        }
    }
}
