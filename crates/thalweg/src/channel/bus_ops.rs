//! The operations of a channel that only the bus uses: sends below a limit, closing by either side,
//! and handing elements that no receiver took to the caller, which accounts for them.
//!
//! *Waiting below a limit.* A free slot is not enough for every sender: one that is woken and is
//! still at its limit must not swallow a notification that a sender with a higher limit could use.
//! Therefore every sender waits like one that claims several slots, and a thread that frees a slot
//! wakes all of them ([`Gate::notify_room`](super::hub::Gate::notify_room)).
//!
//! *Late sends.* As in `stores`, except for the thread that drops: a send returns that no receiver
//! will check the ring any more, and its caller itself takes the elements that are in it.
//!
//! # The express lane
//! A second ring of a channel, which receivers empty first. Both rings have one hub, so receivers
//! wait on one event count, and a send into either ring notifies it. Each ring has a gate of its
//! own: a free slot of one is of no use for the other.
//!
//! *No notification is lost.* A receiver checks both rings whenever it checks: before it waits,
//! after it has registered, and after it was woken. If it then leaves an element in either, it
//! wakes the next receiver. So for the argument of [`EventCount`](crate::wait::EventCount) the two
//! are one store.
//!
//! *The end* comes when both rings are closed and empty. A ring that was closed and empty once
//! stays so; the thread that closes both notifies after the second.
//!
//! *Late sends.* The last receiver takes the elements of both rings after it has shut the event
//! count. A sender that finds the event count shut takes the elements of the ring that it sent to.

use std::time::Instant;

use super::builder::{BuildError, Builder, SHARED_SLOTTED_CAPACITY_MAX};
use super::error::{RecvError, RecvTimeoutError, SendTimeoutError};
use super::hub::{Gate, Hub, Mpmc};
use super::receiver::{Receiver, Source};
use super::sender::Sender;
use super::stores::{RecvEnd, SendEnd};
use crate::ring::sync::{Arc, fault};
use crate::ring::{MpmcClaim, MpmcEnd, MpmcRing, PopError, PushError};
use crate::wait::{block, wait_until};

fn has_room<T>(end: &SendEnd<T>, limit: u64) -> bool {
    match end {
        // `pushed` is loaded first: so the difference may be too small, and is never too large.
        SendEnd::Mpmc(ring) => {
            let pushed = ring.pushed();
            ring.is_closed() || pushed.saturating_sub(ring.popped()) < limit
        }
        _ => unreachable!("{IS_RING}"),
    }
}

const IS_RING: &str = "a bounded channel of many senders has a ring";

/// A slot for one element that is reserved in a channel: see [`Sender::reserve_within`]. As after a
/// late send, the thread that uses it or gives it up may have to take the elements that no receiver
/// will take.
#[must_use = "a reserved slot keeps others waiting"]
pub(crate) struct ReservedSlot<'s, T> {
    claim: MpmcClaim<'s, T>,
    hub: &'s Hub,
    gate: &'s Gate,
}

impl<T> ReservedSlot<'_, T> {
    /// Sends an element; returns `true` as [`Sender::try_send_within`] does.
    pub(crate) fn send(mut self, value: T) -> bool {
        let is_written = self.claim.push(value).is_ok();
        debug_assert!(is_written, "it is for one element");
        self.claim.commit();
        self.hub.readable.notify_chained()
    }

    /// Releases the slot; returns `true` as [`Sender::try_send_within`] does.
    pub(crate) fn give_up(self) -> bool {
        if fault::is("place_kept") {
            std::mem::forget(self.claim);
            return false;
        }
        drop(self.claim);
        // Elements of other senders may have waited behind it, and other senders for the slot.
        self.gate.notify_room(1);
        self.hub.readable.notify_one()
    }
}

impl<T> Sender<T, Mpmc> {
    #[inline(always)]
    fn ring(&mut self) -> &mut MpmcEnd<T> {
        match &mut self.end {
            SendEnd::Mpmc(ring) => ring,
            _ => unreachable!("{IS_RING}"),
        }
    }

    /// Sends an element if fewer than `limit` slots are taken. It returns `true` if no receiver
    /// will check the channel any more: then the caller has to call [`take_left`](Self::take_left)
    /// until that returns `None`.
    #[inline(always)]
    pub(crate) fn try_send_within(&mut self, value: T, limit: u64) -> Result<bool, PushError<T>> {
        let ring = self.ring();
        if let Err(value) = ring.push_here_within(value, limit) {
            ring.try_push_within(value, limit)?;
        }
        Ok(self.hub.readable.notify_chained())
    }

