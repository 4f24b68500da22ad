//! Looking ahead: asking for the memory of commands that will soon be executed.

use super::Matching;
use crate::book::Book;
use crate::command::Command;
use crate::ids::{OrderId, SymbolId, UserId};

/// Which lines of a command's order to ask for. Each step needs what the one before it asked for.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Place,
    Order,
    Neighbours,
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
    /// True where looking ahead pays: a book of these commands is too large for the nearer caches.
    /// Cost: a look at the books of eight of them, evenly spaced. So a large book that few of many
    /// commands concern may be missed: then they wait for memory, as with `apply`.
    pub(crate) fn is_large(&self, commands: &[Command]) -> bool {
        let step = commands.len().div_ceil(8).max(1);
        let orders = commands.iter().step_by(step).filter_map(order_of);
        let mut books = orders.filter_map(|(symbol, ..)| self.book(symbol));
        books.any(Book::is_large)
    }

    /// Asks for lines that `command` will need. Changes nothing, and costs little where they are
    /// near already.
    #[inline]
    pub(crate) fn fetch(&self, command: &Command, step: Step) {
        let Some((symbol, (uid, order), price)) = order_of(command) else {
            return;
        };
        let Some(book) = self.books.get(self.slot(symbol) as usize) else {
            return;
        };
        if Book::is_large(book) {
            match step {
                Step::Place => book.ask_for_place(uid, order),
                Step::Order => book.ask_for_order(uid, order, price),
                Step::Neighbours => book.ask_for_neighbours(uid, order, price),
            }
        }
    }
}
