//! The totals of a currency by their definition, from users, orders and positions, against those
//! that the ledger keeps. The only place that says what they are.

use proptest::prelude::*;
use thalweg_exchange::book::Book;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::risk::{Direction, Position, User};
use thalweg_exchange::{Action, CurrencyId, Rules, State, SymbolType};

/// The ledger's totals of a currency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) currency: CurrencyId,
    /// D: deposits less withdrawals.
    pub(crate) deposits: i128,
    pub(crate) fees: i128,
    /// N: what is below zero of balances and, but of covered futures, of the two accounts of each
    /// position.
    pub(crate) negative: i128,
    /// R: per futures lot that rests or waits its price, the higher fee and one; per open lot one;
    /// of covered futures nothing. And whatever a quirk of the reference could still cost.
    pub(crate) reserved: i128,
    /// Losses in covered futures that were paid in, less profit that was paid out.
    pub(crate) pool: i128,
}

/// As the ledger keeps them.
pub(crate) fn kept(state: &State) -> Vec<Kept> {
    let currencies = state.risk.currencies();
    let kept = currencies.iter().map(|total| Kept {
        currency: total.id,
        deposits: -(i128::from(total.adjustments) + i128::from(total.suspends)),
        fees: total.fees.into(),
        negative: total.negative(),
        reserved: total.reserved(),
        pool: total.pool(),
    });
    kept.collect()
}

fn positions(state: &State, currency: CurrencyId) -> impl Iterator<Item = &Position> {
    let users = state.risk.users().into_iter();
    let all = users.flat_map(User::positions);
    all.filter(move |position| position.currency == currency)
}

/// Profit, and what was paid for open lots (below zero) or got for them.
fn accounts(position: &Position) -> [i128; 2] {
    let paid = match position.direction {
        Direction::Long => -i128::from(position.open_price_sum),
        Direction::Short => i128::from(position.open_price_sum),
        Direction::Empty => 0,
    };
    [paid, position.profit.into()]
}

/// Everything that the ledger's bound is about: balances, and accounts of positions that no cover
/// bounds.
fn bounded(state: &State, currency: CurrencyId) -> Vec<i128> {
    let users = state.risk.users();
    let balances = users.iter().map(|user| user.balance(currency).into());
    let mut all: Vec<i128> = balances.collect();
    if !state.risk.rules().cover_futures {
        all.extend(positions(state, currency).flat_map(accounts));
    }
    all
}

fn reserved(state: &State, currency: CurrencyId) -> i128 {
    if state.risk.rules().cover_futures {
        return 0;
    }
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
    let open = positions(state, currency).map(|position| i128::from(position.open_volume));
    futures.map(of_book).sum::<i128>() + open.sum::<i128>()
}

/// Whether orders under these rules may lose more than they hold, which takes room in R.
const fn has_quirks(rules: &Rules) -> bool {
    !(rules.fill_ioc_budget
        && rules.refuse_not_positive
        && rules.refuse_maker_fee_over_taker
        && rules.refuse_moved_ask_under_fee
        && rules.bound_budgets)
}

/// Checks the properties of totals, which `kept` gives.
pub(crate) fn hold(state: &State, kept: &[Kept]) -> Result<(), TestCaseError> {
    let rules = state.risk.rules();
    for total in kept {
        let id = total.currency;
        let bounded = bounded(state, id);
        let negative: i128 = bounded.iter().map(|amount| -amount.min(&0)).sum();
        prop_assert_eq!(total.negative, negative, "N of {:?}", total);
        let reserved = reserved(state, id);
        prop_assert!(total.reserved >= reserved, "R of {:?}: {}", total, reserved);
        let found = currency_totals(state);
        let found = found.iter().find(|found| found.currency == id);
        let found = found.expect("it is known");
        if !has_quirks(rules) {
            prop_assert_eq!(total.reserved, reserved, "R of {:?}", total);
            let owned = found.accounts + found.order_holds + total.fees;
            prop_assert_eq!(total.deposits, owned, "D and fees of {:?}", total);
        }
        let users = state.risk.users();
        let waiting: i128 = users.iter().map(|user| user.waiting_in(id)).sum();
        let cash: i128 = positions(state, id).map(Position::cash).sum();
        let pool = if rules.cover_futures {
            waiting + cash
        } else {
            0
        };
        prop_assert!(total.pool >= 0, "pool of {:?}", total);
        prop_assert_eq!(total.pool, pool, "pool of {:?}", total);
        // The bound, and what follows from it.
        let below = total.negative + total.reserved;
        let most = total.deposits.max(0) + below;
        prop_assert!(most <= i64::MAX.into(), "bound of {:?}", total);
        prop_assert!(total.fees.abs() <= most, "fees of {:?}", total);
        for amount in bounded {
            let is_inside = (-below..=most).contains(&amount);
            prop_assert!(is_inside, "{} of {:?}", amount, total);
        }
    }
    Ok(())
}

/// The ledger keeps what it should.
pub(crate) fn totals_hold(state: &State) -> Result<(), TestCaseError> {
    hold(state, &kept(state))
}

/// As long as no quirk of the reference has taken room, which is never given back.
pub(crate) fn reserves_are_exact(state: &State) -> Result<(), TestCaseError> {
    for total in kept(state) {
        prop_assert_eq!(
            total.reserved,
            reserved(state, total.currency),
            "R of {:?}",
            total
        );
    }
    Ok(())
}
