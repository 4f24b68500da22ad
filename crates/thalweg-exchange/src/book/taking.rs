//! A taker meets the opposite side: best price first, then time, at the maker's price.

use super::Book;
use super::side::{NONE, Side};
use crate::command::{Action, Place};
use crate::event::{Event, Events};
use crate::ids::{OrderId, UserId};

/// What matching needs to know of the order that takes.
struct Taker {
    action: Action,
    /// The worst price it takes; `None` for any.
    limit: Option<i64>,
    left: i64,
    reserve_price: i64,
}

impl Taker {
    const fn takes(&self, price: i64) -> bool {
        match (self.limit, self.action) {
            (None, _) => true,
            (Some(limit), Action::Bid) => price <= limit,
            (Some(limit), Action::Ask) => price >= limit,
        }
    }
}

impl Book {
    /// Matches a new order and returns what is left of its size.
    pub(super) fn take_new(
        &mut self,
        place: &Place,
        limit: Option<i64>,
        events: &mut Events,
    ) -> i64 {
        let taker = Taker {
            action: place.action,
            limit,
            left: place.size,
            reserve_price: place.reserve_price,
        };
        self.take(&taker, events)
    }

    /// Matches an order that is in the slab but in no queue, at its price, and books what it took.
    pub(super) fn take_moved(&mut self, slot: u32, events: &mut Events) {
        let order = self.orders[slot];
        let taker = Taker {
            action: order.action,
            limit: Some(order.price),
            left: order.left(),
            reserve_price: order.reserve_price,
        };
        let left = self.take(&taker, events);
        self.orders[slot].filled = order.size - left;
    }

    fn take(&mut self, taker: &Taker, events: &mut Events) -> i64 {
        let mut left = taker.left;
        while left != 0 {
            let side = self.opposite(taker.action);
            let Some(level) = side.best() else { break };
            let queue = *side.queue(level);
            if !taker.takes(queue.price) {
                break;
            }
            debug_assert_ne!(queue.head, NONE);
            let maker_slot = queue.head;
            let maker = &mut self.orders[maker_slot];
            let size = left.min(maker.left());
            let completed = size == maker.left();
            left -= size;
            events.push(Event::Trade {
                price: queue.price,
                size,
                maker_order: OrderId(maker.id),
                maker_uid: UserId(maker.uid),
                maker_completed: completed,
                taker_completed: left == 0,
                bidder_hold_price: match taker.action {
                    Action::Bid => taker.reserve_price,
                    Action::Ask => maker.reserve_price,
                },
                taker_action: taker.action,
            });
            if completed {
                self.unlink(maker_slot);
                self.forget(maker_slot);
            } else {
                maker.filled += size;
                self.opposite(taker.action).queue_mut(level).volume -= size;
                break;
            }
        }
        left
    }

    const fn opposite(&mut self, action: Action) -> &mut Side {
        match action {
            Action::Ask => &mut self.bids,
            Action::Bid => &mut self.asks,
        }
    }
}
