//! The ends of a channel as a [`Stream`] and a [`Sink`].
//!
//! *Rules.* A stream, or a sink, is on the channel's list from a poll that has to wait until the
//! next that has not, or until it is dropped: a `next()` that is given up leaves it there. One that
//! was notified and is dropped passes the notification on. An element in a sink's slot stays there
//! until it is in the channel; while it waits at a rendezvous, it is with its offer.

use std::borrow::BorrowMut;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;

use super::error::SendError;
use super::future::Listed;
use super::receiver::Receiver;
use super::sender::Sender;
use super::shape::Shape;

impl<T, S: Shape> Receiver<T, S> {
    /// What comes out of the channel, as a [`Stream`] that keeps the receiver; with the feature
    /// `stream`.
    ///
    /// ```
    /// use futures_util::{SinkExt, StreamExt, future::join};
    ///
    /// let (tx, rx) = thalweg::channel::spsc(1);
    /// let (mut sink, stream) = (tx.into_sink(), rx.into_stream());
    /// let send = async {
    ///     for n in 1..=100u64 {
    ///         sink.send(n).await?;
    ///     }
    ///     sink.close().await
    /// };
    /// let (sent, sum) = futures_executor::block_on(join(
    ///     send,
    ///     stream.fold(0, |sum, n| async move { sum + n }),
    /// ));
    /// assert_eq!((sent, sum), (Ok(()), 5050));
    /// ```
    pub fn into_stream(self) -> RecvStream<T, S> {
        RecvStream::new(self)
    }

    /// As [`into_stream`](Self::into_stream), for as long as the receiver is borrowed.
    pub fn stream(&mut self) -> RecvStream<T, S, &mut Self> {
        RecvStream::new(self)
    }
}

/// What comes out of a channel; see [`Receiver::into_stream`] and [`Receiver::stream`], which make
/// one of a [`Receiver`] or a `&mut Receiver`.
///
/// It ends when the channel is empty and nothing can be sent any more, and gives nothing after
/// that. A poll costs what a [`try_recv`](Receiver::try_recv) costs, and some 50 ns more if it has
/// to wait.
///
/// Cancel-safe: an element is taken out of the channel only by the poll that gives it. One that
/// waits keeps its turn between polls, also when the future that polled it is gone. If other
/// receivers wait for the same elements, drop a stream that you poll no more: it may have been
/// woken in their place, and its drop passes that on.
pub struct RecvStream<T, S: Shape, R: BorrowMut<Receiver<T, S>> = Receiver<T, S>> {
    receiver: R,
    listed: Listed,
    is_ended: bool,
    element: PhantomData<fn() -> (T, S)>,
}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> RecvStream<T, S, R> {
    fn new(receiver: R) -> Self {
        Self {
            receiver,
            listed: Listed::default(),
            is_ended: false,
            element: PhantomData,
        }
    }

    /// The receiver, for what it tells: [`lost_before`](Receiver::lost_before) of the element that
    /// the stream gave last, [`len`](Receiver::len), [`counters`](Receiver::counters).
    pub fn receiver(&self) -> &Receiver<T, S> {
        self.receiver.borrow()
    }

    /// Ends sending; the stream goes on with what is in the channel. See [`Receiver::close`].
    pub fn close(&mut self) {
        self.receiver.borrow_mut().close();
    }
}

// Nothing is pinned: it is on the list by number, not by address.
impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Unpin for RecvStream<T, S, R> {}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Stream for RecvStream<T, S, R> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if this.is_ended {
            return Poll::Ready(None);
        }
        let receiver = this.receiver.borrow_mut();
        receiver
            .poll_recv(&mut this.listed, context)
            .map(|outcome| {
                this.is_ended = outcome.is_err();
                outcome.ok()
            })
    }
}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> FusedStream for RecvStream<T, S, R> {
    fn is_terminated(&self) -> bool {
        self.is_ended
    }
}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> Drop for RecvStream<T, S, R> {
    fn drop(&mut self) {
        self.receiver.borrow().leave(&mut self.listed);
    }
}

