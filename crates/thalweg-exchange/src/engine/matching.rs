//! Matching: one book per symbol. Knows no money.

mod left_over;
mod prefetch;

use self::left_over::LeftOver;
pub(crate) use self::prefetch::PrefetchGroup;
use crate::command::{Command, ConditionalOrder, Place, SymbolSpec};
use crate::engine::book::Book;
use crate::engine::index::SymbolIndex;
use crate::engine::slab::Slab;
use crate::event::{Events, RemovalReason, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::risk::TradingLimits;
use crate::rules::Rules;

/// All books: one of the parts of a [`State`](crate::State).
#[derive(Clone, Debug)]
pub struct Matching {
    rules: Rules,
    books: Slab<Book>,
    index: SymbolIndex,
    /// Orders that a new book has room for.
    orders: usize,
    /// Whether a new book [finds one owner's orders](Book::keep_owners).
    keeps_owners: bool,
    left_over: LeftOver,
}

impl Matching {
    /// No symbols yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::with_capacity(rules, 0)
    }

    /// No symbols yet; each one's book will have room for `orders` resting orders at once, so that
    /// they need no allocation near the market. A book of 0 takes 10 KiB with its first order, and
    /// 256 more when it has some 64 orders, or often orders far from the market.
    #[must_use]
    pub fn with_capacity(rules: Rules, orders: usize) -> Self {
        Self {
            rules,
            books: Slab::default(),
            index: SymbolIndex::default(),
            orders,
            keeps_owners: false,
            left_over: LeftOver::default(),
        }
    }

    /// Returns the book of a symbol. One that the risk check does not know (see
    /// [`Rules::margin_trading`]), or an option, has one too, though nothing rests there.
    #[must_use]
    pub fn book(&self, symbol: SymbolId) -> Option<&Book> {
        self.books.get(self.slot(symbol) as usize)
    }

    /// Returns how many books there are.
    pub(crate) fn count(&self) -> usize {
        self.index.slots().count()
    }

    /// Returns all books, by ascending symbol. Cost: sorts them.
    #[must_use]
    pub fn books(&self) -> Vec<&Book> {
        let slots = self.index.slots();
        let mut books: Vec<&Book> = slots.map(|slot| &self.books[slot]).collect();
        books.sort_unstable_by_key(|book| book.spec().id);
        books
    }

    /// Runs the second part of [`apply`](crate::apply), for tests of it.
    ///
    /// Executes a command after its risk check and fills `events` (cleared first).
    ///
    /// `checked` is what [`Risk::check`](crate::risk::Risk::check) answered. Returns the command's
    /// final result: the risk check's refusal, except that an unknown book, and for a move an
    /// unknown order, is reported first.
    #[doc(hidden)]
    pub fn execute(
        &mut self,
        command: &Command,
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        self.execute_for(command, checked, UserHint::UNKNOWN, events)
    }

    /// Executes a command as [`execute`](Self::execute) does, for a caller that knows where its
    /// user is kept: a new order keeps the hint, and its events bring it back.
    #[inline]
    pub(crate) fn execute_for(
        &mut self,
        command: &Command,
        checked: ResultCode,
        user: UserHint,
        events: &mut Events,
    ) -> ResultCode {
        events.begin();
        match *command {
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            } => self.move_order(symbol, (uid, order_id), price, checked, events),
            Command::Place(ref place) => self.place(place, checked, user, events),
            Command::Cancel {
                uid,
                symbol,
                order_id,
            } => self.cancel(symbol, (uid, order_id), events),
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by,
            } => self.reduce(symbol, (uid, order_id), by, events),
            _ => self.execute_other(command, checked, user, events),
        }
    }

    /// Executes a command that has no function of its own below; `events` are cleared.
    #[inline(never)]
    pub(crate) fn execute_other(
        &mut self,
        command: &Command,
        checked: ResultCode,
        user: UserHint,
        events: &mut Events,
    ) -> ResultCode {
        match *command {
            Command::Amend(ref amend) => {
                self.in_book(amend.symbol, events, |book, rules, events| {
                    if checked != ResultCode::ValidForMatchingEngine {
                        return checked;
                    }
                    book.amend(amend, rules, events)
                })
            }
            Command::PlaceConditional(ref order) => self.place_with(order, checked, user, events),
            _ => self.administer(command, checked, events),
        }
    }

    /// Executes a new order after its check; `events` are cleared.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        place: &Place,
        checked: ResultCode,
        user: UserHint,
        events: &mut Events,
    ) -> ResultCode {
        self.in_book(place.symbol, events, |book, rules, events| {
            if checked != ResultCode::ValidForMatchingEngine {
                return checked;
            }
            book.place(place, user, rules, events)
        })
    }

    /// Executes a move.
    #[inline(always)]
    pub(crate) fn move_order(
        &mut self,
        symbol: SymbolId,
        order: (UserId, OrderId),
        price: i64,
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let result = book.move_order(order, price, checked, &self.rules, events);
        if book.has_left_over() || self.may_go_on() {
            self.note_left_over(symbol);
        }
        result
    }

    /// Executes a cancel.
    #[inline(always)]
    pub(crate) fn cancel(
        &mut self,
        symbol: SymbolId,
        order: (UserId, OrderId),
        events: &mut Events,
    ) -> ResultCode {
        self.reduce(symbol, order, i64::MAX, events)
    }

    /// Executes a reduction.
    #[inline(always)]
    pub(crate) fn reduce(
        &mut self,
        symbol: SymbolId,
        order: (UserId, OrderId),
        by: i64,
        events: &mut Events,
    ) -> ResultCode {
        self.in_book(symbol, events, |book, _, events| {
            book.reduce(order, by, events)
        })
    }

    /// Runs a command in the book of its symbol, and for a futures symbol reports the book's
    /// standing.
    #[inline(always)]
    fn in_book(
        &mut self,
        symbol: SymbolId,
        events: &mut Events,
        run: impl FnOnce(&mut Book, &Rules, &mut Events) -> ResultCode,
    ) -> ResultCode {
        let slot = self.slot(symbol);
        let Some(book) = self.books.get_mut(slot) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let result = run(book, &self.rules, events);
        // A command that is rejected changes nothing, unless it cancelled something else.
        if book.is_futures() && (result == ResultCode::Success || events.len() > 1) {
            events.set_top_of_book(book.top_of_book());
        }
        if book.has_left_over() || self.may_go_on() {
            self.note_left_over(symbol);
        }
        result
    }

    fn administer(
        &mut self,
        command: &Command,
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        match command {
            Command::RemoveSymbol { symbol } if checked == ResultCode::ValidForMatchingEngine => {
                return self.remove(*symbol, events);
            }
            Command::CancelAll { uid, symbol } => return self.cancel_all(*uid, *symbol, events),
            Command::Disconnect { uid } => self.disconnect(*uid, events),
            Command::Clock { time } if checked == ResultCode::Success => self.expire(*time, events),
            Command::SetPriceBand { symbol, low, high } if checked == ResultCode::Success => {
                self.set_band(*symbol, (*low, *high), events);
            }
            Command::StartAuction { symbol } if checked == ResultCode::Success => {
                let slot = self.slot(*symbol);
                if let Some(book) = self.books.get_mut(slot) {
                    book.start_auction();
                }
                self.note_halt(*symbol, false);
            }
            Command::Halt { symbol } if checked == ResultCode::Success => {
                self.note_halt(*symbol, true);
            }
            Command::Unhalt { symbol } if checked == ResultCode::Success => {
                self.note_halt(*symbol, false);
            }
            Command::Uncross { symbol, reference }
                if checked == ResultCode::ValidForMatchingEngine =>
            {
                return self.uncross(*symbol, *reference, events);
            }
            Command::RunStops { symbol } if checked == ResultCode::ValidForMatchingEngine => {
                return self.run_left_over(*symbol, events);
            }
            Command::SetMarketProtection { symbol, ticks } if checked == ResultCode::Success => {
                let slot = self.slot(*symbol);
                if let Some(book) = self.books.get_mut(slot) {
                    book.set_protection(*ticks);
                }
            }
            Command::AddSymbols(specs) if checked == ResultCode::Success => {
                specs.iter().for_each(|spec| self.add(spec));
            }
            Command::Reset if checked == ResultCode::ValidForMatchingEngine => {
                if self.has_more_than(self.rules.work_max()) {
                    return ResultCode::MatchingRejectedWorkLimit;
                }
                let keeps_owners = self.keeps_owners;
                *self = Self::with_capacity(self.rules, self.orders);
                self.keeps_owners = keeps_owners;
                return ResultCode::Success;
            }
            _ => {}
        }
        checked
    }

    fn add(&mut self, spec: &SymbolSpec) {
        if self.book(spec.id).is_some() {
            return;
        }
        let mut book = Book::with_capacity(*spec, &self.rules, self.orders);
        if self.keeps_owners {
            book.keep_owners();
        }
        let slot = self.books.insert(book);
        self.index.insert(spec.id, slot);
    }

    /// Returns the book of a symbol, and the rules: most likely in this slot, as the risk side has
    /// it. Where it is not, symbols were added or removed here alone. A removed book has no order,
    /// and no room for one.
    #[inline(always)]
    pub(crate) fn book_near(&mut self, slot: u32, symbol: SymbolId) -> Option<(&mut Book, &Rules)> {
        let is_it = |book: &Book| book.spec().id == symbol;
        let slot = if self.books.get(slot as usize).is_some_and(is_it) {
            slot
        } else {
            self.slot_elsewhere(symbol)
        };
        Some((self.books.get_mut(slot)?, &self.rules))
    }

    #[cold]
    #[inline(never)]
    fn slot_elsewhere(&self, symbol: SymbolId) -> u32 {
        self.slot(symbol)
    }

    /// Returns the slot of a symbol's book, or one outside of the list.
    #[inline]
    fn slot(&self, symbol: SymbolId) -> u32 {
        self.index.slot(symbol, |slot| self.books[slot].spec().id)
    }
}

