//! The served exchange over loopback, beside the least that any server would do; and in this
//! process, without sockets.
//!
//! What is served is a process of its own, this program started again, so that its processor time is
//! known. The loader is one thread of this process, the same for all subjects.

mod child;
mod echo;
mod inprocess;
mod loader;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{Timespec, poll};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::random::SplitMix;
use thalweg_measure::statistics::median;
use thalweg_server::config::SyncName;

use super::Experiment;
use super::journal::Scratch;
use crate::case::{Case, Goal, Settings};
use crate::report::{Report, percent};
use crate::runner::{Metric, Ran, Run, Subjects, Trial, subject, text};
use child::Work;
use loader::{Drove, Plan, drive};

pub(crate) use child::main as child;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "serve",
    shows: "the served exchange over loopback beside an echo, and in process; recovery",
    peers: &["tokio"],
    notes: "The echo decodes a frame's head and writes an answer.",
    cases,
};

const UNSYNCED: &str = "serve, not durable";
const REPORTS: &str = "serve, not durable, with reports";
const SYNCED: &str = "serve, durable";
const ECHO: &str = "bare echo";
const FILE: &str = "bare loop, prepared file + fdatasync";

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("server's processor time of a command", "ns"),
    Metric::lower("loader's processor time of a command", "ns"),
];
const OPEN_METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("sent late p99", "ns"),
];
const THROUGHPUT: usize = 0;
const SERVER: usize = 3;
const P50: usize = 0;

/// Commands of a saturating session without an answer.
const WINDOW: usize = 256;

/// Before a run counts, and how long it does.
type Times = [Duration; 2];

fn cases(settings: &Settings) -> Vec<Case> {
    let times = |span_ms: u64| {
        let ns = |ms: u64| Duration::from_nanos(settings.count(ms * 1_000_000));
        [ns(300), ns(span_ms)]
    };
    let tcp = [1, 8, 32].map(|sessions| {
        let plan = Plan {
            saturating: sessions,
            ..Plan::default()
        };
        let busy = Busy::default();
        let heading = format!("{WINDOW} commands of each session under way");
        let subjects = saturated(plan, times(1_000), &busy);
        let case = Case::new(
            format!("tcp/{sessions}"),
            heading,
            METRICS,
            subjects,
            || Ok(()),
        );
        let case = case.footer(move |trial, report| threads(&busy, trial, report));
        let goal = |ours, metric, least| Goal::ratio([ours, ECHO], metric, least);
        let case = case.goals([
            goal(UNSYNCED, THROUGHPUT, 0.5),
            Goal::shown([REPORTS, ECHO], THROUGHPUT),
            Goal::shown([SYNCED, ECHO], THROUGHPUT),
        ]);
        match sessions {
            1 => case.goal(Goal::shown([UNSYNCED, ECHO], SERVER)),
            _ => case.goals([
                goal(UNSYNCED, SERVER, 1.0 / 2.8),
                goal(REPORTS, SERVER, 1.0 / 3.8),
                goal(SYNCED, SERVER, 1.0 / 5.0),
            ]),
        }
    });
    let open = [("open-tcp/50k", 50_000), ("open-tcp/500k", 500_000)].map(|(name, per_s)| {
        let plan = Plan {
            scheduled: 8,
            per_s,
            ..Plan::default()
        };
        let heading = format!("{per_s} commands a second by 8 sessions, open loop");
        let case = Case::new(
            name,
            heading,
            OPEN_METRICS,
            opened(plan, times(2_000)),
            || Ok(()),
        );
        case.goals([
            Goal::ratio([UNSYNCED, ECHO], P50, 1.0 / 1.3),
            Goal::shown([SYNCED, FILE], P50),
        ])
    });
    let plan = Plan {
        saturating: 32,
        scheduled: 1,
        per_s: 200,
    };
    let heading = "a user with a command each 5 ms, beside 32 saturating sessions";
    let mut subjects = opened(plan, times(2_000));
    subjects.pop();
    let light = Case::new("light/32", heading, OPEN_METRICS, subjects, || Ok(()));
    let light = light.goals([
        Goal::at_most(UNSYNCED, P50, 0.8e6),
        Goal::shown([UNSYNCED, ECHO], P50),
    ]);
    let inside = inprocess::cases(settings);
    tcp.into_iter()
        .chain(open)
        .chain([light])
        .chain(inside)
        .collect()
}

