//! Waiting for whichever of several channels comes first.
//!
//! [`Select`] has its arms in its type: receivers and senders of any element types and shapes, each
//! with a closure that gets the outcome. [`Ready`] takes a list of unknown length and says which
//! one to look at.
//!
//! ```
//! use thalweg::channel::{mpmc, spsc, Select};
//! use std::time::Duration;
//!
//! let (mut orders, mut incoming) = spsc(8);
//! let (_stop, mut stopped) = mpmc::<()>(0);
//! let (mut log, _lines) = spsc(8);
//! orders.send(40).expect("the receiver is there");
//!
//! let mut line = Some("idle");
//! let mut seen = Vec::new();
//! while seen.len() < 2 {
//!     let what = Select::new()
//!         .recv(&mut incoming, |order| format!("order {}", order.expect("the sender is there")))
//!         .recv(&mut stopped, |_| "stopped".to_string())
//!         .send(&mut log, &mut line, |sent| format!("sent: {sent:?}"))
//!         .wait_timeout(Duration::from_secs(60))
//!         .expect("two arms are ready");
//!     seen.push(what);
//! }
//! seen.sort();
//! assert_eq!(seen, ["order 40", "sent: Ok(())"]);
//! assert_eq!(line, None, "it was sent");
//! ```
//!
//! # Which arm
//! One that is ready, begun at one chosen at random each time, so that none starves. An arm whose
//! channel is disconnected is ready, with an error; so is a sending arm under a policy that does
//! not wait. A sending arm without an element takes no part.
//!
//! # State
//! While it waits, a select is listed on the signal of each arm's channel. At a rendezvous it is
//! listed with its element or its wish, and with a token that all its arms share.
//!
//! # Rules
//! 1. It looks at all arms; lists itself at all; looks at all again; sleeps only if there is
//!    nothing.
//! 2. Before it looks to take something, it leaves all rendezvous: it shuts its token, and if that
//!    was taken, the arm for which it was taken is the one that fires.
//! 3. It leaves all lists before a closure runs. A notification is used up by a look at its arm
//!    that comes after it; those of other arms are passed on.
//!
//! # Why it works
//! By rule 1, and what [`Signal`](crate::wait::Signal) and the meeting say of themselves, whatever
//! happens to an arm after it was listed wakes the select. By rule 2 and the rules of the token,
//! exactly one arm fires. By rule 3 no other waiter sleeps beside something that it could have.

mod arm;
#[cfg(all(test, loom))]
mod models;
mod ready;
mod receiving;
mod round;
mod sending;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub use ready::{Ready, Source, ready};

use super::error::{RecvError, SendError};
use super::meeting::Lent;
use super::receiver::Receiver;
use super::sender::Sender;
use super::shape::Shape;
use crate::wait::block_listed;
use arm::{Arms, List, NoArms};
use receiving::RecvArm;
use round::Round;
use sending::SendArm;

/// No arm was ready before the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectTimeout;

impl fmt::Display for SelectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("selecting among channels of which none was ready until the time limit")
    }
}

impl std::error::Error for SelectTimeout {}

/// Operations of which one is done, the first that can be; see the [module](self) for an example.
///
/// Each arm has a closure; the one of the arm that was done is called, when the others are given
/// up, and gives the result of the whole. Closures that need the same thing mutably can't borrow it
/// all: have them give a value of an enum, and `match`.
///
/// Nothing is allocated, but for a thread's first wait. A look at an arm costs what a `try_` costs;
/// a wait lists the thread on every arm, some 50 ns each. It spins before it sleeps as the endpoint
/// of its first arm does.
#[must_use = "nothing is selected before `wait` or one of its kin"]
pub struct Select<R, A = NoArms> {
    arms: A,
    token: Lent,
    result: PhantomData<fn() -> R>,
}

impl<R> Select<R> {
    /// A select without arms.
    pub fn new() -> Self {
        Self {
            arms: NoArms,
            token: Lent::default(),
            result: PhantomData,
        }
    }
}

