//! How many events of long commands wait to be published.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{EVENTS_IN_FLIGHT, EVENTS_KEPT};
use crate::event::Events;

/// Counts the events of commands that have more of them than their slots keep room for. The
/// execute stage waits while they are too many; commands that were executed are never held up, so
/// the wait ends.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Backlog {
    events: AtomicUsize,
    /// Events for which each slot keeps room.
    kept: usize,
}

impl Backlog {
    /// Makes a backlog for slots that have room for `events` events from the start.
    pub(super) fn new(events: usize) -> Self {
        Self {
            events: AtomicUsize::new(0),
            kept: events.max(EVENTS_KEPT),
        }
    }

    /// Whether a command must wait before it is executed.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        // ORDERING: Relaxed; a count, nothing is read on its strength.
        self.events.load(Ordering::Relaxed) >= EVENTS_IN_FLIGHT
    }

    /// A command was executed.
    #[inline(always)]
    pub(super) fn add(&self, events: &Events) {
        if events.len() > self.kept {
            // ORDERING: Relaxed, as in `is_full`.
            self.events.fetch_add(events.len(), Ordering::Relaxed);
        }
    }

    /// A command was published: its slot keeps no more room than it may.
    #[inline(always)]
    pub(super) fn take_off(&self, events: &mut Events) {
        if events.len() > self.kept {
            // ORDERING: Relaxed, as in `is_full`; `add` came before, as the event came here.
            self.events.fetch_sub(events.len(), Ordering::Relaxed);
        }
        events.keep_room_for(self.kept);
    }
}
