//! Pipelined sessions: how many commands a second are acknowledged, and after how long.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg_measure::statistics::median;
use thalweg_server::config::SyncName;

use super::child::{Child, Spent, Work};
use super::loader::{Ran, connect_all, pipelined};
use super::{Settings, Told, progress_note};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, interleave};
use crate::target::{Limit, Target};

const SESSIONS: [u32; 3] = [1, 8, 32];
/// Commands of a session without an answer.
const WINDOW: usize = 256;
const REPETITIONS: [usize; 2] = [11, 3];
/// Before a run counts, and how long it does, `[full, quick]`.
const WARM_UP: Duration = Duration::from_millis(300);
const SPAN_NS: [u64; 2] = [1_000_000_000, 300_000_000];
/// So much of the echo's throughput, not durable.
const PART: f64 = 0.5;

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("server's processor time of a command", "ns"),
    Metric::lower("loader's processor time of a command", "ns"),
];
const THROUGHPUT: usize = 0;
const SERVER: usize = 3;
/// A thread that is on a processor for more of the time is the limit.
const BUSY: f64 = 0.9;

const UNSYNCED: &str = "serve, not durable";
const REPORTS: &str = "serve, not durable, with reports";
const SYNCED: &str = "serve, durable";
const ECHO: &str = "bare echo";

struct Load {
    sessions: u32,
    span: Duration,
}

struct Way {
    name: &'static str,
    work: Work,
    wants_reports: bool,
    /// How much of the time threads were on a processor, by run; the loader among them.
    busy: Mutex<Vec<BTreeMap<String, f64>>>,
}

impl Way {
    fn pipeline(&self, load: &Load) -> Told<Ran> {
        let child = Child::start(self.work)?;
        let mut sessions = connect_all(&child, load.sessions, self.wants_reports)?;
        pipelined(&child, &mut sessions, WINDOW, [WARM_UP, load.span])
    }

    fn note(&self, ran: &Ran) {
        let part = |ns: u64| ns as f64 / ran.ns.max(1) as f64;
        let threads = ran.spent.iter();
        let mut busy: BTreeMap<String, f64> = threads
            .map(|(name, ns)| (name.clone(), part(*ns)))
            .collect();
        busy.insert(LOADER.to_owned(), part(ran.loader_ns));
        let mut runs = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(busy);
    }

    /// Median parts of the time, the busiest first, and who was the limit.
    fn threads(&self) -> String {
        let runs = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_thread: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, part) in runs.iter().flatten() {
            by_thread.entry(name).or_default().push(*part);
        }
        let medians = by_thread
            .into_iter()
            .map(|(name, parts)| (name, median(&parts).unwrap_or(0.0)));
        let mut threads: Vec<(&str, f64)> = medians.filter(|(_, part)| *part >= 0.005).collect();
        threads.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let total: f64 = threads.iter().map(|(_, part)| part).sum();
        let shown = threads
            .iter()
            .map(|(name, part)| format!("{name} {:.0} %", part * 100.0));
        let shown: Vec<String> = shown.collect();
        let limit = match threads.first() {
            Some((name, part)) if *part >= BUSY => (*name).to_owned(),
            _ if total >= BUSY * cores() => "the cores".to_owned(),
            _ => "waiting for each other".to_owned(),
        };
        format!("{}: {}; limit: {limit}", self.name, shown.join(", "))
    }
}

const LOADER: &str = "loader";

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

impl Subject<Load> for Way {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn run(&self, load: &Load) -> Told<Run> {
        let ran = self.pipeline(load)?;
        self.note(&ran);
        let of_command = |ns: u64| ns as f64 / ran.answers.max(1) as f64;
        let total = |spent: &Spent| spent.values().sum();
        let quantile = |q| ran.latency_ns.quantile(q) as f64;
        Ok(Run::of(vec![
            ran.answers as f64 * 1e9 / ran.ns.max(1) as f64,
            quantile(0.5),
            quantile(0.99),
            of_command(total(&ran.spent)),
            of_command(ran.loader_ns),
        ]))
    }
}

fn ways() -> Vec<Way> {
    let way = |name, work, wants_reports| Way {
        name,
        work,
        wants_reports,
        busy: Mutex::default(),
    };
    vec![
        way(UNSYNCED, Work::Serve(SyncName::Never), false),
        way(REPORTS, Work::Serve(SyncName::Never), true),
        way(SYNCED, Work::Serve(SyncName::Always), false),
        way(ECHO, Work::Echo, false),
    ]
}

/// The cases `tcp/1` to `tcp/32`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let repetitions = settings.repetitions_or(REPETITIONS);
    for sessions in SESSIONS {
        let case = format!("tcp/{sessions}");
        let ways = ways();
        let wanted: Vec<&Way> = ways
            .iter()
            .filter(|way| settings.cases.wants(&case, way.name))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let count = wanted.len();
        progress_note(&format!("{case}: {count} subjects, {repetitions} runs"));
        let span = Duration::from_nanos(settings.span_ns_or(SPAN_NS));
        let load = Load { sessions, span };
        let subjects: Vec<&dyn Subject<Load>> = wanted
            .iter()
            .map(|way| *way as &dyn Subject<Load>)
            .collect();
        let trial = interleave(&case, METRICS, &subjects, &load, repetitions);
        let heading = format!("{case}: {WINDOW} commands of each session under way");
        report.figures(&heading, &trial);
        let threads: Vec<String> = wanted.iter().map(|way| way.threads()).collect();
        report.say(threads.join("\n"));
        let ratio = report.compare(&trial, [UNSYNCED, ECHO], THROUGHPUT);
        let what = format!("{case} throughput");
        let limit = Limit::AtLeast(PART);
        targets.push(Target::ratio(&what, [UNSYNCED, ECHO], limit, ratio));
        for subject in [REPORTS, SYNCED] {
            report.compare(&trial, [subject, ECHO], THROUGHPUT);
        }
        report.compare(&trial, [UNSYNCED, ECHO], SERVER);
    }
}
