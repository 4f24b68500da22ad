//! Where there are many: orders of a level, stop orders of others, symbols. Whatever visits all of
//! them shows here.

use std::hint::black_box;

use counts::venue::{RESERVE, behind, setup};
use thalweg_exchange::report::orders_of;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, OrderType, Place, ResultCode, SymbolId, SymbolSpec,
    SymbolType, apply,
};

use super::{
    Cases, Exchange, LEVELS, ROUNDS, USERS, Work, cancel_all_of, place, rounds, stop, uid,
};

/// Orders that are in the way.
const CROWD: u64 = 10_000;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("exchange/{name}"), work);
    };
    add("fok-1-of-10k", fill_or_kill);
    add("fok-refused-of-10k-beside-stop", || refused(OrderType::Fok));
    add("fok-budget-refused-of-10k-beside-stop", || {
        refused(OrderType::FokBudget)
    });
    add("user-report-beside-10k-stops", report_of_one);
    add("place-rest-10k-symbols", place_anywhere);
}

/// A FOK bid that one order fills, where 10,000 more rest at its price.
fn fill_or_kill() -> Work {
    let mut exchange = Exchange::new(SymbolType::CurrencyPair);
    let makers = CROWD + ROUNDS;
    for number in 0..makers {
        let ask = place(number, Action::Ask, behind(Action::Ask, 1), 1);
        exchange.apply(&Command::Place(ask));
    }
    let mut next = makers;
    rounds(move |_| {
        let order_type = OrderType::Fok;
        let taker = place(next, Action::Bid, RESERVE, 1);
        exchange.apply(&Command::Place(Place {
            order_type,
            ..taker
        }));
        assert_eq!(exchange.events.len(), 1);
        next += 1;
    })
}

/// A bid for more than 10,000 orders of 64 levels have, or with a budget for two of them, beside a
/// stop order that waits.
fn refused(order_type: OrderType) -> Work {
    let mut exchange = Exchange::new(SymbolType::CurrencyPair);
    for number in 0..CROWD {
        let price = behind(Action::Ask, 1 + (number % LEVELS) as i64);
        let ask = place(number, Action::Ask, price, 1);
        exchange.apply(&Command::Place(ask));
    }
    exchange.apply(&Command::PlaceConditional(stop().into()));
    let taker = place(CROWD, Action::Bid, RESERVE, CROWD as i64 + 1);
    let taker = Command::Place(Place {
        order_type,
        ..taker
    });
    rounds(move |_| {
        let Exchange { state, events } = &mut exchange;
        let code = apply(state, black_box(&taker), events);
        assert_eq!(code, ResultCode::MatchingRejectedFillOrKill);
    })
}

/// A user's orders, one that rests and one that waits, asked for beside 10,000 waiting ones of
/// others, where the book keeps owners.
fn report_of_one() -> Work {
    let mut exchange = Exchange::new(SymbolType::CurrencyPair);
    exchange.apply(&cancel_all_of(uid(0)));
    let users = USERS as u64;
    let others = (1..).filter(|number| number % users != 0);
    for number in others.take(CROWD as usize).chain([0]) {
        let place = place(number, Action::Bid, RESERVE, 1);
        let stop = ConditionalOrder { place, ..stop() };
        exchange.apply(&Command::PlaceConditional(stop.into()));
    }
    let ask = place(users, Action::Ask, behind(Action::Ask, 1), 1);
    exchange.apply(&Command::Place(ask));
    rounds(move |_| {
        let orders = orders_of(black_box(&exchange.state), uid(0));
        assert_eq!((orders.resting.len(), orders.waiting.len()), (1, 1));
        black_box(orders);
    })
}

/// An order that rests, each in another of 10,000 symbols, where one rests already.
fn place_anywhere() -> Work {
    const SYMBOLS: u64 = 10_000;
    let mut setup = setup(SymbolType::CurrencyPair, USERS);
    if let Some(Command::AddSymbols(specs)) = setup.first_mut() {
        let spec = specs[0];
        let all = (0..SYMBOLS as i32).map(|id| SymbolSpec {
            id: SymbolId(id),
            ..spec
        });
        *specs = all.collect();
    }
    let mut exchange = Exchange::of(&setup);
    let ask = |number: u64| {
        let symbol = SymbolId((number * 7_919 % SYMBOLS) as i32);
        let ask = place(number, Action::Ask, behind(Action::Ask, 1), 1);
        Command::Place(Place { symbol, ..ask })
    };
    (0..SYMBOLS).for_each(|number| exchange.apply(&ask(number)));
    let mut next = SYMBOLS;
    rounds(move |_| {
        exchange.apply(&ask(next));
        next += 1;
    })
}
