//! Commands, events, results and reports as serde values.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use thalweg_exchange::execution::ExecutionReports;
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Event, Events, OrderFlags, OrderId,
    OrderType, Place, ResultCode, State, SymbolId, SymbolSpec, UserId, apply,
};

#[track_caller]
fn same_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("it is a value");
    let again: T = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(&again, value, "{text}");
}

fn commands() -> Vec<Command> {
    let (symbol, coin, euro) = (SymbolId(1), CurrencyId(1), CurrencyId(2));
    let (alice, bob) = (UserId(1), UserId(2));
    let account = |uid, money| AccountSpec::new(uid, vec![money]);
    let place =
        |uid, number, action, terms| Place::limit((uid, OrderId(number)), symbol, action, terms);
    let mut last = place(alice, 3, Action::Ask, (110, 20));
    last.order_type = OrderType::Ioc;
    last.flags = OrderFlags::NONE.with_post_only();
    let iceberg = place(alice, 2, Action::Ask, (130, 10));
    vec![
        Command::AddSymbols([SymbolSpec::pair(symbol, coin, euro)].into()),
        Command::AddAccounts([account(alice, (coin, 50)), account(bob, (euro, 5_000))].into()),
        Command::Place(place(alice, 1, Action::Ask, (120, 10))),
        Command::PlaceConditional(ConditionalOrder::from(iceberg).with_display(2).into()),
        Command::Place(place(bob, 1, Action::Bid, (125, 4))),
        Command::Place(last),
        Command::cancel(alice, symbol, OrderId(1)),
    ]
}

#[test]
fn commands_events_results_and_reports_are_the_same_again() {
    let (mut state, mut events) = (State::default(), Events::new());
    let (mut seen, mut reported) = (0, 0);
    for (sequence, command) in (0..).zip(&commands()) {
        same_again(command);
        let result = apply(&mut state, command, &mut events);
        same_again(&result);
        for event in events.iter() {
            same_again(event);
            seen += 1;
        }
        for report in ExecutionReports::new(sequence, command, result, &events) {
            same_again(&report);
            reported += 1;
        }
    }
    assert_eq!((seen, reported), (2, 7));
    let book = state.matching.book(SymbolId(1)).expect("it is there");
    for level in book.levels(Action::Ask, 5) {
        same_again(&level);
    }
}

#[test]
fn names_are_those_of_the_code_and_ids_are_numbers() {
    let command = serde_json::to_value(&commands()[6]).expect("it is a value");
    let expected = serde_json::json!({ "Cancel": { "uid": 1, "symbol": 1, "order_id": 1 } });
    assert_eq!(command, expected);
    let result = serde_json::to_value(ResultCode::Success).expect("it is a value");
    assert_eq!(result, "Success");
}

#[test]
fn flags_that_are_none_are_refused() {
    for code in 0..=u8::MAX {
        let read: Result<OrderFlags, _> = serde_json::from_str(&code.to_string());
        assert_eq!(read.ok(), OrderFlags::from_code(code));
    }
    let error = serde_json::from_str::<OrderFlags>("64").expect_err("there are none");
    assert!(
        error
            .to_string()
            .starts_with("64 is no code of order flags"),
        "{error}"
    );
    assert!(serde_json::from_str::<Event>("{}").is_err());
}
