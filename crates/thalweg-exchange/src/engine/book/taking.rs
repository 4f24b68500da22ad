//! A taker meets the opposite side: best price first, then time, at the maker's price.
//!
//! One loop for all: makers that are plain, met by a taker that need not look at their owners, are
//! taken in a row and leave their level together; any other is met alone (the slow path, below).

use super::Book;
use super::ladder::NO_KEY;
use super::orders::{Node, WAITS, mask};
use crate::command::{Action, OrderFlags, OrderType, Place, SelfTrade};
use crate::event::{Event, Events, Made, RejectReason, RemovalReason, UserHint};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::{REFILL_WORK, Rules};

/// The state of an order that takes, as far as matching needs it.
pub(super) struct Taker {
    pub(super) uid: UserId,
    pub(super) flags: OrderFlags,
    pub(super) action: Action,
    /// The worst key of the opposite side that it takes.
    pub(super) limit: i64,
    pub(super) left: i64,
    /// Lots that it lost to own orders, which lost as many ([`SelfTrade::Decrement`]).
    pub(super) decremented: i64,
    pub(super) reserve_price: i64,
    pub(super) budget: Option<Budget>,
    /// Why it takes no more and what is left of it must go: it met an order of its owner, or too
    /// many orders.
    pub(super) ended_by: Option<RejectReason>,
    /// How many events there may be before it must end.
    events_max: usize,
}

impl Taker {
    /// Returns a new order that takes up to a key, and whose events begin at `first`.
    #[inline(always)]
    pub(super) fn new(place: &Place, limit: i64, rules: &Rules, first: usize) -> Self {
        let is_budget = place.order_type == OrderType::IocBudget;
        Self {
            uid: place.uid,
            flags: place.flags,
            action: place.action,
            limit,
            left: place.size,
            decremented: 0,
            reserve_price: place.reserve_price,
            budget: is_budget.then(|| Budget::new(place, rules)),
            ended_by: None,
            events_max: first.saturating_add(rules.work_max()),
        }
    }

    /// Returns a resting order that is in no queue and takes with `lots`; its events begin at
    /// `first`.
    pub(super) fn moved(order: &Node, lots: i64, rules: &Rules, first: usize) -> Self {
        Self {
            uid: UserId(order.uid),
            flags: order.flags,
            action: order.action,
            limit: order.price ^ mask(order.action.opposite()),
            left: lots,
            decremented: 0,
            reserve_price: order.reserve_price,
            budget: None,
            ended_by: None,
            events_max: first.saturating_add(rules.work_max()),
        }
    }

    /// Returns whether each maker must be looked at.
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

    /// Returns how many of `lots` may be taken at `price`; notes them as taken.
    fn spend(&mut self, price: i64, lots: i64) -> i64 {
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

    /// Returns the worst key of the opposite side that a market order takes: no worse than its own
    /// price, the band and the best price with the protection.
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

    /// Returns the worst key of the opposite side that a budget order takes: inside the band, and
    /// no lot is sold that would not bring in its fee.
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

    /// Returns why an order that has a budget takes no more.
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
        loop {
            let events_max = taker.events_max;
            let terms = (taker.limit, taker.reserve_price);
            let lots = &mut taker.left;
            let met = self.take_plain(side, terms, looks, lots, events, |made, events| {
                events.hint_next(made.user);
                events.len() < events_max
            });
            let Some(met) = met else { break };
            if events.len() >= events_max {
                taker.ended_by = Some(RejectReason::WorkLimit);
                break;
            }
            let before = events.len();
            let goes_on = self.match_slow(taker, met, events);
            // A refill counts as `REFILL_WORK` events, of which it is one.
            let refilled = &events.as_slice()[before..];
            if let [.., Event::Refilled { .. }] = refilled {
                taker.events_max = taker.events_max.saturating_sub(REFILL_WORK - 1);
            }
            if !goes_on {
                break;
            }
        }
    }

