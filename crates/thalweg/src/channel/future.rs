//! Sending and receiving in tasks, with nothing but a [`Waker`](std::task::Waker): as futures, and
//! as a stream, which is that of `futures` with the feature `stream`.
//!
//! *Cancellation.* A future is registered with the channel's event count while it waits. Its drop
//! unregisters it; if it had been notified already, the notification is passed on to the next
//! waiter. An element is popped only in the poll that returns it, and pushed only in the poll that
//! returns success; until then the future, or its caller, keeps it.
//!
//! *Streams.* They are registered from a poll that is pending until a poll that is ready, or until
//! they are dropped: a `next()` that is dropped leaves the stream registered. One that was notified
//! and is dropped passes the notification on. Since a stream holds the receiver, no other receive
//! can use up its notification.

use std::borrow::BorrowMut;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "stream")]
use futures_core::{FusedStream, Stream};

use super::error::{RecvError, SendError};
use super::hub::{Done, Overflow, Shape};
use super::receiver::Receiver;
use super::sender::Sender;
use crate::ring::PopError;
use crate::wait::{Kind, poll_until};

impl<T, S: Shape> Receiver<T, S> {
    /// Receives the oldest element, as a future; see [`recv`](Self::recv).
    ///
    /// Cancel-safe: dropping the future loses no element, and no wake-up that another receiver
    /// needs. One that is kept unpolled, or forgotten, may keep such a wake-up: see
    /// [futures that wait and are not polled](super#futures-that-wait-and-are-not-polled).
    ///
    /// At a rendezvous a sender hands its element to a future that waits, and returns. If that
    /// future is dropped before it is polled again, the element is handed to another receiver that
    /// waits, or to the next that comes, before all that senders still hold. So with one receiver
    /// the order of elements is kept. With several, others may have received later elements
    /// meanwhile, also of the same sender, and elements of several dropped futures come in the
    /// order in which those were dropped. The same holds for a select that is dropped, and for a
    /// stream.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty, and every sender was dropped or the channel was
    /// closed.
    pub fn recv_async(&mut self) -> RecvFuture<'_, T, S> {
        RecvFuture {
            receiver: self.lend(),
            done: Done::default(),
        }
    }

    /// Works as [`recv_async`](Self::recv_async), for up to `max` elements, which are appended to
    /// `out`; returns their number. See [`recv_many`](Self::recv_many).
    ///
    /// Cancel-safe: `out` grows only by the poll that says so. One that is kept unpolled, or
    /// forgotten: see
    /// [futures that wait and are not polled](super#futures-that-wait-and-are-not-polled).
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
    /// [`RecvError`] if the channel is empty, and every sender was dropped or the channel was
    /// closed.
    pub async fn recv_many_async(
        &mut self,
        out: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, RecvError> {
        self.cancel_forgotten();
        match self.source.pop_many(out, max) {
            Err(PopError::Empty) => {
                let first = self.recv_async().await?;
                Ok(self.with_first(first, out, max))
            }
            outcome => outcome.map_err(|_| RecvError),
        }
    }

    /// For a caller that has [lent](Self::lend) the receiver.
    fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Result<T, RecvError>> {
        if self.source.end.rendezvous().is_none() {
            let outcome = poll_until(
                self,
                |this| (&this.hub.readable, &mut this.registration.in_event_count),
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
        if self.registration.at_rendezvous.is_some() && self.update_waker(waker) {
            return Poll::Pending;
        }
        let (mut is_over, mut got) = (false, self.unregister());
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
        self.receiver.cancel_wait();
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Sends an element, as a future; see [`send`](Self::send).
    ///
    /// Not cancel-safe: the element was moved into the future, and dropping that before it is ready
    /// drops the element unsent, unless [`take`](SendFuture::take) got it out before. In a
    /// `select!` use [`send_from_async`](Self::send_from_async), which keeps the element across
    /// cancellation.
    ///
    /// One that is kept unpolled, or forgotten, may keep a wake-up that another sender needs: see
    /// [futures that wait and are not polled](super#futures-that-wait-and-are-not-polled).
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

    /// Sends the element in `value`, which is taken out of the `Option` only when it is sent. With
    /// `None` the future is ready at once, and nothing is sent.
    ///
    /// Cancel-safe: dropping the future leaves the element in `value`. One that is kept unpolled,
    /// or forgotten: see [futures that wait and are not
    /// polled](super#futures-that-wait-and-are-not-polled). The element that a forgotten one offers
    /// at a rendezvous stays there until it is received, or the sender is used again and drops it.
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
    fn poll_send(
        &mut self,
        value: &mut Option<T>,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let is_rendezvous = self.end.rendezvous().is_some()
            && (self.registration.at_rendezvous.is_some()
                || self.hub.settings.overflow != Overflow::Reject);
        if is_rendezvous {
            let waker = context.waker();
            if self.registration.at_rendezvous.is_some() && self.update_waker(waker) {
                return Poll::Pending;
            }
            if self.unregister(value) || value.is_none() {
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
                Err(SendError::Full(back)) if sender.hub.settings.overflow == Overflow::Reject => {
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
        let outcome = poll_until(
            self,
            |sender| {
                (
                    &sender.gate.writable,
                    &mut sender.registration.in_event_count,
                )
            },
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
    /// Takes the element out of the future, if it was not sent yet. The future then sends nothing,
    /// and is ready with `Ok` when it is polled.
    pub fn take(&mut self) -> Option<T> {
        let value = self.value.borrow_mut();
        self.sender.cancel_wait(value);
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
        self.sender.cancel_wait(self.value.borrow_mut());
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// Turns the receiver into a stream of the elements, for a caller that polls it: `poll_recv`,
    /// and with the feature `stream` a `Stream`. The stream keeps the receiver;
    /// [`into_inner`](RecvStream::into_inner) gives it back.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use thalweg::channel::RecvError;
    ///
    /// let (mut tx, rx) = thalweg::channel::spsc(8);
    /// tx.send(1).expect("room for 8");
    /// drop(tx);
    /// let mut stream = rx.into_stream();
    /// futures_executor::block_on(async {
    ///     assert_eq!(poll_fn(|cx| stream.poll_recv(cx)).await, Ok(1));
    ///     assert_eq!(poll_fn(|cx| stream.poll_recv(cx)).await, Err(RecvError));
    /// });
    /// assert!(stream.into_inner().is_closed());
    /// ```
    pub fn into_stream(self) -> RecvStream<T, S> {
        RecvStream::new(self)
    }

    /// Works as [`into_stream`](Self::into_stream), for as long as the receiver is borrowed.
    pub fn stream(&mut self) -> RecvStream<T, S, &mut Self> {
        RecvStream::new(self)
    }
}

/// A stream of the elements of a channel, by polling; see [`Receiver::into_stream`] and
/// [`Receiver::stream`], which make one from a [`Receiver`] or a `&mut Receiver`. With the feature
/// `stream` it is a `Stream`.
///
/// It ends when the channel is empty and nothing can be sent any more, and returns no element after
/// that. A poll costs what a [`try_recv`](Receiver::try_recv) costs, and some 50 ns more if it has
/// to wait.
///
/// Cancel-safe: an element is taken out of the channel only by the poll that returns it. A stream
/// that waits stays registered between polls, also when the future that polled it was dropped. If
/// other receivers wait for the same elements, drop a stream that you poll no more: it may have
/// been woken in their place, and its drop passes the wake-up on. See [futures that wait and are
/// not polled](super#futures-that-wait-and-are-not-polled).
pub struct RecvStream<T, S: Shape, R: BorrowMut<Receiver<T, S>> = Receiver<T, S>> {
    /// Taken by `into_inner`.
    receiver: Option<R>,
    is_ended: bool,
    element: PhantomData<fn() -> (T, S)>,
}

/// Why there is a receiver: `into_inner` takes the stream.
const IS_THERE: &str = "the receiver is there until the stream is gone";

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> RecvStream<T, S, R> {
    fn new(mut receiver: R) -> Self {
        receiver.borrow_mut().lend();
        Self {
            receiver: Some(receiver),
            is_ended: false,
            element: PhantomData,
        }
    }

    /// Returns the receiver, for its counts: [`lost_before`](Receiver::lost_before) of the element
    /// that the stream returned last, [`len`](Receiver::len), [`counters`](Receiver::counters).
    pub fn receiver(&self) -> &Receiver<T, S> {
        self.receiver.as_ref().expect(IS_THERE).borrow()
    }

    /// Returns the receiver. If the stream was woken and not polled since, another receiver is
    /// woken instead.
    pub fn into_inner(mut self) -> R {
        self.cancel();
        self.receiver.take().expect(IS_THERE)
    }

    /// Returns the next element. If there is none, the task is woken when there may be one. If
    /// several tasks poll, the last one is woken.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty, and every sender was dropped or the channel was
    /// closed; and at each later call.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        if self.is_ended {
            return Poll::Ready(Err(RecvError));
        }
        let receiver = self.receiver.as_mut().expect(IS_THERE).borrow_mut();
        let outcome = receiver.poll_recv(context);
        self.is_ended = matches!(outcome, Poll::Ready(Err(_)));
        outcome
    }

    fn cancel(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            receiver.borrow_mut().cancel_wait();
        }
    }

    /// Closes the channel; the stream still returns the elements that are in it. See
    /// [`Receiver::close`].
    pub fn close(&mut self) {
        self.receiver.as_mut().expect(IS_THERE).borrow_mut().close();
    }
}

// Nothing is pinned: it is on the list by number, not by address.
impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Unpin for RecvStream<T, S, R> {}

#[cfg(feature = "stream")]
impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Stream for RecvStream<T, S, R> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context).map(Result::ok)
    }
}

#[cfg(feature = "stream")]
impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> FusedStream for RecvStream<T, S, R> {
    fn is_terminated(&self) -> bool {
        self.is_ended
    }
}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Drop for RecvStream<T, S, R> {
    fn drop(&mut self) {
        self.cancel();
    }
}

shown!([T, S: Shape, R: BorrowMut<Receiver<T, S>>] RecvStream<T, S, R>, "RecvStream", this,
    "receiver": this.receiver(), "is_ended": this.is_ended);
