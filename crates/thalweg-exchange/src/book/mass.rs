//! Many orders leave a book at once, by a command that names none of them.

use super::Book;
use crate::command::Action;
use crate::event::{Event, Events, Removal};
use crate::ids::UserId;

impl Book {
    /// Takes out the orders of covered futures that are priced outside a band, resting and waiting
    /// ones, in the order of [`remove_all`](Self::remove_all).
    pub(crate) fn remove_outside(&mut self, (low, high): (i64, i64), events: &mut Events) {
        let is_outside = |price: i64| price < low || price > high;
        self.remove_where(Removal::OutsideBand, events, |_, price| is_outside(price));
    }

    /// Takes out every order of `uid`, or of everybody: asks, then bids, each best price first,
    /// then in order of time. Nothing of them waits or rests afterwards.
    ///
    /// Cost: visits every order, whoever owns it, and looks up twice each one that goes.
    pub(crate) fn remove_all(&mut self, uid: Option<UserId>, why: Removal, events: &mut Events) {
        self.remove_where(why, events, |owner, _| uid.is_none_or(|uid| uid == owner));
    }

    /// Takes out the orders that `is_meant`, by owner and price.
    fn remove_where(
        &mut self,
        why: Removal,
        events: &mut Events,
        is_meant: impl Fn(UserId, i64) -> bool,
    ) {
        let first = events.len();
        for side in [Action::Ask, Action::Bid] {
            for order in self.orders(side) {
                if !is_meant(order.uid, order.price) {
                    continue;
                }
                let key = self.key(order.uid, order.order_id);
                let slot = self.find(key).expect("it rests");
                self.tell_removed(slot, order.size - order.filled, why, events);
            }
        }
        for event in &events[first..] {
            if let Event::Removed { order, uid, .. } = *event {
                let slot = self.find(self.key(uid, order)).expect("it rests until now");
                self.ladder.unlink(slot);
                self.discard(slot);
            }
        }
        self.remove_all_waiting(why, events, is_meant);
        self.tidy();
    }
}
