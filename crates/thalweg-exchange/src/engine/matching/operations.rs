//! Commands of the market's operators, which concern whole books.

use super::Matching;
use crate::book::Book;
use crate::event::{Events, Removal};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

impl Matching {
    /// Takes out the orders of `uid`, or of all users, in one book or in all of them, by ascending
    /// symbol. With all users, as many as a command may have events; a book with more is noted. A
    /// user without orders is no fault: then nothing happens.
    pub(super) fn cancel_all(
        &mut self,
        uid: Option<UserId>,
        symbol: Option<SymbolId>,
        events: &mut Events,
    ) -> ResultCode {
        let why = Removal::CancelAll;
        let symbols = match symbol {
            Some(symbol) if self.book(symbol).is_none() => {
                return ResultCode::MatchingInvalidOrderBookId;
            }
            Some(symbol) => vec![symbol],
            None => self.symbols_with(uid, events),
        };
        for symbol in symbols {
            match uid {
                Some(uid) => self.clear_of(uid, symbol, (why, events)),
                None => self.cancel_everybody(symbol, events),
            }
        }
        ResultCode::Success
    }

    /// Takes out the orders of all users in one book, or as many as the command may.
    fn cancel_everybody(&mut self, symbol: SymbolId, events: &mut Events) {
        let most = self.rules.work_max().saturating_sub(events.len());
        let mut is_left = false;
        let why = Removal::CancelAll;
        self.clear(symbol, (why, events), |book, why, events| {
            is_left = book.remove_all(why, most, events);
        });
        match is_left {
            true => _ = self.cancelling.insert(symbol),
            false => _ = self.cancelling.remove(&symbol),
        }
    }

    /// Returns the symbols in which a mass cancel has orders left over, in ascending order.
    pub(crate) fn cancelling(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.cancelling.iter().copied()
    }

    /// Returns whether a mass cancel has orders of a symbol left over.
    pub(crate) fn is_cancelling(&self, symbol: SymbolId) -> bool {
        self.cancelling.contains(&symbol)
    }

    /// Takes out the orders of a user whose session is gone, as far as they ask for it.
    pub(super) fn disconnect(&mut self, uid: UserId, events: &mut Events) {
        for symbol in self.symbols_with(Some(uid), events) {
            self.clear_of(uid, symbol, (Removal::Disconnected, events));
        }
    }

    /// Keeps the orders of each owner in lists from now on, so that no command waits for them to be
    /// made. Cost: a visit to every order.
    pub(crate) fn keep_owners(&mut self) {
        self.keeps_owners = true;
        let slots: Vec<u32> = self.index.slots().collect();
        for slot in slots {
            self.books[slot].keep_owners();
        }
    }

    /// The symbols in whose books orders of a user, or any, may be, in ascending order.
    ///
    /// Cost: a look at every book; see `Book::keep_owners`.
    fn symbols_with(&mut self, uid: Option<UserId>, events: &mut Events) -> Vec<SymbolId> {
        self.keeps_owners |= uid.is_some();
        let slots: Vec<u32> = self.index.slots().collect();
        events.add_visits(slots.len());
        let mut symbols = Vec::new();
        for slot in slots {
            let book = &mut self.books[slot];
            let is_meant = uid.is_none_or(|uid| {
                book.keep_owners();
                book.may_have_orders_of(uid)
            });
            if is_meant {
                symbols.push(book.spec().id);
            }
        }
        symbols.sort_unstable();
        symbols
    }

    /// Takes out all orders of a symbol, and then the book itself with its memory. Refused if they
    /// are more than the events that a command may have.
    pub(super) fn remove(&mut self, symbol: SymbolId, events: &mut Events) -> ResultCode {
        let most = self.rules.work_max();
        let is_long = |book: &Book| book.count_all() > most;
        if self.book(symbol).is_some_and(is_long) {
            return ResultCode::MatchingRejectedWorkLimit;
        }
        let why = Removal::SymbolRemoved;
        let removed = self.clear(symbol, (why, events), |book, why, events| {
            book.remove_all(why, most, events);
        });
        let Some(slot) = removed else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let books = &self.books;
        self.index.remove(symbol, |slot| books[slot].spec().id);
        let empty = Book::with_capacity(*self.books[slot].spec(), &self.rules, 0);
        self.books[slot] = empty;
        self.books.free(slot);
        self.left_over.remove(&symbol);
        self.cancelling.remove(&symbol);
        self.unfinished.remove(&symbol);
        ResultCode::Success
    }

