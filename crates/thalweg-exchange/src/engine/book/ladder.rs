//! The price levels of both sides: a window of ticks around the best prices, and sorted lists
//! for the rest.
//!
//! *State*: a bid and an ask never rest at one price but in an auction, while there is no window
//! (see `window`), so both sides share it; its levels are the first slots of the nodes, a map shows
//! which have orders. Levels outside it are nodes like orders, found through a list per side
//! (`far`). *Rules*: (1) a tick is occupied exactly while its level has orders; a far level exists
//! exactly while it has orders; (2) no far level has a price of the window; (3) the book is never
//! crossed: whatever could match has matched before an order is appended, but in an auction; (4)
//! `bound` of a side is no worse than its best key, and every order of the other side is beyond it;
//! `far_best` is the least key outside the window, or [`NO_KEY`].
//!
//! *Why a bound and not the best price*: only a taker needs the best price, and most orders do not
//! take. An order that does not reach the bound does not reach the best price either; one that
//! reaches it looks for the best price, which then is the bound. So a level that is left empty
//! costs nothing, and no branch asks whether it was the best. By (4), nothing
//! rests between a bound and the best price of its side, so the search may read the map of both
//! sides.
//!
//! *Keys*: `price ^ mask(side)` sorts each side's best price first without a branch or overflow. A
//! price may be as extreme as `NO_KEY` stands for, so that key is looked at twice.
//!
//! When and how the window moves: `window.rs`.

mod far;
mod window;

use std::mem::offset_of;

use self::far::Far;
use thalweg::ring::prefetch;

use self::window::{NO_TICK, Occupancy};
use super::orders::{NONE, Node, Nodes, RestingOrder, mask};
use super::owners::Owners;
use crate::command::Action;

/// The key of no price, and of the last one.
pub(super) const NO_KEY: i64 = i64::MAX;

/// The levels of both sides, and the nodes that they and the orders are. First what every command
/// reads.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Ladder {
    pub(super) nodes: Nodes,
    /// The price of tick 0.
    base: i64,
    occupied: Occupancy,
    bound: [i64; 2],
    far_best: [i64; 2],
    /// A tick that was occupied when it was looked at.
    seen: u32,
    /// Far commands to go before the window may move.
    move_delay: u32,
    /// How often they went.
    move_delay_ends: u32,
    /// True while there is no window, since the book may be crossed.
    is_shut: bool,
    /// True while the window leaves its old place.
    is_leaving: bool,
    /// The resting orders by owner, once that was asked for.
    pub(super) owners: Option<Box<Owners>>,
    /// The nodes of a wide window, while they are made.
    wide: Option<Box<Nodes>>,
    /// The price of tick 0 when the window has moved, if it does.
    target: i64,
    far: [Far; 2],
    /// Ticks of each side that the window had before it was shut, and whose levels are still there.
    parked: Option<Box<[Occupancy; 2]>>,
}

const _: () = assert!(
    cfg!(not(target_pointer_width = "64"))
        || offset_of!(Ladder, bound) == 64 && offset_of!(Ladder, target) == 128
);

impl Ladder {
    pub(super) const fn new() -> Self {
        Self {
            nodes: Nodes::new(),
            base: 0,
            occupied: Occupancy::closed(),
            parked: None,
            target: 0,
            seen: NO_TICK,
            bound: [NO_KEY; 2],
            far: [Far::new(), Far::new()],
            far_best: [NO_KEY; 2],
            move_delay: 0,
            move_delay_ends: 0,
            wide: None,
            owners: None,
            is_shut: false,
            is_leaving: false,
        }
    }

    /// Returns the distance of a price from tick 0: a tick of the window if below its width.
    #[inline]
    const fn offset(&self, price: i64) -> u64 {
        price.wrapping_sub(self.base).cast_unsigned()
    }

    /// Returns the slot of the level of a price in the window.
    #[inline]
    pub(super) fn window_level(&self, price: i64) -> Option<u32> {
        let offset = self.offset(price);
        (offset < self.occupied.width()).then_some(offset as u32)
    }

    /// Returns the slot of the level of a price at which something rests.
    #[inline]
    pub(super) fn level_of(&self, side: Action, price: i64) -> u32 {
        let offset = self.offset(price);
        if offset < self.occupied.width() {
            offset as u32
        } else {
            self.far_level_of(side, price)
        }
    }

    /// Returns the slot of the level with this key, if that side has one.
    pub(super) fn level_at(&self, side: Action, key: i64) -> Option<u32> {
        let level = self.level_of(side, key ^ mask(side));
        if level == NONE || self.nodes[level].tag == 0 {
            return None;
        }
        // Only of the last key it is not certain whose it is.
        let head = self.nodes[level].next;
        (self.nodes[head].action == side).then_some(level)
    }

