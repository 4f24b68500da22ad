//! The served exchange over loopback, beside an echo, the least that a server would do; and in this
//! process, without sockets.
//!
//! The server is a process of its own, this program started again, so that its processor time is
//! known. The loader is one thread of this process, and all subjects have the same.

pub(crate) mod child;
pub(crate) mod echo;
pub(crate) mod fairness;
pub(crate) mod http_echo;
pub(crate) mod inprocess;
pub(crate) mod loader;
pub(crate) mod session;

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_measure::random::SplitMix;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Subjects, subject};
use loader::{Plan, drive};

pub(crate) use child::main as child;
pub(crate) use fairness::EXPERIMENT as FAIRNESS;

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

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("sent late p99", "ns"),
    Metric::lower("server's processor time of a command", "ns"),
    Metric::lower("loader's processor time of a command", "ns"),
];
const THROUGHPUT: usize = 0;
const P50: usize = 1;
const SERVER: usize = 4;

/// A saturating session has this many commands without an answer.
pub(crate) const WINDOW: usize = 256;

fn cases(settings: &Settings) -> Vec<Case> {
    let time = |ms: u64| Duration::from_nanos(settings.count(ms * 1_000_000));
    let case = |name: &str, heading: &str, span_ms, saturating, scheduled, per_s| {
        let plan = Plan {
            saturating,
            scheduled,
            per_s,
            warm_up: time(300),
            span: time(span_ms),
        };
        Case::of(name, heading, METRICS, subjects(), plan)
    };
    let beside_echo = |ours, metric, least| Goal::ratio([ours, ECHO], metric, least);
    let saturated = |name, sessions| {
        let heading = "closed loop, 256 commands of each session under way";
        let case = case(name, heading, 1_000, sessions, 0, 0);
        case.goals([
            beside_echo(UNSYNCED, THROUGHPUT, 0.5),
            beside_echo(UNSYNCED, SERVER, 1.0 / 2.8),
            beside_echo(REPORTS, SERVER, 1.0 / 3.8),
            beside_echo(SYNCED, SERVER, 1.0 / 5.0),
        ])
    };
    let scheduled = |name, per_s| {
        let case = case(name, "open loop over 8 sessions", 2_000, 0, 8, per_s);
        case.goal(beside_echo(UNSYNCED, P50, 1.0 / 1.3))
    };
    let heading = "a user with a command each 5 ms, beside 32 saturating sessions";
    let light = case("light/32", heading, 2_000, 32, 1, 200);
    let [most, recovery] = inprocess::cases(settings);
    vec![
        saturated("tcp/1", 1),
        saturated("tcp/8", 8),
        saturated("tcp/32", 32),
        scheduled("open-tcp/50k", 50_000),
        scheduled("open-tcp/500k", 500_000),
        light.goal(Goal::at_most(UNSYNCED, P50, 0.8e6)),
        most,
        recovery,
    ]
}

fn subjects() -> Subjects<Plan> {
    let way = |name, work, wants_reports| {
        subject(name, move |plan: &Plan| drive(work, plan, wants_reports))
    };
    vec![
        way(UNSYNCED, child::UNSYNCED, false),
        way(REPORTS, child::UNSYNCED, true),
        way(SYNCED, child::SYNCED, false),
        way(ECHO, child::ECHO, false),
    ]
}

pub(crate) const SYMBOL: SymbolId = SymbolId(1);

/// Returns the commands that add a pair without fees, `SYMBOL`, and users with money in both
/// currencies.
pub fn set_up(users: impl Iterator<Item = i64>) -> [Command; 2] {
    const MONEY: i64 = 1 << 50;
    let currencies = [CurrencyId(1), CurrencyId(2)];
    let pair = SymbolSpec::pair(SYMBOL, currencies[0], currencies[1]);
    let money = || currencies.map(|currency| (currency, MONEY)).to_vec();
    let accounts = users.map(|uid| AccountSpec::new(UserId(uid), money()));
    let accounts: Vec<AccountSpec> = accounts.collect();
    [
        Command::AddSymbols([pair].into()),
        Command::AddAccounts(accounts.into()),
    ]
}

/// The orders of one session, around a price: about one in sixteen trades, the others are placed
/// and cancelled.
#[derive(Debug)]
pub struct Orders {
    user: UserId,
    next_id: i64,
    resting: VecDeque<OrderId>,
    random: SplitMix,
}

impl Orders {
    /// A session leaves this many orders in the book.
    const RESTING: usize = 16;
    const PRICE: i64 = 10_000;
    /// The distance of orders from the price is up to this many ticks.
    const TICKS: u64 = 50;
    const LOTS: i64 = 5;

    /// Makes the orders of a user.
    pub fn of(user: i64) -> Self {
        Self {
            user: UserId(user),
            next_id: 0,
            resting: VecDeque::new(),
            random: SplitMix::new(user as u64),
        }
    }

    /// Cancels the oldest order, if there is one.
    fn cancel(&mut self) -> Option<Command> {
        let order_id = self.resting.pop_front()?;
        Some(Command::cancel(self.user, SYMBOL, order_id))
    }

    /// Cancels the oldest order once there are enough; else places another one, one in eight to
    /// trade.
    pub fn command(&mut self) -> Command {
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
