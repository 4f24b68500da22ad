//! The sending end of a channel.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::balance::Balance;
use super::error::{SendError, SendTimeoutError, TrySendError};
use super::hub::{Gate, Hub, Overflow};
use super::select::Listed;
use super::send_end::SendEnd;
use super::shape::Shape;
use super::slip::Slip;
use crate::ring::sync::{Arc, fault, yield_now};
use crate::ring::{PushError, UsedByOneThreadAtATime};
use crate::wait::{Pace, Panics, block};

/// The sending end of a channel; see the [module](super).
///
/// It can move to another thread, and can be cloned where the shape `S` allows it; all operations
/// take `&mut self`, so each thread has a sender of its own. Dropping the last one disconnects the
/// channel: receivers get what was sent before, then an error.
///
/// A send drops elements of others where the policy is to drop the oldest, and while the last
/// receiver leaves; there its own, too (see [Disconnecting](super#disconnecting)). If such a drop
/// panics, so does the send, when it is done.
pub struct Sender<T, S: Shape> {
    _one_thread: UsedByOneThreadAtATime,
    pub(super) end: SendEnd<T>,
    pub(super) hub: Arc<Hub>,
    pub(super) gate: Arc<Gate>,
    pub(super) pace: Pace,
    slip: Slip,
    pub(super) balance: Balance,
    /// Where it waits in a task, or a select.
    pub(super) listed: Listed,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: Shape> Sender<T, S> {
    pub(super) fn new(end: SendEnd<T>, hub: Arc<Hub>, gate: Arc<Gate>) -> Self {
        Self {
            _one_thread: UsedByOneThreadAtATime,
            end,
            pace: Pace::new(hub.habits.mode),
            slip: Slip::default(),
            balance: Balance::new(hub.habits.soft_limit),
            listed: Listed::default(),
            hub,
            gate,
            shape: PhantomData,
        }
    }

    /// Sends an element; waits for room if the channel is full and its policy is to block.
    ///
    /// While there is room and no receiver sleeps, this costs a few ns; if a receiver sleeps, the
    /// wake-up (some 2 µs) is this thread's to pay. `Ok` says that the channel took the element; if
    /// the last receiver leaves meanwhile, that is discarded at once.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] if no receiver is left, [`SendError::Full`] only with
    /// [`Overflow::Reject`].
    // The fast path is inlined, for the reason that `Producer::try_push` is.
    #[inline(always)]
    pub fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.send_by_ring(value) {
            Ok(()) => Ok(()),
            Err(value) => self.send_shared(value),
        }
    }

    /// Sends by the fast path of a channel with one sender and one receiver.
    #[inline(always)]
    fn send_by_ring(&mut self, value: T) -> Result<(), T> {
        if let SendEnd::Ring(producer) = &mut self.end
            && let Some(room) = producer.room()
        {
            room.put(value);
            if self.hub.readable.notify_one() {
                self.discard_late();
            }
            return Ok(());
        }
        Err(value)
    }

    /// Sends by the fast path of a channel with several senders or receivers; fails as
    /// [`TicketEnd::push_here`](crate::ring::TicketEnd::push_here).
    #[inline(always)]
    fn send_by_ticket(&mut self, value: T) -> Result<(), (T, bool)> {
        let SendEnd::Ticket(ring) = &mut self.end else {
            return Err((value, false));
        };
        ring.push_here(value)?;
        self.notify_receiver();
        Ok(())
    }

    #[inline(never)]
    fn send_shared(&mut self, value: T) -> Result<(), SendError<T>> {
        self.settle();
        match self.send_by_ticket(value) {
            Ok(()) => {
                self.balance.keep(1, &mut self.end, &self.gate);
                Ok(())
            }
            Err((value, true)) => self.send_into_full(value),
            Err((value, false)) => self.send_slow(value),
        }
    }

    /// Into any other store, or with any other outcome.
    #[inline(never)]
    fn send_slow(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.push_once(value) {
            Ok(()) => {
                self.balance.keep(1, &mut self.end, &self.gate);
                Ok(())
            }
            Err(SendError::Full(value)) => self.send_or_wait(value),
            gone => gone,
        }
    }

