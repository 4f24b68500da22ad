//! Prefetch: the memory of commands that will soon be executed is loaded into the caches.
//!
//! The memory that a command needs lies behind a chain of look-ups: its book, the bucket of the
//! index, the order, the order's neighbours. Each look-up is made for many commands before the next
//! one, so that their lines come from memory together, and not one after another.

use super::Matching;
use crate::book::Book;
use crate::command::Command;
use crate::engine::index::NO_SLOT;
use crate::ids::{OrderId, SymbolId, UserId};

/// The order that a command names, and what is known of its address.
#[derive(Clone, Copy, Debug)]
struct Target {
    book: u32,
    uid: UserId,
    order: OrderId,
    /// The price that the order will have.
    price: Option<i64>,
    /// The hash of its key; then its slot, as far as one look-up finds it.
    hash: u32,
    slot: Option<u32>,
}

const NO_TARGET: Target = Target {
    book: NO_SLOT,
    uid: UserId(0),
    order: OrderId(0),
    price: None,
    hash: 0,
    slot: None,
};

/// Up to [`PrefetchGroup::COMMANDS_MAX`] commands that will soon be executed.
#[derive(Debug)]
pub(crate) struct PrefetchGroup {
    targets: [Target; Self::COMMANDS_MAX],
    count: usize,
}

impl Default for PrefetchGroup {
    fn default() -> Self {
        Self {
            targets: [NO_TARGET; Self::COMMANDS_MAX],
            count: 0,
        }
    }
}

impl PrefetchGroup {
    /// The number of commands of a group: enough to wait for few of their lines, and few enough
    /// that these stay in the first-level cache. Further ones are not prefetched.
    pub(crate) const COMMANDS_MAX: usize = 64;

    /// Adds a command.
    #[inline]
    pub(crate) fn add(&mut self, books: &Matching, command: &Command) {
        let (Some((symbol, (uid, order), price)), Some(target)) =
            (order_of(command), self.targets.get_mut(self.count))
        else {
            return;
        };
        let slot = books.slot(symbol);
        let Some(book) = books.books.get(slot as usize) else {
            return;
        };
        if books.index.are_many() {
            book.prefetch_header();
        }
        *target = Target {
            book: slot,
            uid,
            order,
            price,
            ..NO_TARGET
        };
        self.count += 1;
    }

    /// Prefetches what the commands of the group will need, and removes them from it. Changes
    /// nothing else.
    #[inline]
    pub(crate) fn prefetch(&mut self, books: &Matching) {
        let targets = &mut self.targets[..self.count];
        for target in &mut *targets {
            let book = &books.books[target.book];
            target.hash = book.prefetch_index(target.uid, target.order, target.price);
        }
        for target in &mut *targets {
            let book = &books.books[target.book];
            target.slot = book.prefetch_order(target.hash);
        }
        for target in targets {
            let book = &books.books[target.book];
            book.prefetch_neighbours(target.slot, target.price);
        }
        self.count = 0;
    }
}

/// Returns the order that a command names, and the price that it will have.
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
    /// Returns whether prefetching pays: a book of these commands is too large for the nearer
    /// caches, or there are many books. It looks at the books of eight commands, evenly spaced, and
    /// can miss a large book that few commands concern: these wait for memory, as with `apply`.
    pub(crate) fn is_large(&self, commands: &[Command]) -> bool {
        let step = commands.len().div_ceil(8).max(1);
        let mut commands = commands.iter().step_by(step);
        commands.any(|command| self.is_large_for(command))
    }

    /// Returns whether the book of one command is too large for the nearer caches.
    pub(crate) fn is_large_for(&self, command: &Command) -> bool {
        let book = order_of(command).and_then(|(symbol, ..)| self.book(symbol));
        book.is_some_and(Book::is_large) || self.index.are_many()
    }
}
