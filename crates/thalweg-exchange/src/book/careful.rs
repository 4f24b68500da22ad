//! Matching for orders with wishes: what `taking` does, and a look at each order met.
//!
//! Plain orders never come here, so that they do not pay for it. Without wishes, this does exactly
//! what the plain way does: the tests run the same orders through both.

use super::Book;
use super::ladder::{NO_KEY, mask};
use super::taking::Budget;
use crate::command::{Action, OrderType, Place};
use crate::event::{Event, Events, Removal};
use crate::ids::{OrderId, UserId};
use crate::order_terms::{OrderFlags, SelfTrade};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// What matching needs to know of the order that takes.
pub(super) struct Taker {
    uid: UserId,
    flags: OrderFlags,
    action: Action,
    /// The worst key of the opposite side that it takes.
    limit: i64,
    left: i64,
    /// Lots that it lost to own orders, which lost as many.
    dropped: i64,
    reserve_price: i64,
    budget: Option<Budget>,
}

impl Taker {
    /// A new order that takes up to a key.
    pub(super) fn new(place: &Place, limit: i64, rules: &Rules) -> Self {
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
        }
    }

    /// How many of some lots it may take at a price; spends that much.
    fn allow(&mut self, price: i64, lots: i64) -> i64 {
        match &mut self.budget {
            Some(budget) => budget.spend(price, lots),
            None => lots,
        }
    }

    /// Whether it would trade at this price at all.
    fn may_trade(&self, price: i64) -> bool {
        self.budget
            .is_none_or(|mut budget| budget.spend(price, 1) > 0)
    }
}

/// How taking ended.
pub(super) struct Taken {
    pub(super) left: i64,
    pub(super) dropped: i64,
    /// True where the taker met an order of its owner, and what is left of it must go.
    pub(super) is_cut: bool,
}

impl Book {
    /// Gives an order that asks for something another price.
    #[cold]
    pub(super) fn move_carefully(
        &mut self,
        slot: u32,
        price: i64,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let order = &self.ladder.nodes[slot];
        let (action, flags) = (order.action, order.flags);
        if flags.is_post_only() && self.would_take(action, price) {
            return ResultCode::MatchingMoveFailedPostOnly;
        }
        self.requeue(slot, (price, 0), rules, events)
    }

    /// Gives an order another price and `more` lots, at the end of the queue; it takes first.
    pub(super) fn requeue(
        &mut self,
        slot: u32,
        (price, more): (i64, i64),
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let order = self.ladder.nodes[slot];
        let all = order.left + self.hidden(slot) + more;
        self.ladder.unlink(slot);
        self.ladder.nodes[slot].price = price;
        let taker = Taker {
            uid: UserId(order.uid),
            flags: order.flags,
            action: order.action,
            limit: price ^ mask(order.action.opposite()),
            left: all,
            dropped: 0,
            reserve_price: order.reserve_price,
            budget: None,
        };
        let first = events.len();
        let Taken {
            left,
            dropped,
            is_cut,
        } = self.take_carefully(taker, events);
        self.ladder.nodes[slot].filled += all - left - dropped;
        if is_cut && left != 0 {
            self.tell_removed(slot, left, Removal::SelfTrade, events);
        } else if dropped != 0 {
            let why = if left == 0 {
                Removal::SelfTrade
            } else {
                Removal::Decremented
            };
            self.tell_left(slot, (dropped, left), why, events);
        }
        if is_cut || left == 0 {
            self.discard(slot);
        } else {
            self.show(slot, left, order.left - (all - left), events);
        }
        self.run_stops(first, rules, events);
        self.tidy();
        ResultCode::Success
    }

    /// Takes lots off an order with terms.
    #[cold]
    pub(super) fn reduce_carefully(
        &mut self,
        slot: u32,
        by: i64,
        events: &mut Events,
    ) -> ResultCode {
        let order = self.ladder.nodes[slot];
        let all = order.left + self.hidden(slot);
        let size = all.min(by);
        let completed = size == all;
        if completed {
            self.ladder.unlink(slot);
            self.discard(slot);
        } else {
            self.reduce_hidden_first(slot, size);
        }
        self.tidy();
        events.push(Event::Reduce {
            order: OrderId(order.id),
            price: order.price,
            size,
            left: all - size,
            filled: order.filled,
            completed,
            bidder_hold_price: order.reserve_price,
            user: order.user(),
            action: order.action,
        });
        ResultCode::Success
    }

