//! Orders with conditions, and what becomes of them as time goes by.

use super::Matching;
use crate::command::ConditionalOrder;
use crate::event::{Events, UserHint};
use crate::ids::SymbolId;
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
        let symbol = order.place.symbol;
        let result = self.in_book(symbol, events, |book, rules, events| {
            if checked != ResultCode::ValidForMatchingEngine {
                return checked;
            }
            book.place_with(order, user, rules, events)
        });
        if order.good_till.is_some() {
            self.note_due(symbol);
        }
        result
    }

    /// Notes when something in a book expires first, if that is not known.
    #[cold]
    pub(super) fn note_due(&mut self, symbol: SymbolId) {
        let slot = self.slot(symbol);
        if let Some(book) = self.books.get_mut(slot)
            && let Some((before, first)) = book.bring_due_forward()
        {
            self.dues.remove(&(before, symbol));
            self.dues.insert((first, symbol));
        }
    }

    /// Takes out what expires at or before `time`, by ascending symbol; where that is more than one
    /// command may, what is left goes with the next clock command.
    ///
    /// Cost: a few steps in trees for each book that is due, and for each order.
    #[cold]
    pub(super) fn expire(&mut self, time: i64, events: &mut Events) {
        let mut due = Vec::new();
        while let Some(&(first, symbol)) = self.dues.first()
            && first <= time
        {
            self.dues.pop_first();
            due.push(symbol);
        }
        due.sort_unstable();
        events.add_visits(due.len());
        let max = self.rules.work_max();
        for symbol in due {
            let slot = self.slot(symbol);
            let Some(book) = self.books.get_mut(slot) else {
                continue;
            };
            book.forget_due();
            if events.len() < max && book.expires_by(time) {
                book.expire(time, max, events);
                if book.is_futures() {
                    events.add_standing(symbol, book.standing());
                }
            }
            self.note_due(symbol);
        }
    }

    /// Whether orders are left over that expire at or before `time`.
    pub(crate) fn expires_by(&self, time: i64) -> bool {
        self.dues.first().is_some_and(|&(first, _)| first <= time)
    }
}
