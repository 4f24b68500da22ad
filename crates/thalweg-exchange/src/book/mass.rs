//! Many orders leave a book at once, by a command that names none of them.

use super::Book;
use crate::command::Action;
use crate::event::{Event, Events, Removal};
use crate::ids::UserId;

impl Book {
    /// Takes out every order of `uid`, or of everybody: asks, then bids, each best price first,
    /// then in order of time. Nothing of them waits or rests afterwards.
    ///
    /// Cost: visits every order, whoever owns it, and looks up twice each one that goes.
    pub(crate) fn remove_all(&mut self, uid: Option<UserId>, why: Removal, events: &mut Events) {
        let first = events.len();
        for side in [Action::Ask, Action::Bid] {
            for order in self.orders(side) {
                if uid.is_some_and(|uid| uid != order.uid) {
                    continue;
                }
                let slot = self.find(order.order_id).expect("it rests");
                self.tell_removed(slot, order.size - order.filled, why, events);
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
