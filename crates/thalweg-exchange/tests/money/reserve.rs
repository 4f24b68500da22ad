//! The ledger's totals are what they are said to be under other rules, too: where futures are not
//! covered, and by the reference.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg_exchange::{Action, Amend, Command, Event, Events, OrderType, Rules, State, apply};

use crate::money::hostile::{FEES_PER_LOT, OTHER_PAIR, everybody, everybody_for, opening};
use crate::money::market::{PAIR, order};
use crate::money::totals::{Kept, hold, kept, reserves_are_exact, totals_hold};

/// Nothing but margin: no quirk takes room.
const MARGIN: Rules = Rules {
    cover_futures: false,
    ..Rules::MENDED
};

/// A step that settlement forgets, or does twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Cancels,
    Trades,
    TradesTwice,
}

impl Fault {
    fn apply(self, state: &mut State, command: &Command, events: &mut Events) {
        let checked = state.risk.check(command);
        let result = state.matching.execute(command, checked, events);
        let has_trade = events
            .iter()
            .any(|event| matches!(event, Event::Trade { .. }));
        let times = match self {
            Self::None => 1,
            Self::Cancels => usize::from(!matches!(command, Command::Cancel { .. })),
            Self::Trades => usize::from(!has_trade),
            Self::TradesTwice => 1 + usize::from(has_trade),
        };
        (0..times).for_each(|_| state.risk.settle(command, result, events));
    }
}

fn holds(rules: Rules, commands: &[Command], fault: Fault) -> Result<(), TestCaseError> {
    let mut state = State::new(rules);
    let mut events = Events::new();
    for command in commands {
        fault.apply(&mut state, command, &mut events);
        totals_hold(&state)?;
    }
    Ok(())
}

/// Without quirks of the reference: positive prices and sizes.
fn plain(commands: Vec<Command>) -> Vec<Command> {
    let is_plain = |command: &Command| match command {
        // An ask must not be moved under its fee.
        Command::Move { price, .. } => *price > 14,
        Command::Place(place) => {
            let odd = place.order_type.is_budget() && place.action == Action::Bid;
            place.price > 10 && place.size > 0 && !odd
        }
        Command::PlaceConditional(order) => order.place.price > 10 && order.place.size > 0,
        Command::RemoveSymbol { .. } => false,
        _ => true,
    };
    commands.into_iter().filter(is_plain).collect()
}

proptest! {
    #[test]
    fn totals_are_what_their_definitions_say(commands in everybody_for(120, Just(FEES_PER_LOT))) {
        holds(MARGIN, &commands, Fault::None)?;
        holds(Rules::REFERENCE, &commands, Fault::None)?;
        let mut state = State::new(Rules::REFERENCE);
        for command in plain(commands) {
            apply(&mut state, &command, &mut Events::new());
            reserves_are_exact(&state)?;
        }
    }
}

/// Orders whose money, some times over, is all the room that there is.
fn at_the_end_of_room() -> impl Strategy<Value = Vec<Command>> {
    let terms = (
        prop::sample::select(OrderType::ALL.to_vec()),
        prop::sample::select(vec![Action::Ask, Action::Bid]),
        prop::bool::weighted(0.7),
        prop::sample::select(vec![PAIR, OTHER_PAIR]),
    );
    let numbers = (1..=4_i64, 0..9_i64, 1..12_i64, 1..100_i64);
    let order = (terms, numbers).prop_map(|(terms, (uid, id, size, part))| {
        let (order_type, action, is_below, symbol) = terms;
        let price = i64::MAX / 3 / size / 100 * part;
        let price = if is_below { -price } else { price };
        let place = order(uid, id, symbol, action, price, size);
        Command::Place(place.with_type(order_type))
    });
    prop::collection::vec(order, 1..8).prop_map(|orders| {
        let mut all = opening(1_000_000, FEES_PER_LOT);
        all.extend(orders);
        all
    })
}

