//! The operations that the bus needs of a channel besides: sends below a limit, the end by either
//! side, and elements that no receiver took, given to the caller that accounts for them.
//!
//! *Waiting below a limit.* One room is no room for all: a sender that is woken and is still at its
//! limit must not swallow a wake-up that one with a higher limit could use. So each of them waits
//! as a sender that claims several places at once does, and a thread that makes room wakes them all
//! ([`Gate::notify_room`](super::hub::Gate::notify_room)).
//!
//! *Late sends.* As in `stores`, except for the thread that drops: a send returns that no
//! receiver will look any more, and its caller itself takes the elements that are there.
//!
//! # The express lane
//! A second ring of a channel, which receivers empty first. Both rings have one hub, so receivers
//! wait on one signal, and a send into either ring notifies it. Each ring has a gate of its own:
//! room in one is no room in the other.
//!
//! *No wake-up is lost.* A receiver looks at both rings whenever it looks: before it waits, when it
//! is listed, and when it was woken. If it then leaves something in either, it wakes the next. So
//! for the argument of [`Signal`](crate::wait::Signal) the two are one store.
//!
//! *The end* comes when both rings say so. A ring that was closed and empty once stays so; the
//! thread that closes both notifies after the second.
//!
//! *Late sends.* The last receiver takes what is in both rings after it has shut the signal. A
//! sender that finds the signal shut takes what is in the ring that it sent to.

use std::time::Instant;

use super::builder::{BuildError, Builder, SHARED_SLOTTED_CAPACITY_MAX};
use super::error::{RecvError, RecvTimeoutError, SendTimeoutError};
use super::hub::{Gate, Hub, Mpmc};
use super::receiver::{Receiver, Source};
use super::sender::Sender;
use super::stores::{RecvEnd, SendEnd};
use crate::ring::sync::{Arc, fault};
use crate::ring::{PopError, PushError, Ticket, TicketClaim, TicketEnd};
use crate::wait::{block, wait_on};

fn has_room<T>(end: &SendEnd<T>, limit: u64) -> bool {
    match end {
        // `pushed` first: it may be less by then, and never more.
        SendEnd::Ticket(ring) => {
            let pushed = ring.pushed();
            ring.is_closed() || pushed.saturating_sub(ring.popped()) < limit
        }
        _ => unreachable!("{IS_RING}"),
    }
}

const IS_RING: &str = "a bounded channel of many senders has a ring";