    /// Puts an order at the end of the queue of its price.
    #[inline]
    pub(super) fn append(&mut self, slot: u32) {
        let Node {
            price,
            left,
            action: side,
            ..
        } = self.nodes[slot];
        let offset = self.offset(price);
        if offset < self.occupied.width() {
            let level = offset as u32;
            self.occupied.insert(level);
            self.link(slot, level, left);
            let bound = &mut self.bound[side as usize];
            *bound = (*bound).min(price ^ mask(side));
        } else {
            self.append_far(slot);
        }
    }

    /// Stores an order that is in no queue. Returns its slot.
    pub(super) fn add_unqueued(&mut self, order: Node) -> u32 {
        let slot = self.nodes.insert(order);
        if let Some(owners) = &mut self.owners {
            owners.make_links_to(slot);
        }
        slot
    }

    #[inline]
    fn link(&mut self, slot: u32, level: u32, left: i64) {
        let nodes = self.nodes.as_mut_slice();
        let queue = &mut nodes[level as usize];
        queue.left += left;
        queue.tag += 1;
        let last = std::mem::replace(&mut queue.previous, slot);
        nodes[last as usize].next = slot;
        let order = &mut nodes[slot as usize];
        order.previous = last;
        order.next = level;
        if let Some(owners) = &mut self.owners {
            owners.note_queued(slot, order.uid, order.flags);
        }
    }

    #[cold]
    fn append_far(&mut self, slot: u32) {
        let Node {
            price,
            left,
            action: side,
            ..
        } = self.nodes[slot];
        if self.occupied.width() == 0 && !self.is_shut && !self.is_parked() {
            // The first order of all: there are no levels yet.
            self.occupied.set_width(self.nodes.levels());
            self.base = self.base_around(price);
            self.append(slot);
            return;
        }
        let key = price ^ mask(side);
        let level = self.far_level_of(side, price);
        let level = if level == NONE {
            self.add_far(side, price)
        } else {
            level
        };
        self.link(slot, level, left);
        let bound = &mut self.bound[side as usize];
        *bound = (*bound).min(key);
        self.move_delay = self.move_delay.saturating_sub(1);
        if self.is_shut {
            return;
        }
        if self.is_moving() {
            self.step_move();
        } else if self.move_delay == 0 || self.window_is_empty() {
            self.move_if_useful();
        }
    }

    /// Looks first where something was the last time.
    fn window_is_empty(&mut self) -> bool {
        if self.occupied.has(self.seen.into()) {
            return false;
        }
        self.seen = self.occupied.from(0);
        self.seen == NO_TICK
    }

    /// Takes an order out of its queue, with what is left of its size. The links and `left` of the
    /// order keep their values.
    #[inline(always)]
    pub(super) fn unlink(&mut self, slot: u32) {
        let nodes = self.nodes.as_mut_slice();
        let Node {
            previous,
            next,
            left,
            price,
            action: side,
            ..
        } = nodes[slot as usize];
        nodes[previous as usize].next = next;
        nodes[next as usize].previous = previous;
        let at = price.wrapping_sub(self.base) as usize;
        let Some(tick) = self.occupied.as_mut_slice().get_mut(at) else {
            return self.unlink_far(left, (price, side));
        };
        let queue = &mut nodes[at];
        queue.left -= left;
        queue.tag -= 1;
        *tick = u8::from(queue.tag != 0);
    }

