//! The slowest single commands where a book grows, where its window moves, and where much goes at
//! once.
//!
//! A run executes the same commands on a new state several times, and takes for each command the
//! least time of all: what the machine adds now and then is gone, and what the command costs each
//! time, its page faults among it, stays. Tables take the same secrets each time, so that nothing
//! else differs.

use std::hint::black_box;

use counts::venue::{BASE, QUOTE, RESERVE, SYMBOL, behind, place, setup};
use thalweg_exchange::matching::Matching;
use thalweg_exchange::{
    Action, Command, Events, OrderId, ResultCode, Rules, State, SymbolId, SymbolSpec, SymbolType,
    UserId, apply, repeat_secrets,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::random::SplitMix;

use super::mixes::Resting;
use super::{Boxed, Session};
use crate::experiment::progress_note;
use crate::runner::{Metric, Run, subject};

/// Each of a command, in the order of their cost.
pub(super) const METRICS: &[Metric] = &[
    Metric::lower("slowest", "ns"),
    Metric::lower("slowest_10th", "ns"),
    Metric::lower("slowest_1000th", "ns"),
    Metric::lower("mean", "ns"),
];
/// Executions of a run.
const EXECUTIONS: usize = 5;
/// Users of all cases.
const USERS: i64 = 1_000;

/// Commands of which each is timed.
#[derive(Debug)]
pub(super) struct Tail {
    before: Vec<Command>,
    commands: Vec<Command>,
    /// Orders that rest at most.
    orders: usize,
}

impl Tail {
    /// Orders that rest, on so many levels a side.
    pub(super) fn growing(orders: usize, levels: i64) -> Self {
        let flow = Resting::plain(orders, USERS, levels).flow(0);
        Self {
            before: flow.setup,
            commands: flow.prefill,
            orders,
        }
    }

    /// Bids on 4,000 levels, then on 4,000 levels far above them, and so on: each time the window
    /// follows, full of levels before and after.
    pub(super) fn rising(jumps: i64) -> Self {
        const LEVELS: i64 = 4_000;
        let mut random = SplitMix::new(3);
        let orders = (0..jumps * 5 * LEVELS).map(|at| {
            let (jump, order) = (at / (5 * LEVELS), at % (5 * LEVELS));
            let level = match order {
                0..LEVELS => order,
                _ => random.below(LEVELS as u64) as i64,
            };
            let price = 1 + jump * 3 * LEVELS + level;
            let uid = UserId(1 + at % USERS);
            Command::Place(place(OrderId(at), uid, Action::Bid, (price, 1)))
        });
        let commands: Vec<Command> = orders.collect();
        assert!(jumps * 3 * LEVELS < RESERVE, "money is held for less");
        Self {
            before: setup(SymbolType::CurrencyPair, USERS),
            orders: commands.len(),
            commands,
        }
    }

    /// An auction begins in a book of so many orders, collects some and ends. Its levels fill the
    /// window.
    pub(super) fn auction(orders: usize) -> Self {
        let Self {
            mut before,
            commands,
            ..
        } = Self::growing(orders, 2_000);
        before.extend(commands);
        let symbol = SYMBOL;
        let mut commands = vec![Command::StartAuction { symbol }];
        let bids = (0..1_000).map(|at| {
            let terms = (behind(Action::Bid, 1 + at % 100), 1);
            Command::Place(place(OrderId(i64::MAX - at), UserId(1), Action::Bid, terms))
        });
        commands.extend(bids.clone().take(500));
        commands.push(Command::Uncross {
            symbol,
            reference: None,
        });
        commands.extend(bids.skip(500));
        Self {
            before,
            commands,
            orders,
        }
    }

    /// Users who come one by one.
    pub(super) fn users(users: usize) -> Self {
        let user = |uid| Command::AddUser { uid: UserId(uid) };
        Self {
            before: Vec::new(),
            commands: (0..users as i64).map(user).collect(),
            orders: 0,
        }
    }

    /// Symbols that are added one by one.
    pub(super) fn symbols(symbols: i32) -> Self {
        let add = |id| {
            let spec = SymbolSpec::pair(SymbolId(id), BASE, QUOTE);
            Command::AddSymbols([spec].into())
        };
        Self {
            before: Vec::new(),
            commands: (0..symbols).map(add).collect(),
            orders: 0,
        }
    }

    /// One command after so many orders.
    pub(super) fn cancelling(orders: usize, uid: Option<UserId>) -> Self {
        let Self {
            mut before,
            commands,
            ..
        } = Self::growing(orders, 500);
        before.extend(commands);
        let all = Command::CancelAll { uid, symbol: None };
        // The second of one user finds his orders without a look at others'.
        let again = Command::Place(place(
            OrderId(i64::MAX),
            UserId(1),
            Action::Ask,
            (behind(Action::Ask, 1), 1),
        ));
        Self {
            before,
            commands: vec![all.clone(), again, all],
            orders,
        }
    }
}

impl Session<'_> {
    /// The slowest commands of runs that are meant to have some.
    pub(super) fn tails(&mut self) {
        const MILLION: usize = 1_000_000;
        let orders = self.count([2 * MILLION, MILLION / 4]);
        let resting = orders / 2;
        let one = Some(thalweg_exchange::UserId(1));
        type Load = Box<dyn FnOnce() -> Tail>;
        let cases: [(&str, &str, Load); 8] = [
            (
                "tails/growing",
                "2,000,000 orders come to rest on 500 levels a side",
                Box::new(move || Tail::growing(orders, 500)),
            ),
            (
                "tails/growing_far",
                "the same on 100,000 levels a side",
                Box::new(move || Tail::growing(orders, 100_000)),
            ),
            (
                "tails/window",
                "bids on 4,000 levels, then on 4,000 far above them, and so on",
                Box::new(|| Tail::rising(20)),
            ),
            (
                "tails/auction",
                "an auction in a book of 1,000,000 orders on 2,000 levels a side",
                Box::new(move || Tail::auction(resting)),
            ),
            (
                "tails/users",
                "1,000,000 users come one by one",
                Box::new(move || Tail::users(resting)),
            ),
            (
                "tails/symbols",
                "10,000 symbols are added one by one",
                Box::new(|| Tail::symbols(10_000)),
            ),
            (
                "tails/cancel_all",
                "1,000,000 orders of all users cancelled by one command",
                Box::new(move || Tail::cancelling(resting, None)),
            ),
            (
                "tails/cancel_all_of_one",
                "the first time that somebody asks for one of 1,000 users' orders among 1,000,000",
                Box::new(move || Tail::cancelling(resting, one)),
            ),
        ];
        for (case, heading, load) in cases {
            let metrics = |_: &Tail| METRICS;
            self.case((case, heading), metrics, &subjects(), || Ok(load()));
        }
    }
}

