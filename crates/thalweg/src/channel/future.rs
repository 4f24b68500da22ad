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

use super::error::{RecvError, SendError};
use super::hub::Overflow;
use super::receiver::Receiver;
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::PopError;
use crate::wait::{Kind, poll_on};

/// Whether a future is done; then it is not polled again.
#[derive(Debug, Default)]
pub(super) struct Done(bool);

impl Done {
    /// # Panics
    /// If it was ready before, as the future of an `async fn` does.
    pub(super) fn poll<R>(&mut self, poll: impl FnOnce() -> Poll<R>) -> Poll<R> {
        assert!(!self.0, "a future is polled that is done");
        let outcome = poll();
        self.0 = outcome.is_ready();
        outcome
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// Receives the oldest element, as a future; see [`recv`](Self::recv).
    ///
    /// Cancel-safe: dropping the future loses no element, and no wake-up that another receiver
    /// needs. One that is kept unpolled, or forgotten, may keep such a wake-up: see
    /// [the module](super#futures-that-wait-and-are-not-polled).
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
            receiver: self.lend(),
            done: Done::default(),
        }
    }

    /// Works as [`recv_async`](Self::recv_async), for up to `max` elements, which go to the end of
    /// `out`; returns how many. See [`recv_many`](Self::recv_many).
    ///
    /// Cancel-safe: `out` grows only by the poll that says so. If it is kept unpolled, or
    /// forgotten, it is as [`recv_async`](Self::recv_async).
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut tx, mut rx) = thalweg::channel::mpsc(8);
    /// tx.send_many([1, 2, 3]).expect("room for 3");
    /// let mut batch = Vec::with_capacity(64);
    /// assert_eq!(rx.recv_many_async(&mut batch, 64).await, Ok(3));
    /// assert_eq!(batch, [1, 2, 3]);
    /// # });
    /// ```
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no sender is left.
    pub async fn recv_many_async(
        &mut self,
        out: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, RecvError> {
        self.settle();
        match self.source.pop_many(out, max) {
            Err(PopError::Empty) => {
                let first = self.recv_async().await?;
                Ok(self.with_first(first, out, max))
            }
            outcome => outcome.map_err(|_| RecvError),
        }
    }

    /// For a caller that has [lent](Self::lend) the receiver.
    pub(super) fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Result<T, RecvError>> {
        if self.source.end.meeting().is_none() {
            let outcome = poll_on(
                self,
                |this| (&this.hub.readable, &mut this.listed.on),
                context,
                |this| match this.source.pop() {
                    Err(PopError::Empty) => None,
                    outcome => Some(outcome.map_err(|_| RecvError)),
                },
            );
            if outcome.is_ready() {
                self.source.pass_on();
            }
            return outcome;
        }
        let waker = context.waker();
        if self.listed.seat.is_some() && self.stays(waker) {
            return Poll::Pending;
        }
        let (mut is_over, mut got) = (false, self.withdraw());
        if got.is_none() {
            (is_over, got) = self.request(waker, Kind::Task, None);
        }
        match got {
            Some(value) => Poll::Ready(Ok(value)),
            None if is_over => Poll::Ready(Err(RecvError)),
            None => Poll::Pending,
        }
    }
}

/// The future of [`Receiver::recv_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct RecvFuture<'r, T, S: Shape> {
    receiver: &'r mut Receiver<T, S>,
    done: Done,
}

impl<T, S: Shape> Future for RecvFuture<'_, T, S> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { receiver, done } = self.get_mut();
        done.poll(|| receiver.poll_recv(context))
    }
}

impl<T, S: Shape> Drop for RecvFuture<'_, T, S> {
    fn drop(&mut self) {
        self.receiver.leave();
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Sends an element, as a future; see [`send`](Self::send).
    ///
    /// Dropping the future before it is done drops the element unsent, unless
    /// [`take`](SendFuture::take) got it out before. To keep it across cancellation, send it
    /// [`from a place of yours`](Self::send_from_async).
    ///
    /// One that is kept unpolled, or forgotten, may keep a wake-up that another sender needs: see
    /// [the module](super#futures-that-wait-and-are-not-polled).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_async(&mut self, value: T) -> SendFuture<'_, T, S, Option<T>> {
        SendFuture {
            sender: self.lend(),
            value: Some(value),
            done: Done::default(),
        }
    }

    /// Sends the element in `value`, which is taken out of there only when it is sent. An empty
    /// place sends nothing, at once.
    ///
    /// Cancel-safe: dropping the future leaves the element where it was. If it is kept unpolled, or
    /// forgotten, it is as [`send_async`](Self::send_async); what a forgotten one offers at a
    /// rendezvous stays there until it is received, or the sender is used again and drops it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_from_async<'s>(
        &'s mut self,
        value: &'s mut Option<T>,
    ) -> SendFuture<'s, T, S, &'s mut Option<T>> {
        SendFuture {
            sender: self.lend(),
            value,
            done: Done::default(),
        }
    }

    /// Returns whether the element in `value` was sent; it is put back if not. For a caller that
    /// has [lent](Self::lend) the sender.
    pub(super) fn poll_send(
        &mut self,
        value: &mut Option<T>,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let meets = self.end.meeting().is_some()
            && (self.listed.seat.is_some() || self.hub.habits.overflow != Overflow::Reject);
        if meets {
            let waker = context.waker();
            if self.listed.seat.is_some() && self.stays(waker) {
                return Poll::Pending;
            }
            if self.withdraw(value) || value.is_none() {
                return Poll::Ready(Ok(()));
            }
            if !self.offer(value, waker, Kind::Task, None) {
                return Poll::Pending;
            }
            let back = value.take().map(SendError::Disconnected);
            return Poll::Ready(back.map_or(Ok(()), Err));
        }
        let attempt = |sender: &mut Self| {
            let Some(element) = value.take() else {
                return Some(Ok(()));
            };
            match sender.push_once(element) {
                Err(SendError::Full(back)) if sender.hub.habits.overflow == Overflow::Reject => {
                    sender.gate.refused.add(1);
                    Some(Err(SendError::Full(back)))
                }
                Err(SendError::Full(back)) => {
                    *value = Some(back);
                    None
                }
                outcome => Some(outcome),
            }
        };
        let outcome = poll_on(
            self,
            |sender| (&sender.gate.writable, &mut sender.listed.on),
            context,
            attempt,
        );
        if outcome.is_ready() {
            self.pass_on();
        }
        outcome
    }
}

/// The future of [`Sender::send_async`] and [`Sender::send_from_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'s, T, S: Shape, V: BorrowMut<Option<T>>> {
    sender: &'s mut Sender<T, S>,
    value: V,
    done: Done,
}

impl<T, S: Shape, V: BorrowMut<Option<T>>> SendFuture<'_, T, S, V> {
    /// Returns the element, if it is not sent yet.
    pub fn take(&mut self) -> Option<T> {
        let value = self.value.borrow_mut();
        self.sender.leave(value);
        value.take()
    }
}

// Nothing is pinned: the element is moved out when it is sent.
impl<T, S: Shape, V: BorrowMut<Option<T>>> Unpin for SendFuture<'_, T, S, V> {}

impl<T, S: Shape, V: BorrowMut<Option<T>>> Future for SendFuture<'_, T, S, V> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            sender,
            value,
            done,
        } = self.get_mut();
        done.poll(|| sender.poll_send(value.borrow_mut(), context))
    }
}

impl<T, S: Shape, V: BorrowMut<Option<T>>> Drop for SendFuture<'_, T, S, V> {
    fn drop(&mut self) {
        self.sender.leave(self.value.borrow_mut());
    }
}