    #[cold]
    fn send_into_full(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.overflow(value) {
            Err(SendError::Full(value)) => self.send_or_wait(value),
            gone => gone,
        }
    }

    #[cold]
    fn send_or_wait(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.send_blocking(value, None) {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Full(value)) => Err(SendError::Full(value)),
            Err(error) => Err(SendError::Disconnected(error.into_inner())),
        }
    }

    /// Puts the element in, or does with it what the policy says; `Full` if it is to wait or to be
    /// given back.
    #[inline(always)]
    pub(super) fn push_once(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.end.try_push(value) {
            Ok(()) => {
                self.notify_receiver();
                Ok(())
            }
            Err(PushError::Closed(value)) => Err(TrySendError::Disconnected(value)),
            Err(PushError::Full(value)) => self.overflow(value),
        }
    }

    /// Sends an element if there is room now.
    ///
    /// Under a policy that drops, this is [`send`](Self::send).
    ///
    /// # Errors
    /// [`TrySendError::Full`] and [`TrySendError::Disconnected`] give the element back.
    #[inline(always)]
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.send_by_ring(value) {
            Ok(()) => Ok(()),
            Err(value) => self.try_send_shared(value),
        }
    }

    #[inline(never)]
    fn try_send_shared(&mut self, value: T) -> Result<(), TrySendError<T>> {
        self.settle();
        match self.send_by_ticket(value) {
            Ok(()) => Ok(()),
            Err((value, true)) => self.refuse(value),
            Err((value, false)) => self.try_send_slow(value),
        }
    }

    /// Into any other store, or with any other outcome.
    #[inline(never)]
    fn try_send_slow(&mut self, value: T) -> Result<(), TrySendError<T>> {
        let outcome = self.push_once(value);
        self.counted(outcome)
    }

    /// Into a full channel.
    fn refuse(&mut self, value: T) -> Result<(), TrySendError<T>> {
        let outcome = self.overflow(value);
        self.counted(outcome)
    }

    fn counted(&self, outcome: Result<(), TrySendError<T>>) -> Result<(), TrySendError<T>> {
        if let Err(TrySendError::Full(_)) = outcome {
            self.gate.refused.add(1);
        }
        outcome
    }

    /// Works as [`send`](Self::send), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// See [`SendTimeoutError`].
    pub fn send_timeout(&mut self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        // Beyond what the clock can say: for ever.
        self.send_until(value, Instant::now().checked_add(timeout))
    }

    /// Works as [`send`](Self::send), but waits no longer than until `deadline`. One that has
    /// passed makes this a [`try_send`](Self::try_send).
    ///
    /// # Errors
    /// See [`SendTimeoutError`].
    pub fn send_deadline(
        &mut self,
        value: T,
        deadline: Instant,
    ) -> Result<(), SendTimeoutError<T>> {
        self.send_until(value, Some(deadline))
    }

    fn send_until(
        &mut self,
        value: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        self.settle();
        match self.push_once(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err(SendTimeoutError::Disconnected(value)),
            Err(TrySendError::Full(value)) => self.send_blocking(value, deadline),
        }
    }

    /// After a push: wakes a receiver if one sleeps.
    #[inline(always)]
    pub(super) fn notify_receiver(&mut self) {
        if self.hub.readable.notify_chained() {
            self.discard_late();
        }
    }

    /// Applies the policy to an element that did not fit; returns `Full` if it is to wait or to be
    /// given back.
    #[cold]
    pub(super) fn overflow(&mut self, mut value: T) -> Result<(), TrySendError<T>> {
        match self.hub.habits.overflow {
            Overflow::Block | Overflow::Reject => Err(TrySendError::Full(value)),
            Overflow::DropNewest => {
                if let Some(gaps) = &self.gate.gaps {
                    gaps.note(|| self.end.pushed());
                }
                self.gate.dropped.add(1);
                Ok(())
            }
            Overflow::DropOldest => {
                let mut panics = Panics::default();
                let outcome = loop {
                    if let Some(oldest) = self.end.take_oldest() {
                        self.gate.dropped.add(1);
                        self.gate.unreported.add(1);
                        panics.catch(|| drop(oldest));
                    } else {
                        // A receiver is just taking one, or another sender is just bringing one.
                        yield_now();
                    }
                    match self.end.try_push(value) {
                        Ok(()) => break Ok(()),
                        Err(PushError::Full(back)) => value = back,
                        Err(PushError::Closed(back)) => {
                            break Err(TrySendError::Disconnected(back));
                        }
                    }
                };
                if outcome.is_ok() {
                    panics.catch(|| self.notify_receiver());
                }
                panics.resume();
                outcome
            }
        }
    }

    /// Waits for room and sends; the channel was full a moment ago.
    #[cold]
    fn send_blocking(
        &mut self,
        value: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        if self.hub.habits.overflow == Overflow::Reject {
            self.gate.refused.add(1);
            return Err(SendTimeoutError::Full(value));
        }
        if self.end.meeting().is_some() {
            return self.meet(value, deadline);
        }
        let moved = (self.end.pushed(), self.hub.endpoints());
        let mut value = Some(value);
        let end = &mut self.end;
        let mut again = || match value.take().map(|value| end.try_push(value)) {
            Some(Err(PushError::Full(back))) => {
                value = Some(back);
                Err(end.pushed())
            }
            Some(Err(PushError::Closed(back))) => {
                value = Some(back);
                Ok(false)
            }
            _ => Ok(true),
        };
        let outcome = match self.slip.wait(moved, &mut self.pace, deadline, &mut again) {
            Some(found) => Ok(found),
            None => block(&self.gate.writable, &mut self.pace, deadline, || {
                again().ok()
            }),
        };
        match (outcome, value) {
            (Ok(true), _) => {
                self.pass_on();
                // It has just waited; giving turns away on top of that is no balance, and may miss
                // the deadline.
                self.notify_receiver();
                Ok(())
            }
            (Err(_), Some(value)) => {
                self.gate.refused.add(1);
                Err(SendTimeoutError::Timeout(value))
            }
            (_, Some(value)) => Err(SendTimeoutError::Disconnected(value)),
            // `value` is taken only by a push that succeeds.
            (_, None) => Ok(()),
        }
    }

    /// Wakes another sender if there is still room: slots may be given back out of order, so one
    /// wake-up may stand for more than one slot.
    pub(super) fn pass_on(&mut self) {
        if self.gate.writable.waiting() > 0 && self.end.is_ready() {
            self.gate.writable.notify_one();
        }
    }

    /// Returns the number of elements in the channel, or in this sender's lane of it.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Returns whether nothing waits in the channel, or in this sender's lane of it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a [`try_send`](Self::try_send) would find no room.
    pub fn is_full(&self) -> bool {
        self.end.is_full()
    }

    /// Returns the number of elements that the channel holds at most, or this sender's lane of it.
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }

    /// Returns whether no element will be taken any more: all receivers are gone, or the channel
    /// was closed.
    pub fn is_closed(&self) -> bool {
        self.end.is_closed()
    }

    /// Returns the counts so far: of this sender's lane where it has its own, else of the channel.
    pub fn counters(&self) -> super::Counters {
        let counters = if self.end.is_own() {
            self.hub.counters_of(&self.gate)
        } else {
            self.hub.counters(|look| look(&self.gate))
        };
        let len = self.end.len() as u64;
        let waits = self.end.meeting().map(|meeting| meeting.waits());
        let sent = self.end.sent();
        let received = sent.saturating_sub(len + counters.discarded);
        self.hub.summed(counters, waits, sent, received)
    }
}

impl<T, S: Shape> Drop for Sender<T, S> {
    fn drop(&mut self) {
        self.settle();
        let is_own = self.end.is_own();
        if is_own && fault::is("lane_left_first") {
            self.end.leave_own(&self.gate, &self.hub);
        }
        // Before its lane is closed, if it has one: see `weak`.
        let is_last = self.hub.senders.remove();
        if is_own {
            self.end.leave_own(&self.gate, &self.hub);
        } else if is_last {
            self.end.close();
            self.hub.readable.notify_all();
        }
    }
}

shown!([T, S: Shape] Sender<T, S>, "Sender", this,
    "len": this.len(), "capacity": this.capacity(), "closed": this.is_closed());