// Orders with conditions, and what becomes of them as time goes by.

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
        let slot = self.slot(symbol);
        if order.good_till.is_some()
            && let Some(book) = self.books.get_mut(slot)
        {
            self.left_over.note_due(symbol, book);
        }
        result
    }

    /// Takes out what expires at or before `time`, by ascending symbol; where that is more than one
    /// command may, what is left goes with the next clock command.
    ///
    /// Cost: a few steps in trees for each book that has come to be due, for each of which orders
    /// go, and for each order; nothing for books from which the next commands take them.
    #[cold]
    pub(super) fn expire(&mut self, time: i64, events: &mut Events) {
        self.left_over.note_time(time);
        let mut visited = 0;
        while let Some(symbol) = self.left_over.take_due() {
            visited += 1;
            let slot = self.slot(symbol);
            if let Some(book) = self.books.get_mut(slot) {
                book.take_noted_expiry();
                self.left_over.note_due(symbol, book);
            }
        }
        let max = self.rules.work_max();
        while events.len() < max
            && let Some(symbol) = self.left_over.take_expired()
        {
            visited += 1;
            let slot = self.slot(symbol);
            let Some(book) = self.books.get_mut(slot) else {
                continue;
            };
            book.expire(time, max, events);
            if book.is_futures() {
                events.add_top_of_book(symbol, book.top_of_book());
            }
            self.left_over.note_due(symbol, book);
            self.left_over.note(symbol, book);
        }
        events.add_visits(visited);
    }

    /// Returns the time that has come where orders are left over that expire by it.
    pub(crate) fn expired_by(&self) -> Option<i64> {
        self.left_over.expired_by()
    }
}

