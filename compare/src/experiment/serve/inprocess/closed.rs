//! As many commands as are taken: with a journal, without one, and bare commits of the same size.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use thalweg::pipeline::Placement;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::durable::SyncMode;
use thalweg_exchange::service::{self, Service};
use thalweg_exchange::{Rules, State};

use super::super::venue::set_up;
use super::flow::{BATCH, Flow, open_new, send_all, users};
use super::{Settings, Told, told};
use crate::experiment::journal::Scratch;
use crate::experiment::journal::load::settle;
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};
use crate::target::{Limit, Target};

const CASE: &str = "in-process/max";
const REPETITIONS: [usize; 2] = [21, 3];
const SPAN_NS: [u64; 2] = [500_000_000, 100_000_000];
/// Commands between two looks at the clock.
const STRIDE: u64 = 64 * BATCH;
const PAGE_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 64 << 20;

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("processor time of a command", "ns"),
    Metric::lower("commits a second", "commits/s"),
    Metric::higher("commands of a commit", "commands"),
];
const THROUGHPUT: usize = 0;

const NONE: &str = "service without a journal";
const UNSYNCED: &str = "unsynced exchange";
const SYNCED: &str = "durable exchange";
const BARE: &str = "bare commits of the same size";
/// So much of the throughput without a journal.
const PART: f64 = 0.85;

/// What durable runs committed, for bare ones to do the same.
#[derive(Clone, Copy, Debug, Default)]
struct Committed {
    commands: u64,
    bytes: u64,
    commits: u64,
}

struct Load {
    flow: Flow,
    span: Duration,
    committed: Mutex<Committed>,
}

fn process_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What is read at the beginning of a run.
struct Meter {
    begin: Instant,
    spent_ns: u64,
}

impl Meter {
    fn new() -> Self {
        Self {
            begin: Instant::now(),
            spent_ns: process_ns(),
        }
    }

    fn run(&self, commands: u64, commits: u64) -> Run {
        let (seconds, commands) = (self.begin.elapsed().as_secs_f64(), commands as f64);
        Run::of(vec![
            commands / seconds,
            (process_ns() - self.spent_ns) as f64 / commands,
            commits as f64 / seconds,
            if commits == 0 {
                0.0
            } else {
                commands / commits as f64
            },
        ])
    }
}

fn without(load: &Load) -> Told<Run> {
    settle()?;
    let options = service::Options {
        placement: Placement::caller_and_threads(3, 1),
        digest: Some(Digest::new()),
        ..service::Options::default()
    };
    let started = Service::start(State::new(Rules::default()), options, |_| ());
    let mut service = started.map_err(told)?;
    for command in set_up(users()) {
        service.submit(&command, 0).map_err(told)?;
    }
    service.drain().map_err(told)?;
    let meter = Meter::new();
    let mut next = 0;
    while next == 0 || meter.begin.elapsed() < load.span {
        let end = next + STRIDE;
        while next < end {
            let sent = service.submit_with(BATCH as usize, |at, command| {
                command.clone_from(load.flow.command(next + at as u64));
                0
            });
            sent.map_err(told)?;
            next += BATCH;
        }
    }
    service.drain().map_err(told)?;
    Ok(meter.run(next, 0))
}

fn with(load: &Load, sync: SyncMode) -> Told<Run> {
    settle()?;
    let place = Scratch::new("in-process");
    let (mut exchange, _) = open_new(&place.0, sync)?;
    let stats = exchange.stats().ok_or("it is closed")?.journal;
    let (bytes_before, commits_before) = (stats.bytes, stats.commits);
    let meter = Meter::new();
    let mut next = 0;
    while next == 0 || meter.begin.elapsed() < load.span {
        send_all(&mut exchange, &load.flow, next, next + STRIDE)?;
        next += STRIDE;
    }
    exchange.drain().map_err(told)?;
    let stats = exchange.stats().ok_or("it is closed")?.journal;
    let commits = stats.commits - commits_before;
    let run = meter.run(next, commits);
    if sync == SyncMode::Always {
        let mut committed = load.committed();
        committed.commands += next;
        committed.bytes += stats.bytes - bytes_before;
        committed.commits += commits;
    }
    Ok(run)
}

/// Writes and syncs as many bytes as a commit has had so far.
fn bare(load: &Load) -> Told<Run> {
    settle()?;
    if load.committed().commits == 0 {
        with(load, SyncMode::Always)?;
    }
    let committed = *load.committed();
    let bytes = committed.bytes / committed.commits;
    let group = vec![1; bytes.next_multiple_of(PAGE_BYTES) as usize];
    let of_commit = committed.commands / committed.commits;
    let place = Scratch::new("bare-loop");
    std::fs::create_dir_all(&place.0).map_err(told)?;
    let file = File::create(place.0.join("log")).map_err(told)?;
    let zeros = vec![0; FILE_BYTES as usize];
    file.write_all_at(&zeros, 0).map_err(told)?;
    file.sync_all().map_err(told)?;
    let meter = Meter::new();
    let (mut commits, mut at) = (0, 0);
    while commits == 0 || meter.begin.elapsed() < load.span {
        if at + group.len() as u64 > FILE_BYTES {
            at = 0;
        }
        file.write_all_at(&group, at).map_err(told)?;
        file.sync_data().map_err(told)?;
        at += group.len() as u64;
        commits += 1;
    }
    Ok(meter.run(commits * of_commit, commits))
}

impl Load {
    fn committed(&self) -> std::sync::MutexGuard<'_, Committed> {
        self.committed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(NONE, without),
        subject(UNSYNCED, |load| with(load, SyncMode::Never)),
        subject(SYNCED, |load| with(load, SyncMode::Always)),
        subject(BARE, bare),
    ]
}

/// The case `in-process/max`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let load = Load {
        flow: Flow::new(),
        span: Duration::from_nanos(settings.span_ns_or(SPAN_NS)),
        committed: Mutex::default(),
    };
    let Some(trial) = settings.trial(CASE, METRICS, &subjects(), &load, REPETITIONS) else {
        return;
    };
    let heading = format!("{CASE}: batches of {BATCH} commands, as many as are taken");
    report.figures(&heading, &trial);
    let ratio = report.compare(&trial, [UNSYNCED, NONE], THROUGHPUT);
    let what = format!("{CASE} throughput");
    let limit = Limit::AtLeast(PART);
    targets.push(Target::ratio(&what, [UNSYNCED, NONE], limit, ratio));
    let ratio = report.compare(&trial, [SYNCED, BARE], THROUGHPUT);
    targets.push(Target::ratio(&what, [SYNCED, BARE], Limit::Shown, ratio));
}
