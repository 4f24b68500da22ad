//! Many orders leave a book at once, by a command that names none of them.

use super::Book;
use crate::command::Action;
use crate::event::{Event, Events, Removal};
use crate::ids::UserId;

impl Book {
    /// Takes out every order of `uid`, or of everybody: asks, then bids, each best price first,
    /// then in order of time. Nothing of them waits or rests afterwards.
    ///
    /// Cost: visits every resting order, whoever owns it, and looks up twice each one that goes.
    pub(crate) fn remove_all(&mut self, uid: Option<UserId>, why: Removal, events: &mut Events) {
        let first = events.len();
        for side in [Action::Ask, Action::Bid] {
            for order in self.orders(side) {
                if uid.is_some_and(|uid| uid != order.uid) {
                    continue;
                }
                let slot = self.find(order.order_id).expect("it rests");
                events.push(Event::Removed {
                    symbol: self.spec.id,
                    order: order.order_id,
                    uid: order.uid,
                    user: self.ladder.nodes[slot].user(),
                    action: order.action,
                    price: order.price,
                    size: order.size - order.filled,
                    bidder_hold_price: order.reserve_price,
                    why,
                });
            }
        }
        for event in &events[first..] {
            if let Event::Removed { order, .. } = *event {
                let slot = self.find(order).expect("it rests until now");
                self.ladder.unlink(slot);
                self.discard(slot);
            }
        }
        self.remove_all_waiting(uid, why, events);
        self.tidy();
    }
}
