//! Orders that live until a time, by the clock of the log.
//!
//! They leave their book by time, then in the order in which they came, whether they rest or, as
//! stop orders, still wait.

use super::Book;
use super::aside::WAITS;
use crate::event::{Events, Removal};
use crate::ids::{OrderId, UserId};

impl Book {
    fn first_expiry(&self) -> Option<i64> {
        let expiries = &self.aside.as_ref()?.expiries;
        expiries.first_key_value().map(|(&(time, _), _)| time)
    }

    /// Whether something expires at or before `time`.
    pub(crate) fn expires_by(&self, time: i64) -> bool {
        self.first_expiry().is_some_and(|first| first <= time)
    }

    /// When it was said that something expires first, and when it does now if that is sooner.
    pub(crate) fn bring_due_forward(&mut self) -> Option<(i64, i64)> {
        let first = self.first_expiry()?;
        (first < self.due).then(|| (std::mem::replace(&mut self.due, first), first))
    }

    /// Nothing was said of it.
    pub(crate) const fn forget_due(&mut self) {
        self.due = i64::MAX;
    }

    /// Takes out what expires at or before `time`, until there are `max` events. Cost: a few steps
    /// in trees for each.
    pub(crate) fn expire(&mut self, time: i64, max: usize, events: &mut Events) {
        while events.len() < max && self.expires_by(time) {
            let aside = self.aside_mut();
            let Some((_, order)) = aside.expiries.pop_first() else {
                break;
            };
            match self.find(order) {
                Some(slot) if self.ladder.nodes[slot].marks & WAITS == 0 => {
                    self.remove(slot, Removal::Expired, events);
                }
                _ => self.remove_waiting(order, Removal::Expired, events),
            }
        }
        self.tidy();
    }

    /// When which orders expire, resting and waiting ones, as they would go; their owners where ids
    /// are per user, else 0.
    pub fn expiries(&self) -> impl Iterator<Item = (i64, UserId, OrderId)> + '_ {
        let expiries = self.aside.iter().flat_map(|aside| &aside.expiries);
        expiries.map(|(&(time, _), order)| (time, UserId(order.owner), OrderId(order.id)))
    }
}
