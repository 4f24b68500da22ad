//! The levels and orders of a side, as seen from outside.

use thalweg::ring::prefetch;

use super::super::node::Node;
use super::super::{Level, RestingOrder};
use super::{Ladder, NO_KEY, mask};
use crate::command::Action;

/// The keys of the best and the worst price of a band.
const fn keys_of(side: Action, (low, high): (i64, i64)) -> (i64, i64) {
    match side {
        Action::Ask => (low, high),
        Action::Bid => (high ^ mask(side), low ^ mask(side)),
    }
}

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
        self.level_slots_from(side, i64::MIN)
    }

    /// Returns the slots of a side's levels from a key on, best first.
    fn level_slots_from(&self, side: Action, first: i64) -> impl Iterator<Item = u32> + '_ {
        let mut last = None;
        std::iter::from_fn(move || {
            let key = match last {
                None => match self.best_key(side) {
                    best if best < first => self.key_from(side, first),
                    best => best,
                },
                Some(NO_KEY) => return None,
                Some(key) => self.key_after(side, key),
            };
            last = Some(key);
            self.level_at(side, key)
        })
    }

    pub(in crate::engine::book) fn levels(&self, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.level_slots(side).map(|slot| self.level_in(slot))
    }

    /// Returns the levels of a side between two keys, best first, with their slots.
    pub(in crate::engine::book) fn levels_between(
        &self,
        side: Action,
        (first, last): (i64, i64),
    ) -> impl Iterator<Item = (u32, Level)> + '_ {
        let levels = self.level_slots_from(side, first);
        let levels = levels.map(|slot| (slot, self.level_in(slot)));
        levels.take_while(move |(_, level)| level.price ^ mask(side) <= last)
    }

    /// Lots and orders of a price, if orders of this side rest there.
    #[inline]
    pub(in crate::engine::book) fn level(&self, side: Action, price: i64) -> Option<(i64, u64)> {
        let level = self.nodes.get(self.level_of(side, price))?;
        // Both sides share the window. The newest order may have come just now.
        let is_own = level.tag != 0 && self.nodes[level.previous].action == side;
        is_own.then(|| (level.left, level.tag.into()))
    }

    fn level_in(&self, slot: u32) -> Level {
        let node = &self.nodes[slot];
        Level {
            price: self.price_of(slot),
            volume: node.left,
            orders: node.tag.into(),
        }
    }

    /// The slots of the orders of a side, best price first, then in order of time.
    pub(in crate::engine::book) fn slots(&self, side: Action) -> impl Iterator<Item = u32> + '_ {
        let levels = self.level_slots(side);
        levels.flat_map(|level| self.queue(level))
    }

    /// Returns the slots of the orders outside a band of prices. Cost: those orders, and a look at
    /// one more.
    pub(in crate::engine::book) fn slots_outside(
        &self,
        side: Action,
        band: (i64, i64),
    ) -> impl Iterator<Item = u32> + '_ {
        let (first, last) = keys_of(side, band);
        let better = self.level_slots(side);
        let better = better.take_while(move |&level| self.price_of(level) ^ mask(side) < first);
        let worse = last.checked_add(1).into_iter();
        let worse = worse.flat_map(move |key| self.level_slots_from(side, key));
        better.chain(worse).flat_map(|level| self.queue(level))
    }

    /// The slots of the orders of a level, in order of time.
    pub(in crate::engine::book) fn queue(&self, level: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.nodes[level].next), move |&slot| {
            let next = self.nodes[slot].next;
            (next != level).then_some(next)
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