// Commands of the market's operators, which concern whole books.

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
        let symbols = match symbol {
            Some(symbol) => match self.book(symbol) {
                None => return ResultCode::MatchingInvalidOrderBookId,
                Some(book) if uid.is_none() && book.is_uncrossing() => {
                    return ResultCode::SymbolInAuction;
                }
                Some(_) => vec![symbol],
            },
            None => self.symbols_with(uid, events),
        };
        for symbol in symbols {
            match uid {
                Some(uid) => self.clear_of(uid, symbol, (RemovalReason::CancelAll, events)),
                None => self.cancel_everybody(symbol, events),
            }
        }
        ResultCode::Success
    }

    /// Takes out the orders of all users in one book, or as many as the command may. Where an
    /// auction ends, that is left over until it has.
    fn cancel_everybody(&mut self, symbol: SymbolId, events: &mut Events) {
        let slot = self.slot(symbol);
        if let Some(book) = self.books.get_mut(slot)
            && book.postpone_cancel_all()
        {
            return;
        }
        let most = self.rules.work_max().saturating_sub(events.len());
        let mut is_left = false;
        let why = RemovalReason::CancelAll;
        self.clear(symbol, (why, events), |book, why, events| {
            is_left = book.remove_all(why, most, events);
        });
        self.left_over.note_cancelling(symbol, is_left);
    }

    /// Returns the symbols in which a mass cancel has orders left over, in ascending order.
    pub(crate) fn cancelling(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.left_over.cancelling()
    }

    /// Returns whether a mass cancel has orders of a symbol left over.
    pub(crate) fn is_cancelling(&self, symbol: SymbolId) -> bool {
        self.left_over.is_cancelling(symbol)
    }

    /// Takes out the orders of a user whose session is gone, as far as they ask for it.
    pub(super) fn disconnect(&mut self, uid: UserId, events: &mut Events) {
        for symbol in self.symbols_with(Some(uid), events) {
            self.clear_of(uid, symbol, (RemovalReason::Disconnected, events));
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

    /// Returns the symbols in whose books orders of a user, or any, may be, in ascending order.
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
        if let Some(book) = self.book(symbol) {
            if book.is_uncrossing() {
                return ResultCode::SymbolInAuction;
            }
            if book.count_all() > most {
                return ResultCode::MatchingRejectedWorkLimit;
            }
        }
        let why = RemovalReason::SymbolRemoved;
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
        self.left_over.forget(symbol);
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
                events.add_top_of_book(symbol, book.top_of_book());
            }
            events.set_unfinished(is_left);
            self.left_over.note_unfinished(symbol, is_left);
        }
        self.left_over.note(symbol, book);
    }

    /// Returns whether something is left over that may go on now.
    #[inline(always)]
    pub(crate) fn may_go_on(&self) -> bool {
        !self.left_over.is_empty()
    }

    /// Returns a symbol in which the end of an auction, or a price band, goes on.
    pub(crate) fn unfinished(&self) -> Option<SymbolId> {
        self.left_over.unfinished()
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
        let is_cancelling = self.left_over.take_cancelling(symbol);
        let ended = book.uncross(reference, &self.rules, events);
        if book.is_futures() {
            events.add_top_of_book(symbol, book.top_of_book());
        }
        if ended.is_none() {
            if is_cancelling {
                book.postpone_cancel_all();
            }
            // Expired orders stay until the auction has ended.
            self.left_over.forget_due(symbol, book);
        } else if book.count_all() > 0 && (is_cancelling || ended == Some(true)) {
            self.left_over.note_cancelling(symbol, true);
        }
        events.set_unfinished(ended.is_none());
        self.left_over.note_unfinished(symbol, ended.is_none());
        self.left_over.note_due(symbol, book);
        self.left_over.note(symbol, book);
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
            events.add_top_of_book(symbol, book.top_of_book());
        }
        self.left_over.note(symbol, book);
        ResultCode::Success
    }

    /// Notes what is left over of a symbol, after a command that may have changed that: stop
    /// orders, or orders outside of a band in an auction.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_left_over(&mut self, symbol: SymbolId) {
        let slot = self.slot(symbol);
        if let Some(book) = self.books.get_mut(slot) {
            self.left_over.note(symbol, book);
        }
    }

    /// Notes that a symbol is halted, or not any more.
    fn note_halt(&mut self, symbol: SymbolId, is_halted: bool) {
        let slot = self.slot(symbol);
        if let Some(book) = self.books.get_mut(slot) {
            self.left_over.note_halt(symbol, book, is_halted);
        }
    }

    /// Returns a symbol of which stop orders are left over that may be executed now.
    pub(crate) fn left_over(&self) -> Option<SymbolId> {
        self.left_over.stops()
    }

    fn clear_of(&mut self, uid: UserId, symbol: SymbolId, why: (RemovalReason, &mut Events)) {
        self.clear(symbol, why, |book, why, events| {
            if !book.postpone_leaving(uid, why) {
                book.remove_of(uid, why, events);
            }
        });
    }

    /// Returns the slot of the book out of which orders were taken.
    fn clear(
        &mut self,
        symbol: SymbolId,
        (why, events): (RemovalReason, &mut Events),
        remove: impl FnOnce(&mut Book, RemovalReason, &mut Events),
    ) -> Option<u32> {
        let slot = self.slot(symbol);
        let book = self.books.get_mut(slot)?;
        let before = events.len();
        remove(book, why, events);
        if events.len() > before && book.is_futures() {
            events.add_top_of_book(symbol, book.top_of_book());
        }
        if !self.left_over.is_empty() {
            self.left_over.note(symbol, book);
        }
        Some(slot)
    }
}

// The books made again from a state snapshot; see [`snapshot`](crate::snapshot).

impl Matching {
    /// Returns the rules that hold.
    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Has expired what does by this time.
    pub(crate) const fn restore_time(&mut self, time: Option<i64>) {
        self.left_over.restore_time(time);
    }

    /// Adds a book of a symbol that has none and these limits, in which a mass cancel goes on or
    /// not. The [time](Self::restore_time) must be known.
    pub(crate) fn restore(&mut self, book: Book, is_cancelling: bool, limits: TradingLimits) {
        let symbol = book.spec().id;
        let Rules {
            margin_trading,
            cover_futures,
            ..
        } = self.rules;
        let is_covered = book.is_futures() && margin_trading && cover_futures;
        let has_outside = is_covered && book.has_outside();
        self.left_over.note_cancelling(symbol, is_cancelling);
        let slot = self.books.insert(book);
        self.index.insert(symbol, slot);
        let book = &mut self.books[slot];
        self.left_over.restore(book, limits, has_outside);
    }
}
