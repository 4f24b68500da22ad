//! A second ring of a channel, which receivers empty first: the express lane of the bus.
//!
//! Both rings have one hub, so receivers wait on one signal, and a send into either ring notifies
//! it. Each ring has a gate of its own: room in one is no room in the other.
//!
//! *No wake-up is lost.* A receiver looks at both rings whenever it looks: before it waits, when it
//! is listed, and when it was woken. If it then leaves something in either, it wakes the next. So
//! for the argument of [`Signal`](crate::wait::Signal) the two are one store.
//!
//! *The end* comes when both rings say so. A ring that was closed and empty once stays so; the
//! thread that closes both notifies after the second.
//!
//! *Late sends.* The last receiver takes what is in both rings after it has shut the signal. A
//! sender that finds the signal shut takes what is in the ring that it sent to (see `within`).

use std::time::Instant;

use super::builder::{BuildError, Builder, SHARED_SLOTTED_CAPACITY_MAX};
use super::error::{RecvError, RecvTimeoutError};
use super::hub::{Gate, Hub};
use super::receiver::{Receiver, Source};
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::Mpmc;
use crate::ring::sync::{Arc, fault};
use crate::ring::{PopError, Ticket, TicketEnd};
use crate::wait::wait_on;

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
        // Also if there was nothing, as in `RecvEnd::try_pop_shared`.
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

    /// Works as [`RecvEnd::has_more`](super::recv_end::RecvEnd::has_more).
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
