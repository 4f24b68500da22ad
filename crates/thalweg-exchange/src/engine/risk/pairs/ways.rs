//! Trades that are settled as they happen, after the book in 64 bits, and in 128, come to the same.
//!
//! Equal commands, and equal events, are settled on three states, on one in each way. All that the
//! states show is compared after every step.
//!
//! *Streams* are commands with amounts up to the limits. The hold of an order fits, so no sum of a
//! real command's trades leaves 64 bits: there the 128-bit way is taken for budget orders, balances
//! that are not near or below zero, users who are gone, stop orders and refills. *Events made by
//! hand* have values beyond 64 bits, which fees and rebates bring back.

mod made;
mod streams;

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::Booked;
use crate::event::Event;
use crate::report::state_text::state_text_hash;
use crate::{Action, Command, Events, ResultCode, State, apply, apply_in_parts};

const SIDES: [Action; 2] = [Action::Ask, Action::Bid];

/// How trades are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Trades on the fast path as they happen.
    AtOnce,
    /// All after the book.
    InParts,
    /// All after the book, in 128 bits.
    Exactly,
}

const ALL: [Way; 3] = [Way::AtOnce, Way::InParts, Way::Exactly];

/// A fault that is put into the 64-bit ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The sum of the cost wraps around.
    Wraps,
    /// The cost goes through a float: wrong above 2⁵³ only.
    Rounds,
    /// Where 128 bits take over, the cost of what was booked before is lost.
    ForgetsCost,
    /// There, it is lost that the last trade finished the taker.
    ForgetsEnd,
    /// The last of the trades that are booked as they happen is booked once more with the rest.
    PaysAgain,
    /// Trades behind them are not looked at.
    Truncated,
}

/// How many settlements of a side went which way.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    /// All in 64 bits.
    whole: u32,
    /// The first trade did not fit.
    none: u32,
    /// Some trades in 64 bits, a later one did not fit.
    some: u32,
    /// The trades, and what came behind them was no trade.
    other: u32,
    /// All makers, but not the taker.
    makers: u32,
    /// All as they happened.
    at_once: u32,
    /// Some as they happened, and then something else.
    begun: u32,
}

thread_local! {
    static WAY: Cell<Way> = const { Cell::new(Way::AtOnce) };
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    /// By the taker's side.
    static WAYS: Cell<[Ways; 2]> = Cell::default();
}

/// Whether 64 bits are not used.
pub(in crate::engine::risk) fn is_exact() -> bool {
    WAY.get() == Way::Exactly
}

/// Executes a command: where trades are not booked as they happen, part by part.
fn execute(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    match WAY.get() {
        Way::AtOnce => apply(state, command, events),
        _ => apply_in_parts(state, command, events, || {}),
    }
}

fn note(side: usize, count: impl FnOnce(&mut Ways)) {
    let mut ways = WAYS.get();
    count(&mut ways[side]);
    WAYS.set(ways);
}

pub(super) fn note_whole(buys: bool) {
    note(usize::from(buys), |ways| ways.whole += 1);
}

/// Notes `trades` trades that were booked as they happened; returns whether they are all there is.
pub(super) fn note_at_once(buys: bool, trades: usize, is_all: bool) -> bool {
    if trades > 0 {
        note(usize::from(buys), |ways| match is_all {
            true => ways.at_once += 1,
            false => ways.begun += 1,
        });
    }
    is_all || FAULT.get() == Fault::Truncated
}

/// Returns how many trades were booked as they happened, less one that the fault forgets.
pub(super) fn booked(trades: usize) -> usize {
    trades - usize::from(trades > 0 && FAULT.get() == Fault::PaysAgain)
}

/// Gives what is taken up, less what the fault loses.
pub(super) fn note_rest(booked: &Booked, events: &[Event]) -> Booked {
    if let Event::Trade { taker_action, .. } = events[0] {
        note(taker_action as usize, |ways| {
            let way = match (booked.trades, events.get(booked.trades)) {
                (0, _) => &mut ways.none,
                (_, None) => &mut ways.makers,
                (_, Some(Event::Trade { .. })) => &mut ways.some,
                _ => &mut ways.other,
            };
            *way += 1;
        });
    }
    let (cost, is_completed) = match FAULT.get() {
        Fault::ForgetsCost => (0, booked.is_completed),
        Fault::ForgetsEnd => (booked.cost, false),
        _ => (booked.cost, booked.is_completed),
    };
    Booked {
        cost,
        is_completed,
        ..*booked
    }
}

