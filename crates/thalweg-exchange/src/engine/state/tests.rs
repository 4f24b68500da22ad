use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::command::OrderType;
use crate::command::{AccountSpec, OrderFlags, Place, SymbolSpec, SymbolType};
use crate::ids::CurrencyId;
use crate::report::state_text::state_text_hash;

const SYMBOLS: [SymbolId; 2] = [SymbolId(1), SymbolId(2)];

fn of(symbols: impl IntoIterator<Item = SymbolId>) -> State {
    let (mut state, mut events) = (State::default(), Events::new());
    let pair = |symbol| SymbolSpec::pair(symbol, CurrencyId(1), CurrencyId(2));
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 1_000), (CurrencyId(2), 1_000_000)],
    };
    for command in [
        Command::AddSymbols(symbols.into_iter().map(pair).collect()),
        Command::AddAccounts([1, 2].map(account).into()),
    ] {
        assert_eq!(
            apply(&mut state, &command, &mut events),
            ResultCode::Success
        );
    }
    state
}

/// Books may lie in other slots than their symbols do where a state was put together of parts.
#[test]
fn a_book_in_another_slot_than_its_symbol_is_found() {
    let risk = of(SYMBOLS).risk;
    let matching = of([SYMBOLS[1], SYMBOLS[0]]).matching;
    let mut at_once = State { risk, matching };
    let mut in_parts = at_once.clone();
    let ids = |uid: i64, order: i64| (UserId(uid), OrderId(order));
    let (mut some, mut same) = (Events::new(), Events::new());
    for (order, symbol) in (0..40).map(|order| (order, SYMBOLS[order as usize % 2])) {
        let (uid, order_id) = ids(1 + order % 2, order);
        let action = if order % 3 == 0 {
            Action::Bid
        } else {
            Action::Ask
        };
        let terms = (100 + order % 5 - 2 * i64::from(order % 3 == 0), 3);
        for command in [
            Command::Place(Place::limit((uid, order_id), symbol, action, terms)),
            Command::move_to(uid, symbol, order_id, 104),
            Command::reduce(uid, symbol, order_id, 1),
            Command::cancel(uid, symbol, OrderId(order - 6)),
        ] {
            let result = apply(&mut at_once, &command, &mut some);
            let expected = in_parts.apply_slow(&command, &mut same);
            assert_eq!((result, &some), (expected, &same), "{command:?}");
            assert_eq!(
                state_text_hash(&at_once),
                state_text_hash(&in_parts),
                "{command:?}"
            );
        }
    }
}

/// A pair and futures, with users who have enough for some orders.
fn market(rules: Rules) -> State {
    let (mut state, mut events) = (State::new(rules), Events::new());
    let pair = SymbolSpec::pair(SYMBOLS[0], CurrencyId(1), CurrencyId(2))
        .with_fees(2, 1)
        .with_margins(20, 30);
    let futures = SymbolSpec {
        id: SYMBOLS[1],
        symbol_type: SymbolType::Futures,
        ..pair
    };
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 60), (CurrencyId(2), 3_000)],
    };
    for command in [
        Command::AddSymbols([pair, futures].into()),
        Command::AddAccounts([1, 2, 3, 4].map(account).into()),
        Command::set_price_band(SYMBOLS[1], 1, 200),
    ] {
        apply(&mut state, &command, &mut events);
    }
    state
}

/// The kind of command, its user, its symbol, its order, a price and lots.
type Step = (u8, i64, usize, i64, i64, i64);

fn step() -> impl Strategy<Value = Step> {
    (
        0_u8..12,
        1_i64..5,
        0_usize..2,
        0_i64..12,
        95_i64..106,
        0_i64..9,
    )
}

