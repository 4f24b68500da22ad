//! Giving a resting order another size, with or without another price.
//!
//! The risk check, which knows no orders, has held money for the lots that the command says are
//! more; so an order that is not as the command says is left alone. All that can be refused is
//! looked at before anything is changed.

use super::Book;
use crate::command::{Action, Amend};
use crate::event::{Events, Moved};
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Book {
    /// Amends an order whose further lots are held for.
    #[cold]
    pub(crate) fn amend(
        &mut self,
        amend: &Amend,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let whose = (amend.uid, amend.order_id);
        let Some(slot) = self.find_resting(amend.uid, amend.order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = self.ladder.nodes[slot];
        let size = order.left + self.hidden(slot) + order.filled;
        let is_held_for = order.action == Action::Ask
            || !self.bids_bounded
            || order.reserve_price == amend.reserve_price;
        if order.action != amend.action || size != amend.size_before || !is_held_for {
            return ResultCode::MatchingAmendMismatch;
        }
        let more = amend.size - size;
        if amend.size <= order.filled {
            return self.reduce(whose, i64::MAX, events);
        }
        if more < 0 && amend.price == order.price {
            return self.reduce(whose, -more, events);
        }
        let moved = Moved {
            action: order.action,
            price: order.price,
            left: size - order.filled + more.max(0),
            filled: order.filled,
        };
        if more == 0 && amend.price == order.price {
            events.set_moved(moved);
            return ResultCode::Success;
        }
        if more > 0 && !self.shows_enough(slot, amend.size) {
            return ResultCode::RiskIcebergDisplay;
        }
        if let Some(code) = self.check_move(&order, amend.price) {
            return code;
        }
        if order.flags.is_post_only() && self.would_take(order.action, amend.price) {
            return ResultCode::MatchingMoveFailedPostOnly;
        }
        events.set_moved(moved);
        if more < 0 {
            self.reduce(whose, -more, events);
        }
        self.requeue(slot, (amend.price, more.max(0)), rules, events)
    }
}
