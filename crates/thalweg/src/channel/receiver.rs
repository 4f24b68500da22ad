//! The receiving end of a channel: receives of one element, by iterators, and of several elements,
//! whose slots are released together.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::error::{RecvError, RecvTimeoutError, TryRecvError};
use super::hub::{Counters, Gate, Hub, Overflow, Shape};
use super::select::EndRegistration;
use super::slip::Slip;
use super::stores::RecvEnd;
use crate::ring::sync::Arc;
use crate::ring::{self, PopError, UsedByOneThreadAtATime};
use crate::wait::{Pace, barrier, block};

/// The receiver of a channel; see the [module](super).
///
/// It can move to another thread. A receiver of shape [`Mpmc`](super::Mpmc) can be cloned, and one
/// of the shapes [`Spsc`](super::Spsc) and [`Mpsc`](super::Mpsc) can't; each element is received by
/// one of them. Dropping the last one disconnects the channel: senders get an error, and the
/// elements that are still in the channel are dropped, also those that a concurrent send puts there
/// later (see [Disconnecting](super#disconnecting)). Dropping the last receiver while senders exist
/// can add 10 µs, if no receiver slept on the channel lately.
pub struct Receiver<T, S: Shape> {
    _one_thread: UsedByOneThreadAtATime,
    pub(super) source: Source<T>,
    /// The source's hub, for waiting on it while the source is used.
    pub(super) hub: Arc<Hub>,
    pub(super) pace: Pace,
    slip: Slip,
    /// Its registration while it waits in a task or a select.
    pub(super) registration: EndRegistration,
    has_left: bool,
    shape: PhantomData<fn() -> S>,
}

/// The part of a receiver that pops elements; the other part waits.
pub(super) struct Source<T> {
    pub(super) end: RecvEnd<T>,
    pub(super) hub: Arc<Hub>,
    /// The policy drops: a copy, since every pop reads it.
    is_lossy: bool,
    /// The shape has no other receiver.
    is_sole: bool,
    /// The event count was shut, so that the end may be reported although there are senders: see
    /// [`confirm_end`](Self::confirm_end).
    is_final: bool,
    /// Elements lost before the one received last.
    lost: u64,
    /// The position after the element received last; used where the oldest is dropped.
    next: u64,
}

impl<T> Source<T> {
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Result<T, PopError> {
        let RecvEnd::Ring(consumer, gate) = &mut self.end else {
            return self.pop_shared();
        };
        match consumer.try_pop_nearly() {
            Ok(value) => {
                gate.writable.notify_one();
                Ok(value)
            }
            Err(PopError::Closed) => self.pop_unless_ended(),
            empty => empty,
        }
    }

    /// Pops again where `Closed` was returned too early.
    #[cold]
    #[inline(never)]
    fn pop_unless_ended(&mut self) -> Result<T, PopError> {
        self.confirm_end()?;
        self.end.try_pop()
    }

    /// Pops by `pop`, and again if `Closed` was returned too early.
    #[inline]
    fn pop_by<R>(
        &mut self,
        mut pop: impl FnMut(&mut RecvEnd<T>) -> Result<R, PopError>,
    ) -> Result<R, PopError> {
        match pop(&mut self.end) {
            Err(PopError::Closed) => {
                self.confirm_end()?;
                pop(&mut self.end)
            }
            found => found,
        }
    }

    /// Checks a pop that returned `Closed`: returns `Ok` if there is an element all the same.
    ///
    /// In a ring of one sender that the receiver closed, the sender may hold a claim, or be about
    /// to push an element whose send began before. It is the end only when there is no claim, and
    /// when the sender will drop an element that it still pushes, as after the last receiver is
    /// dropped (see `stores`).
    #[cold]
    #[inline(never)]
    fn confirm_end(&mut self) -> Result<(), PopError> {
        let mut found = self.end.check_end(self.is_final);
        if found != Err(PopError::Closed) || !matches!(self.end, RecvEnd::Ring(..)) {
            return found;
        }
        if !self.hub.senders.has_any() {
            // Every element that they sent is visible now.
            return self.end.observe();
        }
        if !self.is_final {
            self.is_final = true;
            self.hub.readable.shut();
            barrier::heavy();
            found = self.end.check_end(true);
        }
        if found == Err(PopError::Closed) {
            self.end.retire();
        }
        found
    }

    /// Returns whether the policy drops.
    fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Returns whether only receivers take elements out.
    pub(super) fn keeps(&self) -> bool {
        self.hub.settings.overflow != Overflow::DropOldest
    }

