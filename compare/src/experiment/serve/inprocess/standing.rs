//! How long a command waits while snapshots of many resting orders are made.

use std::time::{Duration, Instant};

use thalweg_exchange::durable::{Exchange, Origin, Request, SyncMode};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_exchange::{AccountSpec, Command, OrderId, UserId};
use thalweg_measure::clock::Clock;

use super::super::venue::{PRICE, QUOTE, order};
use super::flow::{BATCH, Flow, open_new, send};
use super::open::Schedule;
use super::{Settings, Told, told};
use crate::experiment::journal::Scratch;
use crate::experiment::journal::load::settle;
use crate::report::{Report, ns};
use crate::runner::{Metric, Run, Subject, subject};
use crate::target::{Limit, Target};

const CASE: &str = "snapshot/1m";
const PER_S: u64 = 50_000;
const REPETITIONS: [usize; 2] = [7, 1];
/// Before a run counts, and how long it does, `[full, quick]`.
const WARM_UP: Duration = Duration::from_millis(300);
const SPAN_NS: [u64; 2] = [5_000_000_000, 500_000_000];
/// Resting orders, `[full, quick]`, and of a user.
const ORDERS: [i64; 2] = [1_000_000, 10_000];
const OF_USER: i64 = 1_000;
/// Users who have nothing but these.
const FIRST_USER: i64 = 1_000;
/// Far from where others trade, and on so many levels.
const BELOW: i64 = PRICE - 200;
const LEVELS: i64 = 4_000;
const MONEY: i64 = 1 << 40;
/// How often a snapshot is asked for. While one is made, another can wait.
const ASK_EVERY: Duration = Duration::from_millis(50);
const LONGEST_NS: f64 = 50e6;

const METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("acknowledged p99.9", "ns"),
    Metric::lower("acknowledged longest", "ns"),
    Metric::higher("snapshots", "snapshots"),
    Metric::lower("time of the last snapshot", "ns"),
    Metric::lower("bytes of the last snapshot", "bytes"),
];
const LONGEST: usize = 3;

const WITH: &str = "with snapshots";
const WITHOUT: &str = "without";

struct Load {
    flow: Flow,
    orders: i64,
    span: Duration,
}

/// Has so many orders rest.
fn rest(exchange: &mut Exchange, orders: i64) -> Told<()> {
    let users = || (0..orders / OF_USER).map(|at| FIRST_USER + at);
    let account = |uid| AccountSpec::new(UserId(uid), vec![(QUOTE, MONEY)]);
    let accounts: Vec<AccountSpec> = users().map(account).collect();
    let accounts = Command::AddAccounts(accounts.into());
    exchange
        .submit(Origin::Engine, &accounts, 0)
        .map_err(told)?;
    let mut commands = Vec::new();
    for number in 0..orders {
        // Users in turn, as in an exchange.
        let user = FIRST_USER + number % (orders / OF_USER);
        let price = BELOW - number.wrapping_mul(7_919) % LEVELS;
        let place = order(UserId(user), OrderId(1 << 32 | number), price, 1);
        commands.push((user, number as u64 + 1, Command::Place(place)));
        if commands.len() as u64 == BATCH || number + 1 == orders {
            let requests = commands.iter().map(|(holder, sequence, command)| {
                let key = SessionKey::new(Role::Trade, *holder, 0);
                let sequence = ClientSequence(*sequence);
                Request {
                    origin: Origin::Session { key, sequence },
                    command,
                    tag: 0,
                }
            });
            let requests: Vec<Request<'_>> = requests.collect();
            send(exchange, &requests)?;
            commands.clear();
        }
    }
    exchange.drain().map_err(told)
}

fn ran(load: &Load, has_snapshots: bool) -> Told<Run> {
    let place = Scratch::new("snapshots");
    let (mut exchange, acknowledged) = open_new(&place.0, SyncMode::Always)?;
    rest(&mut exchange, load.orders)?;
    settle()?;
    let schedule = Schedule {
        per_s: PER_S,
        warm_up: WARM_UP,
        span: load.span,
    };
    let mut asked = Instant::now();
    schedule.keep(&mut exchange, &load.flow, |exchange| {
        if has_snapshots && asked.elapsed() >= ASK_EVERY {
            exchange.snapshot_now();
            asked = Instant::now();
        }
    })?;
    let clock = Clock::global();
    let latency_ns = acknowledged.snapshot(|ticks| clock.ns(ticks));
    let made = exchange.stats().ok_or("it is closed")?.snapshots;
    if let Some(failed) = made.failed {
        return Err(told(failed));
    }
    let last = made.last;
    Ok(Run::of(vec![
        latency_ns.quantile(0.5) as f64,
        latency_ns.quantile(0.99) as f64,
        latency_ns.quantile(0.999) as f64,
        latency_ns.max() as f64,
        made.made as f64,
        last.map_or(0.0, |last| last.took.as_nanos() as f64),
        last.map_or(0.0, |last| last.bytes as f64),
    ]))
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(WITH, |load| ran(load, true)),
        subject(WITHOUT, |load| ran(load, false)),
    ]
}

/// The case `snapshot/1m`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let orders = ORDERS[usize::from(settings.quick)];
    let load = Load {
        flow: Flow::new(),
        orders,
        span: Duration::from_nanos(settings.span_ns_or(SPAN_NS)),
    };
    let Some(trial) = settings.trial(CASE, METRICS, &subjects(), &load, REPETITIONS) else {
        return;
    };
    let heading = format!(
        "{CASE}: {PER_S} commands a second, {orders} resting orders, one snapshot after \
             the other"
    );
    report.figures(&heading, &trial);
    report.compare(&trial, [WITH, WITHOUT], LONGEST);
    let longest = trial.of(WITH).map(|series| series.values(LONGEST));
    let longest = longest.and_then(|values| values.into_iter().reduce(f64::max));
    let what = format!("{CASE}: the longest wait of any command in any run");
    targets.push(Target::new(what, Limit::AtMost(LONGEST_NS), longest, ns));
}