/// How much of the time threads were on a processor, by run; the loader among them.
type Busy = Arc<Mutex<Vec<(&'static str, BTreeMap<String, f64>)>>>;

fn saturated(plan: Plan, times: Times, busy: &Busy) -> Subjects<()> {
    let way = |name: &'static str, work, wants_reports| {
        let busy = Arc::clone(busy);
        subject(name, move |(): &()| {
            let drove = drive(work, plan, wants_reports, times)?;
            let part = |ns: u64| ns as f64 / drove.ns.max(1) as f64;
            let spent = drove.spent.iter();
            let mut parts: BTreeMap<_, _> =
                spent.map(|(name, ns)| (name.clone(), part(*ns))).collect();
            parts.insert("loader".to_owned(), part(drove.loader_ns));
            let mut busy = busy.lock().unwrap_or_else(PoisonError::into_inner);
            busy.push((name, parts));
            let of_command = |ns: u64| ns as f64 / drove.answers.max(1) as f64;
            Ok(Run::of([
                drove.answers as f64 * 1e9 / drove.ns.max(1) as f64,
                drove.latency_ns.quantile(0.5) as f64,
                drove.latency_ns.quantile(0.99) as f64,
                of_command(drove.spent.values().sum()),
                of_command(drove.loader_ns),
            ]))
        })
    };
    vec![
        way(UNSYNCED, Work::Serve(SyncName::Never), false),
        way(REPORTS, Work::Serve(SyncName::Never), true),
        way(SYNCED, Work::Serve(SyncName::Always), false),
        way(ECHO, Work::Echo, false),
    ]
}

/// Says below a table how busy the threads of each subject were, in the median run, and which of
/// them was the limit.
fn threads(busy: &Busy, trial: &Trial, report: &mut Report) {
    /// A thread that is on a processor for more of the time is the limit.
    const BUSY: f64 = 0.9;
    let runs = busy.lock().unwrap_or_else(PoisonError::into_inner);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for series in &trial.series {
        let mut by_thread: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let of_it = runs.iter().filter(|(name, _)| *name == series.subject);
        for (name, part) in of_it.flat_map(|(_, parts)| parts) {
            by_thread.entry(name).or_default().push(*part);
        }
        let medians = by_thread.into_iter();
        let medians = medians.map(|(name, parts)| (name, median(&parts).unwrap_or(0.0)));
        let mut threads: Vec<(&str, f64)> = medians.filter(|(_, part)| *part >= 0.005).collect();
        threads.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let total: f64 = threads.iter().map(|(_, part)| part).sum();
        let shown = threads.iter();
        let shown = shown.map(|(name, part)| format!("{name} {}", percent(*part)));
        let shown: Vec<String> = shown.collect();
        let limit = match threads.first() {
            Some((name, part)) if *part >= BUSY => name,
            _ if total >= BUSY * cores as f64 => "the cores",
            _ => "waiting for each other",
        };
        let name = &series.subject;
        report.text += &format!("{name}: {}; limit: {limit}\n", shown.join(", "));
    }
}

fn opened(plan: Plan, times: Times) -> Subjects<()> {
    let way = |name, work| {
        subject(name, move |(): &()| {
            Ok(late(&drive(work, plan, false, times)?))
        })
    };
    vec![
        way(UNSYNCED, Work::Serve(SyncName::Never)),
        way(SYNCED, Work::Serve(SyncName::Always)),
        way(ECHO, Work::Echo),
        subject(FILE, move |(): &()| bare_loop(plan.per_s, times)),
    ]
}

fn late(drove: &Drove) -> Run {
    Run::of([
        drove.latency_ns.quantile(0.5) as f64,
        drove.latency_ns.quantile(0.99) as f64,
        drove.lateness_ns.quantile(0.99) as f64,
    ])
}

/// The least that any durable server does: takes what is due, writes it to a file that has its
/// length already, and waits for the disk.
fn bare_loop(per_s: u64, [warm_up, span]: Times) -> Ran {
    const RECORD_BYTES: usize = 80;
    const FILE_BYTES: usize = 64 << 20;
    let place = Scratch::new("bare-loop");
    let file: File = place.file()?;
    file.write_all_at(&vec![0; FILE_BYTES], 0).map_err(text)?;
    file.sync_all().map_err(text)?;
    let mut drove = Drove::default();
    let clock = Clock::global();
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let begin = clock.ticks();
    let (counts_from, end) = (begin + ticks(warm_up), begin + ticks(warm_up + span));
    let due_of = |number: u64| begin + clock.ticks_from_ns(number * 1_000_000_000 / per_s);
    let (mut next, mut at) = (0, 0);
    while due_of(next) < end {
        let now = clock.ticks();
        let first = next;
        while due_of(next) <= now {
            next += 1;
        }
        if next == first {
            pause(clock.ns(due_of(next).saturating_sub(now)))?;
            continue;
        }
        let group = vec![1; (next - first) as usize * RECORD_BYTES];
        if at + group.len() > FILE_BYTES {
            at = 0;
        }
        file.write_all_at(&group, at as u64).map_err(text)?;
        file.sync_data().map_err(text)?;
        at += group.len();
        let done = clock.ticks();
        for number in (first..next).filter(|number| due_of(*number) >= counts_from) {
            let due = due_of(number);
            drove.latency_ns.record(clock.ns(done - due));
            drove.lateness_ns.record(clock.ns(now - due));
        }
    }
    Ok(late(&drove))
}

