//! A symbol that is removed is gone, and its id is free for another.

use proptest::prelude::*;
use thalweg_exchange::{
    Action, Command, CurrencyId, Events, OrderId, Place, ResultCode, Rules, State, SymbolId,
    SymbolSpec, SymbolType, UserId, apply,
};

use crate::operations::stream::market;
use crate::operations::twin::{Twin, lines};
use crate::operations::{commands, money_is_conserved, run};

proptest! {
    #[test]
    fn a_symbol_that_comes_again_is_another_symbol((rules, commands) in market(200)) {
        let mut state = State::new(rules);
        let mut twin = Twin::new(rules);
        let mut events = Events::new();
        for command in &commands {
            let result = apply(&mut state, command, &mut events);
            money_is_conserved(&state, command)?;
            let expected = twin.apply(command);
            prop_assert_eq!((result, events.to_vec()), expected, "{:?}", command);
            prop_assert_eq!(lines(&state, |_| true), twin.lines(), "{:?}", command);
            if let (Command::RemoveSymbol { symbol }, ResultCode::Success) = (command, result) {
                prop_assert!(state.matching.book(*symbol).is_none());
                prop_assert_eq!(state.risk.limits(*symbol), None);
                let users = state.risk.users();
                prop_assert!(users.iter().all(|user| user.position(*symbol).is_none()));
            }
        }
    }
}

#[test]
fn the_streams_remove_symbols_and_add_them_again() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut removed, mut refused, mut again) = (0, 0, 0);
    for _ in 0..200 {
        let tree = market(250).new_tree(&mut runner).expect("a stream");
        let (rules, commands) = tree.current();
        let mut state = State::new(rules);
        let mut gone = Vec::new();
        for command in &commands {
            let result = run(&mut state, command);
            match (command, result) {
                (Command::RemoveSymbol { symbol }, ResultCode::Success) => {
                    removed += 1;
                    gone.push(*symbol);
                }
                (_, ResultCode::SymbolHasOpenPositions) => refused += 1,
                (Command::Place(place), ResultCode::Success) if gone.contains(&place.symbol) => {
                    again += 1;
                }
                _ => {}
            }
        }
    }
    assert!(
        removed > 150 && refused > 10 && again > 35,
        "{removed} removed, {refused} refused, {again} orders later"
    );
}

fn place(uid: i64, order_id: i64, action: Action, price: i64) -> Command {
    Command::Place(Place::limit(
        (UserId(uid), OrderId(order_id)),
        SymbolId(5),
        action,
        (price, 1),
    ))
}

#[test]
fn a_futures_symbol_goes_when_its_positions_are_closed() {
    let mut state = State::default();
    let symbol = SymbolId(5);
    let remove = Command::RemoveSymbol { symbol };
    let (low, high) = (1, 17);
    let band = Command::SetPriceBand { symbol, low, high };
    for (command, code) in [
        (commands::symbols(commands::Mix::Plain), ResultCode::Success),
        (commands::accounts(), ResultCode::Success),
        (
            place(1, 1, Action::Ask, 9),
            ResultCode::SymbolWithoutPriceBand,
        ),
        (band.clone(), ResultCode::Success),
        (place(1, 1, Action::Ask, 9), ResultCode::Success),
        (place(2, 2, Action::Bid, 9), ResultCode::Success),
        (remove.clone(), ResultCode::SymbolHasOpenPositions),
        (place(1, 3, Action::Bid, 8), ResultCode::Success),
        (place(2, 4, Action::Ask, 8), ResultCode::Success),
        // Nothing is open, and this one rests.
        (place(3, 5, Action::Ask, 8), ResultCode::Success),
        (remove.clone(), ResultCode::Success),
        (remove, ResultCode::InvalidSymbol),
        (
            place(1, 6, Action::Bid, 8),
            ResultCode::MatchingInvalidOrderBookId,
        ),
        (commands::symbols(commands::Mix::Plain), ResultCode::Success),
        (band, ResultCode::Success),
        (place(1, 6, Action::Bid, 8), ResultCode::Success),
    ] {
        assert_eq!(run(&mut state, &command), code, "{command:?}");
        money_is_conserved(&state, &command).expect("conserved");
    }
    assert_eq!(
        state.matching.book(symbol).map(|book| book.order_count()),
        Some(1)
    );
}

#[test]
fn an_empty_record_goes_with_its_symbol() {
    let symbol = SymbolId(5);
    let other =
        SymbolSpec::pair(symbol, CurrencyId(10), CurrencyId(30)).with_type(SymbolType::Futures);
    let Command::Place(without_size) = place(1, 1, Action::Ask, 9) else {
        unreachable!("it is a new order");
    };
    let without_size = Place {
        size: 0,
        ..without_size
    };
    let mut state = State::new(Rules::REFERENCE);
    for command in [
        commands::symbols(commands::Mix::Plain),
        commands::accounts(),
        Command::Place(without_size),
    ] {
        assert_eq!(run(&mut state, &command), ResultCode::Success);
    }
    let records = |state: &State| {
        let user = state.risk.user(UserId(1)).expect("it is known");
        user.positions().to_vec()
    };
    assert!(records(&state)[0].is_empty());
    for command in [
        Command::RemoveSymbol { symbol },
        Command::AddSymbols([other].into()),
    ] {
        assert_eq!(run(&mut state, &command), ResultCode::Success);
        assert_eq!(records(&state), []);
    }
    assert_eq!(
        run(&mut state, &place(1, 1, Action::Ask, 9)),
        ResultCode::Success
    );
    assert_eq!(records(&state)[0].currency, CurrencyId(30));
}
