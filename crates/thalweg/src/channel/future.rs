//! Sending and receiving in tasks, with nothing but a [`Waker`](std::task::Waker).
//!
//! *Cancelling.* A future is listed on the channel's signal while it waits. Dropping it takes it
//! off the list; if it had been notified already, it passes the notification on to the next. An
//! element is taken out of the channel only in the poll that gives it, and put into it only in the
//! poll that says so; until then it is the sender's.

use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::error::{RecvError, SendError, TrySendError};
use super::hub::Overflow;
use super::meeting::Seat;
use super::receiver::{Receiver, Source};
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::{PopError, PushError};
use crate::wait::{Entry, Signal};

/// Where a task waits: on a signal, or at a meeting.
#[derive(Debug, Default)]
pub(super) struct Listed {
    entry: Option<Entry>,
    seat: Option<Seat>,
}

#[cfg(feature = "stream")]
impl Listed {
    /// Whether it waits at a meeting, or has not looked yet what became of that.
    pub(super) fn is_seated(&self) -> bool {
        self.seat.is_some()
    }
}

/// Makes attempts for a task that waits on a signal of `owner`: what
/// [`block`](crate::wait::block) is to a thread. Who gives up must [`leave`].
pub(super) fn poll_on<O, R>(
    owner: &mut O,
    signal: impl Fn(&O) -> &Signal,
    entry: &mut Option<Entry>,
    context: &Context<'_>,
    mut attempt: impl FnMut(&mut O) -> Option<R>,
) -> Poll<R> {
    let waker = context.waker();
    // A wait that a notification has ended is over: the look that follows uses it up.
    if entry.is_some_and(|listed| !signal(owner).update(listed, waker)) {
        *entry = None;
    }
    loop {
        if let Some(found) = attempt(owner) {
            leave(signal(owner), entry);
            return Poll::Ready(found);
        }
        // Listed since before that look, there is nothing new to look for.
        if entry.is_some_and(|listed| signal(owner).update(listed, waker)) {
            return Poll::Pending;
        }
        *entry = Some(signal(owner).register(waker));
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("future_look_again") {
            return Poll::Pending;
        }
    }
}

/// Takes a waiting task off the list; one that was notified passes it on, since what it got, if
/// anything, it may have got before.
pub(super) fn leave(signal: &Signal, entry: &mut Option<Entry>) {
    if let Some(entry) = entry.take()
        && !signal.unregister(entry)
    {
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("future_pass_on") {
            return;
        }
        signal.notify_one();
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// The oldest element, as a future; see [`recv`](Self::recv).
    ///
    /// Cancel-safe: dropping the future loses no element, and no wake-up that another receiver
    /// needs.
    ///
    /// At a rendezvous a sender hands its element to a future that waits, and goes on. If that
    /// future is dropped before it is polled again, the element goes to another receiver that
    /// waits, or to the next that comes, before all that senders still hold. With one receiver the
    /// order of elements is kept so. With several, others may have received later elements
    /// meanwhile, also of the same sender, and elements that are given up by several receivers
    /// come in the order in which they were given up. The same holds for a select that is given
    /// up, and for a stream.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no sender is left.
    pub fn recv_async(&mut self) -> RecvFuture<'_, T, S> {
        RecvFuture {
            receiver: self,
            listed: Listed::default(),
        }
    }

    /// As [`recv_async`](Self::recv_async), for up to `max` elements, which go to the end of `out`;
    /// gives how many. See [`recv_many`](Self::recv_many).
    ///
    /// Cancel-safe: `out` grows only by the poll that says so.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut tx, mut rx) = thalweg::channel::mpsc(8);
    /// tx.send_slice(&[1, 2, 3]).expect("room for 3");
    /// let mut batch = Vec::with_capacity(64);
    /// assert_eq!(rx.recv_many_async(&mut batch, 64).await, Ok(3));
    /// assert_eq!(batch, [1, 2, 3]);
    /// # });
    /// ```
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no sender is left.
    pub fn recv_many_async<'r>(
        &'r mut self,
        out: &'r mut Vec<T>,
        max: usize,
    ) -> RecvManyFuture<'r, T, S> {
        let receive = self.recv_async();
        RecvManyFuture { receive, out, max }
    }

    pub(super) fn poll_recv(
        &mut self,
        listed: &mut Listed,
        context: &Context<'_>,
    ) -> Poll<Result<T, RecvError>> {
        if let Some((meeting, gate)) = self.source.end.meeting() {
            return meeting.poll_recv(&mut listed.seat, context, &gate.writable);
        }
        self.poll_pop(listed, context, Source::pop)
    }

    /// Waits as a task for what `pop` takes out of a store.
    fn poll_pop<R>(
        &mut self,
        listed: &mut Listed,
        context: &Context<'_>,
        mut pop: impl FnMut(&mut Source<T>) -> Result<R, PopError>,
    ) -> Poll<Result<R, RecvError>> {
        let attempt = |source: &mut Source<T>| match pop(source) {
            Err(PopError::Empty) => None,
            outcome => Some(outcome.map_err(|_| RecvError)),
        };
        let outcome = poll_on(
            &mut self.source,
            |source| &source.hub.readable,
            &mut listed.entry,
            context,
            attempt,
        );
        if outcome.is_ready() {
            self.source.pass_on();
        }
        outcome
    }

    pub(super) fn leave(&self, listed: &mut Listed) {
        leave(&self.source.hub.readable, &mut listed.entry);
        if let Some((meeting, _)) = self.source.end.meeting() {
            meeting.cancel_recv(listed.seat.take());
        }
    }
}

