//! The matching stage: one book per symbol. Knows no money.

use crate::book::Book;
use crate::command::{Action, Command, SymbolSpec, SymbolType};
use crate::event::{Events, Standing, UserHint};
use crate::ids::SymbolId;
use crate::index::Index;
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// All books. One of the parts that a pipeline's stages own separately; see [`crate::State`].
#[derive(Clone, Debug)]
pub struct Matching {
    rules: Rules,
    books: Vec<Book>,
    index: Index,
    /// Orders that a new book has room for.
    orders: usize,
}

impl Matching {
    /// No symbols yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::with_capacity(rules, 0)
    }

    /// No symbols yet; each one's book will have room for `orders` resting orders at once, so that
    /// they need no allocation (a book of 0 takes memory with its first order).
    #[must_use]
    pub fn with_capacity(rules: Rules, orders: usize) -> Self {
        Self {
            rules,
            books: Vec::new(),
            index: Index::default(),
            orders,
        }
    }

    /// The book of a symbol. One that the risk check does not know (see
    /// [`Rules::margin_trading`]), or an option, has one too, though nothing rests there.
    #[must_use]
    pub fn book(&self, symbol: SymbolId) -> Option<&Book> {
        self.slot(symbol).map(|slot| &self.books[slot])
    }

    /// All books, by ascending symbol. Cost: sorts them.
    #[must_use]
    pub fn books(&self) -> Vec<&Book> {
        let mut books: Vec<&Book> = self.books.iter().collect();
        books.sort_unstable_by_key(|book| book.spec().id);
        books
    }

    /// Executes a command after its risk check and fills `events` (cleared first).
    ///
    /// `checked` is what [`Risk::check`](crate::risk::Risk::check) answered. Returns the command's
    /// final result: the risk check's refusal, except that an unknown book, and for a move an
    /// unknown order, is told first.
    pub fn execute(
        &mut self,
        command: &Command,
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        self.execute_for(command, checked, UserHint::UNKNOWN, events)
    }

    /// The same for a caller that knows where the command's user is kept: a new order keeps the
    /// hint, and its events bring it back.
    #[inline]
    pub fn execute_for(
        &mut self,
        command: &Command,
        checked: ResultCode,
        user: UserHint,
        events: &mut Events,
    ) -> ResultCode {
        events.clear();
        let Some(symbol) = command.symbol() else {
            return self.administer(command, checked);
        };
        let Some(slot) = self.slot(symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let book = &mut self.books[slot];
        if book.spec().symbol_type != SymbolType::Futures {
            return Self::in_book(book, &self.rules, command, (checked, user), events);
        }
        let moved = match *command {
            Command::Move { order_id, .. } => book.order(order_id),
            _ => None,
        };
        let result = Self::in_book(book, &self.rules, command, (checked, user), events);
        if result == ResultCode::Success {
            let best = |side| book.best(side).map(|level| level.price);
            events.set_standing(Standing {
                ask: best(Action::Ask),
                bid: best(Action::Bid),
                moved: moved.map(|order| (order.price, order.size - order.filled)),
            });
        }
        result
    }

    fn in_book(
        book: &mut Book,
        rules: &Rules,
        command: &Command,
        (checked, user): (ResultCode, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        match *command {
            Command::Place(ref place) => {
                if checked != ResultCode::ValidForMatchingEngine {
                    return checked;
                }
                book.place(place, user, rules, events);
                ResultCode::Success
            }
            Command::Move {
                uid,
                order_id,
                price,
                ..
            } => book.move_order((uid, order_id), price, checked, rules, events),
            Command::Cancel { uid, order_id, .. } => book.cancel(uid, order_id, events),
            Command::Reduce {
                uid, order_id, by, ..
            } => book.reduce(uid, order_id, by, events),
            _ => checked,
        }
    }

    fn administer(&mut self, command: &Command, checked: ResultCode) -> ResultCode {
        match command {
            Command::AddSymbols(specs) if checked == ResultCode::Success => {
                specs.iter().for_each(|spec| self.add(spec));
            }
            Command::Reset => *self = Self::with_capacity(self.rules, self.orders),
            _ => {}
        }
        checked
    }

    fn add(&mut self, spec: &SymbolSpec) {
        if self.slot(spec.id).is_some() {
            return;
        }
        let slot = u32::try_from(self.books.len()).expect("memory runs out before symbols do");
        self.books.push(Book::with_capacity(*spec, self.orders));
        let books = &self.books;
        let key_of = |slot: u32| i64::from(books[slot as usize].spec().id.0);
        self.index.insert(i64::from(spec.id.0), slot, key_of);
    }

    fn slot(&self, symbol: SymbolId) -> Option<usize> {
        let key_of = |slot: u32| i64::from(self.books[slot as usize].spec().id.0);
        self.index
            .find(i64::from(symbol.0), key_of)
            .map(|slot| slot as usize)
    }
}