    /// Unlinks an order as [`unlink`](Self::unlink) does, and gives its slot back. The order keeps
    /// all but its links.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) {
        let (nodes, free) = self.nodes.with_free();
        let order = &mut nodes[slot as usize];
        let Node {
            uid,
            previous,
            next,
            left,
            price,
            action: side,
            ..
        } = *order;
        order.next = std::mem::replace(free, slot);
        nodes[previous as usize].next = next;
        nodes[next as usize].previous = previous;
        if let Some(owners) = &mut self.owners {
            owners.note_gone(slot, uid);
        }
        let at = price.wrapping_sub(self.base) as usize;
        let Some(tick) = self.occupied.as_mut_slice().get_mut(at) else {
            return self.unlink_far(left, (price, side));
        };
        let queue = &mut nodes[at];
        queue.left -= left;
        queue.tag -= 1;
        *tick = u8::from(queue.tag != 0);
    }

    /// Takes the first orders out of a level's queue, `gone` of them, before the order `first`, or
    /// the level itself, and gives their slots back. `taken`: the lots that the level has less.
    #[inline(always)]
    pub(super) fn cut(
        &mut self,
        level: u32,
        (first, gone): (u32, u32),
        taken: i64,
        (price, side): (i64, Action),
    ) {
        let (nodes, free) = self.nodes.with_free();
        let queue = &mut nodes[level as usize];
        queue.left -= taken;
        if gone == 0 {
            return;
        }
        queue.tag -= gone;
        let is_empty = queue.tag == 0;
        let head = std::mem::replace(&mut queue.next, first);
        let last = std::mem::replace(&mut nodes[first as usize].previous, level);
        // They are linked already, and free slots are linked in the same way.
        nodes[last as usize].next = std::mem::replace(free, head);
        if is_empty {
            self.close(level, price, side);
        }
    }

    /// Puts an order at the end of the queue of another price, which it must not cross. False,
    /// and nothing done, where a level is outside the window.
    ///
    /// The most frequent command of all, so without branches on what cannot be foreseen: the side,
    /// and whether a level is left empty.
    #[inline(always)]
    pub(super) fn shift(&mut self, slot: u32, price: i64) -> bool {
        let ticks = self.occupied.as_mut_slice();
        let nodes = self.nodes.as_mut_slice();
        let order = &mut nodes[slot as usize];
        let from = order.price.wrapping_sub(self.base) as usize;
        let to = price.wrapping_sub(self.base) as usize;
        if from >= ticks.len() || to >= ticks.len() {
            return false;
        }
        let Node {
            left,
            previous,
            next,
            action: side,
            ..
        } = *order;
        order.price = price;
        nodes[previous as usize].next = next;
        nodes[next as usize].previous = previous;
        let queue = &mut nodes[from];
        queue.left -= left;
        queue.tag -= 1;
        ticks[from] = u8::from(queue.tag != 0);
        ticks[to] = 1;
        let queue = &mut nodes[to];
        queue.left += left;
        queue.tag += 1;
        let last = std::mem::replace(&mut queue.previous, slot);
        nodes[last as usize].next = slot;
        let order = &mut nodes[slot as usize];
        order.previous = last;
        order.next = to as u32;
        if let Some(owners) = &mut self.owners {
            owners.note_queued(slot, order.uid, order.flags);
        }
        let bound = &mut self.bound[side as usize];
        *bound = (*bound).min(price ^ mask(side));
        true
    }

    /// Forgets a level that has no orders any more.
    #[inline]
    fn close(&mut self, level: u32, price: i64, side: Action) {
        match self.occupied.as_mut_slice().get_mut(level as usize) {
            Some(tick) => *tick = 0,
            None => self.close_outside(level, price, side),
        }
    }
}

/// A price level as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Level {
    /// The price.
    pub price: i64,
    /// Lots that rest here.
    pub volume: i64,
    /// How many orders they belong to.
    pub orders: u64,
}

// The best price of a side, and the next.

impl Ladder {
    /// Returns whether an order of the other side that takes keys up to `limit` finds none for
    /// certain.
    #[inline(always)]
    pub(super) const fn is_beyond(&self, side: Action, limit: i64) -> bool {
        self.bound[side as usize] > limit
    }

    /// Returns whether an order of the other side that takes keys up to `limit` would find one. (Of
    /// the last key it is not certain.)
    #[inline]
    pub(super) fn reaches(&mut self, side: Action, limit: i64) -> bool {
        self.bound[side as usize] <= limit && self.find_best_key(side) <= limit
    }

    /// Returns the best key of a side, which then is its bound; [`NO_KEY`] is not certain to be
    /// one.
    #[inline(always)]
    pub(super) fn find_best_key(&mut self, side: Action) -> i64 {
        let bound = self.bound[side as usize];
        if bound != NO_KEY && self.occupied.has(self.offset(bound ^ mask(side))) {
            return bound;
        }
        self.search_best_key(side)
    }

    #[inline(never)]
    fn search_best_key(&mut self, side: Action) -> i64 {
        let key = self.best_key(side);
        self.bound[side as usize] = key;
        key
    }

    /// Returns the best key of a side; [`NO_KEY`] is not certain to be one.
    pub(super) fn best_key(&self, side: Action) -> i64 {
        let window = self.window_key_from(side, self.bound[side as usize]);
        window.min(self.far_best[side as usize])
    }

    /// Returns the best price of a side, which then is its bound.
    #[inline(always)]
    pub(super) fn find_best_price(&mut self, side: Action) -> Option<i64> {
        let key = self.find_best_key(side);
        if key == NO_KEY && self.level_at(side, key).is_none() {
            return None;
        }
        Some(key ^ mask(side))
    }

    /// Returns the best price of a side.
    fn best_price(&self, side: Action) -> Option<i64> {
        let key = self.best_key(side);
        (key != NO_KEY || self.level_at(side, key).is_some()).then_some(key ^ mask(side))
    }

