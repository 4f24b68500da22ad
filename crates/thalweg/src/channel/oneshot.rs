//! A channel for one element.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::error::{RecvError, RecvTimeoutError, SendError, TryRecvError};
use crate::ring::{self, PopError};
use crate::wait::{Pace, Waiter, block_waiter};

/// Sends one element; see [`oneshot()`]. Dropped unused, it disconnects the channel.
pub struct OneshotSender<T>(ring::OneshotProducer<T>);

/// Receives one element; see [`oneshot()`].
///
/// It is a [`Future`] of the element, ready with [`RecvError`] if none will come; polled after
/// that, it is ready with [`RecvError`] again. Awaiting it by `&mut`, as in a `select!`, is
/// cancel-safe. Dropping it drops an element that was not received, and notifies the sender.
#[must_use = "what is sent is dropped with its receiver"]
pub struct OneshotReceiver<T>(ring::OneshotConsumer<T>);

/// Returns a channel for one element: the reply to a request, the result of a task.
///
/// ```
/// use std::thread;
/// use thalweg::channel::{OneshotSender, oneshot, spsc};
///
/// let (mut requests, mut inbox) = spsc::<(u32, OneshotSender<u32>)>(16);
/// let server = thread::spawn(move || {
///     for (n, reply) in &mut inbox {
///         // The client that asked may have given up.
///         let _ = reply.send(n * n);
///     }
/// });
/// let (reply, answer) = oneshot();
/// requests.send((7, reply)).expect("the server is there");
/// assert_eq!(answer.recv(), Ok(49));
/// drop(requests);
/// server.join().expect("the server is done");
/// ```
///
/// # Cost
/// A pair takes one allocation, which the last of the two frees; nothing else is allocated but by a
/// thread's first wait. A send for which no receiver waits is one locked instruction, and the
/// receive of an element that was sent is a load.
///
/// # Memory ordering
/// All that a thread did before it sent the element is visible to the thread that received it.
pub fn oneshot<T: Send>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let (producer, consumer) = ring::oneshot();
    (OneshotSender(producer), OneshotReceiver(consumer))
}

impl<T> OneshotSender<T> {
    /// Sends the element. Never waits; if the receiver sleeps, waking it costs this thread some
    /// 2 µs.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] returns the element if the receiver was dropped or closed.
    #[inline]
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value).map_err(SendError::Disconnected)
    }

    /// Returns whether the receiver was dropped or closed, so that a send would fail.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns a future that is ready when the receiver was dropped or closed: for a task whose
    /// work would have no receiver. It is cancel-safe: dropping it changes nothing.
    ///
    /// ```
    /// use futures_util::future::{Either, select};
    /// use thalweg::channel::oneshot;
    ///
    /// # futures_executor::block_on(async {
    /// let (mut reply, answer) = oneshot::<u32>();
    /// drop(answer);
    /// let work = std::future::pending::<u32>();
    /// let result = match select(work, reply.closed()).await {
    ///     Either::Left((result, _)) => Some(result),
    ///     Either::Right(((), _)) => None,
    /// };
    /// assert_eq!(result, None, "no receiver waits for it");
    /// # });
    /// ```
    pub fn closed(&mut self) -> impl Future<Output = ()> + '_ {
        Closed(self)
    }

    /// Works as [`closed`](Self::closed), for a caller that polls: the waker of the last poll is
    /// woken.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_closed() && self.0.register(context.waker().clone()) {
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// See [`OneshotSender::closed`].
struct Closed<'s, T>(&'s mut OneshotSender<T>);

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.poll_closed(context)
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        self.0.0.unregister();
    }
}

impl<T> OneshotReceiver<T> {
    /// Blocks the thread until the element is sent.
    ///
    /// # Errors
    /// [`RecvError`] if none will come: the sender was dropped, or the receiver closed before.
    pub fn recv(mut self) -> Result<T, RecvError> {
        self.wait(None).map_err(|_| RecvError)
    }

    /// Takes the element, if it was sent.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`], which is also returned where the
    /// element was received before.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        Ok(self.0.try_pop()?)
    }

    /// Works as [`recv`](Self::recv), but waits no longer than `timeout`. A timeout beyond the
    /// range of the clock, such as [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // Beyond what the clock can say: for ever.
        self.wait(Instant::now().checked_add(timeout))
    }

    /// Works as [`recv`](Self::recv), but waits no longer than until `deadline`. With a deadline
    /// that has passed, this is a [`try_recv`](Self::try_recv).
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.wait(Some(deadline))
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.check() {
            Some(found) => found.map_err(|_| RecvTimeoutError::Disconnected),
            None => self.recv_with_pace(&mut Pace::default(), deadline),
        }
    }

    /// Works as [`recv_deadline`](Self::recv_deadline), or [`recv`](Self::recv) without a deadline,
    /// but spins and sleeps by `pace`.
    ///
    /// The other methods start each wait with a new [`Pace`], in balanced mode. A thread that waits
    /// for many replies, one after the other, should keep a pace, which learns from each wait
    /// whether it pays to spin.
    ///
    /// ```
    /// use thalweg::channel::{OneshotSender, mpsc, oneshot};
    /// use thalweg::wait::{WaitMode, Pace};
    ///
    /// let (mut requests, mut inbox) = mpsc::<(u32, OneshotSender<u32>)>(16);
    /// std::thread::spawn(move || {
    ///     for (n, reply) in &mut inbox {
    ///         let _ = reply.send(n * n);
    ///     }
    /// });
    /// let mut pace = Pace::new(WaitMode::Balanced);
    /// for n in 0..100 {
    ///     let (reply, mut answer) = oneshot();
    ///     requests.send((n, reply)).expect("the server is there");
    ///     assert_eq!(answer.recv_with_pace(&mut pace, None), Ok(n * n));
    /// }
    /// ```
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_with_pace(
        &mut self,
        pace: &mut Pace,
        deadline: Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        let found = match self.check() {
            Some(found) => found,
            None => block_waiter(self, pace, deadline).map_err(|_| RecvTimeoutError::Timeout)?,
        };
        found.map_err(|_| RecvTimeoutError::Disconnected)
    }

    /// Closes the channel: a send from now on fails. An element that was sent before can still be
    /// received.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// Returns whether nothing will be sent any more: the element was sent, the sender was dropped,
    /// or the receiver closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl<T> Waiter for OneshotReceiver<T> {
    type Found = Result<T, PopError>;

    fn check(&mut self) -> Option<Self::Found> {
        match self.0.try_pop() {
            Err(PopError::Empty) => None,
            found => Some(found),
        }
    }

    fn register(&mut self, waker: &Waker) -> Option<Self::Found> {
        match self.0.register(waker.clone()) {
            true => None,
            false => self.check(),
        }
    }

    fn unregister(&mut self) -> Option<Self::Found> {
        self.0.unregister();
        self.check()
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.check().or_else(|| this.register(context.waker())) {
            Some(found) => Poll::Ready(found.map_err(|_| RecvError)),
            None => Poll::Pending,
        }
    }
}

shown!([T] OneshotSender<T>, "OneshotSender", this, "closed": this.is_closed());

shown!([T] OneshotReceiver<T>, "OneshotReceiver", this, "closed": this.is_closed());
