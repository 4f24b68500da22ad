//! Reports over a whole state. The hash of all of it is
//! [`state_hash`](crate::state_text::state_hash).

use std::collections::BTreeMap;

use crate::book::{Level, RestingOrder};
use crate::command::{Action, Place, SymbolType};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::order_terms::ConditionalOrder;
use crate::risk::{Direction, User};
use crate::state::State;

/// Where the money of one currency is. In 128 bits: sums over users need not fit 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrencyTotal {
    /// The currency.
    pub currency: CurrencyId,
    /// Σ of all balances, of all positions in futures, and of what waits there. What open lots are
    /// worth cancels out over both sides, so no price is needed.
    pub accounts: i128,
    /// Fees collected.
    pub fees: i128,
    /// Minus the deposits, plus the withdrawals.
    pub adjustments: i128,
    /// The same for suspended users.
    pub suspends: i128,
    /// Held for resting orders, hidden lots included, and for stop orders that wait.
    pub order_holds: i128,
}

impl CurrencyTotal {
    /// The sum of all parts: zero, always, unless a quirk of the reference made money.
    #[must_use]
    pub const fn sum(&self) -> i128 {
        self.accounts + self.fees + self.adjustments + self.suspends + self.order_holds
    }
}

/// The total currency balance report, by ascending currency: every currency that was paid in or
/// is traded in. Cost: visits every user and every resting order.
#[must_use]
pub fn currency_totals(state: &State) -> Vec<CurrencyTotal> {
    let mut totals: BTreeMap<CurrencyId, CurrencyTotal> = BTreeMap::new();
    for currency in state.risk.currencies() {
        let total = CurrencyTotal {
            currency: currency.id,
            fees: currency.fees.into(),
            adjustments: currency.adjustments.into(),
            suspends: currency.suspends.into(),
            ..CurrencyTotal::default()
        };
        totals.insert(currency.id, total);
    }
    let mut add = |currency, amount, part: fn(&mut CurrencyTotal) -> &mut i128| {
        let total = totals
            .get_mut(&currency)
            .expect("every currency in use is listed");
        *part(total) += amount;
    };
    for user in state.risk.users() {
        for (currency, balance) in user.balances() {
            add(currency, i128::from(balance), |total| &mut total.accounts);
        }
        for &(currency, amount) in user.waiting() {
            add(currency, amount, |total| &mut total.accounts);
        }
        for position in user.positions() {
            add(position.currency, position.cash(), |total| {
                &mut total.accounts
            });
        }
    }
    for book in state.matching.books() {
        let spec = book.spec();
        if spec.symbol_type != SymbolType::CurrencyPair {
            continue;
        }
        for order in book.orders(Action::Ask) {
            let lots = i128::from(order.size - order.filled);
            let hold = lots * i128::from(spec.base_scale);
            add(spec.base_currency, hold, |total| &mut total.order_holds);
        }
        for order in book.orders(Action::Bid) {
            let lots = i128::from(order.size - order.filled);
            let hold = lots * spec.held_per_lot(order.reserve_price);
            add(spec.quote_currency, hold, |total| &mut total.order_holds);
        }
        for Place {
            action,
            size,
            reserve_price,
            ..
        } in book.waiting().map(|stop| stop.place)
        {
            let (currency, per_lot) = match action {
                Action::Ask => (spec.base_currency, i128::from(spec.base_scale)),
                Action::Bid => (spec.quote_currency, spec.held_per_lot(reserve_price)),
            };
            let hold = i128::from(size) * per_lot;
            add(currency, hold, |total| &mut total.order_holds);
        }
    }
    totals.into_values().collect()
}

/// Lots that are open in a futures symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenInterest {
    /// The futures symbol.
    pub symbol: SymbolId,
    /// Bought.
    pub long: i128,
    /// Sold: as many, always.
    pub short: i128,
}

/// The open interest of every futures symbol where something is open, by ascending id. Cost: visits
/// every user.
#[must_use]
pub fn open_interest(state: &State) -> Vec<OpenInterest> {
    let mut symbols: BTreeMap<SymbolId, OpenInterest> = BTreeMap::new();
    for position in state.risk.users().iter().flat_map(|user| user.positions()) {
        if position.direction == Direction::Empty {
            continue;
        }
        let new = OpenInterest {
            symbol: position.symbol,
            ..OpenInterest::default()
        };
        let interest = symbols.entry(position.symbol).or_insert(new);
        let side = match position.direction {
            Direction::Short => &mut interest.short,
            _ => &mut interest.long,
        };
        *side += i128::from(position.open_volume);
    }
    symbols.into_values().collect()
}

/// All that the exchange knows of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserReport<'s> {
    /// Profile, balances and positions; `None` for one who is unknown, or was suspended and has
    /// got no money since.
    pub user: Option<&'s User>,
    /// Resting orders with their symbols: by ascending symbol, asks first, best price first.
    pub orders: Vec<(SymbolId, RestingOrder)>,
    /// Stop orders that wait; their symbols are in them. By ascending symbol, asks first, what is
    /// reached first before the others.
    pub waiting: Vec<&'s ConditionalOrder>,
}

/// The single user report. Cost: visits every resting order.
#[must_use]
pub fn user_report(state: &State, uid: UserId) -> UserReport<'_> {
    let books = state.matching.books();
    let waiting = books.iter().flat_map(|book| book.waiting());
    let waiting = waiting.filter(|stop| stop.place.uid == uid).collect();
    let orders = books.into_iter().flat_map(|book| {
        let sides = [Action::Ask, Action::Bid].into_iter();
        let orders = sides.flat_map(|side| book.orders(side));
        orders
            .filter(|order| order.uid == uid)
            .map(|order| (book.spec().id, order))
    });
    UserReport {
        user: state.risk.user(uid),
        orders: orders.collect(),
        waiting,
    }
}

/// The best levels of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookReport {
    /// Levels of sell orders, the lowest price first.
    pub asks: Vec<Level>,
    /// Levels of buy orders, the highest price first.
    pub bids: Vec<Level>,
}

/// The order book of a symbol to a depth, in levels a side; `None` where there is no such symbol.
/// Cost: one step per level.
#[must_use]
pub fn book_report(state: &State, symbol: SymbolId, depth: usize) -> Option<BookReport> {
    let book = state.matching.book(symbol)?;
    let side = |action| book.levels(action, depth).collect();
    Some(BookReport {
        asks: side(Action::Ask),
        bids: side(Action::Bid),
    })
}
