//! Giving a resting order another price.

use super::Book;
use super::aside::WAITS;
use super::ladder::mask;
use super::node::Node;
use crate::command::Action;
use crate::event::{Events, Moved};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Book {
    /// Gives an order another price: it matches as a taker, and what is left rests at the tail.
    /// `checked` is the result of the risk check; it counts only if there is such an order.
    #[inline(always)]
    pub(crate) fn move_order(
        &mut self,
        (uid, order_id): (UserId, OrderId),
        price: i64,
        checked: ResultCode,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Some(slot) = self.find_own(uid, order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = &self.ladder.nodes[slot];
        if order.marks & WAITS != 0 {
            return ResultCode::MatchingUnknownOrderId;
        }
        if checked.is_refusal() {
            return checked;
        }
        let mut moved = Moved {
            action: order.action,
            price: order.price,
            left: order.left,
            filled: order.filled,
        };
        let is_marked = order.marks != 0;
        if let Some(code) = self.check_move(order, price) {
            return code;
        }
        if self.crosses(moved.action, price) | is_marked || !self.ladder.shift(slot, price) {
            // Hidden lots move, too.
            moved.left += self.hidden(slot);
            let code = self.move_far(slot, price, rules, events);
            if code != ResultCode::Success {
                return code;
            }
        }
        events.set_moved(moved);
        if self.is_futures() {
            events.set_standing(self.standing());
        }
        ResultCode::Success
    }

    /// Moves a plain order inside the window that takes nothing, to a price which covers an ask's
    /// fee where that is asked for; returns how it stood. `PAIR`: in a pair. `None`, and nothing
    /// done, for a move that needs the slow path.
    #[inline(always)]
    pub(crate) fn shift<const PAIR: bool>(
        &mut self,
        owner: (UserId, OrderId),
        price: i64,
    ) -> Option<Moved> {
        let slot = self.near_own(owner.0, owner.1)?.slot;
        let order = &self.ladder.nodes[slot];
        let moved = Moved {
            action: order.action,
            price: order.price,
            left: order.left,
            filled: order.filled,
        };
        let is_above = PAIR & (price > order.reserve_price) & (order.action == Action::Bid);
        let key = price ^ mask(order.action);
        if order.marks != 0
            || is_above
            || !self.ladder.is_beyond(moved.action.opposite(), !key)
            || !self.ladder.shift(slot, price)
        {
            return None;
        }
        Some(moved)
    }

    /// Whether an order of this side would take at this price.
    #[inline]
    pub(super) fn crosses(&mut self, side: Action, price: i64) -> bool {
        let opposite = side.opposite();
        self.ladder.reaches(opposite, price ^ mask(opposite))
    }

    /// Moves an order that trades, or to where the window ends.
    #[cold]
    fn move_far(
        &mut self,
        slot: u32,
        price: i64,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Node { action, flags, .. } = self.ladder.nodes[slot];
        if flags.is_post_only() && self.would_take(action, price) {
            return ResultCode::MatchingMoveFailedPostOnly;
        }
        self.requeue(slot, (price, 0), rules, events)
    }

    /// A pair's bid may not leave its reserve price, nor its ask the price that covers the fee.
    #[inline]
    pub(super) fn check_move(&self, order: &Node, price: i64) -> Option<ResultCode> {
        // Both bounds are lower bounds of keys; the side is chosen by a mask, not by a branch.
        let side = mask(order.action);
        let reserve = if self.bids_bounded {
            !order.reserve_price
        } else {
            i64::MIN
        };
        let bound = self.ask_floor ^ ((self.ask_floor ^ reserve) & side);
        (price ^ side < bound).then(|| refused_move(order.action))
    }
}

#[cold]
const fn refused_move(side: Action) -> ResultCode {
    match side {
        Action::Bid => ResultCode::MatchingMoveFailedPriceOverRiskLimit,
        Action::Ask => ResultCode::MatchingMoveFailedPriceLowerThanFee,
    }
}