pub(super) fn sum(right: Option<i64>, cost: i64, value: i64) -> Option<i64> {
    let wraps = FAULT.get() == Fault::Wraps;
    right.or_else(|| wraps.then(|| cost.wrapping_add(value)))
}

pub(super) fn rounded(cost: i64) -> i64 {
    if FAULT.get() == Fault::Rounds {
        cost as f64 as i64
    } else {
        cost
    }
}

/// States that should be one.
struct Alike([State; 3]);

impl Alike {
    fn new(state: &State) -> Self {
        Self(ALL.map(|_| state.clone()))
    }

    /// Does the same to all, each in its way; says where they differ, what was done included.
    fn step<T: PartialEq + Debug>(
        &mut self,
        mut step: impl FnMut(&mut State) -> T,
    ) -> Result<(), String> {
        let done = ALL.map(|way| {
            WAY.set(way);
            step(&mut self.0[way as usize])
        });
        WAY.set(Way::AtOnce);
        let [exact, others @ ..] = [2, 0, 1].map(|way| {
            let state = &self.0[way];
            let shown = (state.risk.users(), state.risk.currencies());
            (ALL[way], &done[way], shown, state_text_hash(state))
        });
        for other in others {
            if (other.1, &other.2, other.3) != (exact.1, &exact.2, exact.3) {
                return Err(format!("{other:?}, not {exact:?}"));
            }
        }
        Ok(())
    }
}

/// Runs cases of both kinds until one differs or panics. Returns the ways taken by each kind, and
/// how many cases differed or panicked.
fn run_all(cases: usize, fault: Fault) -> ([[Ways; 2]; 2], u32) {
    let mut runner = TestRunner::deterministic();
    let mut found = 0;
    let mut ways = [[Ways::default(); 2]; 2];
    for _ in 0..cases {
        let stream = streams::cases().new_tree(&mut runner).unwrap().current();
        let made = made::cases().new_tree(&mut runner).unwrap().current();
        FAULT.set(fault);
        WAYS.set(ways[0]);
        let first = catch_unwind(AssertUnwindSafe(|| streams::run(&stream)));
        ways[0] = WAYS.replace(ways[1]);
        let second = catch_unwind(AssertUnwindSafe(|| made::run(&made)));
        ways[1] = WAYS.get();
        WAY.set(Way::AtOnce);
        FAULT.set(Fault::None);
        found += u32::from(!matches!(first, Ok(Ok(()))));
        found += u32::from(!matches!(second, Ok(Ok(()))));
        if found > 0 {
            break;
        }
    }
    (ways, found)
}

proptest! {
    #[test]
    fn streams_settle_the_same_every_way(case in streams::cases()) {
        prop_assert_eq!(streams::run(&case), Ok(()));
    }

    #[test]
    fn made_events_settle_the_same_every_way(case in made::cases()) {
        prop_assert_eq!(made::run(&case), Ok(()));
    }
}

/// The cases take every way often.
#[test]
fn every_way_is_taken() {
    let ([streams, made], found) = run_all(1_000, Fault::None);
    assert_eq!(found, 0);
    for ways in streams {
        let all = ways.none.min(ways.some).min(ways.other).min(ways.makers);
        assert!(ways.whole > 1_000 && ways.at_once > 300, "{ways:?}");
        assert!(all.min(ways.begun) > 60, "{ways:?}");
    }
    for ways in made {
        let all = ways.whole.min(ways.none).min(ways.some);
        assert!(all > 20, "{ways:?}");
    }
}

/// The properties above can fail.
#[test]
fn faults_in_64_bits_are_found() {
    for fault in [
        Fault::Wraps,
        Fault::Rounds,
        Fault::ForgetsCost,
        Fault::ForgetsEnd,
        Fault::PaysAgain,
        Fault::Truncated,
    ] {
        let (_, found) = run_all(600, fault);
        assert!(found > 0, "{fault:?}");
    }
}