    /// Pops, first by the fast path of a channel with several senders or receivers. It is a
    /// function of its own, since it would make the path of the SPSC ring longer.
    #[inline(never)]
    fn pop_shared(&mut self) -> Result<T, PopError> {
        if let RecvEnd::Mpmc(ring, gate) = &mut self.end
            && !self.is_lossy
        {
            let found = ring.pop_here();
            if !matches!(found, Err(false)) {
                // Also if it was empty, as in `RecvEnd::try_pop_at`.
                gate.notify_room(1);
                return found.map_err(|_| PopError::Empty);
            }
        }
        self.pop_slow()
    }

    /// Pops from any other store, or where the fast path failed.
    #[inline(never)]
    fn pop_slow(&mut self) -> Result<T, PopError> {
        if self.is_lossy() {
            self.pop_lossy()
        } else {
            match self.end.try_pop() {
                Err(PopError::Closed) => self.pop_unless_ended(),
                found => found,
            }
        }
    }

    /// Pops an element and sets the number of those that were lost before it.
    fn pop_lossy(&mut self) -> Result<T, PopError> {
        let (position, value) = self.pop_by(RecvEnd::try_pop_at)?;
        if self.hub.settings.overflow == Overflow::DropOldest && self.is_sole {
            // There is one store, and elements that its only receiver did not get were dropped.
            self.lost = position - self.next;
            self.next = position + 1;
        } else {
            self.lost = self.end.lost_before(position);
        }
        Ok(value)
    }

    /// Wakes another receiver if more elements wait: see [`RecvEnd::has_more`].
    pub(super) fn pass_on(&self) {
        if self.hub.readable.waiting() > 0 && self.end.has_more() {
            self.hub.readable.notify_chained();
        }
    }

    /// Pops up to `max` elements, and no more than the store holds at one moment: a sender that
    /// refills the slots must not keep this from returning.
    pub(super) fn pop_many(&mut self, out: &mut Vec<T>, max: usize) -> Result<usize, PopError> {
        let max = max.min(self.end.held_max());
        if !self.is_lossy() {
            return self.pop_by(|end| end.pop_into(out, max));
        }
        let (mut count, mut lost) = (0, 0);
        while count < max {
            match self.pop_lossy() {
                Ok(value) => out.push(value),
                Err(_) if count > 0 => break,
                Err(why) => return Err(why),
            }
            lost += self.lost;
            count += 1;
        }
        self.lost = lost;
        Ok(count)
    }
}

impl<T, S: Shape> Receiver<T, S> {
    pub(super) fn new(end: RecvEnd<T>, hub: Arc<Hub>) -> Self {
        Self {
            _one_thread: UsedByOneThreadAtATime,
            pace: Pace::new(hub.settings.mode),
            hub: Arc::clone(&hub),
            slip: Slip::of_receiver(),
            registration: EndRegistration::default(),
            has_left: false,
            source: Source {
                end,
                is_lossy: hub.settings.overflow.is_lossy(),
                hub,
                is_sole: !S::SHARES_RECEIVER,
                is_final: false,
                lost: 0,
                next: 0,
            },
            shape: PhantomData,
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Result<T, PopError> {
        if let RecvEnd::Ring(..) = self.source.end {
            // No other receiver waits for these elements.
            return self.source.pop();
        }
        self.cancel_forgotten();
        self.source.pop_shared()
    }

    /// Takes the oldest element; blocks the thread while the channel is empty. In a task use
    /// [`recv_async`](Self::recv_async).
    ///
    /// Costs a few ns if the channel is not empty and no sender sleeps.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty, and every sender was dropped or the channel was
    /// closed.
    #[inline(always)]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.pop() {
            Ok(value) => Ok(value),
            Err(PopError::Closed) => Err(RecvError),
            Err(PopError::Empty) => self.wait_and_pop(None).map_err(|_| RecvError),
        }
    }

