//! The best price of a side, and the next.

use super::super::occupancy::{NO_TICK, Occupancy};
use super::{Ladder, NO_KEY, mask};
use crate::command::Action;

impl Ladder {
    /// Whether an order of the other side that takes keys up to `limit` finds none for certain.
    #[inline(always)]
    pub(in crate::engine::book) const fn is_beyond(&self, side: Action, limit: i64) -> bool {
        self.bound[side as usize] > limit
    }

    /// Whether an order of the other side that takes keys up to `limit` would find one. (Of the
    /// last key it is not certain.)
    #[inline]
    pub(in crate::engine::book) fn reaches(&mut self, side: Action, limit: i64) -> bool {
        self.bound[side as usize] <= limit && self.find_best_key(side) <= limit
    }

    /// The best key of a side, which then is its bound; [`NO_KEY`] is not certain to be one.
    #[inline(always)]
    pub(in crate::engine::book) fn find_best_key(&mut self, side: Action) -> i64 {
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

    /// The best key of a side; [`NO_KEY`] is not certain to be one.
    pub(in crate::engine::book) fn best_key(&self, side: Action) -> i64 {
        let window = self.window_key_from(side, self.bound[side as usize]);
        window.min(self.far_best[side as usize])
    }

    /// The best price of a side, which then is its bound.
    #[inline(always)]
    pub(in crate::engine::book) fn find_best_price(&mut self, side: Action) -> Option<i64> {
        let key = self.find_best_key(side);
        if key == NO_KEY && self.level_at(side, key).is_none() {
            return None;
        }
        Some(key ^ mask(side))
    }

    /// The best price of a side.
    pub(in crate::engine::book) fn best_price(&self, side: Action) -> Option<i64> {
        let key = self.best_key(side);
        (key != NO_KEY || self.level_at(side, key).is_some()).then_some(key ^ mask(side))
    }

    /// The key after that of a level of this side; [`NO_KEY`] for the end.
    pub(super) fn key_after(&self, side: Action, key: i64) -> i64 {
        if key == NO_KEY {
            return NO_KEY;
        }
        self.key_from(side, key + 1)
    }

    /// The key of a level of this side from `key` on, which is no better than the best one;
    /// [`NO_KEY`] for the end.
    pub(super) fn key_from(&self, side: Action, key: i64) -> i64 {
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
    pub(super) fn parked_key_from(&self, side: Action, key: i64) -> i64 {
        let parked = self.parked.as_ref();
        parked.map_or(NO_KEY, |parked| {
            self.key_in(&parked[side as usize], side, key)
        })
    }

    /// The best key of the window from `key` on, where nothing of the other side rests at `key` or
    /// beyond; [`NO_KEY`] for none.
    fn window_key_from(&self, side: Action, key: i64) -> i64 {
        self.key_in(&self.occupied, side, key)
    }

    /// The best key of these ticks from `key` on; [`NO_KEY`] for none.
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
