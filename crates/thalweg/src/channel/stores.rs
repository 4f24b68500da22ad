//! The stores behind senders and behind receivers, one face for all. The ring of one sender and one
//! receiver comes first in every `match`, and the rest is kept off its path.
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
//!    drops what it finds ([`RecvEnd::discard`](RecvEnd::discard)).
//! 2. A sender notifies that signal after all that it has made visible: elements, or room for none
//!    that kept those behind it back. If the signal is shut, it drops what it finds
//!    ([`Sender::discard_late`](super::sender::Sender::discard_late)).
//! 3. Where only one side may take (a ring of one sender and one receiver), the two hand that over,
//!    and neither waits for the other: see "What comes late" in `ring::spsc::shared`.
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

use super::hub::Gate;
use super::locked::Locked;
use super::meeting::Meeting;
use crate::ring::panics::drop_each;
use crate::ring::sync::{Arc, fault, yield_now};
use crate::ring::{PopError, PushError, SpscConsumer, SpscProducer, Ticket, TicketEnd};

/// Where a sender puts elements.
// With a tag of its own: the compiler would hide it in some field, and take five instructions to
// find it.
#[repr(u8)]
pub(super) enum SendEnd<T> {
    Ring(SpscProducer<T>),
    Ticket(TicketEnd<T>),
    Locked(Arc<Locked<T>>),
    Meeting(Arc<Meeting<T>>),
}

/// Does the same with whichever store it is.
macro_rules! with_send_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store) => $do,
            Self::Ticket($store) => $do,
            Self::Locked($store) => $do,
            Self::Meeting($store) => $do,
        }
    };
}

