//! The levels and orders of a side, as seen from outside.

use super::super::{Level, RestingOrder};
use super::{Ladder, NO_KEY};
use crate::command::Action;

impl Ladder {
    fn price_of(&self, level: u32) -> i64 {
        if level < self.nodes.levels() {
            self.base + i64::from(level)
        } else {
            self.nodes[level].price
        }
    }

    /// The slots of the levels of a side, best first. Cost: two binary searches each.
    fn level_slots(&self, side: Action) -> impl Iterator<Item = u32> + '_ {
        let at = move |key| self.level_at(side, key).map(|level| (key, level));
        std::iter::successors(at(self.best_key(side)), move |&(key, _)| {
            (key != NO_KEY)
                .then(|| at(self.key_after(side, key)))
                .flatten()
        })
        .map(|(_, level)| level)
    }

    pub(in crate::engine::book) fn levels(&self, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.level_slots(side).map(|level| {
            let node = &self.nodes[level];
            Level {
                price: self.price_of(level),
                volume: node.left,
                orders: node.tag.into(),
            }
        })
    }

    /// The slots of the orders of a side, best price first, then in order of time.
    pub(in crate::engine::book) fn slots(&self, side: Action) -> impl Iterator<Item = u32> + '_ {
        self.level_slots(side).flat_map(move |level| {
            std::iter::successors(Some(self.nodes[level].next), move |&slot| {
                let next = self.nodes[slot].next;
                (next != level).then_some(next)
            })
        })
    }

    pub(in crate::engine::book) fn orders(
        &self,
        side: Action,
    ) -> impl Iterator<Item = RestingOrder> + '_ {
        self.slots(side).map(|slot| self.nodes[slot].resting())
    }
}
