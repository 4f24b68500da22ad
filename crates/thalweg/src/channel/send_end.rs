//! The stores behind senders, one face for all; receivers' are in `recv_end`. The ring of one
//! sender and one receiver comes first in every `match`, and the rest is kept off its path.
//!
//! # Elements that no receiver will take
//! They are dropped by the last receiver as it goes, and by senders that come late. A sender looks
//! whether the channel is closed, and then puts its element in. In between the last receiver may
//! close the channel, drop what there is, and be gone. The element must not lie there until the
//! senders go: it may hold the one end of a reply channel at whose other end that very sender
//! waits.
//!
//! *Rules.*
//! 1. The last receiver closes the store, shuts the signal of the receivers, then takes out and
//!    drops what it finds ([`RecvEnd::discard`](super::recv_end::RecvEnd::discard)).
//! 2. A sender notifies that signal after all that it has made visible: elements, or room for none
//!    that kept those behind it back. If the signal is shut, it drops what it finds
//!    ([`Sender::discard_late`](super::sender::Sender::discard_late)).
//! 3. Where only one side may take (a ring of one sender and one receiver, a lane), the two hand
//!    that over, and neither waits for the other: see "What comes late" in `ring::spsc::shared`.
//! 4. Every element is counted before it is dropped, and all are dropped, also if one panics.
//!
//! *Why nothing stays.* By the signal's rule 6, an element that was there before a notification is
//! seen by the last receiver's look, or the notification returns "shut"; and of two senders that
//! get "shut", one sees what both made. So where an element is kept back by others before it that
//! are still under way, the sender that is the last to make its own visible finds all of them, or
//! the receiver does. A queue with a lock refuses elements once it is closed. A rendezvous stores
//! nothing but elements that came back from a receiver, which was there then.
//!
//! # Rate balance
//! A sender that is faster than the receivers gives its turn away. A queue that grows costs no
//! throughput, but every element waits behind all of it. A sender looks now and then whether more
//! than a limit of elements wait. If so, it gives turns away until half the limit is left: so that
//! it does not look all the time, and receivers work through a run. Where receivers do not come on
//! in that time (they are busy, or the caller itself receives later), it looks again only after
//! ever more sends, so that sending into a channel that no receiver empties costs little more.

use super::hub::{Gate, Hub};
use super::lanes::JoinQueue;
use super::locked::Locked;
use super::meeting::Meeting;
use crate::ring::panics::drop_each;
use crate::ring::sync::{Arc, fault, yield_now};
use crate::ring::{Producer, PushError, Ticket, TicketEnd};

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
                Self::Meeting(meeting) => meeting.is_requested(),
            }
    }

    pub(super) fn len(&self) -> usize {
        with_store!(self, store => store.len())
    }

    /// Returns whether more than `limit` elements waited when `pushed` had been pushed, and still
    /// do.
    #[inline]
    fn is_behind(&mut self, limit: usize, pushed: u64) -> bool {
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

/// Works as [`SendEnd::discard_late`], for the ring of one sender and one receiver.
#[cold]
#[inline(never)]
pub(super) fn discard_left<T>(producer: &mut Producer<T>, gate: &Gate) {
    producer.come_late();
    drop_each(|| counted(gate, producer.take_left()));
}

/// Works as [`SendEnd::discard_late`], where any end may take elements.
#[cold]
#[inline(never)]
pub(super) fn discard_tickets<T>(ring: &Ticket<T>, gate: &Gate) {
    drop_each(|| counted(gate, ring.try_pop().ok()));
}

pub(super) fn counted<T>(gate: &Gate, value: Option<T>) -> Option<T> {
    if value.is_some() {
        gate.discarded.add(1);
    }
    value
}

/// Sends between two looks at most. (2-core Intel virtual machine, 5 to 20 senders of a burst: wall
/// time with looks after 16 sends up to 5 % above that after 64.)
const LOOK_EVERY_MAX: usize = 64;
/// The number of turns to give away at most, at 0.2 µs each where no other thread wants the core.
const TURNS: u32 = 64;
/// As many of them before receivers must have come on.
const TURNS_IN_VAIN: u32 = 16;

/// The state that a sender keeps of the balance.
#[derive(Debug)]
pub(super) struct Balance {
    /// Elements that may wait; `usize::MAX` for no limit.
    limit: usize,
    /// Sends until the next look, and between the last two.
    left: usize,
    every: usize,
}

impl Balance {
    pub(super) fn new(limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(usize::MAX);
        let every = every(limit);
        Self {
            limit,
            left: every,
            every,
        }
    }

    /// Gives turns away, after `sent` more sends, if it is time to look and too many elements wait.
    #[inline(always)]
    pub(super) fn keep<T>(&mut self, sent: usize, end: &mut SendEnd<T>, gate: &Gate) {
        if self.limit != usize::MAX {
            self.left = self.left.saturating_sub(sent);
            if self.left == 0 {
                self.look(end, gate);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn look<T>(&mut self, end: &mut SendEnd<T>, gate: &Gate) {
        let pushed = end.pushed();
        if !end.is_behind(self.limit, pushed) || self.give_turns(end, gate, pushed) {
            self.every = every(self.limit);
        } else {
            self.every = self.every.saturating_mul(2);
        }
        self.left = self.every;
    }

    /// Gives turns away until half the limit is left; returns whether that was reached.
    fn give_turns<T>(&self, end: &mut SendEnd<T>, gate: &Gate, pushed: u64) -> bool {
        gate.balanced.add(1);
        for turn in 0..TURNS {
            yield_now();
            if !end.is_behind(self.limit / 2, pushed) {
                return true;
            }
            if turn == TURNS_IN_VAIN && end.is_behind(self.limit, pushed) {
                return false;
            }
        }
        false
    }
}

/// Sends between looks while the balance is kept: few where few may wait.
fn every(limit: usize) -> usize {
    (limit / 8).clamp(1, LOOK_EVERY_MAX)
}