impl<R> Default for Select<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, A: Arms<R>> Select<R, A> {
    /// Receives the oldest element of `receiver`, or [`RecvError`] if there will be none any more.
    pub fn recv<'a, T, S: Shape, F>(
        self,
        receiver: &'a mut Receiver<T, S>,
        then: F,
    ) -> Select<R, List<RecvArm<'a, T, S, F>, A>>
    where
        F: FnOnce(Result<T, RecvError>) -> R,
    {
        self.with(RecvArm::new(receiver, then))
    }

    /// Sends the element in `value`, which is taken out of there only if it is sent. If there is
    /// none, this arm is never ready.
    ///
    /// While the select waits at a rendezvous the element is with the channel; it is back in
    /// `value` when the select is over or dropped, unless a receiver has it. Errors are those of
    /// [`Sender::send`]: [`SendError::Disconnected`] if no receiver is left, and
    /// [`SendError::Full`], at once, under [`Overflow::Reject`](super::Overflow::Reject).
    pub fn send<'a, T, S: Shape, F>(
        self,
        sender: &'a mut Sender<T, S>,
        value: &'a mut Option<T>,
        then: F,
    ) -> Select<R, List<SendArm<'a, T, S, F>, A>>
    where
        F: FnOnce(Result<(), SendError<()>>) -> R,
    {
        self.with(SendArm::new(sender, value, then))
    }

    fn with<N>(self, arm: N) -> Select<R, List<N, A>> {
        Select {
            arms: List {
                rest: self.arms,
                arm,
            },
            token: self.token,
            result: PhantomData,
        }
    }

    fn round(&mut self) -> Round<'_, R, A> {
        Round::new(&mut self.arms, &mut self.token)
    }

    fn finish(&mut self, at: usize) -> R {
        self.arms.settle(at);
        self.arms.finish(at)
    }

    /// Waits until an arm is ready. If none has an element to send and all others are silent, that
    /// is for ever.
    ///
    /// # Panics
    /// If the closure does; all arms are given up then. Without arms.
    pub fn wait(self) -> R {
        match self.wait_until(None) {
            Ok(result) => result,
            Err(_) => unreachable!("without a deadline, a wait ends only with an arm"),
        }
    }

    /// As [`wait`](Self::wait), but no longer than `timeout`.
    ///
    /// # Errors
    /// [`SelectTimeout`]; nothing was received or sent then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(self, timeout: Duration) -> Result<R, SelectTimeout> {
        // Beyond what the clock can say: for ever.
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// As [`wait`](Self::wait), but no longer than until `deadline`. One that has passed makes this
    /// a [`try_now`](Self::try_now).
    ///
    /// # Errors
    /// [`SelectTimeout`]; nothing was received or sent then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(self, deadline: Instant) -> Result<R, SelectTimeout> {
        self.wait_until(Some(deadline))
    }

    fn wait_until(mut self, deadline: Option<Instant>) -> Result<R, SelectTimeout> {
        if let Some(at) = self.round().look_at_all() {
            return Ok(self.finish(at));
        }
        let Some(pace) = self.arms.pace() else {
            panic!("waiting for the first of no channels");
        };
        // Lent while the arms are in use.
        let mut lent = std::mem::replace(pace, crate::wait::Pace::new(pace.mode()));
        let outcome = block_listed(&mut self.round(), &mut lent, deadline);
        if let Some(pace) = self.arms.pace() {
            *pace = lent;
        }
        match outcome {
            Ok(at) => Ok(self.finish(at)),
            Err(_) => Err(SelectTimeout),
        }
    }

    /// Does one operation if any can be done now.
    ///
    /// # Panics
    /// If the closure does.
    pub fn try_now(mut self) -> Option<R> {
        let at = self.round().look_at_all()?;
        Some(self.finish(at))
    }

    /// As [`try_now`](Self::try_now), with a result for when nothing can be done.
    ///
    /// ```
    /// use thalweg::channel::{spsc, Select};
    /// let (_tx, mut rx) = spsc::<u8>(1);
    /// let got = Select::new().recv(&mut rx, |byte| byte.ok()).or_else(|| None);
    /// assert_eq!(got, None);
    /// ```
    ///
    /// # Panics
    /// If the closure does.
    pub fn or_else(self, otherwise: impl FnOnce() -> R) -> R {
        self.try_now().unwrap_or_else(otherwise)
    }

    /// As [`wait`](Self::wait), as a future for any runtime.
    ///
    /// Cancel-safe: dropping it loses no element and no wake-up, and elements to be sent are back
    /// in their places.
    pub fn wait_async(self) -> SelectFuture<R, A> {
        SelectFuture {
            select: self,
            state: State::New,
        }
    }
}

impl<R, A> fmt::Debug for Select<R, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Listed,
    Done,
}

/// See [`Select::wait_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct SelectFuture<R, A> {
    select: Select<R, A>,
    state: State,
}

// Nothing is pinned: arms are on lists by number, not by address.
impl<R, A> Unpin for SelectFuture<R, A> {}

impl<R, A: Arms<R>> Future for SelectFuture<R, A> {
    type Output = R;

    /// # Panics
    /// If the closure does, and when polled after it is done.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = self.get_mut();
        let mut round = this.select.round();
        let found = match this.state {
            State::New => round.look_at_all(),
            State::Listed if round.stay(context.waker()) => return Poll::Pending,
            State::Listed => round.leave_all(),
            State::Done => panic!("a select is polled that is done"),
        };
        match found.or_else(|| round.list_all(context.waker())) {
            Some(at) => {
                this.state = State::Done;
                Poll::Ready(this.select.finish(at))
            }
            None => {
                this.state = State::Listed;
                Poll::Pending
            }
        }
    }
}
