//! A sender behind a shared reference.

use std::fmt;

use super::Mpmc;
use super::error::{SendError, TrySendError};
use super::hub::ManySenders;
use super::sender::Sender;
use crate::ring::sync::{Mutex, lock};

/// A sender that any number of threads and tasks use at once, by `&self`; see
/// [`Sender::into_shared`]. It keeps the channel connected, as any sender does.
pub struct SharedSender<T, S: ManySenders = Mpmc>(Mutex<Sender<T, S>>);

impl<T, S: ManySenders> Sender<T, S> {
    /// Turns the sender into one that is `Sync`: for a struct whose methods take `&self`, or a
    /// `static`.
    ///
    /// Each call sends by a clone of its own, which takes a lock and increments a few shared
    /// counters. A sender for each thread costs less.
    ///
    /// ```
    /// use thalweg::channel::{SharedSender, mpmc};
    ///
    /// struct Log(SharedSender<String>);
    ///
    /// impl Log {
    ///     fn line(&self, text: &str) {
    ///         let _ = self.0.send(text.to_owned()); // an error says that the reader has gone
    ///     }
    /// }
    ///
    /// let (tx, mut rx) = mpmc(64);
    /// let log = Log(tx.into_shared());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| log.line("a"));
    ///     scope.spawn(|| log.line("b"));
    /// });
    /// assert_eq!(rx.try_iter().count(), 2);
    /// ```
    pub fn into_shared(self) -> SharedSender<T, S> {
        SharedSender(Mutex::new(self))
    }
}

impl<T, S: ManySenders> SharedSender<T, S> {
    /// Returns another sender of the channel, for one thread.
    pub fn sender(&self) -> Sender<T, S> {
        lock(&self.0).clone()
    }

    /// Sends as [`Sender::send`] does.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.sender().send(value)
    }

    /// Sends as [`Sender::try_send`] does.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.sender().try_send(value)
    }

    /// Sends as [`Sender::send_async`] does. Not cancel-safe: dropping the future drops the element
    /// unsent.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send_async(&self, value: T) -> Result<(), SendError<T>> {
        let mut sender = self.sender();
        sender.send_async(value).await
    }
}

impl<T, S: ManySenders> Clone for SharedSender<T, S> {
    fn clone(&self) -> Self {
        self.sender().into_shared()
    }
}

impl<T, S: ManySenders> fmt::Debug for SharedSender<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSender").finish_non_exhaustive()
    }
}
