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
use super::ladder::mask;
use crate::command::Place;
use crate::command::SelfTrade;

impl Book {
    /// What it costs to fill a new order whole at prices up to `limit`, as far as it would go: or
    /// `None` where it would not be filled.
    ///
    /// Cost: visits the orders that would be met. In 128 bits, and saturating.
    pub(super) fn careful_cost(&self, place: &Place, limit: i64) -> Option<i128> {
        let side = place.action.opposite();
        let mode = place.flags.self_trade();
        let mut orders = self.orders(side).peekable();
        let mut missing = i128::from(place.size);
        let mut cost = 0_i128;
        while let Some(price) = orders.peek().map(|order| order.price) {
            if price ^ mask(side) > limit {
                break;
            }
            // Lots that can be had at this price: those shown in turn, then the hidden ones.
            let (mut lots, mut hidden, mut is_blocked) = (0_i128, 0_i128, false);
            while missing > lots
                && let Some(order) = orders.next_if(|order| order.price == price)
            {
                if mode != SelfTrade::Allow && order.uid == place.uid {
                    is_blocked |= mode != SelfTrade::CancelMaker;
                } else if !is_blocked {
                    lots += i128::from(order.size - order.filled - order.hidden);
                    hidden += i128::from(order.hidden);
                }
            }
            if !is_blocked {
                lots += hidden;
            }
            let value = |lots: i128| lots.saturating_mul(price.into());
            if missing <= lots {
                return Some(cost.saturating_add(value(missing)));
            }
            if is_blocked {
                break;
            }
            missing -= lots;
            cost = cost.saturating_add(value(lots));
        }
        None
    }
}
