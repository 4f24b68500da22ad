//! An open loop over loopback, durable, beside bare loops of commits on the same disk.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use thalweg_server::config::SyncName;

use super::bare::{self, Log};
use super::child::{Child, Work};
use super::greeting::figure;
use super::loader::{Ran, connect_all, open};
use super::{Settings, Told};
use crate::experiment::journal::Scratch;
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};

const CASE: &str = "open-tcp/50k";
const SESSIONS: u32 = 8;
const PER_S: u64 = 50_000;
const REPETITIONS: [usize; 2] = [11, 3];
/// Before a run counts, and how long it does, `[full, quick]`.
const WARM_UP: Duration = Duration::from_millis(300);
const SPAN_NS: [u64; 2] = [2_000_000_000, 300_000_000];

const METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("sent late p99", "ns"),
    Metric::lower("commits a second", "commits/s"),
];
const P50: usize = 0;
const P99: usize = 1;

const SERVED: &str = "serve, durable";
const UNSYNCED: &str = "serve, not durable";
const JOURNAL: &str = "bare loop, thalweg-journal";
const FILE: &str = "bare loop, prepared file + fdatasync";

struct Load {
    span: Duration,
}

fn served(sync: SyncName, &Load { span }: &Load) -> Told<Run> {
    let child = Child::start(Work::Serve(sync))?;
    let mut sessions = connect_all(&child, SESSIONS, true)?;
    let before = commits(child.http)?;
    let ran = open(&child, &mut sessions, PER_S, [WARM_UP, span])?;
    // All of the run, and its warm-up: a part of them is what counts.
    let commits = commits(child.http)? - before;
    let part = span.as_secs_f64() / (span + WARM_UP).as_secs_f64();
    Ok(figures(&ran, (commits as f64 * part) as u64, span))
}

fn bare(make: fn(&Path) -> Told<Box<dyn Log>>, &Load { span }: &Load) -> Told<Run> {
    let place = Scratch::new("bare-loop");
    let (ran, commits) = bare::open(&mut *make(&place.0)?, PER_S, [WARM_UP, span])?;
    Ok(figures(&ran, commits, span))
}

fn figures(ran: &Ran, commits: u64, span: Duration) -> Run {
    let quantile = |q| ran.latency_ns.quantile(q) as f64;
    Run::of(vec![
        quantile(0.5),
        quantile(0.99),
        ran.lateness_ns.quantile(0.99) as f64,
        commits as f64 / span.as_secs_f64(),
    ])
}

/// How many commits the server counts.
fn commits(http: Option<SocketAddr>) -> Told<u64> {
    let http = http.ok_or("the server has no figures")?;
    figure(http, "thalweg_journal_commits_total")
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(SERVED, |load| served(SyncName::Always, load)),
        subject(UNSYNCED, |load| served(SyncName::Never, load)),
        subject(JOURNAL, |load| bare(bare::journal, load)),
        subject(FILE, |load| bare(bare::prepared, load)),
    ]
}

/// The case `open-tcp/50k`.
pub(super) fn run(report: &mut Report, settings: &Settings) {
    let span = Duration::from_nanos(settings.span_ns_or(SPAN_NS));
    let Some(trial) = settings.trial(CASE, METRICS, &subjects(), &Load { span }, REPETITIONS)
    else {
        return;
    };
    let heading = format!("{CASE}: {PER_S} commands a second by {SESSIONS} sessions, open loop");
    report.figures(&heading, &trial);
    for bare in [JOURNAL, FILE] {
        for metric in [P50, P99] {
            report.compare(&trial, [SERVED, bare], metric);
        }
    }
}