/// See [`Receiver::recv_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct RecvFuture<'r, T, S: Shape> {
    receiver: &'r mut Receiver<T, S>,
    listed: Listed,
}

impl<T, S: Shape> Future for RecvFuture<'_, T, S> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.receiver.poll_recv(&mut this.listed, context)
    }
}

impl<T, S: Shape> Drop for RecvFuture<'_, T, S> {
    fn drop(&mut self) {
        self.receiver.leave(&mut self.listed);
    }
}

/// See [`Receiver::recv_many_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct RecvManyFuture<'r, T, S: Shape> {
    receive: RecvFuture<'r, T, S>,
    out: &'r mut Vec<T>,
    max: usize,
}

impl<T, S: Shape> Future for RecvManyFuture<'_, T, S> {
    type Output = Result<usize, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { receive, out, max } = self.get_mut();
        let RecvFuture { receiver, listed } = receive;
        let Some(more) = max.checked_sub(1) else {
            return Poll::Ready(Ok(0));
        };
        if receiver.source.end.meeting().is_none() {
            return receiver.poll_pop(listed, context, |source| source.pop_many(out, *max));
        }
        receiver.poll_recv(listed, context).map_ok(|first| {
            out.push(first);
            1 + receiver.source.pop_many(out, more).unwrap_or(0)
        })
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Sends an element, as a future; see [`send`](Self::send).
    ///
    /// Dropping the future before it is done drops the element unsent, unless
    /// [`take`](SendFuture::take) got it out before. To keep it across cancellation, send it
    /// [`from a place of yours`](Self::send_from_async).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_async(&mut self, value: T) -> SendFuture<'_, T, S, Option<T>> {
        SendFuture {
            sender: self,
            value: Some(value),
            listed: Listed::default(),
        }
    }

    /// Sends the element in `value`, which is taken out of there only when it is sent. An empty
    /// place sends nothing, at once.
    ///
    /// Cancel-safe: dropping the future leaves the element where it was.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_from_async<'s>(
        &'s mut self,
        value: &'s mut Option<T>,
    ) -> SendFuture<'s, T, S, &'s mut Option<T>> {
        SendFuture {
            sender: self,
            value,
            listed: Listed::default(),
        }
    }

    /// Whether the element in `value` was sent; it is put back if not.
    pub(super) fn poll_send(
        &mut self,
        value: &mut Option<T>,
        listed: &mut Listed,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        if let Some(meeting) = self.end.meeting()
            && (listed.seat.is_some() || self.hub.habits.overflow != Overflow::Reject)
        {
            return meeting.poll_send(value, &mut listed.seat, context);
        }
        let attempt = |sender: &mut Self| {
            let Some(element) = value.take() else {
                return Some(Ok(()));
            };
            match sender.push_once(element) {
                Ok(()) => Some(Ok(())),
                Err(TrySendError::Disconnected(back)) => Some(Err(SendError::Disconnected(back))),
                Err(TrySendError::Full(back)) if sender.hub.habits.overflow == Overflow::Reject => {
                    sender.gate.count_refused();
                    Some(Err(SendError::Full(back)))
                }
                Err(TrySendError::Full(back)) => {
                    *value = Some(back);
                    None
                }
            }
        };
        let outcome = poll_on(
            self,
            |sender| &sender.gate.writable,
            &mut listed.entry,
            context,
            attempt,
        );
        if outcome.is_ready() {
            self.pass_on();
        }
        outcome
    }

    pub(super) fn push_once(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.end.try_push(value) {
            Ok(()) => {
                if self.hub.readable.notify_one_or_shut() {
                    self.discard_late();
                }
                Ok(())
            }
            Err(PushError::Closed(value)) => Err(TrySendError::Disconnected(value)),
            Err(PushError::Full(value)) => self.overflow(value),
        }
    }

    /// Waits no more; an element that waited at a meeting comes back.
    pub(super) fn leave(&self, listed: &mut Listed, value: &mut Option<T>) {
        leave(&self.gate.writable, &mut listed.entry);
        if let (Some(meeting), Some(seat)) = (self.end.meeting(), listed.seat.take())
            && let Some(back) = meeting.leave_offer(seat)
        {
            *value = Some(back);
        }
    }
}

/// See [`Sender::send_async`] and [`Sender::send_from_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'s, T, S: Shape, V: BorrowMut<Option<T>>> {
    sender: &'s mut Sender<T, S>,
    value: V,
    listed: Listed,
}

impl<T, S: Shape, V: BorrowMut<Option<T>>> SendFuture<'_, T, S, V> {
    /// The element, if it is not sent yet.
    pub fn take(&mut self) -> Option<T> {
        let value = self.value.borrow_mut();
        self.sender.leave(&mut self.listed, value);
        value.take()
    }
}

// Nothing is pinned: the element is moved out when it is sent.
impl<T, S: Shape, V: BorrowMut<Option<T>>> Unpin for SendFuture<'_, T, S, V> {}

impl<T, S: Shape, V: BorrowMut<Option<T>>> Future for SendFuture<'_, T, S, V> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let value = this.value.borrow_mut();
        this.sender.poll_send(value, &mut this.listed, context)
    }
}

impl<T, S: Shape, V: BorrowMut<Option<T>>> Drop for SendFuture<'_, T, S, V> {
    fn drop(&mut self) {
        self.sender.leave(&mut self.listed, self.value.borrow_mut());
    }
}