const NEW: &str = "thalweg all parts";

/// On a new state, and on one whose books have room for all orders.
fn subjects() -> Boxed<Tail> {
    let roomy = format!("{NEW}, with room for all orders");
    vec![
        subject(NEW, |tail| Ok(run(NEW, tail, || State::new(Rules::MENDED)))),
        subject(roomy.clone(), move |tail: &Tail| {
            let state = || State {
                matching: Matching::with_capacity(Rules::MENDED, tail.orders),
                ..State::new(Rules::MENDED)
            };
            Ok(run(&roomy, tail, state))
        }),
    ]
}

fn run(name: &str, tail: &Tail, state: impl Fn() -> State) -> Run {
    let mut least = vec![u64::MAX; tail.commands.len()];
    for _ in 0..EXECUTIONS {
        execute(state(), tail, &mut least);
    }
    let clock = Clock::global();
    let mut by_cost: Vec<(u64, usize)> = (0..)
        .zip(least)
        .map(|(at, ticks)| (clock.ns(ticks), at))
        .collect();
    let mean = by_cost.iter().map(|(ns, _)| *ns as f64).sum::<f64>() / by_cost.len() as f64;
    by_cost.sort_unstable_by(|one, other| other.cmp(one));
    let slowest = by_cost
        .iter()
        .take(5)
        .map(|(ns, at)| format!("{ns} ns (command {at})"));
    let slowest = slowest.collect::<Vec<_>>().join(", ");
    progress_note(&format!("{name}: slowest {slowest}"));
    let of = |rank: usize| by_cost[(rank - 1).min(by_cost.len() - 1)].0 as f64;
    Run::of(vec![of(1), of(10), of(1_000), mean])
}

/// Executes everything, and keeps the least ticks of each command.
fn execute(mut state: State, tail: &Tail, least: &mut [u64]) {
    // For this thread, which belongs to the run.
    repeat_secrets(1);
    let mut events = Events::with_capacity(1024);
    for command in &tail.before {
        let code = apply(&mut state, command, &mut events);
        assert_eq!(code, ResultCode::Success, "wrong result of {command:?}");
    }
    let clock = Clock::global();
    for (command, least) in tail.commands.iter().zip(least) {
        let begin = clock.ticks();
        let code = apply(&mut state, black_box(command), &mut events);
        let took = clock.ticks().saturating_sub(begin);
        assert_eq!(code, ResultCode::Success, "wrong result of {command:?}");
        *least = took.min(*least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_runs_and_orders_its_costs() {
        let one = Some(UserId(1));
        let tails = [
            Tail::growing(3_000, 500),
            Tail::rising(2),
            Tail::auction(3_000),
            Tail::users(3_000),
            Tail::symbols(3_000),
            Tail::cancelling(3_000, None),
            Tail::cancelling(3_000, one),
        ];
        for tail in &tails {
            for subject in subjects() {
                let values = subject.run(tail).unwrap().values;
                assert!(values[..3].is_sorted_by(|one, next| one >= next));
                assert!(values[3] > 0.0 && values[0] >= values[3], "{values:?}");
            }
        }
    }
}
