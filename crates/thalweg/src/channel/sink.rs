//! The sending end of a channel as a [`Sink`].
//!
//! *Rules.* A sink is on the channel's list from a poll that has to wait until the next that has
//! not, or until it is dropped. One that was notified and is dropped passes the notification on. An
//! element in its slot stays there until it is in the channel; while it waits at a rendezvous, it
//! is with its offer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;

use super::error::SendError;
use super::sender::Sender;
use super::shape::Shape;

impl<T, S: Shape> Sender<T, S> {
    /// Returns a [`Sink`] that sends what is put into it; with the feature `stream`.
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
    pub fn into_sink(mut self) -> SendSink<T, S> {
        self.lend();
        SendSink {
            sender: Some(self),
            slot: None,
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
/// A sink that waits and is polled no more is as a [send](Sender::send_async) that is kept
/// unpolled.
/// When the sink itself is dropped, an element in its slot is dropped unsent;
/// [`into_inner`](Self::into_inner) gives it back.
///
/// # Errors
/// [`SendError`] with the element. `poll_ready` gives the one that was in the slot; the caller's
/// next one is still the caller's then. After [`SendError::Full`], under
/// [`Overflow::Reject`](super::Overflow::Reject), the sink is as good as before.
///
/// # Panics
/// `start_send`, if the slot is taken, since `poll_ready` was not called or was not ready.
pub struct SendSink<T, S: Shape> {
    /// Until the sink is closed.
    sender: Option<Sender<T, S>>,
    slot: Option<T>,
}

type Sent<T> = Poll<Result<(), SendError<T>>>;

impl<T, S: Shape> SendSink<T, S> {
    /// Returns the sender, for its counters or to be cloned; none once the sink is closed.
    pub fn sender(&self) -> Option<&Sender<T, S>> {
        self.sender.as_ref()
    }

    /// Returns the sender, unless the sink is closed, and the element that is not sent yet.
    pub fn into_inner(mut self) -> (Option<Sender<T, S>>, Option<T>) {
        self.leave();
        (self.sender.take(), self.slot.take())
    }

    /// Returns whether an element is not sent yet.
    fn is_taken(&self) -> bool {
        let waits = |sender: &Sender<T, S>| sender.listed.seat.is_some();
        self.slot.is_some() || self.sender.as_ref().is_some_and(waits)
    }

    /// Sends what is in the slot.
    fn poll_slot(&mut self, context: &Context<'_>) -> Sent<T> {
        match &mut self.sender {
            Some(sender) => sender.poll_send(&mut self.slot, context),
            // It was empty when the sink was closed.
            None => Poll::Ready(Ok(())),
        }
    }

    fn leave(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.leave(&mut self.slot);
        }
    }
}

// Nothing is pinned: elements are moved out when they are sent.
impl<T, S: Shape> Unpin for SendSink<T, S> {}

impl<T, S: Shape> Sink<T> for SendSink<T, S> {
    type Error = SendError<T>;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Sent<T> {
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

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Sent<T> {
        self.get_mut().poll_slot(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Sent<T> {
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

shown!([T, S: Shape] SendSink<T, S>, "SendSink", this,
    "sender": this.sender, "is_taken": this.is_taken());
