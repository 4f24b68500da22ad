//! Iceberg orders: how many lots they display, and when the display is replenished. The rules for
//! users are in `docs/exchange-rules.md`, "Iceberg orders".
//!
//! *State*: the displayed lots of a resting order are its node's `left`, which its level counts.
//! The hidden lots are in its [`Terms`], and summed by side and price in
//! [`ColdState`](super::conditions::ColdState). An order whose node has no mark [`HIDES`] displays
//! all its lots.
//!
//! *Where displayed lots change*: `Book::rest` sets the first ones, which no event reports.
//! `Book::fill` replenishes them, and appends the order to its queue, when all of them are filled
//! (by a taker or in an auction); `Book::reenter` does so when the order is moved, or amended so
//! that it loses its place in time. An [`Event::Refilled`] reports how many more are displayed,
//! also of an order without hidden lots that is amended to more lots. A reduction, or a decrement
//! of a maker, takes hidden lots first, and displayed ones only where none are hidden.
//!
//! *Where hidden lots count*: for an order that must be filled whole (`fill_or_kill.rs`), in the
//! search for an auction's price, and in every cancel.

use super::Book;
use super::orders::{HIDES, Terms};
use crate::command::{Action, display_is_large_enough};
use crate::event::{Event, Events};
use crate::ids::{OrderId, UserId};
use crate::rules::REFILL_WORK;

/// Returns how many of an order's `left` unfilled lots are displayed; all, without a `display`.
pub(super) fn displayed(left: i64, display: Option<i64>) -> i64 {
    display.map_or(left, |display| left.min(display))
}

/// Returns how often a display of at least one lot is replenished until no lots are hidden.
fn replenishments(hidden: i64, display: i64) -> i128 {
    (i128::from(hidden) + i128::from(display) - 1) / i128::from(display)
}

impl Book {
    /// Returns the hidden lots of a resting order.
    #[inline]
    pub(super) fn hidden(&self, slot: u32) -> i64 {
        if self.ladder.nodes[slot].marks & HIDES == 0 {
            return 0;
        }
        self.look_up_hidden(slot)
    }

    #[cold]
    #[inline(never)]
    fn look_up_hidden(&self, slot: u32) -> i64 {
        let terms = self.terms(self.key_at(slot));
        terms.map_or(0, |terms| terms.hidden)
    }

    /// Returns the lots that the orders of a price hide.
    pub(super) fn hidden_at(&self, side: Action, price: i64) -> i128 {
        let hidden = self.cold.as_ref().map(|cold| &cold.hidden[side as usize]);
        let lots = hidden.and_then(|hidden| hidden.get(&price));
        lots.copied().unwrap_or(0)
    }

    /// Returns whether an order may have `size` lots by its display, if lots are hidden; see
    /// [`RiskIcebergDisplay`](crate::ResultCode::RiskIcebergDisplay).
    pub(super) fn display_allows(&self, slot: u32, size: i64) -> bool {
        let terms = self.terms(self.key_at(slot));
        let display = terms.and_then(Terms::display_in_use);
        display.is_none_or(|display| display_is_large_enough(display, size))
    }

    /// Replenishes the display of an unlinked order with `left` unfilled lots, and appends it to
    /// its level. `before` is the number of lots that were displayed, less those that have traded
    /// or were decremented since: negative if these were more.
    pub(super) fn replenish(&mut self, slot: u32, left: i64, before: i64, events: &mut Events) {
        let node = &self.ladder.nodes[slot];
        let (order, uid) = (OrderId(node.id), UserId(node.uid));
        let mut now = left;
        if node.marks != 0
            && let Some(&terms) = self.terms(self.key_at(slot))
        {
            now = displayed(left, terms.display_in_use());
            let hidden = left - now;
            self.set_terms(slot, Terms { hidden, ..terms });
        }
        self.ladder.nodes[slot].left = now;
        self.ladder.append(slot);
        if now != before {
            let size = now - before;
            events.push(Event::Refilled { order, uid, size });
        }
    }

    /// Takes `size` lots, not all that are left, off a resting order, which keeps its place in
    /// time: hidden ones first. The display is not replenished.
    pub(super) fn reduce_hidden_first(&mut self, slot: u32, size: i64) {
        let mut displayed = size;
        if let Some(&terms) = self.terms(self.key_at(slot)) {
            let hidden = terms.hidden - terms.hidden.min(size);
            displayed -= terms.hidden - hidden;
            self.set_terms(slot, Terms { hidden, ..terms });
        }
        let node = &mut self.ladder.nodes[slot];
        node.left -= displayed;
        let (side, price) = (node.action, node.price);
        let level = self.ladder.level_of(side, price);
        self.ladder.nodes[level].left -= displayed;
    }

