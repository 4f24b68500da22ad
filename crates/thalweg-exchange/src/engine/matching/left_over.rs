//! Symbols in which earlier commands have left work over, and when something expires where.
//!
//! Each set has the symbols whose work may go on now, and no others: a halt, or an auction that
//! ends, may keep more, which is added when it is over. So what goes on is found without a look at
//! what does not, and no command is given that would do nothing.

use std::collections::BTreeSet;

use crate::engine::book::Book;
use crate::ids::SymbolId;
use crate::risk::TradingLimits;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOver {
    /// When to look at which book for orders that expire: at least one entry where there are any
    /// that have not, no later than the first of them.
    dues: BTreeSet<(i64, SymbolId)>,
    /// The time up to which orders have expired, and where some have that are left over.
    time: Option<i64>,
    expired: BTreeSet<SymbolId>,
    halted: BTreeSet<SymbolId>,
    /// Where stop orders are left over.
    stops: BTreeSet<SymbolId>,
    /// Where a mass cancel of all users' orders has left some over.
    cancelling: BTreeSet<SymbolId>,
    /// Where the end of an auction, or a price band, goes on.
    unfinished: BTreeSet<SymbolId>,
}

/// Adds a symbol to a set, or takes it out.
fn set(symbols: &mut BTreeSet<SymbolId>, symbol: SymbolId, is_in: bool) {
    match is_in {
        true => symbols.insert(symbol),
        false => symbols.remove(&symbol),
    };
}

impl LeftOver {
    /// Returns whether nothing may go on.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.cancelling.is_empty()
            && self.unfinished.is_empty()
            && self.stops.is_empty()
            && self.expired.is_empty()
    }

    /// Returns where a mass cancel goes on, in ascending order.
    pub(super) fn cancelling(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.cancelling.iter().copied()
    }

    pub(super) fn is_cancelling(&self, symbol: SymbolId) -> bool {
        self.cancelling.contains(&symbol)
    }

    pub(super) fn note_cancelling(&mut self, symbol: SymbolId, is_left: bool) {
        set(&mut self.cancelling, symbol, is_left);
    }

    /// Takes a symbol out of those in which a mass cancel goes on. Returns whether one did.
    pub(super) fn take_cancelling(&mut self, symbol: SymbolId) -> bool {
        self.cancelling.remove(&symbol)
    }

    /// Returns where the end of an auction, or a price band, goes on.
    pub(super) fn unfinished(&self) -> Option<SymbolId> {
        self.unfinished.first().copied()
    }

    pub(super) fn note_unfinished(&mut self, symbol: SymbolId, is_unfinished: bool) {
        set(&mut self.unfinished, symbol, is_unfinished);
    }

    /// Returns where stop orders are left over.
    pub(super) fn stops(&self) -> Option<SymbolId> {
        self.stops.first().copied()
    }

    /// Returns the time that has come where orders are left over that expire by it.
    pub(super) fn expired_by(&self) -> Option<i64> {
        self.time.filter(|_| !self.expired.is_empty())
    }

    /// Notes whether something in a book has expired, or when it does first, if that is not known.
    pub(super) fn note_due(&mut self, symbol: SymbolId, book: &mut Book) {
        if book.is_uncrossing() {
            return;
        }
        let has_expired = self.time.is_some_and(|time| book.expires_by(time));
        set(&mut self.expired, symbol, has_expired);
        if !has_expired && let Some((before, first)) = book.note_first_expiry() {
            self.remove_due(before, symbol);
            self.dues.insert((first, symbol));
        }
    }

    /// Forgets what has expired in a book and what will: an auction ends there.
    pub(super) fn forget_due(&mut self, symbol: SymbolId, book: &mut Book) {
        self.remove_due(book.take_noted_expiry(), symbol);
        self.expired.remove(&symbol);
    }

    fn remove_due(&mut self, due: Option<i64>, symbol: SymbolId) {
        if let Some(due) = due {
            self.dues.remove(&(due, symbol));
        }
    }

    /// Notes a time that has come.
    pub(super) const fn note_time(&mut self, time: i64) {
        self.time = Some(time);
    }

    /// Takes out where something may expire by the time that has come, which `note_due` must learn.
    pub(super) fn take_due(&mut self) -> Option<SymbolId> {
        let &(first, symbol) = self.dues.first()?;
        (Some(first) <= self.time).then(|| {
            self.dues.pop_first();
            symbol
        })
    }

    /// Takes out the lowest symbol of those in which something has expired.
    pub(super) fn take_expired(&mut self) -> Option<SymbolId> {
        self.expired.pop_first()
    }

    /// Notes what is left over in a book, after a command that may have changed that.
    pub(super) fn note(&mut self, symbol: SymbolId, book: &mut Book) {
        let is_auction = book.is_auction();
        if is_auction && !book.is_uncrossing() && !book.has_outside() {
            self.unfinished.remove(&symbol);
        }
        let is_shut = self.halted.contains(&symbol) || self.unfinished.contains(&symbol);
        let has_stops = book.has_left_over() && !is_auction && !is_shut;
        set(&mut self.stops, symbol, has_stops);
        if self.expired.contains(&symbol) {
            self.note_due(symbol, book);
        }
    }

    /// Notes that a symbol is halted, or not any more.
    pub(super) fn note_halt(&mut self, symbol: SymbolId, book: &mut Book, is_halted: bool) {
        set(&mut self.halted, symbol, is_halted);
        if book.is_uncrossing() {
            set(&mut self.unfinished, symbol, !is_halted);
        }
        self.note(symbol, book);
    }

    /// Forgets a symbol that is removed.
    pub(super) fn forget(&mut self, symbol: SymbolId) {
        for symbols in [
            &mut self.expired,
            &mut self.halted,
            &mut self.stops,
            &mut self.cancelling,
            &mut self.unfinished,
        ] {
            symbols.remove(&symbol);
        }
    }

    /// Notes the time up to which orders have expired, of a state that was saved.
    pub(super) const fn restore_time(&mut self, time: Option<i64>) {
        self.time = time;
    }

    /// Notes what is left over in a book that was saved, with the limits of its symbol.
    pub(super) fn restore(&mut self, book: &mut Book, limits: TradingLimits, has_outside: bool) {
        let symbol = book.spec().id;
        let is_stopped = limits.halted && book.is_uncrossing();
        let goes_on = (limits.busy || has_outside) && !is_stopped;
        set(&mut self.unfinished, symbol, goes_on);
        set(&mut self.halted, symbol, limits.halted);
        book.take_noted_expiry();
        self.note_due(symbol, book);
        self.note(symbol, book);
    }
}