    /// As `take` of the plain way, but looks at whose orders are met.
    pub(super) fn take_carefully(&mut self, mut taker: Taker, events: &mut Events) -> Taken {
        let side = taker.action.opposite();
        let mut is_cut = false;
        // In an auction, nobody takes.
        let takes = !self.is_auction();
        while takes && taker.left != 0 && !is_cut {
            let key = self.ladder.find_best_key(side);
            if key > taker.limit || key == NO_KEY && self.ladder.level_at(side, key).is_none() {
                break;
            }
            let price = key ^ mask(side);
            let level = self.ladder.level_of(side, price);
            let slot = self.ladder.nodes[level].next;
            let mode = taker.flags.self_trade();
            if mode != SelfTrade::Allow && self.ladder.nodes[slot].uid == taker.uid.0 {
                if !taker.may_trade(price) {
                    break;
                }
                if mode == SelfTrade::Decrement {
                    self.decrement(&mut taker, slot, events);
                    continue;
                }
                if mode != SelfTrade::CancelTaker {
                    self.remove(slot, Removal::SelfTrade, events);
                }
                is_cut = mode != SelfTrade::CancelMaker;
                continue;
            }
            if !self.trade_carefully(&mut taker, (slot, level, price), events) {
                break;
            }
        }
        Taken {
            left: taker.left,
            dropped: taker.dropped,
            is_cut,
        }
    }

    /// A taker and an order of its owner lose as many lots as the smaller one has.
    fn decrement(&mut self, taker: &mut Taker, slot: u32, events: &mut Events) {
        let all = self.ladder.nodes[slot].left + self.hidden(slot);
        let lots = all.min(taker.left);
        taker.left -= lots;
        taker.dropped += lots;
        if lots == all {
            self.remove(slot, Removal::SelfTrade, events);
        } else {
            let left = all - lots;
            self.tell_left(slot, (lots, left), Removal::Decremented, events);
            self.reduce_hidden_first(slot, lots);
        }
    }

    /// One trade. False where the taker takes no more: it is filled, or its budget is used up.
    fn trade_carefully(
        &mut self,
        taker: &mut Taker,
        (slot, level, price): (u32, u32, i64),
        events: &mut Events,
    ) -> bool {
        let maker = self.ladder.nodes[slot];
        let size = taker.allow(price, taker.left.min(maker.left));
        if size == 0 {
            return false;
        }
        let is_shown_gone = size == maker.left;
        let hidden = self.hidden(slot);
        let completed = is_shown_gone && hidden == 0;
        taker.left -= size;
        self.last = Some(price);
        events.push(Event::Trade {
            price,
            size,
            maker_order: OrderId(maker.id),
            maker_uid: UserId(maker.uid),
            maker_user: maker.user(),
            maker_filled: maker.filled + size,
            maker_left: maker.left + hidden - size,
            maker_completed: completed,
            taker_completed: taker.left == 0,
            bidder_hold_price: match taker.action {
                Action::Bid => taker.reserve_price,
                Action::Ask => maker.reserve_price,
            },
            taker_action: taker.action,
        });
        self.fill_at(slot, level, size, events);
        is_shown_gone
    }

    /// Fills lots that a resting order shows, after the trade was told.
    pub(super) fn fill(&mut self, slot: u32, size: i64, events: &mut Events) {
        let order = &self.ladder.nodes[slot];
        let level = self.ladder.level_of(order.action, order.price);
        self.fill_at(slot, level, size, events);
    }

    fn fill_at(&mut self, slot: u32, level: u32, size: i64, events: &mut Events) {
        let order = self.ladder.nodes[slot];
        let hidden = self.hidden(slot);
        let node = &mut self.ladder.nodes[slot];
        if size != order.left {
            node.left -= size;
            node.filled += size;
            self.ladder.nodes[level].left -= size;
            return;
        }
        self.ladder
            .unlink_from(slot, level, order.price, order.action);
        if hidden == 0 {
            self.discard(slot);
        } else {
            self.ladder.nodes[slot].filled += size;
            self.show(slot, hidden, 0, events);
        }
    }

    /// Takes a resting order out, and tells why.
    pub(super) fn remove(&mut self, slot: u32, why: Removal, events: &mut Events) {
        let left = self.ladder.nodes[slot].left + self.hidden(slot);
        self.tell_removed(slot, left, why, events);
        self.ladder.unlink(slot);
        self.discard(slot);
    }

    pub(super) fn tell_removed(&self, slot: u32, size: i64, why: Removal, events: &mut Events) {
        self.tell_left(slot, (size, 0), why, events);
    }

    /// Tells that `size` lots of a resting order are gone; `left` are not.
    fn tell_left(&self, slot: u32, (size, left): (i64, i64), why: Removal, events: &mut Events) {
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
