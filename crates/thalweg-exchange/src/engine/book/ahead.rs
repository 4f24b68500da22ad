//! Asking for the cache lines of an order's neighbourhood a few commands before it is needed.

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

    /// First: asks for the place in the index where an order's id is looked for.
    #[inline]
    pub(crate) fn ask_for_place(&self, uid: UserId, order_id: OrderId) {
        prefetch(self.index.first_place(self.key(uid, order_id)));
    }

    /// Then: asks for the order, and for the level of the price that it will have.
    #[inline]
    pub(crate) fn ask_for_order(&self, uid: UserId, order_id: OrderId, price: Option<i64>) {
        let order = self.index.guess(self.key(uid, order_id));
        let level = price.and_then(|price| self.ladder.window_level(price));
        for slot in [order, level].into_iter().flatten() {
            self.fetch(slot);
        }
    }

    /// Last: asks for the orders that stand before and behind it, and for the newest one at that
    /// price.
    #[inline]
    pub(crate) fn ask_for_neighbours(&self, uid: UserId, order_id: OrderId, price: Option<i64>) {
        let nodes = &self.ladder.nodes;
        let order = self
            .index
            .guess(self.key(uid, order_id))
            .and_then(|slot| nodes.get(slot));
        if let Some(order) = order {
            self.fetch(order.previous);
            self.fetch(order.next);
            if let Some(level) = self.ladder.window_level(order.price) {
                self.fetch(level);
            }
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
