//! Self-trade prevention: an order meets one of its owner's.
//!
//! The resting order is looked at when it would be the next to trade, and the flags that count are
//! the taker's. A resting order that is cancelled is told by an
//! [`Event::Removed`](crate::Event::Removed) between the trades, where it happens. What is left of
//! a new order that is cancelled is rejected; of a moved one, which was placed long ago, it is
//! removed, and told last.
//!
//! *Decrement*: both lose as many lots as the smaller one has, of an iceberg order hidden ones
//! first, so that a maker keeps its place. A new order's lots are rejected, with all that is
//! rejected of it; those of a moved one are told last, like those that are removed.
//!
//! *Orders that must be filled whole* (FOK, FOK_BUDGET): where cancelling the taker is asked for,
//! or a decrement, after which it is not filled whole, only lots that stand before the first own
//! order count; where cancelling the maker is, all lots but own ones. Where these are not enough,
//! or cost too much, the order is rejected and nothing else happens: no own order is removed for an
//! order that is not filled.

use super::Book;
use crate::command::{Place, SelfTrade};

impl Book {
    /// Whether a new order that must not meet its owner's would be filled whole at prices up to
    /// `limit`, at a cost that `is_good`.
    ///
    /// Cost: visits the orders that would be met.
    pub(super) fn others_fill(
        &self,
        place: &Place,
        limit: i64,
        is_good: impl Fn(i128) -> bool,
    ) -> bool {
        let side = place.action.opposite();
        let mode = place.flags.self_trade();
        let mut missing = i128::from(place.size);
        let mut cost = 0_i128;
        for (slot, level) in self.ladder.levels_between(side, (i64::MIN, limit)) {
            let value = |lots: i128| lots.saturating_mul(level.price.into());
            if !is_good(cost.saturating_add(value(missing))) {
                return false;
            }
            // Lots that can be had at this price: those shown in turn, then the hidden ones.
            let (mut lots, mut hidden, mut is_blocked) = (0_i128, 0_i128, false);
            let mut orders = self.ladder.queue(slot);
            while missing > lots
                && let Some(slot) = orders.next()
            {
                let order = &self.ladder.nodes[slot];
                if mode != SelfTrade::Allow && order.uid == place.uid.0 {
                    is_blocked |= mode != SelfTrade::CancelMaker;
                } else if !is_blocked {
                    lots += i128::from(order.left);
                    hidden += i128::from(self.hidden(slot));
                }
            }
            if !is_blocked {
                lots += hidden;
            }
            if missing <= lots || is_blocked {
                return missing <= lots;
            }
            missing -= lots;
            cost = cost.saturating_add(value(lots));
        }
        false
    }
}