    /// Returns the most events that filling `lots` hidden lots of a level counts as:
    /// [`REFILL_WORK`] for each replenishment, and one for the trade after it.
    pub(super) fn replenishing_events(&self, level: u32, lots: i128) -> i128 {
        if lots == 0 {
            return 0;
        }
        let times = |slot: u32| {
            let terms = self.terms(self.key_at(slot));
            let terms = terms.filter(|terms| terms.hidden > 0 && terms.display > 0);
            terms.map_or(0, |terms| replenishments(terms.hidden, terms.display))
        };
        let times: i128 = self.ladder.queue(level).map(times).sum();
        (1 + REFILL_WORK as i128) * times.min(lots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use crate::command::{ConditionalOrder, Place, SymbolSpec};
    use crate::event::UserHint;
    use crate::ids::SymbolId;

    #[test]
    fn at_most_the_display_is_displayed() {
        for (left, display, expected) in [
            (10, Some(3), 3),
            (3, Some(3), 3),
            (2, Some(3), 2),
            (10, None, 10),
            (i64::MAX, Some(i64::MAX), i64::MAX),
        ] {
            assert_eq!(displayed(left, display), expected);
        }
    }

    #[test]
    fn replenishments_are_counted_as_they_happen() {
        for hidden in 0..40 {
            for display in 1..12 {
                let (mut left, mut times) = (hidden, 0);
                while left > 0 {
                    left -= displayed(left, Some(display));
                    times += 1;
                }
                assert_eq!(replenishments(hidden, display), times);
            }
        }
        assert_eq!(replenishments(i64::MAX, 1), i64::MAX.into());
        assert_eq!(replenishments(i64::MAX, i64::MAX), 1);
    }

    /// Returns a book with an ask of user 1 that displays 3 of 10 lots, and one of user 2 behind
    /// it.
    fn book() -> Book {
        let mut book = Book::with_capacity(SymbolSpec::default(), &Rules::MENDED, 0);
        for (uid, display) in [(1, Some(3)), (2, None)] {
            let owner = (UserId(uid), OrderId(7));
            let order = ConditionalOrder {
                display,
                ..Place::limit(owner, SymbolId(0), Action::Ask, (100, 10)).into()
            };
            let mut events = Events::new();
            book.place_with(&order, UserHint::UNKNOWN, &Rules::MENDED, &mut events);
            assert_eq!(*events, [], "the first display has no event");
        }
        book
    }

    fn slot(book: &Book, uid: i64) -> u32 {
        let slot = book.find_resting(UserId(uid), OrderId(7));
        slot.expect("it rests")
    }

    /// Returns the owner, the displayed and the hidden lots of each order, and the lots of the
    /// level.
    fn queue(book: &Book) -> (Vec<(i64, i64, i64)>, i64) {
        let orders = book.orders(Action::Ask);
        let lots = orders.map(|order| {
            let displayed = order.size - order.filled - order.hidden;
            (order.uid.0, displayed, order.hidden)
        });
        let level = book.best(Action::Ask).expect("it has orders");
        assert_eq!(book.hidden_at(Action::Ask, 99), 0);
        (lots.collect(), level.volume)
    }

    #[test]
    fn a_replenished_order_is_last_and_reports_the_increase() {
        // Three were displayed; of ten, none, one, and seven were traded just now.
        for (left, before, now) in [(10, 3, 3), (9, 2, 3), (3, -4, 3), (2, -5, 2)] {
            let mut book = book();
            let slot = slot(&book, 1);
            book.ladder.unlink(slot);
            let mut events = Events::new();
            book.replenish(slot, left, before, &mut events);
            let all = vec![(2, 10, 0), (1, now, left - now)];
            assert_eq!(book.hidden_at(Action::Ask, 100), i128::from(left - now));
            let (lots, volume) = queue(&book);
            // The node's filled lots are its caller's.
            assert_eq!((lots, volume), (all, 10 + now));
            let event = Event::Refilled {
                order: OrderId(7),
                uid: UserId(1),
                size: now - before,
            };
            assert_eq!(*events == [event], now != before);
        }
    }

    #[test]
    fn a_reduction_takes_hidden_lots_first_and_the_order_keeps_its_place() {
        for (by, displayed, hidden) in [(1, 3, 6), (7, 3, 0), (8, 2, 0)] {
            let mut book = book();
            let slot = slot(&book, 1);
            book.reduce_hidden_first(slot, by);
            let all = vec![(1, displayed, hidden), (2, 10, 0)];
            assert_eq!(queue(&book), (all, 10 + displayed));
            assert_eq!(book.hidden(slot), hidden);
        }
    }

    #[test]
    fn replenishments_of_a_level_count_with_the_trades_after_them() {
        let book = book();
        let level = book.ladder.level_of(Action::Ask, 100);
        // Seven hidden lots, three at a time.
        for (lots, times) in [(0, 0), (1, 1), (2, 2), (3, 3), (7, 3)] {
            assert_eq!(book.replenishing_events(level, lots), 9 * times);
        }
    }

    #[test]
    fn the_display_bounds_the_size() {
        let book = book();
        assert!(book.display_allows(slot(&book, 1), 3_000));
        assert!(!book.display_allows(slot(&book, 1), 3_001));
        assert!(book.display_allows(slot(&book, 2), i64::MAX));
    }
}