    /// Fills lots of an order from plain makers up to a key, as long as `pays` accepts the trade.
    /// Returns the first maker that it does not accept, or that needs the slow path, with its
    /// price; with `looks`, each maker needs it.
    #[inline(always)]
    fn take_plain(
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
                self.index.remove_slot(maker.key(self.owner_mask), slot);
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

// New orders without conditions that trade: the fast path.

/// How far a new order came with plain makers.
#[derive(Clone, Copy)]
pub(crate) struct Crossed {
    /// Lots that are left of it.
    pub(crate) left: i64,
    /// Whether there may be more for it to take.
    pub(crate) goes_on: bool,
    /// Why it cannot be filled whole, where it must be.
    refused: Option<RejectReason>,
}

impl Book {
    /// Lets a new order with lots that [takes plainly](Place::takes_plainly) take from plain makers
    /// up to its price, as long as `pays` says that they are paid. `None`, and nothing done, where
    /// its id is taken, or orders are collected. [`Self::end_crossing`] must follow if something is
    /// left of the order, else [`Self::run_stops`].
    #[inline(always)]
    pub(crate) fn cross<const BUYS: bool>(
        &mut self,
        place: &Place,
        rules: &Rules,
        events: &mut Events,
        mut pays: impl FnMut(Made) -> bool,
    ) -> Option<Crossed> {
        if self.is_auction() || self.is_taken(place, rules) {
            return None;
        }
        if place.order_type == OrderType::Fok
            && let Err(why) = self.limit_of(place, rules, events)
        {
            return Some(Crossed {
                left: place.size,
                goes_on: false,
                refused: Some(why),
            });
        }
        let action = if BUYS { Action::Bid } else { Action::Ask };
        let terms = (place.price ^ mask(action.opposite()), place.reserve_price);
        let mut left = place.size;
        let events_max = rules.work_max();
        let pays = |made, events: &mut Events| events.len() < events_max && pays(made);
        let met = self.take_plain(action, terms, false, &mut left, events, pays);
        Some(Crossed {
            left,
            goes_on: met.is_some(),
            refused: None,
        })
    }

    /// Executes what is left of an order that crossed, whose events are all there are.
    #[inline(never)]
    pub(crate) fn end_crossing(
        &mut self,
        (place, user): (&Place, UserHint),
        crossed: Crossed,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let mut result = ResultCode::Success;
        let limit = place.price ^ mask(place.action.opposite());
        let mut taker = Taker::new(place, limit, rules, 0);
        taker.left = crossed.left;
        taker.ended_by = crossed.refused;
        if crossed.goes_on {
            self.take(&mut taker, events);
        }
        if taker.left != 0 {
            result = self.end_taking((place, None, (user, None)), &taker, (0, rules), events);
        }
        self.run_stops(0, rules, events);
        result
    }
}

// The slow path of matching, order by order: makers that hide lots or expire, takers that must not
// meet their owner's orders or have a budget, and orders that are moved or amended to where they
// may take.
//
// Without conditions, this does exactly what the fast path does: the tests run the same orders
// through both.
//
// # Self-trade prevention
// An order meets one of its owner's.
//
// The resting order is looked at when it would be the next to trade, and the flags that count are
// the taker's. A resting order that is cancelled makes an
// `Event::Removed` between the trades, where it happens. The rest of a
// new order that is cancelled is rejected; of a moved one, which was placed long ago, it is
// removed, by the last event.
//
// *Decrement*: both lose as many lots as the smaller one has, of an iceberg order hidden ones
// first, so that a maker keeps its place. A new order's lots are rejected, with all that is
// rejected of it; those of a moved one are in the last event, like those that are removed.
//
// *Orders that must be filled whole* (FOK, FOK_BUDGET): where cancelling the taker is asked for,
// or a decrement, after which it is not filled whole, only lots that stand before the first own
// order count; where cancelling the maker is, all lots but own ones. Where these are not enough,
// or cost too much, the order is rejected and nothing else happens: no own order is removed for an
// order that is not filled.

impl Taker {
    /// Returns how many of some lots it may take at a price; spends that much.
    fn allow(&mut self, price: i64, lots: i64) -> i64 {
        match &mut self.budget {
            Some(budget) => budget.spend(price, lots),
            None => lots,
        }
    }

    /// Returns whether it would trade at this price at all.
    fn may_trade(&self, price: i64) -> bool {
        self.budget
            .is_none_or(|mut budget| budget.spend(price, 1) > 0)
    }
}

impl Book {
    /// Takes a resting order out of its queue, gives it another price and `more` lots, and lets it
    /// take; what is left then rests at the end of the queue. A move, or an amendment with which
    /// the order loses its place in time.
    #[cold]
    pub(super) fn reenter(
        &mut self,
        slot: u32,
        (price, more): (i64, i64),
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let displayed = self.ladder.nodes[slot].left;
        let all = displayed + self.hidden(slot) + more;
        self.ladder.unlink(slot);
        let order = &mut self.ladder.nodes[slot];
        order.price = price;
        let first = events.len();
        let mut taker = Taker::moved(order, all, rules, first);
        self.take(&mut taker, events);
        let Taker {
            left,
            decremented,
            ended_by,
            ..
        } = taker;
        self.ladder.nodes[slot].filled += all - left - decremented;
        if let Some(ended_by) = ended_by
            && left != 0
        {
            let why = match ended_by {
                RejectReason::WorkLimit => RemovalReason::WorkLimit,
                _ => RemovalReason::SelfTrade,
            };
            self.report_left(slot, (left + decremented, 0), why, events);
        } else if decremented != 0 {
            let why = if left == 0 {
                RemovalReason::SelfTrade
            } else {
                RemovalReason::Decremented
            };
            self.report_left(slot, (decremented, left), why, events);
        }
        if ended_by.is_some() || left == 0 {
            self.forget_with_terms(slot);
        } else {
            self.replenish(slot, left, displayed - (all - left), events);
        }
        self.run_stops(first, rules, events);
        self.widen_if_used();
        ResultCode::Success
    }

    /// Takes lots off an order with terms.
    #[cold]
    pub(super) fn reduce_slow(&mut self, slot: u32, by: i64, events: &mut Events) -> ResultCode {
        let order = self.ladder.nodes[slot];
        if order.marks & WAITS != 0 {
            return self.reduce_waiting(slot, by, events);
        }
        let all = order.left + self.hidden(slot);
        let size = all.min(by);
        let completed = size == all;
        if completed {
            self.ladder.unlink(slot);
            self.forget_with_terms(slot);
        } else {
            self.reduce_hidden_first(slot, size);
        }
        self.drop_empty_cold_state();
        events.hint_next(order.user());
        events.push(Event::Reduce {
            order: OrderId(order.id),
            price: order.price,
            size,
            left: all - size,
            filled: order.filled,
            completed,
            bidder_hold_price: order.reserve_price,
            action: order.action,
        });
        ResultCode::Success
    }

    /// Matches a taker with the first order of a level: a trade, or self-trade prevention where
    /// both have one owner. False where it takes no more: it is filled, its budget is used up, or
    /// what is left of it must go.
    #[cold]
    #[inline(never)]
    fn match_slow(
        &mut self,
        taker: &mut Taker,
        (slot, price): (u32, i64),
        events: &mut Events,
    ) -> bool {
        let mode = taker.flags.self_trade();
        if mode == SelfTrade::Allow || self.ladder.nodes[slot].uid != taker.uid.0 {
            return self.trade_slow(taker, (slot, price), events);
        }
        if !taker.may_trade(price) {
            return false;
        }
        if mode == SelfTrade::Decrement {
            self.decrement(taker, slot, events);
            return true;
        }
        if mode != SelfTrade::CancelTaker {
            self.remove(slot, RemovalReason::SelfTrade, events);
        }
        if mode == SelfTrade::CancelMaker {
            return true;
        }
        taker.ended_by = Some(RejectReason::SelfTrade);
        false
    }

    /// A taker and an order of its owner lose as many lots as the smaller one has.
    fn decrement(&mut self, taker: &mut Taker, slot: u32, events: &mut Events) {
        let all = self.ladder.nodes[slot].left + self.hidden(slot);
        let lots = all.min(taker.left);
        taker.left -= lots;
        taker.decremented += lots;
        if lots == all {
            self.remove(slot, RemovalReason::SelfTrade, events);
        } else {
            let left = all - lots;
            self.report_left(slot, (lots, left), RemovalReason::Decremented, events);
            self.reduce_hidden_first(slot, lots);
        }
    }

    /// One trade. False where the taker takes no more: it is filled, or its budget is used up.
    fn trade_slow(
        &mut self,
        taker: &mut Taker,
        (slot, price): (u32, i64),
        events: &mut Events,
    ) -> bool {
        let maker = self.ladder.nodes[slot];
        let size = taker.allow(price, taker.left.min(maker.left));
        if size == 0 {
            return false;
        }
        taker.left -= size;
        self.last = Some(price);
        let left = maker.left + self.hidden(slot) - size;
        events.hint_next(maker.user());
        events.push_with(|| taker.trade(&maker, (price, size), (left, taker.left)));
        self.fill(slot, size, events);
        size == maker.left
    }

    /// Fills displayed lots of a resting order, after the trade was reported. If all of them are
    /// filled, the order is removed, or if it has hidden lots, goes to the end of its level (in the
    /// level and in `owners`) and displays the next ones. `fill_or_kill.rs` relies on that.
    pub(super) fn fill(&mut self, slot: u32, size: i64, events: &mut Events) {
        let order = self.ladder.nodes[slot];
        if size != order.left {
            let node = &mut self.ladder.nodes[slot];
            node.left -= size;
            node.filled += size;
            let level = self.ladder.level_of(order.action, order.price);
            self.ladder.nodes[level].left -= size;
            return;
        }
        let hidden = self.hidden(slot);
        self.ladder.unlink(slot);
        if hidden == 0 {
            self.forget_with_terms(slot);
        } else {
            self.ladder.nodes[slot].filled += size;
            self.replenish(slot, hidden, 0, events);
        }
    }

    /// Takes a resting order out, and reports why.
    pub(super) fn remove(&mut self, slot: u32, why: RemovalReason, events: &mut Events) {
        let left = self.ladder.nodes[slot].left + self.hidden(slot);
        self.report_removed(slot, left, why, events);
        self.ladder.unlink(slot);
        self.forget_with_terms(slot);
    }

    pub(super) fn report_removed(
        &self,
        slot: u32,
        size: i64,
        why: RemovalReason,
        events: &mut Events,
    ) {
        self.report_left(slot, (size, 0), why, events);
    }

    /// Reports that `size` lots of a resting order are gone, and `left` remain.
    fn report_left(
        &self,
        slot: u32,
        (size, left): (i64, i64),
        why: RemovalReason,
        events: &mut Events,
    ) {
        let order = &self.ladder.nodes[slot];
        events.push(Event::Removed {
            symbol: self.spec.id,
            order: OrderId(order.id),
            uid: UserId(order.uid),
            action: order.action,
            price: order.price,
            size,
            left,
            filled: order.filled,
            bidder_hold_price: order.reserve_price,
            why,
        });
    }
}
