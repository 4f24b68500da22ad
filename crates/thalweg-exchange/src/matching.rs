//! The matching stage: one book per symbol. Knows no money.

use crate::book::Book;
use crate::command::{Command, SymbolSpec};
use crate::event::Events;
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
}

impl Matching {
    /// No symbols yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            books: Vec::new(),
            index: Index::default(),
        }
    }

    /// The book of a symbol. A futures or option symbol has one too, though nothing rests there.
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
        events.clear();
        let Some(symbol) = command.symbol() else {
            return self.administer(command, checked);
        };
        let Some(slot) = self.slot(symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let book = &mut self.books[slot];
        match *command {
            Command::Place(ref place) => {
                if checked != ResultCode::ValidForMatchingEngine {
                    return checked;
                }
                book.place(place, events);
                ResultCode::Success
            }
            Command::Move {
                uid,
                order_id,
                price,
                ..
            } => book.move_order((uid, order_id), price, checked, &self.rules, events),
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
            Command::Reset => *self = Self::new(self.rules),
            _ => {}
        }
        checked
    }

    fn add(&mut self, spec: &SymbolSpec) {
        if self.slot(spec.id).is_some() {
            return;
        }
        let slot = u32::try_from(self.books.len()).expect("memory runs out before symbols do");
        self.books.push(Book::new(*spec));
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
