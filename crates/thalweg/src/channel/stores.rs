//! The stores of a channel, as its senders and its receivers use them. The ring of one sender and
//! one receiver is the first arm of every `match`, and the other stores are kept off its fast path.
//!
//! # Elements that no receiver will take
//! The last receiver drops them as it is dropped, and so do late senders. A sender checks that the
//! channel is not closed, and then pushes its element. In between, the last receiver may close the
//! channel, drop the elements that it finds, and be gone. The element must not stay until the
//! senders are dropped: it may hold one end of a reply channel at whose other end that very sender
//! waits.
//!
//! *Rules.*
//! 1. The last receiver closes the store, shuts the event count of the receivers, then pops and
//!    drops the elements that it finds ([`RecvEnd::discard`](RecvEnd::discard)).
//! 2. A sender notifies that event count after everything that it has published: elements, or
//!    unused slots that blocked the elements behind them. If the event count is shut, it drops the
//!    elements that it finds ([`Sender::discard_late`](super::sender::Sender::discard_late)).
//! 3. Where only one side may pop (a ring of one sender and one receiver), they hand that right
//!    over, and neither waits for the other: see "What comes late" in `ring::spsc::shared`.
//! 4. Every element is counted before it is dropped, and all are dropped, also if one panics.
//!
//! *Why no element stays.* By the event count's rule 6, an element that was published before a
//! notification is seen by the last receiver's check, or the notification returns "shut"; and of
//! two senders that get "shut", one sees what both published. So if an element is hidden by earlier
//! ones that are not published yet, the sender that is the last to publish finds all of them, or
//! the receiver does. A queue with a lock refuses elements once it is closed. A rendezvous stores
//! nothing but elements that a receiver gave back, and that receiver existed then.
//!
//! # Rate balance
//! A sender that is faster than the receivers yields its time slice. A queue that grows costs no
//! throughput, but each element waits behind all others. A sender checks now and then whether more
//! elements wait than the soft limit. If so, it yields until half the limit is left: so it does not
//! check all the time, and receivers process a run of elements. If receivers make no progress in
//! that time (they are busy, or the caller itself receives later), it checks again only after ever
//! more sends, so that sending into a channel that no receiver empties costs little more.

use super::hub::Gate;
use super::locked::Locked;
use super::rendezvous::Rendezvous;
use crate::ring::panics::drop_each;
use crate::ring::sync::{Arc, fault, yield_now};
use crate::ring::{MpmcEnd, MpmcRing, PopError, PushError, SpscConsumer, SpscProducer};

/// A store as a sender uses it.
// `repr` gives it a tag of its own: the compiler would hide the tag in some field, and take five
// instructions to find it.
#[repr(u8)]
pub(super) enum SendEnd<T> {
    Ring(SpscProducer<T>),
    Mpmc(MpmcEnd<T>),
    Locked(Arc<Locked<T>>),
    Rendezvous(Arc<Rendezvous<T>>),
}

/// Evaluates an expression with the store, whichever it is.
macro_rules! with_send_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store) => $do,
            Self::Mpmc($store) => $do,
            Self::Locked($store) => $do,
            Self::Rendezvous($store) => $do,
        }
    };
}

