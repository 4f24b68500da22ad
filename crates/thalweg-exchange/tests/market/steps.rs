//! Outcomes that do not belong together are refused, and nothing else is.

use proptest::prelude::*;
use thalweg_exchange::market::{Builder, Channels, Epoch, OutcomeError};
use thalweg_exchange::{
    Action, Command, Event, Events, OrderId, RemovalReason, ResultCode, State, UserId, apply,
};
use thalweg_testkit::counting::held;

use crate::market::numbers::{SYMBOL, order, setup};

#[test]
fn an_outcome_that_is_missing_or_comes_twice_is_noticed() {
    for (numbers, expected) in [([7, 8, 10], 9), ([7, 8, 8], 9), ([7, 6, 8], 8)] {
        let mut builder = Builder::new(Epoch(1), Channels::default());
        assert_eq!(builder.command(), None);
        let mut errors = Vec::new();
        for number in numbers {
            let applied = builder.apply(number, &Command::Nop, ResultCode::Success, &Events::new());
            errors.extend(applied.err());
        }
        let got = if numbers[1] == 6 { 6 } else { numbers[2] };
        assert_eq!(errors[0], OutcomeError::Number { expected, got });
        assert_eq!(
            errors[0].to_string(),
            format!("market data is out of step: command {expected} expected, {got} came")
        );
    }
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => 1..5_i64,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, i64::MAX]),
    ]
}

/// Any event of two users with four orders.
fn event() -> impl Strategy<Value = Event> {
    let whose = (1..3_i64, 1..5_i64).prop_map(|(uid, order)| (UserId(uid), OrderId(order)));
    let side = prop::bool::ANY.prop_map(|bid| if bid { Action::Bid } else { Action::Ask });
    let why = prop::sample::select(vec![
        RemovalReason::SelfTrade,
        RemovalReason::Expired,
        RemovalReason::Reduced,
    ]);
    let bits = (any::<bool>(), any::<bool>());
    (0..6, whose, side, (number(), number()), why, bits).prop_map(
        |(kind, (uid, order), action, (price, size), why, (completed, taker_completed))| {
            let bidder_hold_price = 1;
            match kind {
                0 | 1 => Event::Trade {
                    price,
                    size,
                    maker_order: order,
                    maker_uid: uid,
                    maker_filled: 1,
                    maker_left: 1,
                    maker_completed: completed,
                    taker_completed,
                    bidder_hold_price,
                    taker_action: action,
                },
                2 => Event::Reduce {
                    order,
                    price,
                    size,
                    left: 1,
                    filled: 1,
                    completed,
                    bidder_hold_price,
                    action,
                },
                3 => Event::Removed {
                    symbol: SYMBOL,
                    order,
                    uid,
                    action,
                    price,
                    size,
                    left: 1,
                    filled: 1,
                    bidder_hold_price,
                    why,
                },
                4 => Event::Triggered {
                    order,
                    uid,
                    action,
                    price,
                    size,
                    bidder_hold_price,
                },
                _ => Event::Refilled { order, uid, size },
            }
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let numbers = (1..5_i64, 1..5_i64, 1..5_i64, 1..3_i64);
    let conditions = (any::<bool>(), any::<bool>());
    (0..6, numbers, any::<bool>(), conditions).prop_map(
        |(kind, (id, price, size, uid), bid, (stops, hides))| {
            let action = if bid { Action::Bid } else { Action::Ask };
            let Command::Place(mut place) = order(id, action, price, size) else {
                unreachable!("an order");
            };
            place.uid = UserId(uid);
            let (uid, symbol, order_id) = (place.uid, place.symbol, place.order_id);
            match kind {
                0 | 1 => Command::Place(place),
                2 => Command::PlaceConditional(
                    thalweg_exchange::ConditionalOrder {
                        trigger: stops.then_some(3),
                        display: hides.then_some(1),
                        ..place.into()
                    }
                    .into(),
                ),
                3 => Command::move_to(uid, symbol, order_id, price),
                4 => Command::reduce(uid, symbol, order_id, 1),
                _ => Command::Clock { time: 1 },
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(4_000)))]

    #[test]
    fn outcomes_of_no_engine_make_no_panic(
        outcomes in prop::collection::vec((command(), prop::collection::vec(event(), 0..4)), 1..14),
    ) {
        let mut builder = Builder::new(Epoch(1), Channels::default());
        let [symbols, _] = setup();
        builder.apply(0, &symbols, ResultCode::Success, &Events::new()).expect("a symbol");
        for (number, (command, events)) in (1..).zip(&outcomes) {
            let events = Events::from_iter(events.iter().copied()).with_levels();
            if builder.apply(number, command, ResultCode::Success, &events).is_err() {
                break;
            }
        }
    }
}

/// Symbols that come and go: of each that is gone, no more than its numbers is kept.
#[test]
fn what_is_removed_takes_no_memory() {
    const SYMBOLS: i32 = 1_000;
    let [symbols, _] = setup();
    let Command::AddSymbols(specs) = &symbols else {
        unreachable!("a batch of symbols");
    };
    let mut state = State::default();
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut events = Events::new().with_levels();
    let mut kept = 0;
    let mut number = 0;
    for id in 0..SYMBOLS {
        let mut spec = specs[0];
        spec.id.0 = id;
        let added = Command::AddSymbols([spec].into());
        let removed = Command::RemoveSymbol { symbol: spec.id };
        for command in [added, removed] {
            let result = apply(&mut state, &command, &mut events);
            assert_eq!(result, ResultCode::Success);
            let before = held();
            let applied = builder.apply(number, &command, result, &events);
            number += 1;
            assert!(applied.is_ok());
            kept += held() - before;
        }
    }
    let each = kept / i64::from(SYMBOLS);
    assert!(each < 200, "{each} bytes each");
    // Their numbers go on.
    assert_eq!(builder.symbol_sequence(thalweg_exchange::SymbolId(3)).0, 1);
}
