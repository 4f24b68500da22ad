//! Many orders leave a book at once, by a command that names none of them.

use super::Book;
use crate::command::Action;
use crate::event::{Events, Removal};
use crate::ids::UserId;

impl Book {
    /// Takes out the orders of covered futures that are priced outside a band, resting and waiting
    /// ones, in the order of [`remove_all`](Self::remove_all).
    pub(crate) fn remove_outside(&mut self, (low, high): (i64, i64), events: &mut Events) {
        let is_outside = |price: i64| price < low || price > high;
        let why = Removal::OutsideBand;
        self.remove_resting(why, events, Some((low, high)));
        // The worst price of a market order may be outside.
        self.remove_all_waiting(why, events, |place| {
            place.order_type.has_limit() && is_outside(place.price)
        });
        self.tidy();
    }

    /// Takes out every order: asks, then bids, each best price first, then in order of time.
    /// Nothing waits or rests afterwards.
    ///
    /// Cost: looks up and reports each order: no part of it can wait for a later command.
    pub(crate) fn remove_all(&mut self, why: Removal, events: &mut Events) {
        self.remove_resting(why, events, None);
        self.remove_all_waiting(why, events, |_| true);
        self.tidy();
    }

    /// Takes out the orders of `uid`, in the same order as all would go; for
    /// [`Removal::Disconnected`] those that go with his session.
    ///
    /// Cost: those orders, sorted; the first time, a visit to every order. The waiting orders
    /// visited are all of his; where ids are not per user, those of all users.
    pub(crate) fn remove_of(&mut self, uid: UserId, why: Removal, events: &mut Events) {
        self.keep_owners();
        let is_end = why == Removal::Disconnected;
        let slots = match is_end {
            true => self.slots_with_session(uid),
            false => self.slots_of(uid, usize::MAX),
        };
        for slot in slots {
            self.remove(slot, why, events);
        }
        self.remove_waiting_of(uid, why, events, |flags| {
            !is_end || flags.goes_with_session()
        });
        self.tidy();
    }

    /// Takes out all resting orders, or those that are priced outside a band. Cost: those orders.
    pub(super) fn remove_resting(
        &mut self,
        why: Removal,
        events: &mut Events,
        band: Option<(i64, i64)>,
    ) {
        let mut slots = Vec::new();
        for side in [Action::Ask, Action::Bid] {
            match band {
                Some(band) => slots.extend(self.ladder.slots_outside(side, band)),
                None => slots.extend(self.ladder.slots(side)),
            }
        }
        events.reserve_exact(slots.len());
        for slot in slots {
            self.remove(slot, why, events);
        }
    }
}