impl<T> SendEnd<T> {
    #[inline(always)]
    pub(super) fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        with_send_store!(self, store => store.try_push(value))
    }

    /// Pops the oldest element to free its slot, if every slot holds an element. (While a receiver
    /// still moves an element out of its slot, a slot is free soon.)
    pub(super) fn take_oldest(&mut self) -> Option<T> {
        match self {
            Self::Mpmc(ring) => {
                let held = ring.pushed().saturating_sub(ring.popped());
                let is_full = held >= ring.capacity() as u64;
                let is_full = is_full || fault::is("oldest_unasked");
                is_full.then(|| ring.try_pop().ok())?
            }
            Self::Locked(store) => store.is_full().then(|| store.try_pop().ok())?,
            // The builder gives the two stores above to channels that drop the oldest element.
            Self::Ring(_) | Self::Rendezvous(_) => None,
        }
    }

    /// Returns the store for another sender, where senders may share it.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Mpmc(ring) => Some(Self::Mpmc(ring.clone())),
            Self::Locked(store) => Some(Self::Locked(Arc::clone(store))),
            Self::Rendezvous(rendezvous) => Some(Self::Rendezvous(Arc::clone(rendezvous))),
            Self::Ring(_) => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        with_send_store!(self, store => store.is_closed())
    }

    /// Returns whether a push would not fail because the channel is full.
    pub(super) fn is_ready(&mut self) -> bool {
        self.is_closed()
            || match self {
                Self::Ring(producer) => !producer.is_full(),
                Self::Mpmc(ring) => ring.can_push(),
                Self::Locked(store) => !store.is_full(),
                Self::Rendezvous(rendezvous) => rendezvous.is_requested(),
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
            Self::Mpmc(ring) => match pushed.checked_sub(limit as u64 + 1) {
                Some(position) => ring.is_waiting(position),
                None => false,
            },
            _ => self.len() > limit,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Mpmc(ring) => ring.is_full(),
            _ => self.len() >= self.capacity(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        with_send_store!(self, store => store.capacity())
    }

    /// Returns the number of elements that were put in, by all senders.
    pub(super) fn sent(&self) -> u64 {
        match self {
            Self::Mpmc(ring) => ring.pushed().saturating_sub(ring.unsent()),
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

    /// Returns the rendezvous, if it is one.
    #[inline]
    pub(super) fn rendezvous(&self) -> Option<&Arc<Rendezvous<T>>> {
        match self {
            Self::Rendezvous(rendezvous) => Some(rendezvous),
            _ => None,
        }
    }
}

/// Drops the elements that a receiver left behind, in the ring of one sender and one receiver.
#[cold]
#[inline(never)]
pub(super) fn discard_left<T>(producer: &mut SpscProducer<T>, gate: &Gate) {
    producer.come_late();
    drop_each(|| counted(gate, producer.take_left()));
}

/// Drops the elements that are left, in a ring of which each end may take them.
#[cold]
#[inline(never)]
pub(super) fn discard_mpmc<T>(ring: &MpmcRing<T>, gate: &Gate) {
    drop_each(|| counted(gate, ring.try_pop().ok()));
}

pub(super) fn counted<T>(gate: &Gate, value: Option<T>) -> Option<T> {
    if value.is_some() {
        gate.discarded.add(1);
    }
    value
}

/// The largest number of sends between two checks. (2-core Intel virtual machine, 5 to 20 senders
/// of a burst: wall time with checks after 16 sends up to 5 % above that after 64.)
const CHECK_INTERVAL_MAX: usize = 64;
/// The largest number of yields, at 0.2 µs each where no other thread wants the core.
const YIELDS_MAX: u32 = 64;
/// The number of yields after which receivers must have made progress.
const YIELDS_WITHOUT_PROGRESS: u32 = 16;

/// The state that a sender keeps of the balance.
#[derive(Debug)]
pub(super) struct Balance {
    /// Elements that may wait; `usize::MAX` for no limit.
    limit: usize,
    /// Sends until the next check, and between the last two.
    left: usize,
    interval: usize,
}

impl Balance {
    pub(super) fn new(limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(usize::MAX);
        let interval = interval(limit);
        Self {
            limit,
            left: interval,
            interval,
        }
    }

    /// Counts `sent` sends; if a check is due and too many elements wait, yields.
    #[inline(always)]
    pub(super) fn after_send<T>(&mut self, sent: usize, end: &mut SendEnd<T>, gate: &Gate) {
        if self.limit != usize::MAX {
            self.left = self.left.saturating_sub(sent);
            if self.left == 0 {
                self.check(end, gate);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn check<T>(&mut self, end: &mut SendEnd<T>, gate: &Gate) {
        let pushed = end.pushed();
        if !end.is_behind(self.limit, pushed) || self.yield_turns(end, gate, pushed) {
            self.interval = interval(self.limit);
        } else {
            self.interval = self.interval.saturating_mul(2);
        }
        self.left = self.interval;
    }

    /// Yields until half the limit is left; returns whether that was reached.
    fn yield_turns<T>(&self, end: &mut SendEnd<T>, gate: &Gate, pushed: u64) -> bool {
        gate.yields.add(1);
        for turn in 0..YIELDS_MAX {
            yield_now();
            if !end.is_behind(self.limit / 2, pushed) {
                return true;
            }
            if turn == YIELDS_WITHOUT_PROGRESS && end.is_behind(self.limit, pushed) {
                return false;
            }
        }
        false
    }
}

/// Returns the number of sends between checks while receivers keep up: few if the limit is low.
fn interval(limit: usize) -> usize {
    (limit / 8).clamp(1, CHECK_INTERVAL_MAX)
}

/// A store as a receiver uses it.
#[repr(u8)] // as `SendEnd`
pub(super) enum RecvEnd<T> {
    Ring(SpscConsumer<T>, Arc<Gate>),
    Mpmc(MpmcEnd<T>, Arc<Gate>),
    Locked(Arc<Locked<T>>, Arc<Gate>),
    Rendezvous(Arc<Rendezvous<T>>, Arc<Gate>),
    /// A ring whose end was reported: its sender drops elements that come late.
    Ended(SpscConsumer<T>, Arc<Gate>),
}

/// Evaluates an expression with the store, whichever it is.
macro_rules! with_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store, _) | Self::Ended($store, _) => $do,
            Self::Mpmc($store, _) => $do,
            Self::Locked($store, _) => $do,
            Self::Rendezvous($store, _) => $do,
        }
    };
}

impl<T> RecvEnd<T> {
    /// Pops an element and wakes a sender that waits for its slot. Where this is a ring, `Closed`
    /// has to be confirmed by [`check_end`](Self::check_end).
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
            Self::Mpmc(ring, gate) => {
                let found = ring.try_pop_at();
                // Also if it was empty: unused slots of a claim may have come back.
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
            Self::Rendezvous(rendezvous, _) => rendezvous.try_pop_at(),
            Self::Ring(..) | Self::Ended(..) => Err(PopError::Closed),
        }
    }

    /// Checks a pop that returned `Closed`: returns `Ok` if there is an element, and `Closed` if
    /// only a late sender could still push one. `is_final` says that there is no sender, or that
    /// the event count was shut and the heavy barrier passed.
    #[cold]
    pub(super) fn check_end(&mut self, is_final: bool) -> Result<(), PopError> {
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

    /// Ends all pops, after [`check_end`](Self::check_end) has returned `Closed` with `is_final`.
    pub(super) fn retire(&mut self) {
        if let Self::Ring(..) = self {
            let nowhere = Self::Rendezvous(Arc::new(Rendezvous::new()), Arc::default());
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
                    // That may have released the slots of a forgotten batch.
                    gate.writable.notify_one();
                    // Distinguishes empty from closed.
                    out.push(consumer.try_pop_nearly()?);
                    count = 1 + consumer.pop_into(out, max - 1);
                }
                gate.writable.notify(count);
            }
            Self::Locked(..) | Self::Rendezvous(..) => {
                out.push(self.try_pop()?);
                while out.len() - before < max
                    && let Ok(value) = self.try_pop()
                {
                    out.push(value);
                }
            }
            Self::Mpmc(ring, gate) => {
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
            Self::Mpmc(ring, gate) => Some(Self::Mpmc(ring.clone(), Arc::clone(gate))),
            Self::Locked(store, gate) => Some(Self::Locked(Arc::clone(store), Arc::clone(gate))),
            Self::Rendezvous(rendezvous, gate) => {
                Some(Self::Rendezvous(Arc::clone(rendezvous), Arc::clone(gate)))
            }
            Self::Ring(..) | Self::Ended(..) => None,
        }
    }

    /// Checks once more a store that only this receiver uses, where no sender is left.
    pub(super) fn observe(&mut self) -> Result<(), PopError> {
        match self {
            Self::Ring(consumer, _) => consumer.observe(),
            _ => Err(PopError::Closed),
        }
    }

    /// Returns whether another receiver should check the store, too. A notification may be for more
    /// than one element, since an earlier one that is not published yet hides those behind it; and
    /// for the end, if the ring was closed meanwhile.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Ring(..) | Self::Ended(..) => false,
            Self::Mpmc(ring, _) => {
                ring.can_pop() || (ring.is_closed() && !fault::is("end_unreported"))
            }
            Self::Locked(store, _) => store.len() > 0,
            // A notification there is for one receiver only.
            Self::Rendezvous(..) => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        with_store!(self, store => store.len())
    }

    /// Returns the largest number of elements that may be in the store now, at least 1.
    pub(super) fn held_max(&self) -> usize {
        match self {
            // The limit may be far above the length, and elements that are pushed meanwhile do not
            // count.
            Self::Locked(store, _) => store.len().max(1),
            Self::Rendezvous(rendezvous, _) => rendezvous.offered().max(1),
            _ => self.capacity(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        with_store!(self, store => store.capacity())
    }

    pub(super) fn is_closed(&self) -> bool {
        with_store!(self, store => store.is_closed())
    }

    /// Returns the number of elements that all receivers popped.
    pub(super) fn popped(&self) -> u64 {
        match self {
            Self::Mpmc(ring, _) => ring.received(),
            _ => self.moves(),
        }
    }

    /// Returns a count that changes with each element that is popped, in the same atomic step.
    pub(super) fn moves(&self) -> u64 {
        with_store!(self, store => store.popped())
    }

    /// Returns the gate of the channel.
    pub(super) fn gate(&self) -> &Gate {
        match self {
            Self::Ring(_, gate)
            | Self::Ended(_, gate)
            | Self::Mpmc(_, gate)
            | Self::Locked(_, gate)
            | Self::Rendezvous(_, gate) => gate,
        }
    }

    /// Returns the number of elements lost before the one at `position`, which was popped last,
    /// that were not reported yet.
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

    /// Returns the rendezvous and its gate, if it is one.
    #[inline]
    pub(super) fn rendezvous(&self) -> Option<(&Arc<Rendezvous<T>>, &Arc<Gate>)> {
        match self {
            Self::Rendezvous(rendezvous, gate) => Some((rendezvous, gate)),
            _ => None,
        }
    }
}

impl<T> RecvEnd<T> {
    /// Drops the elements that are left: no receiver will take them. The store is closed, and its
    /// event count is shut unless there is no sender. Not inlined: an element may be too large for
    /// the stack of a caller that never gets here.
    #[cold]
    #[inline(never)]
    pub(super) fn discard(&mut self) {
        match self {
            Self::Ended(..) => {}
            Self::Ring(consumer, gate) => drop_each(|| counted(gate, consumer.take_last())),
            Self::Mpmc(ring, gate) => discard_mpmc(ring, gate),
            Self::Locked(store, gate) => drop_each(|| counted(gate, store.try_pop().ok())),
            Self::Rendezvous(rendezvous, gate) => drop_each(|| {
                let (_, value) = rendezvous.try_pop_at().ok()?;
                counted(gate, Some(value))
            }),
        }
    }
}