/// A place for an element in a channel: see [`Sender::place_within`]. As after a late send, the
/// thread that uses it or gives it up may have to take the elements that no receiver will take.
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
        // Elements that others sent may have waited behind it, and their senders for its room.
        self.gate.notify_room(1);
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

    /// Sends an element if fewer than `limit` are in the channel. It returns `true` if no receiver
    /// will look any more: then the caller has to [`take_left`](Self::take_left) until there is
    /// nothing.
    #[inline(always)]
    pub(crate) fn try_send_within(&mut self, value: T, limit: u64) -> Result<bool, PushError<T>> {
        let ring = self.ring();
        if let Err(value) = ring.push_here_within(value, limit) {
            ring.try_push_within(value, limit)?;
        }
        Ok(self.hub.readable.notify_chained())
    }

    /// Works as [`try_send_within`](Self::try_send_within), but waits while there are as many.
    #[cold]
    pub(crate) fn send_within(
        &mut self,
        value: T,
        limit: u64,
        deadline: Option<Instant>,
    ) -> Result<bool, SendTimeoutError<T>> {
        self.settle();
        let claims = &mut self.listed.claims;
        let _claiming = (!fault::is("room_swallowed")).then(|| self.gate.claiming(claims));
        let SendEnd::Ticket(ring) = &mut self.end else {
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

    /// Waits in a task until fewer than `limit` places are taken, or the channel is closed; is
    /// woken as one in [`send_within`](Self::send_within).
    pub(crate) async fn room_within(&mut self, limit: u64) {
        self.lend();
        let _claiming = self.gate.claiming(&mut self.listed.claims);
        // Not shared, so that the future may move between threads.
        let end = &mut self.end;
        let look = move || has_room(end, limit).then_some(());
        wait_on(&self.gate.writable, &mut self.listed.on, look).await;
    }

    /// Returns whether fewer than `limit` places are taken, by elements or otherwise, or the
    /// channel is closed.
    pub(crate) fn has_room_within(&self, limit: u64) -> bool {
        has_room(&self.end, limit)
    }

    /// Returns how many elements and other places were taken out of the channel, and put into it.
    pub(crate) fn positions(&self) -> (u64, u64) {
        match &self.end {
            SendEnd::Ticket(ring) => {
                let popped = ring.popped();
                (popped, ring.pushed())
            }
            _ => unreachable!("{IS_RING}"),
        }
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

    /// Takes an element that no receiver took.
    pub(crate) fn take_left(&mut self) -> Option<T> {
        self.ring().try_pop().ok()
    }

    /// Returns whether the channel is closed and nothing is in it or under way.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.end, SendEnd::Ticket(ring) if ring.is_over())
    }

    /// Closes the channel as a receiver would: what is in it can be received, then comes the end.
    pub(crate) fn close(&mut self) {
        self.end.close();
        self.hub.notify_closed();
        self.hub.readable.notify_all();
        self.gate.writable.notify_all();
    }
}

impl<T> Receiver<T, Mpmc> {
    /// Receivers of the channel.
    pub(crate) fn members(&self) -> usize {
        self.hub.receivers.get()
    }

    /// Goes, and is not to be used again; returns whether it was the last one. Then it has closed
    /// the channel, and called `each` with what was left.
    pub(crate) fn leave_with(&mut self, mut each: impl FnMut(T)) -> bool {
        self.go(|end| end.take_left(&mut each))
    }
}

impl<T> RecvEnd<T> {
    /// Calls `each` with what is in the ring.
    fn take_left(&mut self, each: &mut impl FnMut(T)) {
        if let Self::Ticket(ring, _) = self {
            while let Ok(value) = ring.try_pop() {
                each(value);
            }
        }
    }
}

/// The ring that is emptied first: as a receiver's end, and as what makes senders.
pub(crate) struct Express<T> {
    ring: TicketEnd<T>,
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
        // Also if there was nothing, as in `RecvEnd::try_pop_at`.
        self.gate.notify_room(1);
        found
    }

    /// Returns another sender. For a channel that has another, which keeps it open.
    pub(crate) fn sender(&self) -> Sender<T, Mpmc> {
        self.hub.senders.add();
        let end = SendEnd::Ticket(self.ring.clone());
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

/// Takes the oldest element of the express lane, or else of the other ring. It is the end only
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
    /// Returns a second ring of `places` places, to be emptied first; for a channel that is just
    /// made.
    pub(crate) fn express(&self, places: usize) -> Result<Express<T>, BuildError> {
        let layout = Builder::new(places).layout_up_to::<T>(places, SHARED_SLOTTED_CAPACITY_MAX);
        Ok(Express {
            ring: TicketEnd::new(Arc::new(Ticket::new(places, layout)?)),
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
        // Those that send have a sender for each ring.
        let senders = self.hub.senders.get().div_ceil(2);
        let endpoints = (senders + self.hub.receivers.get()) as u64;
        let pop = |source: &mut Source<T>| pop_either(source, express);
        let outcome = self.wait_by(deadline, endpoints, pop);
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
        let look = || match pop_either(source, express) {
            Err(PopError::Empty) => None,
            found => Some(found),
        };
        let outcome = wait_on(&self.hub.readable, &mut self.listed.on, look).await;
        self.leave();
        self.pass_on_either(express);
        outcome.map_err(|_| RecvError)
    }

    /// Wakes another receiver if there is still something in either ring.
    fn pass_on_either(&self, express: &Express<T>) {
        if self.hub.readable.waiting() > 0 && express.has_more() {
            self.hub.readable.notify_chained();
        }
        self.source.pass_on();
    }

    /// Works as [`leave_with`](Self::leave_with), with what was left in both rings; both are closed
    /// before `each` is called, which may send.
    pub(crate) fn leave_either_with(
        &mut self,
        express: &mut Express<T>,
        mut each: impl FnMut(T),
    ) -> bool {
        let is_last = self.go(|end| {
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
