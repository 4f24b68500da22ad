//! Commands of those who run the market, which concern whole books.

use super::Matching;
use crate::book::Book;
use crate::event::{Events, Removal};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

impl Matching {
    /// Takes out the orders of `uid`, or of everybody, in one book or in all of them, by ascending
    /// symbol. A user without orders is no fault: then nothing happens.
    pub(super) fn cancel_all(
        &mut self,
        uid: Option<UserId>,
        symbol: Option<SymbolId>,
        events: &mut Events,
    ) -> ResultCode {
        let Some(symbol) = symbol else {
            let symbols: Vec<SymbolId> = self.books().iter().map(|book| book.spec().id).collect();
            for symbol in symbols {
                self.clear(uid, symbol, Removal::CancelAll, events);
            }
            return ResultCode::Success;
        };
        match self.clear(uid, symbol, Removal::CancelAll, events) {
            Some(_) => ResultCode::Success,
            None => ResultCode::MatchingInvalidOrderBookId,
        }
    }

    /// Takes out all orders of a symbol, and then the book itself with its memory.
    pub(super) fn remove(&mut self, symbol: SymbolId, events: &mut Events) -> ResultCode {
        let Some(slot) = self.clear(None, symbol, Removal::SymbolRemoved, events) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let books = &self.books;
        self.index.remove(symbol, |slot| books[slot].spec().id);
        let empty = Book::with_capacity(*self.books[slot].spec(), &self.rules, 0);
        self.books[slot] = empty;
        self.books.free(slot);
        ResultCode::Success
    }

    /// Tells a book of its price band. Of futures that are covered, no order may stay outside it:
    /// its trade could cost more than what is held for it.
    #[cold]
    pub(super) fn set_band(&mut self, symbol: SymbolId, band: (i64, i64), events: &mut Events) {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return;
        };
        book.set_band(band);
        if book.is_futures() && self.rules.cover_futures && self.rules.margin_trading {
            book.remove_outside(band, events);
            if !events.is_empty() {
                events.add_standing(symbol, book.standing(None));
            }
        }
    }

    /// The slot of the book out of which they were taken.
    fn clear(
        &mut self,
        uid: Option<UserId>,
        symbol: SymbolId,
        why: Removal,
        events: &mut Events,
    ) -> Option<u32> {
        let slot = self.slot(symbol);
        let book = self.books.get_mut(slot)?;
        let before = events.len();
        book.remove_all(uid, why, events);
        if events.len() > before && book.is_futures() {
            events.add_standing(symbol, book.standing(None));
        }
        Some(slot)
    }
}
