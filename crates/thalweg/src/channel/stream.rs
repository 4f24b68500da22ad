//! A receiving end that is polled, and is a `Stream` with the feature `stream`.
//!
//! *Rules.* A stream is on the channel's list from a poll that has to wait until the next that has
//! not, or until it is dropped: a `next()` that is given up leaves it there. One that was notified
//! and is dropped passes the notification on. Since it holds the receiver, nothing else receives
//! there meanwhile, which would not look at what the stream was notified of.

use std::borrow::BorrowMut;
use std::marker::PhantomData;
#[cfg(feature = "stream")]
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "stream")]
use futures_core::{FusedStream, Stream};

use super::error::RecvError;
use super::receiver::Receiver;
use super::shape::Shape;

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
/// [`Receiver::stream`], which make one of a [`Receiver`] or a `&mut Receiver`. With the feature
/// `stream` it is a `Stream`.
///
/// It ends when the channel is empty and nothing can be sent any more, and gives nothing after
/// that. A poll costs what a [`try_recv`](Receiver::try_recv) costs, and some 50 ns more if it has
/// to wait.
///
/// Cancel-safe: an element is taken out of the channel only by the poll that gives it. One that
/// waits keeps its turn between polls, also when the future that polled it is gone. If other
/// receivers wait for the same elements, drop a stream that you poll no more: it may have been
/// woken in their place, and its drop passes that on. See
/// [the module](super#futures-that-wait-and-are-not-polled).
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

    /// Returns the receiver, for its figures: [`lost_before`](Receiver::lost_before) of the element
    /// that the stream gave last, [`len`](Receiver::len), [`counters`](Receiver::counters).
    pub fn receiver(&self) -> &Receiver<T, S> {
        self.receiver.as_ref().expect(IS_THERE).borrow()
    }

    /// Returns the receiver. If the stream was woken for an element that it did not look for,
    /// another receiver is woken instead.
    pub fn into_inner(mut self) -> R {
        self.leave();
        self.receiver.take().expect(IS_THERE)
    }

    /// Returns the next element; has the task woken when there may be one, if there is none. If
    /// several tasks poll, the last one is woken.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no sender is left, and from then on.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        if self.is_ended {
            return Poll::Ready(Err(RecvError));
        }
        let receiver = self.receiver.as_mut().expect(IS_THERE).borrow_mut();
        let outcome = receiver.poll_recv(context);
        self.is_ended = matches!(outcome, Poll::Ready(Err(_)));
        outcome
    }

    fn leave(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            receiver.borrow_mut().leave();
        }
    }

    /// Ends sending; the stream goes on with what is in the channel. See [`Receiver::close`].
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
        self.leave();
    }
}

shown!([T, S: Shape, R: BorrowMut<Receiver<T, S>>] RecvStream<T, S, R>, "RecvStream", this,
    "receiver": this.receiver(), "is_ended": this.is_ended);
