//! A book that is used more than it was: its window becomes wide.
//!
//! A venue has many symbols, and few of them are used much. So a book begins with a window of 64
//! ticks. It gets one of 4,096 when it has more than 64 orders and far levels, or when orders far
//! from the market came often. Levels of the window are the first slots of the nodes, so the few
//! orders that there are move to others. This happens once to a book.

use super::Book;
use super::ladder::Ladder;
use super::owners::Owners;
use crate::command::Action;
use crate::engine::index::Index;

impl Book {
    /// At the end of a command that may have made the book larger, or placed an order far away. No
    /// slot from before is valid afterwards.
    #[inline]
    pub(super) fn widen_if_used(&mut self) {
        if self.ladder.wants_width() {
            self.widen();
        }
    }

    /// In four steps, as a level is 64 bytes that must be written.
    #[cold]
    #[inline(never)]
    fn widen(&mut self) {
        let Some(nodes) = self.ladder.make_wider() else {
            return;
        };
        let orders = self.index.len();
        let mut ladder = Ladder::of(nodes);
        ladder.owners = self.ladder.owners.take().map(|_| Box::<Owners>::default());
        let mut index = Index::with_capacity(2 * orders);
        let old = &self.ladder;
        for side in [Action::Ask, Action::Bid] {
            for slot in old.slots(side) {
                let order = old.nodes[slot];
                let slot = ladder.nodes.insert(order);
                index.insert(order.key(self.owners), slot);
                ladder.append(slot);
            }
        }
        if let Some(aside) = &mut self.aside {
            aside.stops.relocate(|key, slot| {
                let slot = ladder.nodes.insert(old.nodes[slot]);
                index.insert(key, slot);
                slot
            });
        }
        self.ladder = ladder;
        self.index = index;
    }
}
