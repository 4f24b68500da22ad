//! Orders that live until a time, as the log tells the time.
//!
//! They leave their book by time, then in the order in which they came, whether they rest or, as
//! stop orders, still wait.

use super::Book;
use crate::event::{Events, Removal};
use crate::ids::OrderId;

impl Book {
    /// Whether something expires at or before `time`.
    pub(crate) fn expires_by(&self, time: i64) -> bool {
        let aside = self.aside.as_ref();
        let first = aside.and_then(|aside| aside.expiries.first_key_value());
        first.is_some_and(|(&(first, _), _)| first <= time)
    }

    /// Takes out what expires at or before `time`. Cost: a few steps in trees for each.
    pub(crate) fn expire(&mut self, time: i64, events: &mut Events) {
        while self.expires_by(time) {
            let aside = self.aside_mut();
            let Some((_, order)) = aside.expiries.pop_first() else {
                break;
            };
            match self.find(order) {
                Some(slot) => self.remove(slot, Removal::Expired, events),
                None => self.remove_waiting(order, Removal::Expired, events),
            }
        }
        self.tidy();
    }

    /// When which orders expire, resting and waiting ones, as they would go.
    pub fn expiries(&self) -> impl Iterator<Item = (i64, OrderId)> + '_ {
        let expiries = self.aside.iter().flat_map(|aside| &aside.expiries);
        expiries.map(|(&(time, _), order)| (time, OrderId(order.id)))
    }
}
