//! N and R of the ledger's bound are what they are said to be, where futures are not covered.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg_exchange::book::Book;
use thalweg_exchange::risk::Direction;
use thalweg_exchange::{Action, Command, CurrencyId, Events, Rules, State, SymbolType, apply};

use crate::hostile::everybody;
use crate::market::MONEY;

/// Nothing but margin: no quirk takes room.
const MARGIN: Rules = Rules {
    cover_futures: false,
    ..Rules::MENDED
};

/// R of a currency: per futures lot that rests or waits its price, the higher fee and one, per open
/// lot one.
fn reserved(state: &State, currency: CurrencyId) -> i128 {
    let of_book = |book: &&Book| {
        let spec = book.spec();
        let fee = i128::from(spec.taker_fee.max(spec.maker_fee));
        let per_lot = |price: i64| i128::from(price).abs() + fee + 1;
        let orders = book.orders(Action::Ask).chain(book.orders(Action::Bid));
        let resting = orders.map(|order| {
            let left = order.size - order.filled;
            i128::from(left) * per_lot(order.price)
        });
        let waiting = book.waiting().map(|stop| {
            let place = &stop.place;
            i128::from(place.size) * per_lot(place.price)
        });
        resting.sum::<i128>() + waiting.sum::<i128>()
    };
    let books = state.matching.books();
    let futures = books.iter().filter(|book| {
        let spec = book.spec();
        spec.symbol_type == SymbolType::Futures && spec.quote_currency == currency
    });
    let users = state.risk.users();
    let positions = users.iter().flat_map(|user| user.positions());
    let own = positions.filter(|position| position.currency == currency);
    let open: i128 = own.map(|position| i128::from(position.open_volume)).sum();
    futures.map(of_book).sum::<i128>() + open
}

/// N of a currency: what is below zero of balances and of the two accounts of each position.
fn negative(state: &State, currency: CurrencyId) -> i128 {
    let below = |amount: i128| -amount.min(0);
    let of_user = |user: &&thalweg_exchange::risk::User| {
        let own = user.positions().iter();
        let own = own.filter(|position| position.currency == currency);
        let debts = own.map(|position| {
            let paid = match position.direction {
                Direction::Long => -i128::from(position.open_price_sum),
                Direction::Short => i128::from(position.open_price_sum),
                Direction::Empty => 0,
            };
            below(paid) + below(position.profit.into())
        });
        below(user.balance(currency).into()) + debts.sum::<i128>()
    };
    state.risk.users().iter().map(of_user).sum()
}

/// Runs a stream; with a fault, cancels in futures are not settled.
fn agrees(rules: Rules, commands: &[Command], has_fault: bool) -> Result<(), TestCaseError> {
    let mut state = State::new(rules);
    let mut events = Events::new();
    for command in commands {
        if has_fault && matches!(command, Command::Cancel { .. }) {
            let checked = state.risk.check(command);
            state.matching.execute(command, checked, &mut events);
        } else {
            apply(&mut state, command, &mut events);
        }
        let totals = state.risk.currencies();
        let Some(total) = totals.iter().find(|total| total.id == MONEY) else {
            continue;
        };
        prop_assert_eq!(total.reserved(), reserved(&state, MONEY), "{:?}", command);
        prop_assert_eq!(total.negative(), negative(&state, MONEY), "{:?}", command);
    }
    Ok(())
}

/// Without quirks of the reference, whose room is never given back: positive prices and sizes.
fn plain(commands: Vec<Command>) -> Vec<Command> {
    let is_plain = |command: &Command| match command {
        // An ask must not be moved under its fee.
        Command::Move { price, .. } => *price > 14,
        Command::Place(place) => {
            let odd = place.order_type.is_budget() && place.action == Action::Bid;
            place.price > 10 && place.size > 0 && !odd
        }
        Command::PlaceWith(order) => order.place.price > 10 && order.place.size > 0,
        Command::RemoveSymbol { .. } => false,
        _ => true,
    };
    commands.into_iter().filter(is_plain).collect()
}

proptest! {
    // 256 cases each; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn the_reserve_is_what_its_definition_says(commands in everybody(120)) {
        agrees(MARGIN, &commands, false)?;
        agrees(Rules::REFERENCE, &plain(commands), false)?;
    }
}

#[test]
fn a_forgotten_settlement_is_noticed() {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    let is_seen = (0..200).any(|_| {
        let commands = everybody(120)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        agrees(MARGIN, &commands, true).is_err()
    });
    assert!(is_seen);
}
