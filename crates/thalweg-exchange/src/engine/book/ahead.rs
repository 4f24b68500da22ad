//! Asking for the cache lines of an order's neighbourhood some commands before they are needed.

use thalweg::ring::prefetch;

use super::Book;
use super::node::NONE;
use crate::ids::{OrderId, UserId};

impl Book {
    /// True where the book is too large for the nearer caches, so that asking ahead pays.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.index.is_large()
    }

    /// Before all: asks for what every command reads of a book.
    #[inline]
    pub(crate) fn ask_for_itself(&self) {
        prefetch(&self.ask_floor);
        prefetch(&self.index);
        self.ladder.ask_for_itself();
    }

    /// First: asks for the place in the index where an order's id is looked for, and for the level
    /// of the price that it will have. Gives the hash of the id.
    #[inline]
    pub(crate) fn ask_for_place(&self, uid: UserId, order_id: OrderId, price: Option<i64>) -> u32 {
        let hash = self.index.hash(self.key(uid, order_id));
        prefetch(self.index.first_place(hash));
        if let Some(price) = price {
            self.ladder.ask_for_level(price);
        }
        hash
    }

    /// Then: asks for the order, and says where it seems to be.
    #[inline]
    pub(crate) fn ask_for_order(&self, hash: u32) -> Option<u32> {
        let slot = self.index.guess(hash)?;
        self.fetch(slot);
        Some(slot)
    }

    /// Last: asks for the orders that stand before and behind it, and for the newest one at the
    /// price that it will have.
    #[inline]
    pub(crate) fn ask_for_neighbours(&self, slot: Option<u32>, price: Option<i64>) {
        let nodes = &self.ladder.nodes;
        if let Some(order) = slot.and_then(|slot| nodes.get(slot)) {
            self.fetch(order.previous);
            self.fetch(order.next);
            self.ladder.ask_for_level(order.price);
        }
        if let Some(level) = price.and_then(|price| self.ladder.window_level(price)) {
            self.fetch(nodes[level].previous);
        }
    }

    #[inline]
    fn fetch(&self, slot: u32) {
        if slot != NONE
            && let Some(node) = self.ladder.nodes.get(slot)
        {
            prefetch(node);
        }
    }
}
