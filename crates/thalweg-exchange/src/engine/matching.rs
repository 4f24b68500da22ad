//! Matching: one book per symbol. Knows no money.

mod ahead;
mod conditional;
mod operations;
mod saved;

use std::collections::BTreeSet;

pub(crate) use self::ahead::Ahead;
use crate::book::Book;
use crate::command::{Command, Place, SymbolSpec};
use crate::engine::slab::Slab;
use crate::engine::symbol_index::SymbolIndex;
use crate::event::{Events, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;
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
    /// When to look at which book for orders that expire: at least one entry where there are any,
    /// no later than the first of them.
    dues: BTreeSet<(i64, SymbolId)>,
    /// Where stop orders may be left over.
    left_over: BTreeSet<SymbolId>,
    /// Where a mass cancel of all users' orders has left some over.
    cancelling: BTreeSet<SymbolId>,
    /// Where the end of an auction, or a price band, goes on.
    unfinished: BTreeSet<SymbolId>,
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
            dues: BTreeSet::new(),
            left_over: BTreeSet::new(),
            cancelling: BTreeSet::new(),
            unfinished: BTreeSet::new(),
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
            Command::PlaceWith(ref order) => self.place_with(order, checked, user, events),
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
        if book.has_left_over() {
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
            events.set_standing(book.standing());
        }
        if book.has_left_over() {
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

    /// The book of a symbol, and the rules: most likely in this slot, as the risk side has it.
    /// Where it is not, symbols were added or removed here alone. A removed book has no order, and
    /// no room for one.
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

    /// The slot of a symbol's book, or one outside of the list.
    #[inline]
    fn slot(&self, symbol: SymbolId) -> u32 {
        self.index.slot(symbol, |slot| self.books[slot].spec().id)
    }
}