    /// Works as [`try_send_within`](Self::try_send_within), but waits while `limit` slots are
    /// taken.
    #[cold]
    pub(crate) fn send_within(
        &mut self,
        value: T,
        limit: u64,
        deadline: Option<Instant>,
    ) -> Result<bool, SendTimeoutError<T>> {
        self.cancel_forgotten();
        let claims = &mut self.registration.claims;
        let _claiming = (!fault::is("room_swallowed")).then(|| self.gate.claiming(claims));
        let SendEnd::Mpmc(ring) = &mut self.end else {
            unreachable!("{IS_RING}");
        };
        let mut value = Some(value);
        let attempt = || match ring.try_push_within(value.take()?, limit) {
            Ok(()) => Some(true),
            Err(PushError::Full(back)) => {
                value = Some(back);
                None
            }
            Err(PushError::Closed(back)) => {
                value = Some(back);
                Some(false)
            }
        };
        let outcome = block(&self.gate.writable, &mut self.pace, deadline, attempt);
        match (outcome, value) {
            (Ok(true), _) | (_, None) => Ok(self.hub.readable.notify_chained()),
            (Ok(false), Some(value)) => Err(SendTimeoutError::Disconnected(value)),
            (Err(_), Some(value)) => Err(SendTimeoutError::Timeout(value)),
        }
    }

    /// Waits in a task until fewer than `limit` slots are taken, or the channel is closed; it is
    /// woken as a sender in [`send_within`](Self::send_within) is.
    pub(crate) async fn room_within(&mut self, limit: u64) {
        self.lend();
        let _claiming = self.gate.claiming(&mut self.registration.claims);
        // Borrowed mutably, so that the future may move between threads.
        let end = &mut self.end;
        let attempt = move || has_room(end, limit).then_some(());
        wait_until(
            &self.gate.writable,
            &mut self.registration.in_event_count,
            attempt,
        )
        .await;
    }

    /// Returns whether fewer than `limit` slots are taken, by elements or claims, or the channel is
    /// closed.
    pub(crate) fn has_room_within(&self, limit: u64) -> bool {
        has_room(&self.end, limit)
    }

    /// Returns the number of slots that were freed, and that were taken, so far.
    pub(crate) fn positions(&self) -> (u64, u64) {
        match &self.end {
            SendEnd::Mpmc(ring) => {
                let popped = ring.popped();
                (popped, ring.pushed())
            }
            _ => unreachable!("{IS_RING}"),
        }
    }

    /// Reserves a slot if fewer than `limit` are taken. It is to be used soon: elements of other
    /// senders wait behind it.
    pub(crate) fn reserve_within(
        &mut self,
        limit: u64,
    ) -> Result<ReservedSlot<'_, T>, PushError<()>> {
        let SendEnd::Mpmc(ring) = &mut self.end else {
            unreachable!("{IS_RING}");
        };
        Ok(ReservedSlot {
            claim: ring.claim_within(limit)?,
            hub: &self.hub,
            gate: &self.gate,
        })
    }

    /// Pops an element that no receiver took.
    pub(crate) fn take_left(&mut self) -> Option<T> {
        self.ring().try_pop().ok()
    }

    /// Returns whether the channel is closed, and no element is in it or will be published.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.end, SendEnd::Mpmc(ring) if ring.is_over())
    }

    /// Closes the channel as a receiver would: its elements can still be received.
    pub(crate) fn close(&mut self) {
        self.end.close();
        self.hub.notify_closed();
        self.hub.readable.notify_all();
        self.gate.writable.notify_all();
    }
}

impl<T> Receiver<T, Mpmc> {
    /// Returns the number of receivers of the channel.
    pub(crate) fn members(&self) -> usize {
        self.hub.receivers.get()
    }

    /// Leaves the channel, and must not be used again; returns whether it was the last receiver.
    /// Then it has closed the channel, and called `each` with each element that was left.
    pub(crate) fn leave_with(&mut self, mut each: impl FnMut(T)) -> bool {
        self.leave(|end| end.take_left(&mut each))
    }
}

impl<T> RecvEnd<T> {
    /// Calls `each` with each element of the ring.
    fn take_left(&mut self, each: &mut impl FnMut(T)) {
        if let Self::Mpmc(ring, _) = self {
            while let Ok(value) = ring.try_pop() {
                each(value);
            }
        }
    }
}

/// The express lane, as a receiver uses it; it also makes the lane's senders.
pub(crate) struct Express<T> {
    ring: MpmcEnd<T>,
    gate: Arc<Gate>,
    hub: Arc<Hub>,
}

impl<T> Clone for Express<T> {
    fn clone(&self) -> Self {
        Self {
            ring: self.ring.clone(),
            gate: Arc::clone(&self.gate),
            hub: Arc::clone(&self.hub),
        }
    }
}

