//! Sending several elements at a time.
//!
//! *Nothing of the caller's runs while a ticket, a lock or room is held*: an iterator may wait for
//! as long as it likes, or panic, and hides nothing that others send. For the same reason what it
//! has given is sent, and receivers are notified, before it is asked for more: a thread that it
//! waits for may be waiting for that. So elements are sent one by one. For batches there are
//! claims.

use super::error::{SendError, SendManyError};
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::PushError;

impl<T, S: Shape> Sender<T, S> {
    /// Sends all elements of an iterator; waits as needed. Each is sent before the next is asked
    /// for, so the iterator may wait itself, also for an answer to what it gave before.
    ///
    /// Costs what as many calls of [`send`](Self::send) do. Elements that are there already go
    /// faster by a [`claim`](Self::claim).
    ///
    /// Under [`Overflow::Reject`](super::Overflow::Reject) it stops at the first that does not fit;
    /// policies that drop are applied element by element.
    ///
    /// # Errors
    /// How many were sent before the channel was disconnected (or full, under `Reject`), and the
    /// element after those. Pass `&mut iterator` to keep the rest.
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

    /// Sends elements of an iterator while there is room (at a rendezvous: while receivers wait),
    /// under any policy; returns how many, if that is all. Otherwise as
    /// [`send_many`](Self::send_many).
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
    /// How many were sent, and the element after those, for which there was no room, or no receiver
    /// any more. Elements behind it were not asked for.
    #[inline]
    pub fn try_send_many(
        &mut self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<usize, SendManyError<T>> {
        self.settle();
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