    /// Returns the key after that of a level of this side; [`NO_KEY`] for the end.
    fn key_after(&self, side: Action, key: i64) -> i64 {
        if key == NO_KEY {
            return NO_KEY;
        }
        self.key_from(side, key + 1)
    }

    /// Returns the key of a level of this side from `key` on, which is no better than the best one;
    /// [`NO_KEY`] for the end.
    fn key_from(&self, side: Action, key: i64) -> i64 {
        let far = &self.far[side as usize];
        let far = far.first_from(key).map_or(NO_KEY, |(key, _)| key);
        let outside = if self.is_parked() {
            far.min(self.parked_key_from(side, key))
        } else {
            far
        };
        outside.min(self.window_key_from(side, key))
    }

    #[cold]
    #[inline(never)]
    fn parked_key_from(&self, side: Action, key: i64) -> i64 {
        let parked = self.parked.as_ref();
        parked.map_or(NO_KEY, |parked| {
            self.key_in(&parked[side as usize], side, key)
        })
    }

    /// Returns the best key of the window from `key` on, where nothing of the other side rests at
    /// `key` or beyond; [`NO_KEY`] for none.
    fn window_key_from(&self, side: Action, key: i64) -> i64 {
        self.key_in(&self.occupied, side, key)
    }

    /// Returns the best key of these ticks from `key` on; [`NO_KEY`] for none.
    #[inline(always)]
    fn key_in(&self, ticks: &Occupancy, side: Action, key: i64) -> i64 {
        let price = key ^ mask(side);
        let offset = self.offset(price);
        let tick = if offset < ticks.width() {
            match side {
                Action::Ask => ticks.from(offset as u32),
                Action::Bid => ticks.down_from(offset as u32),
            }
        } else {
            match side {
                Action::Ask if price < self.base => ticks.from(0),
                Action::Bid if price > self.base => ticks.last(),
                _ => NO_TICK,
            }
        };
        if tick == NO_TICK {
            return NO_KEY;
        }
        (self.base + i64::from(tick)) ^ mask(side)
    }
}

// Prefetch of the cache lines of the ladder.

impl Ladder {
    /// Prefetches what every command reads.
    #[inline]
    pub(super) fn prefetch_header(&self) {
        prefetch(&self.nodes);
        prefetch(&self.bound);
    }

    /// Prefetches the level of a price in the window.
    #[inline]
    pub(super) fn prefetch_level(&self, price: i64) {
        let offset = self.offset(price);
        if let Some(tick) = self.occupied.tick(offset) {
            prefetch(tick);
            prefetch(&self.nodes[offset as u32]);
        }
    }
}

/// Returns the keys of the best and the worst price of a band.
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

    /// Returns the slots of the levels of a side, best first. Cost: two binary searches each, when
    /// it is asked for: behind the last one, the whole window may be searched.
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

    pub(super) fn levels(&self, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.level_slots(side).map(|slot| self.level_in(slot))
    }

    /// Returns the levels of a side between two keys, best first, with their slots.
    pub(super) fn levels_between(
        &self,
        side: Action,
        (first, last): (i64, i64),
    ) -> impl Iterator<Item = (u32, Level)> + '_ {
        let levels = self.level_slots_from(side, first);
        let levels = levels.map(|slot| (slot, self.level_in(slot)));
        levels.take_while(move |(_, level)| level.price ^ mask(side) <= last)
    }

    /// Returns lots and orders of a price, if orders of this side rest there.
    #[inline]
    pub(super) fn level(&self, side: Action, price: i64) -> Option<(i64, u64)> {
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

    /// Returns the slots of the orders of a side, best price first, then in order of time.
    pub(super) fn slots(&self, side: Action) -> impl Iterator<Item = u32> + '_ {
        let levels = self.level_slots(side);
        levels.flat_map(|level| self.queue(level))
    }

    /// Returns the slots of the orders outside a band of prices. Cost: those orders, and a look at
    /// one more.
    pub(super) fn slots_outside(
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

    /// Returns the slots of the orders of a level, in order of time.
    pub(super) fn queue(&self, level: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.nodes[level].next), move |&slot| {
            let next = self.nodes[slot].next;
            (next != level).then_some(next)
        })
    }

    /// Visits all orders of a side, with their slots: of each level in order of time, but of many
    /// levels in turn, so that the memory of their next orders comes together. One queue after the
    /// other, each order is waited for.
    pub(super) fn visit_queues(&self, side: Action, mut visit: impl FnMut(u32, &Node)) {
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

    pub(super) fn orders(&self, side: Action) -> impl Iterator<Item = RestingOrder> + '_ {
        self.slots(side).map(|slot| self.nodes[slot].resting())
    }
}
