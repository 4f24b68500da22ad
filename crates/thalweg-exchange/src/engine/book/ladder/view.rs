//! The levels and orders of a side, as seen from outside.

use thalweg::ring::prefetch;

use super::super::node::Node;
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

    /// The slots of the levels of a side, best first. Cost: two binary searches each, when it is
    /// asked for: behind the last one, the whole window may be searched.
    fn level_slots(&self, side: Action) -> impl Iterator<Item = u32> + '_ {
        let mut last = None;
        std::iter::from_fn(move || {
            let key = match last {
                None => self.best_key(side),
                Some(NO_KEY) => return None,
                Some(key) => self.key_after(side, key),
            };
            last = Some(key);
            self.level_at(side, key)
        })
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

    /// Visits all orders of a side, with their slots: of each level in order of time, but of many
    /// levels in turn, so that the memory of their next orders comes together. One queue after the
    /// other, each order is waited for.
    pub(in crate::engine::book) fn visit_queues(
        &self,
        side: Action,
        mut visit: impl FnMut(u32, &Node),
    ) {
        const TOGETHER: usize = 32;
        let mut levels = self.level_slots(side);
        let mut queues: Vec<(u32, u32)> = Vec::with_capacity(TOGETHER);
        loop {
            let new = levels.by_ref().take(TOGETHER - queues.len());
            queues.extend(new.map(|level| (self.nodes[level].next, level)));
            if queues.is_empty() {
                return;
            }
            queues.retain_mut(|(slot, level)| {
                let order = &self.nodes[*slot];
                visit(*slot, order);
                *slot = order.next;
                let is_left = *slot != *level;
                if is_left {
                    prefetch(&self.nodes[*slot]);
                }
                is_left
            });
        }
    }

    pub(in crate::engine::book) fn orders(
        &self,
        side: Action,
    ) -> impl Iterator<Item = RestingOrder> + '_ {
        self.slots(side).map(|slot| self.nodes[slot].resting())
    }
}
