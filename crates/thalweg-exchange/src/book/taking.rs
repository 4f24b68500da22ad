//! A taker meets the opposite side: best price first, then time, at the maker's price.

use super::Book;
use super::ladder::{NO_KEY, mask};
use crate::command::{Action, Place};
use crate::event::{Event, Events, RejectReason};
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

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
    /// A new order that takes up to a key.
    const fn new(place: &Place, limit: i64) -> Self {
        Self {
            action: place.action,
            limit,
            left: place.size,
            reserve_price: place.reserve_price,
        }
    }
}

/// What a budget allows of the order that has it, as it takes.
#[derive(Clone, Copy)]
pub(super) enum Budget {
    /// So much may still be spent.
    Cap(i128),
    /// What is sold must bring in its share of a budget for a whole size.
    Floor {
        budget: i64,
        size: i64,
        /// What was brought in beyond that share so far, times the size.
        surplus: i128,
    },
}

impl Budget {
    pub(super) const fn new(place: &Place, rules: &Rules) -> Self {
        match place.action {
            Action::Ask if rules.bound_budgets => Self::Floor {
                budget: place.price,
                size: place.size,
                surplus: 0,
            },
            _ => Self::Cap(place.price as i128),
        }
    }

    /// How many of `lots` may be taken at `price`; notes them as taken.
    pub(super) fn spend(&mut self, price: i64, lots: i64) -> i64 {
        match self {
            Self::Cap(left) => {
                if *left < 0 {
                    return 0;
                }
                let covered = if price <= 0 {
                    lots
                } else {
                    i64::try_from(*left / i128::from(price)).map_or(lots, |most| most.min(lots))
                };
                *left = left.saturating_sub(i128::from(covered) * i128::from(price));
                covered
            }
            Self::Floor {
                budget,
                size,
                surplus,
            } => {
                let value = i128::from(price) * i128::from(*size);
                let missing = i128::from(*budget) - value;
                let mut sold = lots;
                if missing > 0 {
                    // A surplus stays above zero.
                    sold = i64::try_from(*surplus / missing).map_or(lots, |most| most.min(lots));
                }
                *surplus = surplus.saturating_sub(i128::from(sold).saturating_mul(missing));
                sold
            }
        }
    }
}

impl Book {
    /// Matches a new order within its limit price and returns what is left of its size.
    #[inline]
    pub(super) fn take_limited(&mut self, place: &Place, events: &mut Events) -> i64 {
        let limit = place.price ^ mask(place.action.opposite());
        self.take_up_to(place, limit, events)
    }

    /// Matches a new order up to a key.
    pub(super) fn take_up_to(&mut self, place: &Place, limit: i64, events: &mut Events) -> i64 {
        self.take(Taker::new(place, limit), events, |_, lots| lots)
    }

    /// Matches a new order while its budget allows it.
    pub(super) fn take_within_budget(
        &mut self,
        place: &Place,
        rules: &Rules,
        events: &mut Events,
    ) -> i64 {
        let limit = self.budget_limit(place, rules);
        let mut budget = Budget::new(place, rules);
        let spend = |price, lots| budget.spend(price, lots);
        self.take(Taker::new(place, limit), events, spend)
    }

    pub(crate) const fn set_band(&mut self, band: (i64, i64)) {
        self.band = band;
    }

    pub(crate) const fn set_protection(&mut self, ticks: i64) {
        self.protection = ticks;
    }

    /// The worst key of the opposite side that a market order takes: no worse than its own price,
    /// the band and the best price with the protection.
    #[cold]
    pub(super) fn market_limit(&self, place: &Place) -> i64 {
        let side = place.action.opposite();
        let (low, high) = self.band;
        let worst = match place.action {
            Action::Bid => high.min(place.price),
            Action::Ask => low.max(place.price),
        };
        let best = self.ladder.best_key(side);
        (worst ^ mask(side)).min(best.saturating_add(self.protection))
    }

    /// The worst key of the opposite side that a budget order takes: inside the band, and no lot
    /// is sold that would not bring in its fee.
    pub(super) fn budget_limit(&self, place: &Place, rules: &Rules) -> i64 {
        if !rules.bound_budgets {
            return NO_KEY;
        }
        let (low, high) = self.band;
        let worst = match place.action {
            Action::Bid => high,
            Action::Ask if self.is_futures() => low,
            Action::Ask => low.max(self.spec.lowest_ask()),
        };
        worst ^ mask(place.action.opposite())
    }

    /// Why an order that has a budget takes no more.
    #[cold]
    pub(super) fn why_budget_ended(&mut self, place: &Place, rules: &Rules) -> RejectReason {
        let side = place.action.opposite();
        let limit = self.budget_limit(place, rules);
        let best = self.ladder.find_best_price(side);
        if best.is_some_and(|price| price ^ mask(side) <= limit) {
            RejectReason::Budget
        } else {
            RejectReason::ImmediateOrCancel
        }
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
                let maker_left = maker.left - size;
                let maker_filled = maker.filled + size;
                let completed = maker_left == 0;
                left -= size;
                rest -= size;
                events.push(Event::Trade {
                    price,
                    size,
                    maker_order: OrderId(maker.id),
                    maker_uid: UserId(maker.uid),
                    maker_user: maker.user(),
                    maker_filled,
                    maker_left,
                    maker_completed: completed,
                    taker_completed: left == 0,
                    bidder_hold_price: match taker.action {
                        Action::Bid => taker.reserve_price,
                        Action::Ask => maker.reserve_price,
                    },
                    taker_action: taker.action,
                });
                if !completed {
                    maker.left = maker_left;
                    maker.filled = maker_filled;
                    stopped = true;
                    break;
                }
                let next = maker.next;
                self.forget(slot);
                gone += 1;
                slot = next;
            }
            self.ladder.cut(level, (slot, gone), rest, (price, side));
            if rest != volume {
                self.last = Some(price);
            }
            if stopped {
                break;
            }
        }
        left
    }

    /// What `size` lots cost over the levels of a side up to a key, or `None` where there are not
    /// enough.
    ///
    /// Cost: one step per level. In 128 bits, and saturating.
    pub(super) fn cost(&self, side: Action, limit: i64, mut size: i64) -> Option<i128> {
        let mut cost = 0_i128;
        let levels = self.levels(side, usize::MAX);
        for level in levels.take_while(|level| level.price ^ mask(side) <= limit) {
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
