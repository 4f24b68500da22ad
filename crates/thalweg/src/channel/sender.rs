//! The sending end of a channel: sends of one element and of several, and the wait until the
//! channel is closed.
//!
//! *No code of the caller runs while a position, a lock or a slot is held*: an iterator may block
//! for any time, or panic, and hides no element of other senders. For the same reason each element
//! is sent, and a receiver notified, before the iterator is asked for the next: a thread that the
//! iterator waits for may be waiting for that element. So elements are sent one by one. For batches
//! there are claims.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::error::{SendError, SendManyError, SendTimeoutError, TrySendError};
use super::hub::{Done, Gate, Hub, Overflow, Shape};
use super::select::EndRegistration;
use super::slip::Slip;
use super::stores::{Balance, SendEnd, discard_left, discard_mpmc};
use crate::ring::sync::{Arc, yield_now};
use crate::ring::{PushError, UsedByOneThreadAtATime};
use crate::wait::{self, EventCount, Pace, Panics, block, poll_until};

/// The sender of a channel; see the [module](super).
///
/// It can move to another thread. All operations take `&mut self`, so each thread has a sender of
/// its own: [`clone`](Clone::clone) it in the shapes [`Mpsc`](super::Mpsc) and
/// [`Mpmc`](super::Mpmc); a sender of shape [`Spsc`](super::Spsc) can't be cloned. Dropping the
/// last one disconnects the channel: receivers get what was sent before, then an error.
///
/// A send may drop elements: a displaced one under [`Overflow::DropOldest`], its own under
/// [`Overflow::DropNewest`], and any of the channel, its own included, while the last receiver is
/// dropped (see [Disconnecting](super#disconnecting)). If such a drop panics, the send completes,
/// then panics.
pub struct Sender<T, S: Shape> {
    _one_thread: UsedByOneThreadAtATime,
    pub(super) end: SendEnd<T>,
    pub(super) hub: Arc<Hub>,
    pub(super) gate: Arc<Gate>,
    pub(super) pace: Pace,
    slip: Slip,
    balance: Balance,
    /// Its registration while it waits in a task or a select.
    pub(super) registration: EndRegistration,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: Shape> Sender<T, S> {
    pub(super) fn new(end: SendEnd<T>, hub: Arc<Hub>, gate: Arc<Gate>) -> Self {
        Self {
            _one_thread: UsedByOneThreadAtATime,
            end,
            pace: Pace::new(hub.settings.mode),
            slip: Slip::default(),
            balance: Balance::new(hub.settings.soft_limit),
            registration: EndRegistration::default(),
            hub,
            gate,
            shape: PhantomData,
        }
    }

    /// Sends an element; blocks the thread while the channel is full, if its policy is to block. In
    /// a task use [`send_async`](Self::send_async).
    ///
    /// While there is room and no receiver sleeps, this costs a few ns; if a receiver sleeps, this
    /// thread pays for the wake-up (some 2 µs). `Ok` says that the channel took the element, or
    /// dropped it under [`Overflow::DropNewest`]. If the last receiver is dropped meanwhile, the
    /// element is discarded at once.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] if every receiver was dropped or the channel was closed;
    /// [`SendError::Full`] only with [`Overflow::Reject`].
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
    /// [`MpmcEnd::push_here`](crate::ring::MpmcEnd::push_here).
    #[inline(always)]
    fn push_to_mpmc(&mut self, value: T) -> Result<(), (T, bool)> {
        let SendEnd::Mpmc(ring) = &mut self.end else {
            return Err((value, false));
        };
        ring.push_here(value)?;
        self.notify_receiver();
        Ok(())
    }

    #[inline(never)]
    fn send_shared(&mut self, value: T) -> Result<(), SendError<T>> {
        self.cancel_forgotten();
        match self.push_to_mpmc(value) {
            Ok(()) => {
                self.balance.after_send(1, &mut self.end, &self.gate);
                Ok(())
            }
            Err((value, true)) => self.send_into_full(value),
            Err((value, false)) => self.send_slow(value),
        }
    }

    /// Sends into any other store, or where the fast path failed.
    #[inline(never)]
    fn send_slow(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.push_once(value) {
            Ok(()) => {
                self.balance.after_send(1, &mut self.end, &self.gate);
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

    /// Pushes the element, or applies the policy to it; returns `Full` if the send is to wait or to
    /// fail.
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

    /// Sends an element, if a slot is free (at a rendezvous: if a receiver waits). It never waits.
    ///
    /// Under a policy that drops, this is [`send`](Self::send): it drops an element if there is no
    /// room, and returns `Ok`. [`try_send_many`](Self::try_send_many) never drops.
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
        self.cancel_forgotten();
        match self.push_to_mpmc(value) {
            Ok(()) => Ok(()),
            Err((value, true)) => self.refuse(value),
            Err((value, false)) => self.try_send_slow(value),
        }
    }

    /// Sends into any other store, or where the fast path failed.
    #[inline(never)]
    fn try_send_slow(&mut self, value: T) -> Result<(), TrySendError<T>> {
        let outcome = self.push_once(value);
        self.counted(outcome)
    }

    /// Applies the policy, and counts an element that is refused.
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

    /// Works as [`send`](Self::send), but waits no longer than `timeout`. A timeout beyond the
    /// range of the clock, such as [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// See [`SendTimeoutError`].
    pub fn send_timeout(&mut self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        // Beyond what the clock can say: for ever.
        self.send_until(value, Instant::now().checked_add(timeout))
    }

    /// Works as [`send`](Self::send), but waits no longer than until `deadline`. With a deadline
    /// that has passed, this tries once, as a [`try_send`](Self::try_send) does, and the error of a
    /// full channel is [`SendTimeoutError::Timeout`].
    ///
    /// # Errors
    /// See [`SendTimeoutError`]. An element that timed out is counted in
    /// [`Counters::refused`](super::Counters::refused).
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
        self.cancel_forgotten();
        match self.push_once(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err(SendTimeoutError::Disconnected(value)),
            Err(TrySendError::Full(value)) => self.send_blocking(value, deadline),
        }
    }

    /// Wakes a receiver if one sleeps, after a push.
    #[inline(always)]
    fn notify_receiver(&mut self) {
        if self.hub.readable.notify_chained() {
            self.discard_late();
        }
    }

    /// Applies the policy to an element for which no slot was free; returns `Full` if the send is
    /// to wait or to fail.
    #[cold]
    pub(super) fn overflow(&mut self, mut value: T) -> Result<(), TrySendError<T>> {
        match self.hub.settings.overflow {
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
                        // A receiver is about to free a slot, or another sender to publish.
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

    /// Waits for a free slot and sends, after the channel was found full.
    #[cold]
    fn send_blocking(
        &mut self,
        value: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        if self.hub.settings.overflow == Overflow::Reject {
            self.gate.refused.add(1);
            return Err(SendTimeoutError::Full(value));
        }
        if self.end.rendezvous().is_some() {
            return self.rendezvous(value, deadline);
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
                // No rate balance: the sender has just waited, and yielding could miss the
                // deadline.
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

    /// Wakes another sender if a slot is still free: slots may be released out of order, so one
    /// notification may be for more than one slot.
    pub(super) fn pass_on(&mut self) {
        if self.gate.writable.waiting() > 0 && self.end.is_ready() {
            self.gate.writable.notify_one();
        }
    }

    /// Returns the number of elements in the channel.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Returns whether the channel is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether no slot is free now; always `true` at a rendezvous. A
    /// [`try_send`](Self::try_send) then fails, unless the policy drops an element, or a receiver
    /// waits at the rendezvous.
    pub fn is_full(&self) -> bool {
        self.end.is_full()
    }

    /// Returns the number of elements that the channel holds at most. It never changes: tokio's
    /// `max_capacity()`. The free slots (tokio's `capacity()`) are `capacity() - len()`, less those
    /// that are claimed.
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }

    /// Returns whether no element will be accepted any more: all receivers were dropped, or one of
    /// them [closed](super::Receiver::close) the channel.
    pub fn is_closed(&self) -> bool {
        self.end.is_closed()
    }

    /// Returns the counts of the channel so far.
    pub fn counters(&self) -> super::Counters {
        let counters = self.gate.counters();
        let len = self.end.len() as u64;
        let waits = self.end.rendezvous().map(|rendezvous| rendezvous.waits());
        let sent = self.end.sent();
        let received = sent.saturating_sub(len + counters.discarded);
        self.hub.summed(counters, waits, sent, received)
    }
}

impl<T, S: Shape> Drop for Sender<T, S> {
    fn drop(&mut self) {
        self.cancel_forgotten();
        if self.hub.senders.remove() {
            self.end.close();
            self.hub.readable.notify_all();
        }
    }
}

shown!([T, S: Shape] Sender<T, S>, "Sender", this,
    "len": this.len(), "capacity": this.capacity(), "closed": this.is_closed());

impl<T, S: Shape> Sender<T, S> {
    /// Drops the elements that it finds, after a notification that returned that no receiver will
    /// check the store (rule 2).
    #[cold]
    #[inline(never)]
    fn discard_late(&mut self) {
        match &mut self.end {
            SendEnd::Ring(producer) => discard_left(producer, &self.gate),
            SendEnd::Mpmc(ring) => discard_mpmc(ring, &self.gate),
            // The one refuses elements once it is closed; the other hands an element to a receiver
            // that waits, or returns it.
            SendEnd::Locked(_) | SendEnd::Rendezvous(_) => {}
        }
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Sends all elements of an iterator as [`send`](Self::send) does: blocks the thread while the
    /// channel is full, if its policy is to block. Each is sent before the next is asked for, so
    /// the iterator may wait itself, also for an answer to what it gave before. `Ok` has no count:
    /// all were sent.
    ///
    /// Costs as much as that number of calls of [`send`](Self::send). For elements that exist
    /// already, a [`claim`](Self::claim) is faster.
    ///
    /// Under [`Overflow::Reject`](super::Overflow::Reject) it stops at the first that does not fit;
    /// policies that drop are applied to each element, and dropped elements count as sent.
    ///
    /// # Errors
    /// [`SendManyError`] with the number that were sent before the channel was disconnected (or
    /// full, under `Reject`), and the element after those. Pass `&mut iterator` to keep the rest.
    #[inline]
    pub fn send_many(
        &mut self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), SendManyError<T>> {
        for (sent, value) in values.into_iter().enumerate() {
            self.send(value)
                .map_err(|error| SendManyError { sent, error })?;
        }
        Ok(())
    }

    /// Sends elements of an iterator while slots are free (at a rendezvous: while receivers wait).
    /// It never waits and never drops, whatever the policy: [`try_send`](Self::try_send) and
    /// [`send_many`](Self::send_many) do drop. Returns the number that were sent, which is all that
    /// the iterator gave.
    ///
    /// ```
    /// let (mut tx, mut rx) = thalweg::channel::spsc(2);
    /// let mut values = 1..;
    /// let error = tx.try_send_many(&mut values).expect_err("not all fit");
    /// assert_eq!((error.sent, error.error.into_inner()), (2, 3));
    /// assert_eq!(values.next(), Some(4));
    /// assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// [`SendManyError`] with the number that were sent, and the element after those, for which no
    /// slot was free, or no receiver left. Later elements were not asked for.
    #[inline]
    pub fn try_send_many(
        &mut self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<usize, SendManyError<T>> {
        self.cancel_forgotten();
        let mut sent = 0;
        for value in values {
            let error = match self.end.try_push(value) {
                Ok(()) => {
                    self.notify_receiver();
                    sent += 1;
                    continue;
                }
                Err(PushError::Full(back)) => {
                    self.gate.refused.add(1);
                    SendError::Full(back)
                }
                Err(PushError::Closed(back)) => SendError::Disconnected(back),
            };
            return Err(SendManyError { sent, error });
        }
        Ok(sent)
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Returns a future that is ready when every receiver was dropped, or one of them closed the
    /// channel: for a sender whose work no receiver would take. It holds no sender, and may outlive
    /// this one. It is cancel-safe: dropping it changes nothing.
    ///
    /// The first one of a channel allocates its list of waiters; a send costs the same as before.
    ///
    /// ```
    /// use futures_util::future::{Either, select};
    ///
    /// # futures_executor::block_on(async {
    /// let (tx, mut rx) = thalweg::channel::mpsc::<u32>(8);
    /// rx.close();
    /// let work = std::future::pending::<u32>();
    /// match select(work, tx.closed()).await {
    ///     Either::Left((result, _)) => println!("{result} could be sent"),
    ///     Either::Right(((), _)) => println!("no receiver waits for it"),
    /// }
    /// assert!(tx.is_closed());
    /// # });
    /// ```
    pub fn closed(&self) -> Closed {
        Closed {
            hub: Arc::clone(&self.hub),
            event_count: self.hub.closing_event_count(),
            registration: wait::Registration::default(),
            done: Done::default(),
        }
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless polled"]
pub struct Closed {
    hub: Arc<Hub>,
    event_count: Arc<EventCount>,
    registration: wait::Registration,
    done: Done,
}

impl Closed {
    /// Blocks the thread until every receiver was dropped or the channel was closed.
    pub fn wait(self) {
        let mut pace = Pace::new(self.hub.settings.mode);
        let attempt = || self.hub.sees_closed().then_some(());
        // Without a deadline this ends only when the attempt succeeds.
        let _ = block(&self.event_count, &mut pace, None, attempt);
    }
}

impl Future for Closed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self {
            hub,
            event_count,
            registration,
            done,
        } = self.get_mut();
        let attempt = |_: &mut _| hub.sees_closed().then_some(());
        let mut parts = (&**event_count, registration);
        done.poll(|| {
            poll_until(
                &mut parts,
                |(event_count, registration)| (event_count, registration),
                context,
                attempt,
            )
        })
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.registration.cancel(&self.event_count);
    }
}

shown!([] Closed, "Closed", this, "is_closed": this.hub.sees_closed());
