//! Looking ahead: asking for the memory of commands that will soon be executed.
//!
//! The memory that a command needs lies behind a chain of look-ups: its book, the place in the
//! index, the order, the order's neighbours. Each look-up is made for many commands before the next
//! one, so that their lines come from memory together, and not one after another.

use super::Matching;
use crate::book::Book;
use crate::command::Command;
use crate::engine::index::NO_SLOT;
use crate::ids::{OrderId, SymbolId, UserId};

/// Commands that are looked at together: enough to wait for few of their lines, and few enough that
/// these stay in the first-level cache.
const TOGETHER: usize = 64;

/// The order that a command names, and what is known of where it is.
#[derive(Clone, Copy, Debug)]
struct Sought {
    book: u32,
    uid: UserId,
    order: OrderId,
    /// The price that the order will have.
    price: Option<i64>,
    /// Its place in the index; then its slot, as far as one look-up finds it.
    hash: u32,
    slot: Option<u32>,
}

const NOTHING: Sought = Sought {
    book: NO_SLOT,
    uid: UserId(0),
    order: OrderId(0),
    price: None,
    hash: 0,
    slot: None,
};

/// Up to [`TOGETHER`] commands that will soon be executed.
#[derive(Debug)]
pub(crate) struct Ahead {
    sought: [Sought; TOGETHER],
    count: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            sought: [NOTHING; TOGETHER],
            count: 0,
        }
    }
}

impl Ahead {
    /// How many commands are looked at together: those beyond are not.
    pub(crate) const ROOM: usize = TOGETHER;

    /// Takes a command in.
    #[inline]
    pub(crate) fn note(&mut self, books: &Matching, command: &Command) {
        let (Some((symbol, (uid, order), price)), Some(sought)) =
            (order_of(command), self.sought.get_mut(self.count))
        else {
            return;
        };
        let slot = books.slot(symbol);
        let Some(book) = books.books.get(slot as usize) else {
            return;
        };
        if books.index.are_many() {
            book.ask_for_itself();
        }
        *sought = Sought {
            book: slot,
            uid,
            order,
            price,
            ..NOTHING
        };
        self.count += 1;
    }

    /// Asks for what the commands that were taken in will need, and forgets them. Changes nothing
    /// else.
    #[inline]
    pub(crate) fn ask(&mut self, books: &Matching) {
        let sought = &mut self.sought[..self.count];
        for sought in &mut *sought {
            let book = &books.books[sought.book];
            sought.hash = book.ask_for_place(sought.uid, sought.order, sought.price);
        }
        for sought in &mut *sought {
            let book = &books.books[sought.book];
            sought.slot = book.ask_for_order(sought.hash);
        }
        for sought in sought {
            let book = &books.books[sought.book];
            book.ask_for_neighbours(sought.slot, sought.price);
        }
        self.count = 0;
    }
}

/// The order that a command names, and the price that it will have.
#[inline]
const fn order_of(command: &Command) -> Option<(SymbolId, (UserId, OrderId), Option<i64>)> {
    match *command {
        Command::Place(ref place) => {
            let order = (place.uid, place.order_id);
            Some((place.symbol, order, Some(place.price)))
        }
        Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } => Some((symbol, (uid, order_id), Some(price))),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        }
        | Command::Reduce {
            uid,
            symbol,
            order_id,
            ..
        } => Some((symbol, (uid, order_id), None)),
        _ => None,
    }
}

impl Matching {
    /// True where looking ahead pays: a book of these commands is too large for the nearer caches,
    /// or there are many books. Cost: a look at the books of eight of them, evenly spaced. So a
    /// large book that few of many commands concern may be missed: then they wait for memory, as
    /// with `apply`.
    pub(crate) fn is_large(&self, commands: &[Command]) -> bool {
        let step = commands.len().div_ceil(8).max(1);
        let mut commands = commands.iter().step_by(step);
        commands.any(|command| self.is_large_for(command))
    }

    /// Whether the book of one command is too large for the nearer caches.
    pub(crate) fn is_large_for(&self, command: &Command) -> bool {
        let book = order_of(command).and_then(|(symbol, ..)| self.book(symbol));
        book.is_some_and(Book::is_large) || self.index.are_many()
    }
}
