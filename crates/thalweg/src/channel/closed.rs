//! Waiting until nothing can be sent any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::future::Done;
use super::hub::Hub;
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::sync::Arc;
use crate::wait::{Listed, Pace, Signal, block, poll_on};

impl<T, S: Shape> Sender<T, S> {
    /// Returns a future that is done when no receiver is left, or the channel was closed by one:
    /// for a sender whose work no receiver would take. It holds no sender, and may outlive this
    /// one.
    ///
    /// The first one of a channel allocates what such futures wait on; a send costs the same as
    /// before.
    ///
    /// ```
    /// use futures_util::future::{Either, select};
    ///
    /// # futures_executor::block_on(async {
    /// let (tx, mut rx) = thalweg::channel::mpsc::<u32>(8);
    /// rx.close();
    /// let work = std::future::pending::<u32>();
    /// match select(work, tx.closed()).await {
    ///     Either::Left((result, _)) => println!("{result} could be sent"),
    ///     Either::Right(((), _)) => println!("no receiver waits for it"),
    /// }
    /// assert!(tx.is_closed());
    /// # });
    /// ```
    pub fn closed(&self) -> Closed {
        Closed {
            hub: Arc::clone(&self.hub),
            signal: self.hub.closing_signal(),
            listed: Listed::default(),
            done: Done::default(),
        }
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless polled"]
pub struct Closed {
    hub: Arc<Hub>,
    /// From the first poll that has to wait.
    signal: Arc<Signal>,
    listed: Listed,
    done: Done,
}

impl Closed {
    /// Waits as a thread does.
    pub fn wait(self) {
        let mut pace = Pace::new(self.hub.habits.mode);
        let attempt = || self.hub.sees_closed().then_some(());
        // Without a deadline this ends only when there is an answer.
        let _ = block(&self.signal, &mut pace, None, attempt);
    }
}

impl Future for Closed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self {
            hub,
            signal,
            listed,
            done,
        } = self.get_mut();
        let attempt = |_: &mut _| hub.sees_closed().then_some(());
        let mut place = (&**signal, listed);
        done.poll(|| poll_on(&mut place, |(on, listed)| (on, listed), context, attempt))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.listed.leave(&self.signal);
    }
}

shown!([] Closed, "Closed", this, "is_closed": this.hub.sees_closed());