impl<T> Express<T> {
    /// Takes the oldest element of this ring.
    #[inline]
    pub(crate) fn try_pop(&mut self) -> Result<T, PopError> {
        let found = match self.ring.pop_here() {
            Ok(value) => Ok(value),
            Err(true) => Err(PopError::Empty),
            Err(false) => self.ring.try_pop_at().map(|(_, value)| value),
        };
        // Also if it was empty, as in `RecvEnd::try_pop_at`.
        self.gate.notify_room(1);
        found
    }

    /// Returns another sender. The channel must have one that keeps it open.
    pub(crate) fn sender(&self) -> Sender<T, Mpmc> {
        self.hub.senders.add();
        let end = SendEnd::Mpmc(self.ring.clone());
        Sender::new(end, Arc::clone(&self.hub), Arc::clone(&self.gate))
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Works as [`Sender::positions`].
    pub(crate) fn positions(&self) -> (u64, u64) {
        let popped = self.ring.popped();
        (popped, self.ring.pushed())
    }

    /// Works as [`Sender::is_over`].
    pub(crate) fn is_over(&self) -> bool {
        self.ring.is_over()
    }

    /// Works as [`RecvEnd::has_more`](super::stores::RecvEnd::has_more).
    fn has_more(&self) -> bool {
        (self.ring.can_pop() || self.ring.is_closed()) && !fault::is("express_kept")
    }
}

/// Pops the oldest element of the express lane, or else of the other ring. It returns `Closed` only
/// where both have ended.
fn pop_either<T>(source: &mut Source<T>, express: &mut Express<T>) -> Result<T, PopError> {
    if fault::is("express_unseen") {
        return source.pop();
    }
    match express.try_pop() {
        Ok(value) => Ok(value),
        Err(PopError::Closed) => source.pop(),
        Err(PopError::Empty) => match source.pop() {
            Err(PopError::Closed) if !fault::is("express_end") => Err(PopError::Empty),
            found => found,
        },
    }
}

impl<T: Send> Receiver<T, Mpmc> {
    /// Returns an express lane of `slots` slots, for a channel that was just made.
    pub(crate) fn express(&self, slots: usize) -> Result<Express<T>, BuildError> {
        let layout = Builder::new(slots).layout_up_to::<T>(slots, SHARED_SLOTTED_CAPACITY_MAX);
        Ok(Express {
            ring: MpmcEnd::new(Arc::new(MpmcRing::new(slots, layout)?)),
            gate: Arc::new(Gate::default()),
            hub: Arc::clone(&self.hub),
        })
    }
}

impl<T> Receiver<T, Mpmc> {
    /// Works as [`recv_deadline`](Self::recv_deadline), from either ring.
    #[cold]
    pub(crate) fn recv_either(
        &mut self,
        express: &mut Express<T>,
        deadline: Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        // A thread that sends has a sender for each ring.
        let senders = self.hub.senders.get().div_ceil(2);
        let endpoints = (senders + self.hub.receivers.get()) as u64;
        let pop = |source: &mut Source<T>| pop_either(source, express);
        let outcome = self.wait_for_pop(deadline, endpoints, pop);
        self.pass_on_either(express);
        outcome
    }

    /// Works as [`recv_async`](Self::recv_async), from either ring.
    pub(crate) async fn recv_either_async(
        &mut self,
        express: &mut Express<T>,
    ) -> Result<T, RecvError> {
        self.lend();
        let source = &mut self.source;
        let attempt = || match pop_either(source, express) {
            Err(PopError::Empty) => None,
            found => Some(found),
        };
        let outcome = wait_until(
            &self.hub.readable,
            &mut self.registration.in_event_count,
            attempt,
        )
        .await;
        self.cancel_wait();
        self.pass_on_either(express);
        outcome.map_err(|_| RecvError)
    }

    /// Wakes another receiver if an element is left in either ring.
    fn pass_on_either(&self, express: &Express<T>) {
        if self.hub.readable.waiting() > 0 && express.has_more() {
            self.hub.readable.notify_chained();
        }
        self.source.pass_on();
    }

    /// Works as [`leave_with`](Self::leave_with), with the elements of both rings; both are closed
    /// before `each` is called, which may send.
    pub(crate) fn leave_either_with(
        &mut self,
        express: &mut Express<T>,
        mut each: impl FnMut(T),
    ) -> bool {
        let is_last = self.leave(|end| {
            express.ring.close();
            express.gate.writable.notify_all();
            end.take_left(&mut each);
            while !fault::is("express_left")
                && let Ok(value) = express.ring.try_pop()
            {
                each(value);
            }
        });
        if !is_last {
            self.pass_on_either(express);
        }
        is_last
    }
}