    /// Takes the oldest element, if the channel is not empty.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`].
    #[inline(always)]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.pop() {
            Ok(value) => Ok(value),
            Err(error) => Err(error.into()),
        }
    }

    /// Works as [`recv`](Self::recv), but waits no longer than `timeout`. A timeout beyond the
    /// range of the clock, such as [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // Beyond what the clock can say: for ever.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Works as [`recv`](Self::recv), but waits no longer than until `deadline`. With a deadline
    /// that has passed, this is a [`try_recv`](Self::try_recv).
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.pop() {
            Ok(value) => Ok(value),
            Err(PopError::Closed) => Err(RecvTimeoutError::Disconnected),
            Err(PopError::Empty) => self.wait_and_pop(deadline),
        }
    }

    /// Waits for an element and pops it, after the channel was found empty.
    #[cold]
    fn wait_and_pop(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        if self.source.end.rendezvous().is_some() {
            return self.rendezvous(deadline);
        }
        self.wait_for_pop(deadline, self.hub.endpoints(), Source::pop)
    }

    /// Waits until `pop` returns an element or the end; `endpoints` is the number of endpoints of
    /// the channel.
    #[inline]
    pub(super) fn wait_for_pop(
        &mut self,
        deadline: Option<Instant>,
        endpoints: u64,
        mut pop: impl FnMut(&mut Source<T>) -> Result<T, PopError>,
    ) -> Result<T, RecvTimeoutError> {
        self.cancel_forgotten();
        let moved = (self.source.end.popped(), endpoints);
        let source = &mut self.source;
        let found = self
            .slip
            .wait(moved, &mut self.pace, deadline, || match pop(source) {
                Err(PopError::Empty) => Err(source.end.popped()),
                found => Ok(found),
            });
        if let Some(found) = found {
            return found.map_err(|_| RecvTimeoutError::Disconnected);
        }
        let attempt = || match pop(&mut self.source) {
            Err(PopError::Empty) => None,
            found => Some(found),
        };
        let outcome = block(&self.hub.readable, &mut self.pace, deadline, attempt);
        let outcome = outcome.map_err(|_| RecvTimeoutError::Timeout)?;
        self.source.pass_on();
        outcome.map_err(|_| RecvTimeoutError::Disconnected)
    }

    /// Moves up to `max` elements to the end of `out`, at least one unless `max` is 0; blocks the
    /// thread while the channel is empty. Returns their number. In a task use
    /// [`recv_many_async`](Self::recv_many_async).
    ///
    /// Allocates only if `out` has too little spare capacity.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty, and every sender was dropped or the channel was
    /// closed.
    pub fn recv_many(&mut self, out: &mut Vec<T>, max: usize) -> Result<usize, RecvError> {
        self.cancel_forgotten();
        match self.source.pop_many(out, max) {
            Ok(count) => Ok(count),
            Err(PopError::Closed) => Err(RecvError),
            Err(PopError::Empty) => {
                let first = self.wait_and_pop(None).map_err(|_| RecvError)?;
                Ok(self.with_first(first, out, max))
            }
        }
    }

    /// Appends `first`, an element that was waited for, to `out`, and up to `max` - 1 more that are
    /// in the channel now.
    pub(super) fn with_first(&mut self, first: T, out: &mut Vec<T>, max: usize) -> usize {
        out.push(first);
        let (room, lost) = (max - 1, self.source.lost);
        if room == 0 {
            return 1;
        }
        let more = self.source.pop_many(out, room).unwrap_or(0);
        // The elements lost before any of them.
        self.source.lost = lost + if more > 0 { self.source.lost } else { 0 };
        1 + more
    }

    /// Moves up to `max` elements that are in the channel now to the end of `out`, without waiting;
    /// returns their number.
    ///
    /// After this [`lost_before`](Self::lost_before) is the sum of what was lost before each of
    /// them.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`] if the channel is empty and `max`
    /// is not 0.
    pub fn try_recv_many(&mut self, out: &mut Vec<T>, max: usize) -> Result<usize, TryRecvError> {
        self.cancel_forgotten();
        Ok(self.source.pop_many(out, max)?)
    }

    /// Returns the number of elements lost immediately before the one received last, under a policy
    /// that drops. It is 0 before the first receive, and an error leaves it as it is. Under
    /// [`Overflow::DropNewest`], elements lost after the last one appear in
    /// [`Counters::dropped`] only, until another one is received.
    ///
    /// Where there can be one receiver only, the losses lie exactly there. In a many-to-many
    /// channel that drops its oldest elements, each loss is reported once, to the receiver that
    /// receives next.
    ///
    /// Iterators and [`try_recv_each`](Self::try_recv_each) borrow the receiver, so it can't be
    /// asked between their elements: to see each loss, receive one by one. After
    /// [`recv_many`](Self::recv_many) or [`try_recv_many`](Self::try_recv_many) this is the sum for
    /// all of their elements; after an iterator, a [`batch`](Self::batch) or `try_recv_each` it is
    /// the number for the last element only.
    ///
    /// ```
    /// use thalweg::channel::{Builder, Overflow};
    ///
    /// let (mut tx, mut rx) = Builder::new(4).overflow(Overflow::DropOldest).spsc::<u32>()?;
    /// tx.send_many(0..10).expect("the receiver is there");
    /// drop(tx);
    /// let mut lost = 0;
    /// while let Ok(n) = rx.recv() {
    ///     lost += rx.lost_before();
    ///     assert_eq!(rx.lost_before(), if n == 6 { 6 } else { 0 });
    /// }
    /// assert_eq!(lost, rx.counters().dropped);
    /// # Ok::<(), thalweg::channel::BuildError>(())
    /// ```
    pub fn lost_before(&self) -> u64 {
        self.source.lost
    }

    /// Returns the number of elements in the channel.
    pub fn len(&self) -> usize {
        self.source.end.len()
    }

    /// Returns whether the channel is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of elements that the channel holds at most: tokio's `max_capacity()`.
    pub fn capacity(&self) -> usize {
        self.source.end.capacity()
    }

    /// Returns whether nothing can be sent any more: all senders were dropped, or the channel was
    /// [closed](Self::close). There may still be elements to receive.
    pub fn is_closed(&self) -> bool {
        self.source.end.is_closed()
    }

    /// Closes the channel, for all of its receivers: nothing can be sent any more. Every send from
    /// now on, and each that waits, gives its element back with
    /// [`SendError::Disconnected`](super::SendError::Disconnected). Elements in the channel can
    /// still be received, and then receivers get [`RecvError`].
    ///
    /// A concurrent send may still succeed. Where many senders share a ring or a lock, its element
    /// is received before the error. Where a sole sender has the ring, it is received before the
    /// error or discarded. A [`Claim`](super::Claim) that a sender holds can still be committed,
    /// and its elements are received: as long as it is held, the channel counts as empty, not as
    /// disconnected. After the first [`RecvError`] no element comes any more.
    pub fn close(&mut self) {
        self.source.end.close();
        self.source.hub.notify_closed();
        self.source.hub.readable.notify_all();
    }

    /// Returns the counts of the channel so far.
    pub fn counters(&self) -> Counters {
        let end = &self.source.end;
        let counters = end.gate().counters();
        let waits = end.rendezvous().map(|(rendezvous, _)| rendezvous.waits());
        let popped = end.popped();
        // While there are receivers, only elements that were pushed after the end were discarded.
        let sent = popped + end.len() as u64 + counters.discarded;
        (self.hub).summed(counters, waits, sent, popped)
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// Leaves the channel, once; returns whether it was the last receiver. Then it closes the
    /// channel and calls `discard` for the elements that are left.
    pub(super) fn leave(&mut self, discard: impl FnOnce(&mut RecvEnd<T>)) -> bool {
        if std::mem::replace(&mut self.has_left, true) {
            return false;
        }
        self.cancel_forgotten();
        if !self.source.hub.receivers.remove() {
            // It may have been woken for an element that it did not pop.
            self.source.pass_on();
            return false;
        }
        self.source.end.close();
        self.source.hub.notify_closed();
        if self.source.hub.senders.has_any() {
            // From here on, a sender that pushes an element drops it itself.
            self.source.hub.readable.shut();
        }
        discard(&mut self.source.end);
        true
    }
}