    /// Returns whether there are more than `most` books, or orders in them.
    pub(super) fn has_more_than(&self, most: usize) -> bool {
        let counts = self.index.slots().map(|slot| self.books[slot].count_all());
        let counts: Vec<usize> = counts.take(most.saturating_add(1)).collect();
        counts.len() > most || counts.iter().sum::<usize>() > most
    }

    /// Sets the price band of a book. In covered futures, no order may stay outside it: its trade
    /// could cost more than the hold for it. Takes out as many as a command may have events.
    #[cold]
    pub(super) fn set_band(&mut self, symbol: SymbolId, band: (i64, i64), events: &mut Events) {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return;
        };
        book.set_band(band);
        if book.is_futures() && self.rules.cover_futures && self.rules.margin_trading {
            let is_left = book.remove_outside(self.rules.work_max(), events);
            if !events.is_empty() {
                events.add_standing(symbol, book.standing());
            }
            self.note_unfinished(symbol, is_left, events);
        }
    }

    /// Notes whether the end of an auction, or a price band, goes on.
    fn note_unfinished(&mut self, symbol: SymbolId, is_unfinished: bool, events: &mut Events) {
        events.set_unfinished(is_unfinished);
        match is_unfinished {
            true => self.unfinished.insert(symbol),
            false => self.unfinished.remove(&symbol),
        };
    }

    /// Returns whether something may be left over in a symbol, which may be halted.
    pub(crate) fn may_go_on(&self) -> bool {
        let sets = [&self.cancelling, &self.unfinished, &self.left_over];
        sets.iter().any(|symbols| !symbols.is_empty())
    }

    /// Returns the symbols in which the end of an auction, or a price band, goes on.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.unfinished.iter().copied()
    }

    /// Ends an auction, or goes on with that.
    pub(super) fn uncross(
        &mut self,
        symbol: SymbolId,
        reference: Option<i64>,
        events: &mut Events,
    ) -> ResultCode {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        events.forget_levels();
        let is_done = book.uncross(reference, &self.rules, events);
        if book.is_futures() {
            events.add_standing(symbol, book.standing());
        }
        if book.has_left_over() {
            self.note_left_over(symbol);
        }
        self.note_unfinished(symbol, !is_done, events);
        ResultCode::Success
    }

    /// Executes stop orders that are left over, as many as one command may.
    pub(super) fn run_left_over(&mut self, symbol: SymbolId, events: &mut Events) -> ResultCode {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        book.run_left_over(&self.rules, events);
        if book.is_futures() && !events.is_empty() {
            events.add_standing(symbol, book.standing());
        }
        if !book.has_left_over() {
            self.left_over.remove(&symbol);
        }
        ResultCode::Success
    }

    /// Notes that stop orders of a symbol are left over.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_left_over(&mut self, symbol: SymbolId) {
        self.left_over.insert(symbol);
    }

    /// Returns the symbols of which stop orders may be left over.
    pub(crate) fn left_over(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.left_over.iter().copied()
    }

    fn clear_of(&mut self, uid: UserId, symbol: SymbolId, (why, events): (Removal, &mut Events)) {
        self.clear(symbol, (why, events), |book, why, events| {
            book.remove_of(uid, why, events);
        });
    }

    /// The slot of the book out of which orders were taken.
    fn clear(
        &mut self,
        symbol: SymbolId,
        (why, events): (Removal, &mut Events),
        remove: impl FnOnce(&mut Book, Removal, &mut Events),
    ) -> Option<u32> {
        let slot = self.slot(symbol);
        let book = self.books.get_mut(slot)?;
        let before = events.len();
        remove(book, why, events);
        if events.len() > before && book.is_futures() {
            events.add_standing(symbol, book.standing());
        }
        Some(slot)
    }
}
