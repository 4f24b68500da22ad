//! The slow path of matching, order by order: makers that hide lots or expire, takers that must not
//! meet their owner's orders or have a budget, and orders that are moved or amended to where they
//! may take.
//!
//! Without conditions, this does exactly what the fast path does: the tests run the same orders
//! through both.
//!
//! # Self-trade prevention
//! An order meets one of its owner's.
//!
//! The resting order is looked at when it would be the next to trade, and the flags that count are
//! the taker's. A resting order that is cancelled makes an
//! [`Event::Removed`](crate::Event::Removed) between the trades, where it happens. The rest of a
//! new order that is cancelled is rejected; of a moved one, which was placed long ago, it is
//! removed, by the last event.
//!
//! *Decrement*: both lose as many lots as the smaller one has, of an iceberg order hidden ones
//! first, so that a maker keeps its place. A new order's lots are rejected, with all that is
//! rejected of it; those of a moved one are in the last event, like those that are removed.
//!
//! *Orders that must be filled whole* (FOK, FOK_BUDGET): where cancelling the taker is asked for,
//! or a decrement, after which it is not filled whole, only lots that stand before the first own
//! order count; where cancelling the maker is, all lots but own ones. Where these are not enough,
//! or cost too much, the order is rejected and nothing else happens: no own order is removed for an
//! order that is not filled.

use super::Book;
use super::aside::WAITS;
use super::taking::Taker;
use crate::command::SelfTrade;
use crate::event::{Event, Events, RejectReason, Removal};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Taker {
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

impl Book {
    /// Gives an order another price and `more` lots, at the end of the queue; it takes first.
    #[cold]
    pub(super) fn requeue(
        &mut self,
        slot: u32,
        (price, more): (i64, i64),
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let shown = self.ladder.nodes[slot].left;
        let all = shown + self.hidden(slot) + more;
        self.ladder.unlink(slot);
        let order = &mut self.ladder.nodes[slot];
        order.price = price;
        let first = events.len();
        let mut taker = Taker::moved(order, all, rules, first);
        self.take(&mut taker, events);
        let Taker {
            left, dropped, cut, ..
        } = taker;
        self.ladder.nodes[slot].filled += all - left - dropped;
        if let Some(cut) = cut
            && left != 0
        {
            let why = match cut {
                RejectReason::WorkLimit => Removal::WorkLimit,
                _ => Removal::SelfTrade,
            };
            self.report_left(slot, (left + dropped, 0), why, events);
        } else if dropped != 0 {
            let why = if left == 0 {
                Removal::SelfTrade
            } else {
                Removal::Decremented
            };
            self.report_left(slot, (dropped, left), why, events);
        }
        if cut.is_some() || left == 0 {
            self.discard(slot);
        } else {
            self.show(slot, left, shown - (all - left), events);
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
            self.discard(slot);
        } else {
            self.reduce_hidden_first(slot, size);
        }
        self.tidy();
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

    /// A taker meets the first order of a level. False where it takes no more: it is filled, its
    /// budget is used up, or what is left of it must go.
    #[cold]
    #[inline(never)]
    pub(super) fn meet(
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
            self.remove(slot, Removal::SelfTrade, events);
        }
        if mode == SelfTrade::CancelMaker {
            return true;
        }
        taker.cut = Some(RejectReason::SelfTrade);
        false
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
            self.report_left(slot, (lots, left), Removal::Decremented, events);
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

    /// Fills lots that a resting order shows, after the trade was reported.
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
            self.discard(slot);
        } else {
            self.ladder.nodes[slot].filled += size;
            self.show(slot, hidden, 0, events);
        }
    }

    /// Takes a resting order out, and reports why.
    pub(super) fn remove(&mut self, slot: u32, why: Removal, events: &mut Events) {
        let left = self.ladder.nodes[slot].left + self.hidden(slot);
        self.report_removed(slot, left, why, events);
        self.ladder.unlink(slot);
        self.discard(slot);
    }

    pub(super) fn report_removed(&self, slot: u32, size: i64, why: Removal, events: &mut Events) {
        self.report_left(slot, (size, 0), why, events);
    }

    /// Reports that `size` lots of a resting order are gone, and `left` remain.
    fn report_left(&self, slot: u32, (size, left): (i64, i64), why: Removal, events: &mut Events) {
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
