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
        self.remove_resting((why, usize::MAX), events, Some((low, high)));
        // The worst price of a market order may be outside.
        self.remove_all_waiting((why, usize::MAX), events, |place| {
            place.order_type.has_limit() && is_outside(place.price)
        });
        self.tidy();
    }

    /// Takes out at most `most` orders: asks, then bids, each best price first, then in order of
    /// time; then stop orders that wait. Returns whether orders are left.
    pub(crate) fn remove_all(&mut self, why: Removal, most: usize, events: &mut Events) -> bool {
        let before = events.len();
        self.remove_resting((why, most), events, None);
        let most = most.saturating_sub(events.len() - before);
        self.remove_all_waiting((why, most), events, |_| true);
        self.tidy();
        !self.is_empty()
    }

    /// Returns whether no order rests or waits.
    fn is_empty(&self) -> bool {
        self.order_count() == 0 && self.waiting().next().is_none()
    }

    /// Returns whether more than `most` orders rest or wait.
    pub(crate) fn has_more_than(&self, most: usize) -> bool {
        self.order_count() + self.waiting().take(most).count() > most
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

    /// Takes out all resting orders, or those that are priced outside a band, `most` of them at
    /// most. Cost: those orders.
    pub(super) fn remove_resting(
        &mut self,
        (why, most): (Removal, usize),
        events: &mut Events,
        band: Option<(i64, i64)>,
    ) {
        let mut slots = Vec::new();
        for side in [Action::Ask, Action::Bid] {
            match band {
                Some(band) => {
                    slots.extend(
                        self.ladder
                            .slots_outside(side, band)
                            .take(most - slots.len()),
                    );
                }
                None => slots.extend(self.ladder.slots(side).take(most - slots.len())),
            }
        }
        events.reserve_exact(slots.len());
        for slot in slots {
            self.remove(slot, why, events);
        }
    }
}