fn pause(ns: u64) -> Result<(), String> {
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: ns.min(1_000_000) as i64,
    };
    poll(&mut [], Some(&limit)).map(drop).map_err(text)
}

const SYMBOL: SymbolId = SymbolId(1);

/// Returns the commands that add a pair without fees, and users with money in both currencies.
fn set_up(users: impl Iterator<Item = i64>) -> [Command; 2] {
    const MONEY: i64 = 1 << 50;
    let currencies = [CurrencyId(1), CurrencyId(2)];
    let symbol = SymbolSpec::pair(SYMBOL, currencies[0], currencies[1]);
    let money = || currencies.map(|currency| (currency, MONEY)).to_vec();
    let accounts = users.map(|uid| AccountSpec::new(UserId(uid), money()));
    let accounts: Vec<AccountSpec> = accounts.collect();
    [
        Command::AddSymbols(Arc::new([symbol])),
        Command::AddAccounts(accounts.into()),
    ]
}

/// The orders of one session, around a price: one in sixteen or so trades, the others come and go.
#[derive(Debug)]
struct Orders {
    user: UserId,
    next_id: i64,
    resting: VecDeque<OrderId>,
    random: SplitMix,
}

impl Orders {
    /// Orders that a session leaves in the book.
    const RESTING: usize = 16;
    const PRICE: i64 = 10_000;
    /// How far from it orders are, in ticks.
    const TICKS: u64 = 50;
    const LOTS: i64 = 5;

    fn of(user: i64) -> Self {
        Self {
            user: UserId(user),
            next_id: 0,
            resting: VecDeque::new(),
            random: SplitMix::new(user as u64),
        }
    }

    /// Cancels the oldest, if there is one.
    fn cancel(&mut self) -> Option<Command> {
        let order_id = self.resting.pop_front()?;
        Some(Command::cancel(self.user, SYMBOL, order_id))
    }

    /// Cancels the oldest once there are enough; else places another one, one in eight to trade.
    fn next(&mut self) -> Command {
        if self.resting.len() >= Self::RESTING
            && let Some(cancel) = self.cancel()
        {
            return cancel;
        }
        self.next_id += 1;
        let order_id = OrderId(self.next_id);
        let random = self.random.next_u64();
        let takes = random.is_multiple_of(8);
        let distance = 1 + ((random >> 8) % Self::TICKS) as i64;
        let is_bid = random >> 40 & 1 != 0;
        let action = if is_bid { Action::Bid } else { Action::Ask };
        let sign = if is_bid == takes { 1 } else { -1 };
        let terms = (Self::PRICE + sign * distance, Self::LOTS);
        let mut place = Place::limit((self.user, order_id), SYMBOL, action, terms);
        if takes {
            place.order_type = OrderType::Ioc;
        } else {
            self.resting.push_back(order_id);
        }
        Command::Place(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::{Events, ResultCode, Rules, State, apply};

    #[test]
    fn orders_rest_trade_and_are_cancelled() {
        let mut state = State::new(Rules::default());
        let mut events = Events::new();
        for command in set_up([1, 2].into_iter()) {
            let result = apply(&mut state, &command, &mut events);
            assert_eq!(result, ResultCode::Success);
        }
        let mut sessions = [1, 2].map(Orders::of);
        let (mut cancelled, mut traded) = (0, 0);
        for at in 0..2_000 {
            let command = sessions[at % 2].next();
            events.clear();
            let result = apply(&mut state, &command, &mut events);
            match command {
                Command::Place(place) => {
                    assert_eq!(result, ResultCode::Success);
                    traded += u32::from(place.order_type == OrderType::Ioc && !events.is_empty());
                }
                _ => cancelled += u32::from(result == ResultCode::Success),
            }
        }
        assert!(cancelled > 500 && traded > 20, "{cancelled} {traded}");
    }
}
