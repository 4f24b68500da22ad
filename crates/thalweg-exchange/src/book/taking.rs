//! A taker meets the opposite side: best price first, then time, at the maker's price.

use super::Book;
use super::ladder::{NO_KEY, mask};
use crate::command::{Action, Place};
use crate::event::{Event, Events};
use crate::ids::{OrderId, UserId};

/// What matching needs to know of the order that takes.
#[derive(Clone, Copy)]
pub(super) struct Taker {
    action: Action,
    /// The worst key of the opposite side that it takes.
    limit: i64,
    left: i64,
    reserve_price: i64,
}

impl Taker {
    /// A new order that takes up to its price, or at any price.
    const fn new(place: &Place, limited: bool) -> Self {
        let limit = if limited {
            place.price ^ mask(place.action.opposite())
        } else {
            NO_KEY
        };
        Self {
            action: place.action,
            limit,
            left: place.size,
            reserve_price: place.reserve_price,
        }
    }
}

/// What is left of a budget.
#[derive(Clone, Copy)]
pub(super) struct Budget(pub(super) i128);

impl Budget {
    /// How many of `lots` it covers at `price`; spends that much.
    pub(super) fn spend(&mut self, price: i64, lots: i64) -> i64 {
        if self.0 < 0 {
            return 0;
        }
        let covered = if price <= 0 {
            lots
        } else {
            i64::try_from(self.0 / i128::from(price)).map_or(lots, |covered| covered.min(lots))
        };
        let cost = i128::from(covered) * i128::from(price);
        self.0 = self.0.saturating_sub(cost);
        covered
    }
}

impl Book {
    /// Matches a new order within its limit price and returns what is left of its size.
    #[inline]
    pub(super) fn take_limited(&mut self, place: &Place, events: &mut Events) -> i64 {
        self.take(Taker::new(place, true), events, |_, lots| lots)
    }

    /// Matches a new order at any price.
    pub(super) fn take_at_any_price(&mut self, place: &Place, events: &mut Events) -> i64 {
        self.take(Taker::new(place, false), events, |_, lots| lots)
    }

    /// Matches a new order at any price while Σ price·size is within its budget.
    pub(super) fn take_within_budget(&mut self, place: &Place, events: &mut Events) -> i64 {
        let mut budget = Budget(place.price.into());
        let spend = |price, lots| budget.spend(price, lots);
        self.take(Taker::new(place, false), events, spend)
    }

    /// Matches an order that is in no queue, at its price, and books what it took.
    #[cold]
    pub(super) fn take_moved(&mut self, slot: u32, events: &mut Events) {
        let order = self.ladder.nodes[slot];
        let taker = Taker {
            action: order.action,
            limit: order.price ^ mask(order.action.opposite()),
            left: order.left,
            reserve_price: order.reserve_price,
        };
        let left = self.take(taker, events, |_, lots| lots);
        let node = &mut self.ladder.nodes[slot];
        node.filled += order.left - left;
        node.left = left;
    }

    /// `allow` says how many of some lots may be taken at a price; if not all, it is the end.
    #[inline]
    fn take(
        &mut self,
        taker: Taker,
        events: &mut Events,
        mut allow: impl FnMut(i64, i64) -> i64,
    ) -> i64 {
        let side = taker.action.opposite();
        let mut left = taker.left;
        while left != 0 {
            let key = self.ladder.find_best_key(side);
            if key > taker.limit || key == NO_KEY && self.ladder.level_at(side, key).is_none() {
                break;
            }
            let price = key ^ mask(side);
            let level = self.ladder.level_of(side, price);
            let volume = self.ladder.nodes[level].left;
            let (mut rest, mut gone, mut stopped) = (volume, 0, false);
            let mut slot = self.ladder.nodes[level].next;
            while slot != level && left != 0 {
                let maker = &mut self.ladder.nodes[slot];
                let size = allow(price, left.min(maker.left));
                if size == 0 {
                    stopped = true;
                    break;
                }
                let completed = size == maker.left;
                left -= size;
                rest -= size;
                events.push(Event::Trade {
                    price,
                    size,
                    maker_order: OrderId(maker.id),
                    maker_uid: UserId(maker.uid),
                    maker_user: maker.user(),
                    maker_completed: completed,
                    taker_completed: left == 0,
                    bidder_hold_price: match taker.action {
                        Action::Bid => taker.reserve_price,
                        Action::Ask => maker.reserve_price,
                    },
                    taker_action: taker.action,
                });
                if !completed {
                    maker.left -= size;
                    maker.filled += size;
                    stopped = true;
                    break;
                }
                let next = maker.next;
                self.forget(slot);
                gone += 1;
                slot = next;
            }
            self.ladder.cut(level, (slot, gone), rest, (price, side));
            if stopped {
                break;
            }
        }
        left
    }

    /// What `size` lots cost over the levels of a side, or `None` where there are not enough.
    ///
    /// Cost: one step per level. In 128 bits, and saturating.
    pub(super) fn cost(&self, side: Action, mut size: i64) -> Option<i128> {
        let mut cost = 0_i128;
        for level in self.levels(side, usize::MAX) {
            let value = |lots: i64| i128::from(lots) * i128::from(level.price);
            if size <= level.volume {
                return Some(cost.saturating_add(value(size)));
            }
            size -= level.volume;
            cost = cost.saturating_add(value(level.volume));
        }
        None
    }

    /// Whether a new order would be filled fully within its limit price. Cost: one step per level.
    pub(super) fn covers(&self, place: &Place) -> bool {
        let side = place.action.opposite();
        let limit = place.price ^ mask(side);
        let mut size = place.size;
        self.levels(side, usize::MAX)
            .take_while(|level| level.price ^ mask(side) <= limit)
            .any(|level| {
                let is_enough = size <= level.volume;
                size = size.wrapping_sub(level.volume);
                is_enough
            })
    }
}
