//! A sender behind a shared reference.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::Mpmc;
use super::error::{SendError, TrySendError};
use super::hub::ManySenders;
use super::sender::Sender;
use super::weak::WeakSender;
use crate::ring::sync::{Mutex, lock};

/// A sender that any number of threads and tasks use at once, by `&self`; see
/// [`Sender::into_shared`]. It keeps the channel connected, as any sender does. For a send with a
/// timeout, take a sender of its own: [`sender`](Self::sender).
///
/// A call takes a sender that no other call uses, and gives it back: two short critical sections.
/// Where there is none it makes one, and at most 8 of these are kept.
pub struct SharedSender<T, S: ManySenders = Mpmc>(Mutex<Senders<T, S>>);

/// The senders of a [`SharedSender`]. At least one is there or lent to a call.
struct Senders<T, S: ManySenders> {
    #[expect(clippy::vec_box, reason = "little is moved while the lock is held")]
    idle: Vec<Box<Sender<T, S>>>,
    /// For another one, where all are lent.
    origin: WeakSender<T, S>,
}

/// The number of idle senders that are kept.
const IDLE_MAX: usize = 8;

const IS_OPEN: &str = "a sender is idle or lent";

/// A sender that one call uses.
struct Lent<'s, T, S: ManySenders> {
    /// Taken by the drop.
    sender: Option<Box<Sender<T, S>>>,
    home: &'s SharedSender<T, S>,
}

const IS_LENT: &str = "the sender is there until the drop";

impl<T, S: ManySenders> Deref for Lent<'_, T, S> {
    type Target = Sender<T, S>;

    fn deref(&self) -> &Sender<T, S> {
        self.sender.as_ref().expect(IS_LENT)
    }
}

impl<T, S: ManySenders> DerefMut for Lent<'_, T, S> {
    fn deref_mut(&mut self) -> &mut Sender<T, S> {
        self.sender.as_mut().expect(IS_LENT)
    }
}

impl<T, S: ManySenders> Drop for Lent<'_, T, S> {
    fn drop(&mut self) {
        let mut senders = lock(&self.home.0);
        if senders.idle.len() < IDLE_MAX {
            senders.idle.extend(self.sender.take());
        }
        // One that is left over is dropped without the lock: it may wake others.
    }
}

impl<T, S: ManySenders> Sender<T, S> {
    /// Turns the sender into one that is `Sync`: for a struct whose methods take `&self`, or a
    /// `static`.
    ///
    /// Each call takes a sender from a list of its own, behind a lock, and puts it back. A thread
    /// that can have a sender of its own sends for less.
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
        let origin = self.downgrade();
        SharedSender(Mutex::new(Senders {
            idle: vec![Box::new(self)],
            origin,
        }))
    }
}

impl<T, S: ManySenders> SharedSender<T, S> {
    /// Returns another sender of the channel, for one thread.
    pub fn sender(&self) -> Sender<T, S> {
        lock(&self.0).origin.upgrade().expect(IS_OPEN)
    }

    fn lend(&self) -> Lent<'_, T, S> {
        let mut senders = lock(&self.0);
        let idle = senders.idle.pop();
        let sender = idle.unwrap_or_else(|| Box::new(senders.origin.upgrade().expect(IS_OPEN)));
        Lent {
            sender: Some(sender),
            home: self,
        }
    }

    /// Sends as [`Sender::send`] does.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.lend().send(value)
    }

    /// Sends as [`Sender::try_send`] does.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.lend().try_send(value)
    }

    /// Sends as [`Sender::send_async`] does. Not cancel-safe: dropping the future drops the element
    /// unsent.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send_async(&self, value: T) -> Result<(), SendError<T>> {
        let mut sender = self.lend();
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