impl<T, S: Shape, R: BorrowMut<Receiver<T, S>>> fmt::Debug for RecvStream<T, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream")
            .field("receiver", self.receiver())
            .field("is_ended", &self.is_ended)
            .finish()
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// A [`Sink`] that sends what is put into it; with the feature `stream`. There is an example at
    /// [`Receiver::into_stream`].
    pub fn into_sink(self) -> SendSink<T, S> {
        SendSink {
            sender: Some(self),
            slot: None,
            listed: Listed::default(),
        }
    }
}

/// Sends what is put into it; see [`Sender::into_sink`].
///
/// It has a slot for one element beside the channel: `start_send` puts an element there, and
/// `poll_flush`, or the `poll_ready` before the next element, sends it, as the channel's
/// [`Overflow`](super::Overflow) says. At a rendezvous that is when a receiver has it. `poll_close`
/// sends what is in the slot, then drops the sender, which disconnects the channel if there is no
/// other.
///
/// Cancel-safe: what was put into the slot stays there when the future that flushed it is dropped.
/// When the sink itself is dropped, an element in its slot is dropped unsent;
/// [`into_inner`](Self::into_inner) gives it back.
///
/// # Errors
/// [`SendError`] with the element. `poll_ready` gives the one that was in the slot; the caller's
/// next one is still the caller's then. After [`SendError::Full`], under
/// [`Overflow::Reject`](super::Overflow::Reject), the sink is as good as before.
///
/// # Panics
/// `start_send`, if the slot is taken, since `poll_ready` was not asked or did not say yes.
pub struct SendSink<T, S: Shape> {
    /// Until the sink is closed.
    sender: Option<Sender<T, S>>,
    slot: Option<T>,
    listed: Listed,
}

impl<T, S: Shape> SendSink<T, S> {
    /// The sender, for what it tells or to be cloned; none once the sink is closed.
    pub fn sender(&self) -> Option<&Sender<T, S>> {
        self.sender.as_ref()
    }

    /// The sender, unless the sink is closed, and the element that is not sent yet.
    pub fn into_inner(mut self) -> (Option<Sender<T, S>>, Option<T>) {
        self.leave();
        (self.sender.take(), self.slot.take())
    }

    /// Whether an element is not sent yet.
    fn is_taken(&self) -> bool {
        self.slot.is_some() || self.listed.is_seated()
    }

    /// Sends what is in the slot.
    fn poll_slot(&mut self, context: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        match &mut self.sender {
            Some(sender) => sender.poll_send(&mut self.slot, &mut self.listed, context),
            // It was empty when the sink was closed.
            None => Poll::Ready(Ok(())),
        }
    }

    fn leave(&mut self) {
        if let Some(sender) = &self.sender {
            sender.leave(&mut self.listed, &mut self.slot);
        }
    }
}

// Nothing is pinned: elements are moved out when they are sent.
impl<T, S: Shape> Unpin for SendSink<T, S> {}

impl<T, S: Shape> Sink<T> for SendSink<T, S> {
    type Error = SendError<T>;

    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        self.get_mut().poll_slot(context)
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), SendError<T>> {
        let this = self.get_mut();
        match &this.sender {
            Some(sender) if !sender.is_closed() => {
                assert!(
                    !this.is_taken(),
                    "an element is put into a sink that was not ready for it"
                );
                this.slot = Some(value);
                Ok(())
            }
            _ => Err(SendError::Disconnected(value)),
        }
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        self.get_mut().poll_slot(context)
    }

    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let this = self.get_mut();
        let outcome = this.poll_slot(context);
        if let Poll::Ready(Ok(())) = outcome {
            this.sender = None;
        }
        outcome
    }
}

impl<T, S: Shape> Drop for SendSink<T, S> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T, S: Shape> fmt::Debug for SendSink<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendSink")
            .field("sender", &self.sender)
            .field("is_taken", &self.is_taken())
            .finish()
    }
}
