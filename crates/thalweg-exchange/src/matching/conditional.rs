//! Orders with conditions, and what becomes of them as time goes by.

use super::Matching;
use crate::event::{Events, UserHint};
use crate::ids::SymbolId;
use crate::order_terms::ConditionalOrder;
use crate::result_code::ResultCode;

impl Matching {
    #[cold]
    pub(super) fn place_with(
        &mut self,
        order: &ConditionalOrder,
        checked: ResultCode,
        user: UserHint,
        events: &mut Events,
    ) -> ResultCode {
        self.in_book(order.place.symbol, events, |book, rules, events| {
            if checked != ResultCode::ValidForMatchingEngine {
                return checked;
            }
            book.place_with(order, user, rules, events)
        })
    }

    /// Takes out what expires at or before `time`, by ascending symbol.
    ///
    /// Cost: a look at every book, and a few steps in trees for each order.
    #[cold]
    pub(super) fn expire(&mut self, time: i64, events: &mut Events) {
        let books = self.books();
        let due = books.iter().filter(|book| book.expires_by(time));
        let due: Vec<SymbolId> = due.map(|book| book.spec().id).collect();
        for symbol in due {
            let slot = self.slot(symbol);
            let Some(book) = self.books.get_mut(slot) else {
                continue;
            };
            book.expire(time, events);
            if book.is_futures() {
                events.add_standing(symbol, book.standing());
            }
        }
    }
}
