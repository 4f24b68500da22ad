//! Many orders leave a book at once, by a command that names none of them.

use super::Book;
use crate::command::Action;
use crate::event::{Events, Removal};
use crate::ids::UserId;

impl Book {
    /// Takes out at most `most` orders that are priced outside the band, in the order of
    /// [`remove_all`](Self::remove_all): resting ones, then of futures waiting ones. Returns
    /// whether orders are left outside.
    pub(crate) fn remove_outside(&mut self, most: usize, events: &mut Events) -> bool {
        let before = events.len();
        let why = Removal::OutsideBand;
        self.remove_resting((why, most), events, Some(self.band));
        if self.is_futures() {
            let most = most.saturating_sub(events.len() - before);
            self.remove_waiting_outside((why, most), events);
        }
        self.tidy();
        self.has_outside()
    }

    /// Returns whether orders rest, or of futures rest or wait, outside the band.
    pub(crate) fn has_outside(&self) -> bool {
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.any(|side| self.ladder.slots_outside(side, self.band).next().is_some())
            || self.is_futures() && self.waits_outside()
    }

    /// Takes out at most `most` orders: asks, then bids, each best price first, then in order of
    /// time; then stop orders that wait. Returns whether orders are left.
    pub(crate) fn remove_all(&mut self, why: Removal, most: usize, events: &mut Events) -> bool {
        let before = events.len();
        self.remove_resting((why, most), events, None);
        let most = most.saturating_sub(events.len() - before);
        self.remove_all_waiting((why, most), events);
        self.tidy();
        self.count_all() > 0
    }

    /// Returns how many orders rest or wait.
    pub(crate) const fn count_all(&self) -> usize {
        self.index.len()
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
