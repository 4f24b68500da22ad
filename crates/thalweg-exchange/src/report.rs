//! Reports over a whole state. The hash of all of it is
//! [`state_text_hash`](crate::report::state_text::state_text_hash).

pub mod state_text;

use std::collections::BTreeMap;

use crate::book::{Book, Level, RestingOrder};
use crate::command::ConditionalOrder;
use crate::command::{Action, SymbolType};
use crate::engine::state::State;
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::matching::Matching;
use crate::risk::{Direction, Risk};

/// Where the money of one currency is. In 128 bits, since sums over users may exceed 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CurrencyTotal {
    /// The currency.
    pub currency: CurrencyId,
    /// Σ of all balances, of all positions in futures, and of what waits there. The worth of open
    /// lots cancels out over both sides, so no price is needed.
    pub accounts: i128,
    /// Fees collected.
    pub fees: i128,
    /// Minus the deposits, plus the withdrawals.
    pub adjustments: i128,
    /// As `adjustments`, for suspended users.
    pub suspends: i128,
    /// Held for resting orders, hidden lots included, and for stop orders that wait.
    pub order_holds: i128,
}

impl CurrencyTotal {
    /// Returns the sum of all parts: zero, always, unless a quirk of the reference made money.
    #[must_use]
    pub const fn sum(&self) -> i128 {
        self.accounts + self.fees + self.adjustments + self.suspends + self.order_holds
    }
}

/// Returns the total currency balance report, by ascending currency: every currency that was paid
/// in or is traded in. Cost: visits every user and every resting order.
#[must_use]
pub fn currency_totals(state: &State) -> Vec<CurrencyTotal> {
    let mut totals = Totals::default();
    totals.add_risk(&state.risk);
    totals.add_books(&state.matching);
    totals.0.into_values().collect()
}

/// The totals, put together from the parts of a state.
#[derive(Debug, Default)]
struct Totals(BTreeMap<CurrencyId, CurrencyTotal>);

impl Totals {
    fn of(&mut self, currency: CurrencyId) -> &mut CurrencyTotal {
        let total = self.0.entry(currency).or_default();
        total.currency = currency;
        total
    }

    /// Adds the users' balances and positions, and the fees and deposits of each currency.
    fn add_risk(&mut self, risk: &Risk) {
        for currency in risk.currencies() {
            let total = self.of(currency.id);
            total.fees += i128::from(currency.fees);
            total.adjustments += i128::from(currency.adjustments);
            total.suspends += i128::from(currency.suspends);
        }
        for user in risk.users() {
            for (currency, balance) in user.balances() {
                self.of(currency).accounts += i128::from(balance);
            }
            for &(currency, amount) in user.waiting() {
                self.of(currency).accounts += amount;
            }
            for position in user.positions() {
                self.of(position.currency).accounts += position.cash();
            }
        }
    }

    /// Adds the holds for orders in pairs.
    fn add_books(&mut self, books: &Matching) {
        for book in books.books() {
            let spec = book.spec();
            if spec.symbol_type != SymbolType::CurrencyPair {
                continue;
            }
            let mut add = |action, lots: i64, reserve_price: i64| {
                let (currency, per_lot) = match action {
                    Action::Ask => (spec.base_currency, i128::from(spec.base_scale)),
                    Action::Bid => (spec.quote_currency, spec.held_per_lot(reserve_price)),
                };
                self.of(currency).order_holds += i128::from(lots) * per_lot;
            };
            for side in [Action::Ask, Action::Bid] {
                for order in book.orders(side) {
                    add(side, order.size - order.filled, order.reserve_price);
                }
            }
            for place in book.waiting().map(|stop| stop.place) {
                add(place.action, place.size, place.reserve_price);
            }
        }
    }
}

/// Lots that are open in a futures symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpenInterest {
    /// The futures symbol.
    pub symbol: SymbolId,
    /// Bought.
    pub long: i128,
    /// Sold: as many, always.
    pub short: i128,
}

/// Returns the open interest of every futures symbol where something is open, by ascending id.
/// Cost: visits every user.
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

/// A user's orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpenOrders {
    /// Resting orders with their symbols: by ascending symbol, asks first, best price first.
    pub resting: Vec<(SymbolId, RestingOrder)>,
    /// Stop orders that wait; their symbols are in them. By ascending symbol, asks first, what is
    /// reached first before the others.
    pub waiting: Vec<ConditionalOrder>,
}

impl OpenOrders {
    /// Returns true where there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.resting.is_empty() && self.waiting.is_empty()
    }

    /// Returns how many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.resting.len() + self.waiting.len()
    }
}

/// Returns a user's orders in these books, no more than `most`. Cost: visits every order, or those
/// that are given where the books keep owners.
pub(crate) fn open_orders(books: &Matching, uid: UserId, most: usize) -> OpenOrders {
    let mut open = OpenOrders::default();
    for book in books.books() {
        let symbol = book.spec().id;
        let resting = book.some_orders_of(uid, most - open.len()).into_iter();
        open.resting.extend(resting.map(|order| (symbol, order)));
        let waiting = book.waiting_of(uid, most - open.len());
        open.waiting.extend(waiting);
    }
    open
}

/// Returns the orders of one user. Cost: visits every resting order, or those of the user where the
/// books keep owners.
#[must_use]
pub fn orders_of(state: &State, uid: UserId) -> OpenOrders {
    open_orders(&state.matching, uid, usize::MAX)
}

/// The best levels of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BookReport {
    /// Levels of sell orders, the lowest price first.
    pub asks: Vec<Level>,
    /// Levels of buy orders, the highest price first.
    pub bids: Vec<Level>,
}

/// Returns the order book of a symbol to a depth, in levels a side; `None` where there is no such
/// symbol. Cost: one step per level.
#[must_use]
pub fn book_report(state: &State, symbol: SymbolId, depth: usize) -> Option<BookReport> {
    let book = state.matching.book(symbol)?;
    Some(book_of(book, depth))
}

pub(crate) fn book_of(book: &Book, depth: usize) -> BookReport {
    let side = |action| book.levels(action, depth).collect();
    BookReport {
        asks: side(Action::Ask),
        bids: side(Action::Bid),
    }
}