impl<T, S: Shape> Drop for Receiver<T, S> {
    fn drop(&mut self) {
        // Elements that are left may hold senders of other channels: dropping them must not wait
        // for senders of this one.
        self.leave(RecvEnd::discard);
    }
}

shown!([T, S: Shape] Receiver<T, S>, "Receiver", this,
    "len": this.len(), "capacity": this.capacity(), "closed": this.is_closed());

impl<T, S: Shape> Receiver<T, S> {
    /// Calls `work` with up to `max` elements that are in the channel now, without waiting; returns
    /// their number, at least 1 unless `max` is 0. If `work` panics, its element is dropped, and
    /// the others stay in the channel.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`] if the channel is empty and `max`
    /// is not 0.
    pub fn try_recv_each(
        &mut self,
        max: usize,
        mut work: impl FnMut(T),
    ) -> Result<usize, TryRecvError> {
        // Bounded, also if senders are as fast as this receiver.
        let max = max.min(self.source.end.held_max());
        let mut count = 0;
        while count < max {
            match self.try_recv() {
                Ok(value) => work(value),
                Err(why) if count == 0 => return Err(why),
                Err(_) => break,
            }
            count += 1;
        }
        Ok(count)
    }

    /// Returns an iterator that receives until the channel is disconnected, and blocks the thread
    /// while the channel is empty.
    pub fn iter(&mut self) -> Iter<'_, T, S> {
        Iter(self)
    }

    /// Returns an iterator over the elements that are in the channel now. It does not wait, and
    /// ends at the first moment at which the channel is empty.
    pub fn try_iter(&mut self) -> TryIter<'_, T, S> {
        TryIter(self)
    }
}

