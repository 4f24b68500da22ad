//! Levels outside the window: far ones and parked ones.

use super::super::node::{NONE, Node};
use super::{Ladder, NO_KEY, mask};
use crate::command::Action;

impl Ladder {
    #[cold]
    pub(super) fn far_level_of(&self, side: Action, price: i64) -> u32 {
        let offset = self.offset(price);
        if let Some(parked) = &self.parked
            && parked[side as usize].has(offset)
        {
            return offset as u32;
        }
        let key = price ^ mask(side);
        self.far[side as usize].get(key).unwrap_or(NONE)
    }

    /// Makes a far level without orders.
    pub(super) fn add_far(&mut self, side: Action, price: i64) -> u32 {
        let key = price ^ mask(side);
        let level = self.nodes.insert(Node::level(NONE, price));
        self.nodes[level] = Node::level(level, price);
        self.far[side as usize].insert(key, level);
        let best = &mut self.far_best[side as usize];
        *best = (*best).min(key);
        level
    }

    pub(super) fn remove_far(&mut self, side: Action, key: i64, level: u32) {
        self.far[side as usize].remove(key);
        self.nodes.free(level);
        self.note_no_far(side, key);
    }

    /// There is no level outside the window with this key any more.
    fn note_no_far(&mut self, side: Action, key: i64) {
        if self.far_best[side as usize] == key {
            self.renew_far_best(side);
        }
    }

    /// Takes an order off a far level, after its neighbours were linked to each other.
    #[cold]
    #[inline(never)]
    pub(super) fn unlink_far(&mut self, left: i64, (price, side): (i64, Action)) {
        let level = self.far_level_of(side, price);
        let queue = &mut self.nodes[level];
        queue.left -= left;
        queue.tag -= 1;
        if queue.tag == 0 {
            self.close(level, price, side);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn close_outside(&mut self, level: u32, price: i64, side: Action) {
        if level < self.nodes.levels() {
            if let Some(parked) = &mut self.parked {
                parked[side as usize].remove(level);
            }
            self.note_no_far(side, price ^ mask(side));
        } else {
            self.remove_far(side, price ^ mask(side), level);
            self.patience = self.patience.saturating_sub(1);
        }
    }

    /// Looks for the best key outside the window.
    #[cold]
    pub(super) fn renew_far_best(&mut self, side: Action) {
        let far = self.far[side as usize].first();
        let far = far.map_or(NO_KEY, |(key, _)| key);
        self.far_best[side as usize] = far.min(self.parked_key_from(side, i64::MIN));
    }
}
