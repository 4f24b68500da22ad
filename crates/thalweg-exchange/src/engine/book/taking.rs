//! A taker meets the opposite side: best price first, then time, at the maker's price.
//!
//! One loop for all: makers that are plain, met by a taker that need not look at their owners, are
//! taken in a row and leave their level together; any other is met alone (`slow_path`).

use super::Book;
use super::ladder::{NO_KEY, mask};
use super::node::Node;
use crate::command::{Action, OrderType, Place};
use crate::command::{OrderFlags, SelfTrade};
use crate::event::{Event, Events, Made, RejectReason};
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

/// The state of an order that takes, as far as matching needs it.
pub(super) struct Taker {
    pub(super) uid: UserId,
    pub(super) flags: OrderFlags,
    pub(super) action: Action,
    /// The worst key of the opposite side that it takes.
    pub(super) limit: i64,
    pub(super) left: i64,
    /// Lots that it lost to own orders, which lost as many.
    pub(super) dropped: i64,
    pub(super) reserve_price: i64,
    pub(super) budget: Option<Budget>,
    /// Why what is left of it must go: it met an order of its owner, or too many.
    pub(super) cut: Option<RejectReason>,
    /// How many events there may be before it must end.
    pub(super) events_max: usize,
}

impl Taker {
    /// A new order that takes up to a key, and whose events begin at `first`.
    #[inline(always)]
    pub(super) fn new(place: &Place, limit: i64, rules: &Rules, first: usize) -> Self {
        let is_budget = place.order_type == OrderType::IocBudget;
        Self {
            uid: place.uid,
            flags: place.flags,
            action: place.action,
            limit,
            left: place.size,
            dropped: 0,
            reserve_price: place.reserve_price,
            budget: is_budget.then(|| Budget::new(place, rules)),
            cut: None,
            events_max: first.saturating_add(rules.work_max()),
        }
    }

    /// A resting order that is in no queue and takes with `lots`; its events begin at `first`.
    pub(super) fn moved(order: &Node, lots: i64, rules: &Rules, first: usize) -> Self {
        Self {
            uid: UserId(order.uid),
            flags: order.flags,
            action: order.action,
            limit: order.price ^ mask(order.action.opposite()),
            left: lots,
            dropped: 0,
            reserve_price: order.reserve_price,
            budget: None,
            cut: None,
            events_max: first.saturating_add(rules.work_max()),
        }
    }

    /// Whether each maker must be looked at.
    #[inline(always)]
    fn looks(&self) -> bool {
        self.flags.self_trade() != SelfTrade::Allow || self.budget.is_some()
    }

    /// Returns the trade in which it takes lots of a maker, with the unfilled lots of both.
    #[inline(always)]
    pub(super) fn trade(&self, maker: &Node, terms: (i64, i64), left: (i64, i64)) -> Event {
        trade((self.action, self.reserve_price), maker, terms, left)
    }
}

/// The event of a trade: of the taker's side and reserve price, with a maker, of lots at a price,
/// and what is left of both.
#[inline(always)]
fn trade(
    (action, reserve_price): (Action, i64),
    maker: &Node,
    (price, size): (i64, i64),
    (maker_left, left): (i64, i64),
) -> Event {
    Event::Trade {
        price,
        size,
        maker_order: OrderId(maker.id),
        maker_uid: UserId(maker.uid),
        maker_filled: maker.filled + size,
        maker_left,
        maker_completed: maker_left == 0,
        taker_completed: left == 0,
        bidder_hold_price: match action {
            Action::Bid => reserve_price,
            Action::Ask => maker.reserve_price,
        },
        taker_action: action,
    }
}

/// The budget of an order, as it takes.
#[derive(Clone, Copy)]
pub(super) enum Budget {
    /// So much may still be spent.
    Cap(i128),
    /// The lots that are sold must bring in their share of a budget for a whole size.
    Floor {
        budget: i64,
        size: i64,
        /// The money that was brought in beyond that share so far, times the size.
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

    /// Lets an order take what it can; in an auction, nothing.
    pub(super) fn take(&mut self, taker: &mut Taker, events: &mut Events) {
        if self.is_auction() {
            return;
        }
        let side = taker.action;
        let looks = taker.looks();
        let events_max = taker.events_max;
        loop {
            let terms = (taker.limit, taker.reserve_price);
            let lots = &mut taker.left;
            let met = self.take_plain(side, terms, looks, lots, events, |made, events| {
                events.hint_next(made.user);
                events.len() < events_max
            });
            let Some(met) = met else { break };
            if events.len() >= events_max {
                taker.cut = Some(RejectReason::WorkLimit);
                break;
            }
            if !self.meet(taker, met, events) {
                break;
            }
        }
    }

    /// Lets lots of an order take from plain makers up to a key, where `pays` says of each that it
    /// is paid. Returns the first maker that is not, or needs the slow path, and its price; with
    /// `looks`, any does.
    #[inline(always)]
    pub(super) fn take_plain(
        &mut self,
        action: Action,
        (limit, reserve_price): (i64, i64),
        looks: bool,
        lots: &mut i64,
        events: &mut Events,
        mut pays: impl FnMut(Made, &mut Events) -> bool,
    ) -> Option<(u32, i64)> {
        let side = action.opposite();
        let mut left = *lots;
        let mut met = None;
        while left != 0 && met.is_none() {
            let key = self.ladder.find_best_key(side);
            if key > limit || key == NO_KEY && self.ladder.level_at(side, key).is_none() {
                break;
            }
            let price = key ^ mask(side);
            let level = self.ladder.level_of(side, price);
            let all = left;
            let (mut slot, mut gone) = (self.ladder.nodes[level].next, 0);
            while left != 0 && slot != level {
                let maker = &mut self.ladder.nodes[slot];
                let size = left.min(maker.left);
                let rest = maker.left - size;
                let made = Made {
                    price,
                    size,
                    uid: UserId(maker.uid),
                    user: maker.user(),
                    completed: rest == 0,
                    reserve_price: maker.reserve_price,
                };
                if maker.marks != 0 || looks || !pays(made, events) {
                    met = Some((slot, price));
                    break;
                }
                left -= size;
                events.push_with(|| {
                    trade((action, reserve_price), maker, (price, size), (rest, left))
                });
                if rest != 0 {
                    maker.left = rest;
                    maker.filled += size;
                    break;
                }
                self.index.remove_slot(maker.key(self.owners), slot);
                if let Some(owners) = &mut self.ladder.owners {
                    owners.note_gone(slot, maker.uid);
                }
                gone += 1;
                slot = maker.next;
            }
            let taken = all - left;
            self.ladder.cut(level, (slot, gone), taken, (price, side));
            if taken != 0 {
                self.last = Some(price);
            }
        }
        *lots = left;
        met
    }
}