macro_rules! iterators {
    ($($(#[$doc:meta])* $name:ident<$($life:lifetime)?>($receiver:ty): $recv:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<$($life,)? T, S: Shape>($receiver);

        impl<$($life,)? T, S: Shape> Iterator for $name<$($life,)? T, S> {
            type Item = T;

            fn next(&mut self) -> Option<T> {
                self.0.$recv().ok()
            }
        }
    )+};
}

iterators! {
    /// Receives until the channel is disconnected, and blocks while it is empty: made by
    /// [`Receiver::iter`].
    Iter<'r>(&'r mut Receiver<T, S>): recv;
    /// Receives until the channel is empty, and never blocks: made by [`Receiver::try_iter`].
    TryIter<'r>(&'r mut Receiver<T, S>): try_recv;
    /// Receives until the channel is disconnected.
    IntoIter<>(Receiver<T, S>): recv;
}

impl<T, S: Shape> FusedIterator for Iter<'_, T, S> {}
impl<T, S: Shape> FusedIterator for IntoIter<T, S> {}

impl<T, S: Shape> IntoIterator for Receiver<T, S> {
    type Item = T;
    type IntoIter = IntoIter<T, S>;

    fn into_iter(self) -> IntoIter<T, S> {
        IntoIter(self)
    }
}

impl<'r, T, S: Shape> IntoIterator for &'r mut Receiver<T, S> {
    type Item = T;
    type IntoIter = Iter<'r, T, S>;

    fn into_iter(self) -> Iter<'r, T, S> {
        self.iter()
    }
}

/// Elements of a channel, taken one by one through the iterator; see [`Receiver::batch`]. If it is
/// forgotten, its slots are freed when the receiver is used again.
#[must_use = "elements are received only by iterating"]
pub struct Batch<'r, T>(Elements<'r, T>);

enum Elements<'r, T> {
    /// From a ring that only this receiver uses: slots are released when the batch is dropped, and
    /// then one sender is woken.
    Own(ring::SpscBatch<'r, T>, NotifyOnDrop<'r>),
    /// From a store that other receivers use, too: each element is popped on its own.
    Shared {
        source: &'r mut Source<T>,
        left: usize,
    },
}

struct NotifyOnDrop<'r>(&'r Gate);

impl Drop for NotifyOnDrop<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.writable.notify_one();
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Elements::Own(elements, _) => elements.next(),
            Elements::Shared { source, left } => {
                *left = left.checked_sub(1)?;
                let value = source.pop().ok();
                if value.is_none() {
                    *left = 0;
                }
                value
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Elements::Own(elements, _) => elements.size_hint(),
            Elements::Shared { left, .. } => (0, Some(*left)),
        }
    }

    // So that the branch on the kind is taken once for all of them.
    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut work: F) -> B {
        match self.0 {
            Elements::Own(elements, _notify) => elements.fold(init, work),
            shared => {
                let mut result = init;
                for value in Batch(shared).by_ref() {
                    result = work(result, value);
                }
                result
            }
        }
    }
}

impl<T> FusedIterator for Batch<'_, T> {}

shown!([T] Batch<'_, T>, "Batch", this, "left_at_most": this.size_hint().1);

impl<T, S: Shape> Receiver<T, S> {
    /// Takes up to `max` elements that are in the channel now, one by one through an iterator,
    /// without copying them anywhere else. Elements that the iterator was not asked for stay in the
    /// channel.
    ///
    /// From a ring of one sender and one receiver, the batch is the elements that are in it when
    /// this is called, and their slots are released to the sender together, when the batch is
    /// dropped. From other channels, each element is taken when it is asked for.
    ///
    /// ```
    /// let (mut tx, mut rx) = thalweg::channel::spsc(8);
    /// tx.send_many([1, 2, 3]).expect("room for 3");
    /// assert_eq!(rx.batch(2).sum::<i32>(), 3);
    /// assert_eq!(rx.try_recv(), Ok(3));
    /// ```
    #[inline]
    pub fn batch(&mut self, max: usize) -> Batch<'_, T> {
        self.cancel_forgotten();
        if !matches!(self.source.end, RecvEnd::Ring(..)) {
            let source = &mut self.source;
            return Batch(Elements::Shared { source, left: max });
        }
        match &mut self.source.end {
            RecvEnd::Ring(ring, gate) => Batch(Elements::Own(ring.batch(max), NotifyOnDrop(gate))),
            _ => unreachable!("asked above"),
        }
    }
}
