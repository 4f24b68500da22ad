//! The books made again from a state snapshot; see [`snapshot`](crate::snapshot).

use super::Matching;
use crate::book::Book;
use crate::rules::Rules;

impl Matching {
    /// The rules that hold.
    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Adds a book of a symbol that has none, in which a mass cancel goes on or not, and which is
    /// busy or not.
    pub(crate) fn restore(&mut self, book: Book, is_cancelling: bool, is_busy: bool) {
        let symbol = book.spec().id;
        let Rules {
            margin_trading,
            cover_futures,
            ..
        } = self.rules;
        let is_covered = book.is_futures() && margin_trading && cover_futures;
        if is_busy || is_covered && book.has_outside() {
            self.unfinished.insert(symbol);
        }
        if is_cancelling {
            self.cancelling.insert(symbol);
        }
        let slot = self.books.insert(book);
        self.index.insert(symbol, slot);
        self.books[slot].forget_due();
        self.note_due(symbol);
        if self.books[slot].has_left_over() {
            self.note_left_over(symbol);
        }
    }
}
