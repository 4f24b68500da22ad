//! What a command made happen in a book, and the buffer that collects it.

use std::ops::Deref;

use crate::command::Action;
use crate::ids::{OrderId, UserId};

/// One thing that happened in a book.
///
/// The *hold price* is the price at which the buying order's money was held: its reserve price
/// (of a FOK_BUDGET BID that takes: its budget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command's order (the taker) met a resting order (the maker).
    Trade {
        /// The maker's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The resting order.
        maker_order: OrderId,
        /// Its owner.
        maker_uid: UserId,
        /// True where the maker is filled and gone.
        maker_completed: bool,
        /// True on the trade that finishes the taker.
        taker_completed: bool,
        /// Hold price of the buying order.
        bidder_hold_price: i64,
        /// The taker's side: settlement needs it for a moved order.
        taker_action: Action,
    },
    /// A part of a new order that neither matched nor rests. Comes before the trades.
    Reject {
        /// The command's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The command's reserve price.
        bidder_hold_price: i64,
    },
    /// Lots that left a resting order by a cancel or reduce.
    Reduce {
        /// The order's price.
        price: i64,
        /// Lots.
        size: i64,
        /// True where the order is gone.
        completed: bool,
        /// The order's reserve price.
        bidder_hold_price: i64,
        /// The order's side.
        action: Action,
    },
}

/// The events of one command, in order; a buffer to be used again and again.
///
/// Keeps its memory: after the largest command so far, nothing is allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    list: Vec<Event>,
}

impl Events {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// An empty buffer with room for `events` events.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self {
            list: Vec::with_capacity(events),
        }
    }

    /// The events as a slice, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Event] {
        &self.list
    }

    /// Forgets the events, keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Adds an event at the end.
    pub fn push(&mut self, event: Event) {
        self.list.push(event);
    }

    /// Adds an event before all others (a reject comes before the trades). Cost: moves the rest.
    pub fn push_first(&mut self, event: Event) {
        self.list.insert(0, event);
    }
}

impl Deref for Events {
    type Target = [Event];

    fn deref(&self) -> &[Event] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter = std::slice::Iter<'a, Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}
