//! What the bus needs of a channel besides: sends below a limit, the end by either side, and
//! elements that nobody received given to whoever accounts for them.
//!
//! *Waiting below a limit.* One room is no room for all. So whoever makes room wakes the first that
//! can use it, and whoever was woken wakes the next that can, whatever it has found: rule 8 of
//! [`Signal`](crate::wait::Signal).
//!
//! *Late sends.* As in `discard`, but for who drops: a send says that nobody will look any more,
//! and its caller takes what is there, itself.

use std::time::Instant;

use super::error::SendTimeoutError;
use super::hub::{Gate, Hub};
use super::receiver::Receiver;
use super::recv_end::RecvEnd;
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::Mpmc;
use crate::ring::sync::fault;
use crate::ring::{PushError, Ticket, TicketClaim, TicketEnd};
use crate::wait::{block_listed, wait_below};

fn has_room<T>(ring: &Ticket<T>, limit: u64) -> bool {
    ring.is_closed() || ring.taken() < limit
}

fn ring_of<T>(end: &SendEnd<T>) -> &Ticket<T> {
    match end {
        SendEnd::Ticket(ring) => ring,
        _ => unreachable!("{IS_RING}"),
    }
}

/// Wakes the next that can use the room that there is now.
fn pass<T>(gate: &Gate, ring: &Ticket<T>) {
    if !fault::is("room_swallowed") && !fault::is("room_kept") {
        gate.writable.notify_below(&|| ring.taken());
    }
}

const IS_RING: &str = "a bounded channel of many senders has a ring";

/// A place for an element in a channel: see [`Sender::place_within`]. As a late send, whoever uses
/// it or gives it up may have to take what nobody will receive.
#[must_use = "a place keeps others waiting"]
pub(crate) struct Place<'s, T> {
    claim: TicketClaim<'s, T>,
    hub: &'s Hub,
    gate: &'s Gate,
}

impl<T> Place<'_, T> {
    /// Sends an element; `true` as in [`Sender::try_send_within`].
    pub(crate) fn send(mut self, value: T) -> bool {
        let is_written = self.claim.push(value).is_ok();
        debug_assert!(is_written, "it is for one element");
        self.claim.commit();
        self.hub.readable.notify_chained()
    }

    /// Leaves the place to others; `true` as in [`Sender::try_send_within`].
    pub(crate) fn give_up(self) -> bool {
        if fault::is("place_kept") {
            std::mem::forget(self.claim);
            return false;
        }
        drop(self.claim);
        // What others sent may have waited behind it, and they for its room.
        // Whoever is woken first counts.
        self.gate.notify_room(1, || 0);
        self.hub.readable.notify_one()
    }
}

impl<T> Sender<T, Mpmc> {
    #[inline(always)]
    fn ring(&mut self) -> &mut TicketEnd<T> {
        match &mut self.end {
            SendEnd::Ticket(ring) => ring,
            _ => unreachable!("{IS_RING}"),
        }
    }

    /// Sends an element if fewer than `limit` are in the channel. `true`: nobody will look any
    /// more, and the caller has to [`take_left`](Self::take_left) until there is nothing.
    #[inline(always)]
    pub(crate) fn try_send_within(&mut self, value: T, limit: u64) -> Result<bool, PushError<T>> {
        let ring = self.ring();
        if let Err(value) = ring.push_here_within(value, limit) {
            ring.try_push_within(value, limit)?;
        }
        Ok(self.hub.readable.notify_chained())
    }

    /// As [`try_send_within`](Self::try_send_within), but waits while there are as many.
    #[cold]
    pub(crate) fn send_within(
        &mut self,
        value: T,
        limit: u64,
        deadline: Option<Instant>,
    ) -> Result<bool, SendTimeoutError<T>> {
        let SendEnd::Ticket(ring) = &mut self.end else {
            unreachable!("{IS_RING}");
        };
        let (gate, (ring, near, head)) = (&self.gate, ring.apart());
        let mut value = Some(value);
        let mut attempt = || match ring.try_push_within_near(near, head, value.take()?, limit) {
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
        let outcome = match attempt() {
            Some(found) => Ok(found),
            None => {
                gate.limited();
                let limit = if fault::is("room_swallowed") {
                    u64::MAX
                } else {
                    limit
                };
                let mut wait = wait_below(&gate.writable, limit, attempt, || pass(gate, ring));
                block_listed(&mut wait, &mut self.pace, deadline)
            }
        };
        match (outcome, value) {
            (Ok(true), _) | (_, None) => Ok(self.hub.readable.notify_chained()),
            (Ok(false), Some(value)) => Err(SendTimeoutError::Disconnected(value)),
            (Err(_), Some(value)) => Err(SendTimeoutError::Timeout(value)),
        }
    }

    /// Waits in a task until fewer than `limit` places are taken, or the channel is closed; is
    /// woken as one in [`send_within`](Self::send_within).
    pub(crate) async fn room_within(&mut self, limit: u64) {
        // Not the end, so that the future may move between threads.
        let (gate, ring) = (&*self.gate, ring_of(&self.end));
        gate.limited();
        let look = || has_room(ring, limit).then_some(());
        wait_below(&gate.writable, limit, look, || pass(gate, ring)).await;
    }

    /// Whether fewer than `limit` places are taken, by elements or otherwise, or the channel is
    /// closed.
    pub(crate) fn has_room_within(&self, limit: u64) -> bool {
        has_room(ring_of(&self.end), limit)
    }

    /// How many elements and other places were taken out of the channel, and put into it.
    pub(crate) fn positions(&self) -> (u64, u64) {
        let ring = ring_of(&self.end);
        let popped = ring.popped();
        (popped, ring.pushed())
    }

    /// Takes a place below `limit`, to be used at once: what others send comes behind it.
    pub(crate) fn place_within(&mut self, limit: u64) -> Result<Place<'_, T>, PushError<()>> {
        let SendEnd::Ticket(ring) = &mut self.end else {
            unreachable!("{IS_RING}");
        };
        Ok(Place {
            claim: ring.claim_within(limit)?,
            hub: &self.hub,
            gate: &self.gate,
        })
    }

    /// Takes an element that nobody received.
    pub(crate) fn take_left(&mut self) -> Option<T> {
        self.ring().try_pop().ok()
    }

    /// Whether the channel is closed and nothing is in it or under way.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.end, SendEnd::Ticket(ring) if ring.is_over())
    }

    /// Closes the channel as a receiver would: what is in it can be received, then comes the end.
    pub(crate) fn close(&mut self) {
        self.end.close();
        self.hub.tell_closed();
        self.hub.readable.notify_all();
        self.gate.writable.notify_all();
    }
}

impl<T> Receiver<T, Mpmc> {
    /// Receivers of the channel.
    pub(crate) fn members(&self) -> usize {
        self.hub.receivers.get()
    }

    /// What it has learned of waiting; see [`Pace::learned_ns`](crate::wait::Pace::learned_ns).
    pub(crate) fn learned_ns(&self) -> (u64, u64) {
        self.pace.learned_ns()
    }

    /// Goes, and is not to be used again; gives whether it was the last one. Then it has closed the
    /// channel, and called `each` with what was left.
    pub(crate) fn leave_with(&mut self, mut each: impl FnMut(T)) -> bool {
        self.go(|end| end.take_left(&mut each))
    }
}

impl<T> RecvEnd<T> {
    /// Calls `each` with what is in the ring.
    pub(super) fn take_left(&mut self, each: &mut impl FnMut(T)) {
        if let Self::Ticket(ring, _) = self {
            while let Ok(value) = ring.try_pop() {
                each(value);
            }
        }
    }
}