/// An ask that grows step by step, is moved to where it may lose all the room that there is, and
/// is bought.
fn grown_and_moved() -> impl Strategy<Value = Vec<Command>> {
    let bought = prop::collection::vec(1..5_i64, 1..4);
    (2..6_i64, 1..100_i64, bought).prop_map(|(size, part, bought)| {
        let ask = order(1, 1, PAIR, Action::Ask, 50, 1);
        let amend = |size| Amend {
            uid: ask.uid,
            symbol: PAIR,
            order_id: ask.order_id,
            action: Action::Ask,
            reserve_price: ask.reserve_price,
            size_before: size - 1,
            price: ask.price,
            size,
        };
        let grow = (2..=size).map(|size| Command::Amend(amend(size).into()));
        let fall = Command::move_to(ask.uid, PAIR, ask.order_id, -(i64::MAX / 3 / 100 * part));
        let buy = |(id, size)| Command::Place(order(2, id, PAIR, Action::Bid, 50, size));
        let mut all = opening(1_000_000, FEES_PER_LOT);
        all.push(Command::Place(ask));
        all.extend(grow.chain([fall]).chain((2..).zip(bought).map(buy)));
        all
    })
}

proptest! {
    #[test]
    fn an_order_that_grew_takes_its_room_when_it_is_moved(commands in grown_and_moved()) {
        holds(Rules::REFERENCE, &commands, Fault::None)?;
    }

    #[test]
    fn the_bound_holds_where_room_ends(commands in at_the_end_of_room()) {
        holds(Rules::REFERENCE, &commands, Fault::None)?;
    }
}

fn runner() -> TestRunner {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(ProptestConfig::default(), random)
}

#[test]
fn a_fault_of_settlement_is_noticed() {
    for fault in [Fault::Cancels, Fault::Trades, Fault::TradesTwice] {
        for rules in [MARGIN, Rules::default()] {
            let mut runner = runner();
            let is_seen = (0..200).any(|_| {
                let stream = everybody_for(120, Just(FEES_PER_LOT));
                let commands = stream.new_tree(&mut runner).expect("a stream").current();
                let run = std::panic::AssertUnwindSafe(|| holds(rules, &commands, fault));
                !matches!(std::panic::catch_unwind(run), Ok(Ok(())))
            });
            assert!(is_seen, "{fault:?}");
        }
    }
}

/// The error of a total, and a fault in it.
type Off = (&'static str, fn(&mut Kept));

/// Each total that is off by one is noticed, and by what is said of that total.
#[test]
fn a_total_that_is_off_is_noticed() {
    let faults: [Off; 7] = [
        ("D and fees", |total| total.deposits += 1),
        ("D and fees", |total| total.fees += 1),
        ("N of", |total| total.negative += 1),
        ("R of", |total| total.reserved += 1),
        ("R of", |total| total.reserved -= 1),
        ("pool of", |total| total.pool += 1),
        ("pool of", |total| total.pool -= 1),
    ];
    let mut runner = runner();
    for _ in 0..20 {
        let commands = everybody(120)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        for rules in [MARGIN, Rules::default()] {
            let mut state = State::new(rules);
            for command in &commands {
                apply(&mut state, command, &mut Events::new());
            }
            for (what, fault) in faults {
                for at in 0..kept(&state).len() {
                    let mut totals = kept(&state);
                    hold(&state, &totals).expect("it holds");
                    fault(&mut totals[at]);
                    let error = hold(&state, &totals).expect_err("it is off").to_string();
                    assert!(error.contains(what), "{what}: {error}");
                }
            }
        }
    }
}

/// Under the reference's rules the sums may be off, but never the bound.
#[test]
fn a_bound_that_is_passed_is_noticed() {
    let mut state = State::new(Rules::REFERENCE);
    let commands = opening(i64::MAX / 8, FEES_PER_LOT);
    for command in &commands {
        apply(&mut state, command, &mut Events::new());
    }
    let room = |total: &Kept| i128::from(i64::MAX) - total.deposits;
    for (more, is_inside) in [(0, true), (1, false)] {
        let mut totals = kept(&state);
        totals[0].reserved = room(&totals[0]) + more;
        let held = hold(&state, &totals);
        assert_eq!(held.is_ok(), is_inside, "{held:?}");
    }
    let mut totals = kept(&state);
    totals[0].deposits = i128::from(i64::MAX / 9);
    let error = hold(&state, &totals)
        .expect_err("a balance is above it")
        .to_string();
    assert!(error.contains(&(i64::MAX / 8).to_string()), "{error}");
}