impl<T> SendEnd<T> {
    #[inline(always)]
    pub(super) fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        with_send_store!(self, store => store.try_push(value))
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
            Self::Ring(_) | Self::Meeting(_) => None,
        }
    }

    /// Returns the store for another sender, where senders may share it.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Ticket(ring) => Some(Self::Ticket(ring.clone())),
            Self::Locked(store) => Some(Self::Locked(Arc::clone(store))),
            Self::Meeting(meeting) => Some(Self::Meeting(Arc::clone(meeting))),
            Self::Ring(_) => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        with_send_store!(self, store => store.is_closed())
    }

    /// Returns whether a push would not say that the channel is full.
    pub(super) fn is_ready(&mut self) -> bool {
        self.is_closed()
            || match self {
                Self::Ring(producer) => !producer.is_full(),
                Self::Ticket(ring) => ring.can_push(),
                Self::Locked(store) => !store.is_full(),
                Self::Meeting(meeting) => meeting.is_requested(),
            }
    }

    pub(super) fn len(&self) -> usize {
        with_send_store!(self, store => store.len())
    }

    /// Returns whether more than `limit` elements waited when `pushed` had been pushed, and still
    /// do.
    #[inline]
    fn is_behind(&mut self, limit: usize, pushed: u64) -> bool {
        match self {
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
        with_send_store!(self, store => store.capacity())
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
        with_send_store!(self, store => store.pushed())
    }

    /// Closes the store as far as this sender may.
    pub(super) fn close(&mut self) {
        with_send_store!(self, store => {
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
pub(super) fn discard_left<T>(producer: &mut SpscProducer<T>, gate: &Gate) {
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
        gate.yields.add(1);
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

/// Where a receiver takes elements from.
#[repr(u8)] // as there
pub(super) enum RecvEnd<T> {
    Ring(SpscConsumer<T>, Arc<Gate>),
    Ticket(TicketEnd<T>, Arc<Gate>),
    Locked(Arc<Locked<T>>, Arc<Gate>),
    Meeting(Arc<Meeting<T>>, Arc<Gate>),
    /// A ring of which the end was reported: what comes late is its sender's to drop.
    Ended(SpscConsumer<T>, Arc<Gate>),
}

/// Does the same with whichever store it is.
macro_rules! with_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store, _) | Self::Ended($store, _) => $do,
            Self::Ticket($store, _) => $do,
            Self::Locked($store, _) => $do,
            Self::Meeting($store, _) => $do,
        }
    };
}

impl<T> RecvEnd<T> {
    /// Takes an element and wakes a sender that waits for the room. `Closed` says that a closer
    /// look is needed, where this is a ring: see [`end`](Self::end).
    #[inline(always)]
    pub(super) fn try_pop(&mut self) -> Result<T, PopError> {
        match self {
            Self::Ring(consumer, gate) => {
                let value = consumer.try_pop_nearly()?;
                gate.writable.notify_one();
                Ok(value)
            }
            _ => Ok(self.try_pop_at()?.1),
        }
    }

    /// Works as [`try_pop`](Self::try_pop), with the element's position in its store, for stores
    /// that several may share.
    #[inline(never)]
    pub(super) fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        match self {
            Self::Ticket(ring, gate) => {
                let found = ring.try_pop_at();
                // Also if there was nothing: room that claims left unused may have come back.
                gate.notify_room(1);
                found
            }
            Self::Locked(store, gate) => {
                let found = store.try_pop_at()?;
                if fault::is("locked_room") {
                    return Ok(found);
                }
                gate.writable.notify_one();
                Ok(found)
            }
            Self::Meeting(meeting, _) => meeting.try_pop_at(),
            Self::Ring(..) | Self::Ended(..) => Err(PopError::Closed),
        }
    }

    /// Looks closer where a pop returned `Closed`: `Ok` if there is an element, `Closed` if a
    /// sender would have to come late to bring one. If there are senders, their signal was shut and
    /// the heavy barrier passed; `is_final` says so, or that there is none.
    #[cold]
    pub(super) fn end(&mut self, is_final: bool) -> Result<(), PopError> {
        match self {
            Self::Ring(consumer, gate) => {
                if consumer.take_back() {
                    gate.writable.notify_one();
                }
                match consumer.observe() {
                    Err(PopError::Closed) if is_final => consumer.end(),
                    outcome => outcome,
                }
            }
            _ => Err(PopError::Closed),
        }
    }

    /// After [`end`](Self::end) has returned `Closed` finally: nothing is taken any more.
    pub(super) fn retire(&mut self) {
        if let Self::Ring(..) = self {
            let nowhere = Self::Meeting(Arc::new(Meeting::new()), Arc::default());
            if let Self::Ring(consumer, gate) = std::mem::replace(self, nowhere) {
                *self = Self::Ended(consumer, gate);
            }
        }
    }

    /// Moves up to `max` elements to the end of `out` and wakes senders; returns how many, at least
    /// one unless `max` is 0.
    pub(super) fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<usize, PopError> {
        if max == 0 {
            return Ok(0);
        }
        let before = out.len();
        match self {
            Self::Ring(consumer, gate) => {
                let mut count = consumer.pop_into(out, max);
                if count == 0 {
                    // That may have given the room of a forgotten batch back.
                    gate.writable.notify_one();
                    // Distinguishes empty from closed.
                    out.push(consumer.try_pop_nearly()?);
                    count = 1 + consumer.pop_into(out, max - 1);
                }
                gate.writable.notify(count);
            }
            Self::Locked(..) | Self::Meeting(..) => {
                out.push(self.try_pop()?);
                while out.len() - before < max
                    && let Ok(value) = self.try_pop()
                {
                    out.push(value);
                }
            }
            Self::Ticket(ring, gate) => {
                let taken = ring.pop_into(out, max);
                gate.notify_room(taken.unwrap_or(1));
                taken?;
            }
            Self::Ended(..) => return Err(PopError::Closed),
        }
        Ok(out.len() - before)
    }

    /// Returns the store for another receiver, where receivers may share it.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Ticket(ring, gate) => Some(Self::Ticket(ring.clone(), Arc::clone(gate))),
            Self::Locked(store, gate) => Some(Self::Locked(Arc::clone(store), Arc::clone(gate))),
            Self::Meeting(meeting, gate) => {
                Some(Self::Meeting(Arc::clone(meeting), Arc::clone(gate)))
            }
            Self::Ring(..) | Self::Ended(..) => None,
        }
    }

    /// Looks once more into a store that is this receiver's own, where no sender is left.
    pub(super) fn look(&mut self) -> Result<(), PopError> {
        match self {
            Self::Ring(consumer, _) => consumer.observe(),
            _ => Err(PopError::Closed),
        }
    }

    /// Returns whether another receiver should look, too. A wake-up may stand for more than one
    /// element, since a sender that is late with an earlier one hides those behind it; and for the
    /// end, if the ring was closed meanwhile.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Ring(..) | Self::Ended(..) => false,
            Self::Ticket(ring, _) => {
                ring.can_pop() || (ring.is_closed() && !fault::is("end_unreported"))
            }
            Self::Locked(store, _) => store.len() > 0,
            // A wake-up there is for the one receiver that waits, and no other.
            Self::Meeting(..) => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        with_store!(self, store => store.len())
    }

    /// Returns how many elements there may be to take now, at least 1.
    pub(super) fn held_max(&self) -> usize {
        match self {
            // Their limit may be far away, and one more that comes meanwhile is one too many.
            Self::Locked(store, _) => store.len().max(1),
            Self::Meeting(meeting, _) => meeting.offered().max(1),
            _ => self.capacity(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        with_store!(self, store => store.capacity())
    }

    pub(super) fn is_closed(&self) -> bool {
        with_store!(self, store => store.is_closed())
    }

    /// Returns the number of elements taken out of the store, by all receivers.
    pub(super) fn popped(&self) -> u64 {
        match self {
            Self::Ticket(ring, _) => ring.received(),
            _ => self.moves(),
        }
    }

    /// Returns a count that grows with each element that is taken out, in one step with that.
    pub(super) fn moves(&self) -> u64 {
        with_store!(self, store => store.popped())
    }

    /// Returns the gate of the channel.
    pub(super) fn gate(&self) -> &Gate {
        match self {
            Self::Ring(_, gate)
            | Self::Ended(_, gate)
            | Self::Ticket(_, gate)
            | Self::Locked(_, gate)
            | Self::Meeting(_, gate) => gate,
        }
    }

    /// Returns the number of elements lost before the one at `position`, which came last, as far as
    /// they were not reported yet.
    #[cold]
    pub(super) fn lost_before(&self, position: u64) -> u64 {
        let gate = self.gate();
        let noted = gate.gaps.as_ref().map_or(0, |gaps| gaps.take(position));
        noted + gate.unreported.take()
    }

    /// Closes the store and wakes the senders.
    pub(super) fn close(&mut self) {
        with_store!(self, store => {
            store.close();
        });
        self.gate().writable.notify_all();
    }

    /// Where senders and receivers meet, if they do, and the gate there.
    #[inline]
    pub(super) fn meeting(&self) -> Option<(&Arc<Meeting<T>>, &Arc<Gate>)> {
        match self {
            Self::Meeting(meeting, gate) => Some((meeting, gate)),
            _ => None,
        }
    }
}

impl<T> RecvEnd<T> {
    /// Drops the elements that are left: no receiver will take them. The store is closed, and its
    /// signal is shut unless no sender is there. Not inlined: an element on the stack of a caller
    /// that never gets here may be too large for it.
    #[cold]
    #[inline(never)]
    pub(super) fn discard(&mut self) {
        match self {
            Self::Ended(..) => {}
            Self::Ring(consumer, gate) => drop_each(|| counted(gate, consumer.take_last())),
            Self::Ticket(ring, gate) => discard_tickets(ring, gate),
            Self::Locked(store, gate) => drop_each(|| counted(gate, store.try_pop().ok())),
            Self::Meeting(meeting, gate) => drop_each(|| {
                let (_, value) = meeting.try_pop_at().ok()?;
                counted(gate, Some(value))
            }),
        }
    }
}
