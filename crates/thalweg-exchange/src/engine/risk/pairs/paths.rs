//! Trades that are settled as they happen, after the book in 64 bits, and in 128, come to the same.
//!
//! Equal commands, and equal events, are settled on three states, on one by each path. All that the
//! states show is compared after every step.
//!
//! *Streams* are commands with amounts up to the limits. The hold of an order fits, so no sum of a
//! real command's trades leaves 64 bits: there the 128-bit path is taken for budget orders,
//! balances that are not near or below zero, users who are gone, stop orders and refills. *Events
//! made by hand* have values beyond 64 bits, which fees and rebates bring back.

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
enum SettlementPath {
    /// Trades on the fast path as they happen.
    AtOnce,
    /// All after the book.
    InParts,
    /// All after the book, in 128 bits.
    Exactly,
}

const ALL: [SettlementPath; 3] = [
    SettlementPath::AtOnce,
    SettlementPath::InParts,
    SettlementPath::Exactly,
];

/// A fault that is put into the 64-bit paths.
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

/// How many settlements of a side took which path.
#[derive(Clone, Copy, Debug, Default)]
struct PathCounts {
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
    static PATH: Cell<SettlementPath> = const { Cell::new(SettlementPath::AtOnce) };
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    /// By the taker's side.
    static COUNTS: Cell<[PathCounts; 2]> = Cell::default();
}

/// Returns whether 64 bits are not used.
pub(in crate::engine::risk) fn is_exact() -> bool {
    PATH.get() == SettlementPath::Exactly
}

/// Executes a command: where trades are not booked as they happen, part by part.
fn execute(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    match PATH.get() {
        SettlementPath::AtOnce => apply(state, command, events),
        _ => apply_in_parts(state, command, events, || {}),
    }
}

fn note(side: usize, count: impl FnOnce(&mut PathCounts)) {
    let mut counts = COUNTS.get();
    count(&mut counts[side]);
    COUNTS.set(counts);
}

pub(super) fn note_whole(buys: bool) {
    note(usize::from(buys), |counts| counts.whole += 1);
}

/// Notes `trades` trades that were booked as they happened; returns whether they are all there is.
pub(super) fn note_at_once(buys: bool, trades: usize, is_all: bool) -> bool {
    if trades > 0 {
        note(usize::from(buys), |counts| match is_all {
            true => counts.at_once += 1,
            false => counts.begun += 1,
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
        note(taker_action as usize, |counts| {
            let path = match (booked.trades, events.get(booked.trades)) {
                (0, _) => &mut counts.none,
                (_, None) => &mut counts.makers,
                (_, Some(Event::Trade { .. })) => &mut counts.some,
                _ => &mut counts.other,
            };
            *path += 1;
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

    /// Does the same to all, each by its path; says where they differ, what was done included.
    fn step<T: PartialEq + Debug>(
        &mut self,
        mut step: impl FnMut(&mut State) -> T,
    ) -> Result<(), String> {
        let done = ALL.map(|path| {
            PATH.set(path);
            step(&mut self.0[path as usize])
        });
        PATH.set(SettlementPath::AtOnce);
        let [exact, others @ ..] = [2, 0, 1].map(|path| {
            let state = &self.0[path];
            let shown = (state.risk.users(), state.risk.currencies());
            (ALL[path], &done[path], shown, state_text_hash(state))
        });
        for other in others {
            if (other.1, &other.2, other.3) != (exact.1, &exact.2, exact.3) {
                return Err(format!("{other:?}, not {exact:?}"));
            }
        }
        Ok(())
    }
}

/// Runs cases of both kinds until one differs or panics. Returns how often each
/// kind took which path, and how many cases differed or panicked.
fn run_all(cases: usize, fault: Fault) -> ([[PathCounts; 2]; 2], u32) {
    let mut runner = TestRunner::deterministic();
    let mut found = 0;
    let mut counts = [[PathCounts::default(); 2]; 2];
    for _ in 0..cases {
        let stream = streams::cases().new_tree(&mut runner).unwrap().current();
        let made = made::cases().new_tree(&mut runner).unwrap().current();
        FAULT.set(fault);
        COUNTS.set(counts[0]);
        let first = catch_unwind(AssertUnwindSafe(|| streams::run(&stream)));
        counts[0] = COUNTS.replace(counts[1]);
        let second = catch_unwind(AssertUnwindSafe(|| made::run(&made)));
        counts[1] = COUNTS.get();
        PATH.set(SettlementPath::AtOnce);
        FAULT.set(Fault::None);
        found += u32::from(!matches!(first, Ok(Ok(()))));
        found += u32::from(!matches!(second, Ok(Ok(()))));
        if found > 0 {
            break;
        }
    }
    (counts, found)
}

proptest! {
    #[test]
    fn streams_settle_the_same_by_every_path(case in streams::cases()) {
        prop_assert_eq!(streams::run(&case), Ok(()));
    }

    #[test]
    fn made_events_settle_the_same_by_every_path(case in made::cases()) {
        prop_assert_eq!(made::run(&case), Ok(()));
    }
}

/// The cases take every path often.
#[test]
fn every_path_is_taken() {
    let ([streams, made], found) = run_all(1_000, Fault::None);
    assert_eq!(found, 0);
    for counts in streams {
        let all = counts
            .none
            .min(counts.some)
            .min(counts.other)
            .min(counts.makers);
        assert!(counts.whole > 1_000 && counts.at_once > 300, "{counts:?}");
        assert!(all.min(counts.begun) > 60, "{counts:?}");
    }
    for counts in made {
        let all = counts.whole.min(counts.none).min(counts.some);
        assert!(all > 20, "{counts:?}");
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
