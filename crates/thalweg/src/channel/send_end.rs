//! The stores behind senders, one face for all; receivers' are in `recv_end`. The ring of one
//! sender and one receiver comes first in every `match`, and the rest is kept off its path.

use super::hub::{Gate, Hub};
use super::lanes::JoinQueue;
use super::locked::Locked;
use super::meeting::Meeting;
use crate::ring::sync::{Arc, fault};
use crate::ring::{Producer, PushError, TicketEnd};

/// Where a sender puts elements.
// With a tag of its own: the compiler would hide it in some field, and take five instructions to
// find it.
#[repr(u8)]
pub(super) enum SendEnd<T> {
    Ring(Producer<T>),
    /// And where the lanes of others come from.
    Lane(Producer<T>, Arc<JoinQueue<T>>),
    Ticket(TicketEnd<T>),
    Locked(Arc<Locked<T>>),
    Meeting(Arc<Meeting<T>>),
}

/// Does the same with whichever store it is.
macro_rules! with_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store) | Self::Lane($store, _) => $do,
            Self::Ticket($store) => $do,
            Self::Locked($store) => $do,
            Self::Meeting($store) => $do,
        }
    };
}

impl<T> SendEnd<T> {
    #[inline(always)]
    pub(super) fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        with_store!(self, store => store.try_push(value))
    }

    /// Takes the oldest element out, to make room; nothing unless there is an element for all of
    /// the room. (Where a receiver still takes one out of its slot there is, or will be, room.)
    pub(super) fn take_oldest(&mut self) -> Option<T> {
        match self {
            Self::Ticket(ring) => {
                let held = ring.pushed().saturating_sub(ring.popped());
                let is_full = held >= ring.capacity() as u64;
                let is_full = is_full || fault::is("oldest_unasked");
                is_full.then(|| ring.try_pop().ok())?
            }
            Self::Locked(store) => store.is_full().then(|| store.try_pop().ok())?,
            // The builder gives these two to channels that drop the oldest.
            Self::Ring(_) | Self::Lane(..) | Self::Meeting(_) => None,
        }
    }

    /// Returns the store for another sender, where senders may share it.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Ticket(ring) => Some(Self::Ticket(ring.clone())),
            Self::Locked(store) => Some(Self::Locked(Arc::clone(store))),
            Self::Meeting(meeting) => Some(Self::Meeting(Arc::clone(meeting))),
            Self::Ring(_) | Self::Lane(..) => None,
        }
    }

    /// Closes the store that is this sender's own, which was counted out before, and notifies the
    /// receiver, which waits for the end or has the store to free.
    pub(super) fn leave_own(&mut self, gate: &Gate, hub: &Hub) {
        self.close();
        hub.keep_figures(gate);
        gate.leave();
        hub.readable.notify_one();
    }

    /// Returns whether each sender of the channel has a store of its own.
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Lane(..))
    }

    pub(super) fn is_closed(&self) -> bool {
        with_store!(self, store => store.is_closed())
    }

    /// Returns whether a push would not say that the channel is full.
    pub(super) fn is_ready(&mut self) -> bool {
        self.is_closed()
            || match self {
                Self::Ring(producer) | Self::Lane(producer, _) => !producer.is_full(),
                Self::Ticket(ring) => ring.can_push(),
                Self::Locked(store) => !store.is_full(),
                Self::Meeting(meeting) => meeting.is_requested(None),
            }
    }

    pub(super) fn len(&self) -> usize {
        with_store!(self, store => store.len())
    }

    /// Returns whether more than `limit` elements waited when `pushed` had been pushed, and still
    /// do.
    #[inline]
    pub(super) fn is_behind(&mut self, limit: usize, pushed: u64) -> bool {
        match self {
            Self::Ring(producer) | Self::Lane(producer, _) => producer.backlog(limit) > limit,
            Self::Ticket(ring) => match pushed.checked_sub(limit as u64 + 1) {
                Some(position) => ring.is_waiting(position),
                None => false,
            },
            _ => self.len() > limit,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Ticket(ring) => ring.is_full(),
            _ => self.len() >= self.capacity(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        with_store!(self, store => store.capacity())
    }

    /// Returns the number of elements that were put in, by all senders.
    pub(super) fn sent(&self) -> u64 {
        match self {
            Self::Ticket(ring) => ring.pushed().saturating_sub(ring.unsent()),
            _ => self.pushed(),
        }
    }

    /// Returns the position of the next element to be pushed.
    pub(super) fn pushed(&self) -> u64 {
        with_store!(self, store => store.pushed())
    }

    /// Closes the store as far as this sender may.
    pub(super) fn close(&mut self) {
        with_store!(self, store => {
            store.close();
        });
    }

    /// Where senders and receivers meet, if they do.
    #[inline]
    pub(super) fn meeting(&self) -> Option<&Arc<Meeting<T>>> {
        match self {
            Self::Meeting(meeting) => Some(meeting),
            _ => None,
        }
    }
}