fn command((kind, uid, symbol, order, price, lots): Step) -> Command {
    let (uid, symbol, order_id) = (UserId(uid), SYMBOLS[symbol], OrderId(order));
    let action = if lots % 2 == 0 {
        Action::Bid
    } else {
        Action::Ask
    };
    let order_type = match kind {
        0 => OrderType::Ioc,
        1 => OrderType::Fok,
        _ => OrderType::Gtc,
    };
    match kind {
        0..7 => Command::Place(
            Place::limit((uid, order_id), symbol, action, (price, lots))
                .with_type(order_type)
                .with_reserve(price + lots % 3)
                .with_flags(OrderFlags::NONE),
        ),
        7 | 8 => Command::move_to(uid, symbol, order_id, price),
        9 | 10 => Command::cancel(uid, symbol, order_id),
        _ => Command::reduce(uid, symbol, order_id, lots),
    }
}

/// Runs the same at once and in parts. `fault`: the latter take another order for the fifth when
/// it is cancelled.
fn compare(steps: &[Step], rules: Rules, fault: bool) -> Result<usize, TestCaseError> {
    let mut at_once = market(rules);
    let mut in_parts = at_once.clone();
    let (mut some, mut same) = (Events::new(), Events::new());
    let mut trades = 0;
    for &step in steps {
        let mut command = command(step);
        let result = apply(&mut at_once, &command, &mut some);
        if let (Command::Cancel { order_id, .. }, true) = (&mut command, fault) {
            order_id.0 += i64::from(order_id.0 == 5);
        }
        let expected = in_parts.apply_slow(&command, &mut same);
        prop_assert_eq!((result, &some), (expected, &same), "{:?}", command);
        prop_assert_eq!(at_once.risk.users(), in_parts.risk.users());
        prop_assert_eq!(at_once.risk.currencies(), in_parts.risk.currencies());
        prop_assert_eq!(state_text_hash(&at_once), state_text_hash(&in_parts));
        trades += some.len();
    }
    Ok(trades)
}

proptest! {
    /// In pairs and in futures, under both sets of rules.
    #[test]
    fn the_fast_path_comes_to_what_the_parts_do(
        steps in prop::collection::vec(step(), 0..150),
        is_mended in any::<bool>(),
    ) {
        let rules = [Rules::REFERENCE, Rules::default()][usize::from(is_mended)];
        compare(&steps, rules, false)?;
    }
}

/// The property above can fail, and things happen in it.
#[test]
fn a_fault_in_parts_is_found() {
    let mut runner = TestRunner::deterministic();
    let (mut events, mut found) = (0, 0);
    for _ in 0..40 {
        let steps = prop::collection::vec(step(), 150);
        let steps = steps.new_tree(&mut runner).unwrap().current();
        events += compare(&steps, Rules::default(), false).unwrap();
        found += usize::from(compare(&steps, Rules::default(), true).is_err());
    }
    assert!(
        events > 1_000 && found > 10,
        "{events} events, {found} found"
    );
}

/// Settlement in parts finds owners by hints, which are no part of what happened.
#[test]
fn events_bring_the_hint_of_the_order_back() {
    let mut matching = of(SYMBOLS).matching;
    let mut events = Events::with_capacity(4);
    let symbol = SYMBOLS[0];
    let mut execute = |command: &Command, hint| {
        let checked = ResultCode::ValidForMatchingEngine;
        matching.execute_for(command, checked, UserHint(hint), &mut events);
        events.clone()
    };
    let place = |order, action, size| {
        let order = (UserId(order), OrderId(order));
        Place::limit(order, symbol, action, (100, size))
    };
    execute(&Command::Place(place(1, Action::Ask, 5)), 77);
    execute(&Command::Place(place(2, Action::Ask, 5)), 78);
    // The reject is put before the trades, whose hints go along.
    let taker = place(3, Action::Bid, 11).with_type(OrderType::Ioc);
    let taken = execute(&Command::Place(taker), 6);
    assert_eq!(taken.len(), 3);
    assert_eq!([1, 2].map(|at| taken.hints().at(at).0), [77, 78]);
    let same: Events = taken.iter().copied().collect();
    assert_eq!(same, taken);
    execute(&Command::Place(place(4, Action::Ask, 5)), 79);
    for by in [2, i64::MAX] {
        let (uid, order_id) = (UserId(4), OrderId(4));
        let reduce = Command::reduce(uid, symbol, order_id, by);
        assert_eq!(execute(&reduce, 5).hints().at(0).0, 79);
    }
}
