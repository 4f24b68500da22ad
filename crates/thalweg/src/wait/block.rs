//! A wait on a signal: a thread checks, spins and sleeps, by a pace; a task is polled.

use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::parker::{self, Ended, Parker};
use super::{Entry, Kind, Pace, Signal};
use crate::ring::sync::{fault, is_model_over};

/// The error of a wait whose deadline was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

errors!(TimedOut {
    Self => "nothing came before the deadline";
});

/// Calls `attempt` until it returns `Some`: at once, then repeatedly for as long as `pace` spins,
/// then whenever `signal` is notified. The thread that makes an attempt succeed must notify the
/// signal afterwards.
///
/// `attempt` may wait on signals itself. If it panics, the wait is cancelled.
///
/// It costs nothing beyond the attempt if that succeeds at once, and allocates nothing but in the
/// first wait of a thread and in a wait within a wait.
///
/// # Errors
/// [`TimedOut`] if the deadline was reached and an attempt after that returned `None`. There is at
/// least one attempt.
///
/// # Panics
/// If `attempt` does.
#[inline]
pub fn block<R>(
    signal: &Signal,
    pace: &mut Pace,
    deadline: Option<Instant>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    match attempt() {
        Some(found) => Ok(found),
        None => block_listed(
            &mut wait_on(signal, Registration::default(), attempt),
            pace,
            deadline,
        ),
    }
}

/// A listed wait on a signal that is not known here.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    entry: Option<Entry>,
    /// A notification that no look has used up.
    owed: bool,
}

impl Registration {
    pub(crate) fn register(&mut self, signal: &Signal, waker: &Waker, kind: Kind) {
        self.entry = Some(signal.list(waker, kind));
    }

    /// Has `waker` woken from now on; returns whether it is still listed, or was not.
    pub(crate) fn stay(&mut self, signal: &Signal, waker: &Waker) -> bool {
        match self.entry {
            Some(entry) if !signal.update(entry, waker) => {
                self.entry = None;
                self.owed = true;
                false
            }
            _ => !self.owed,
        }
    }

    pub(crate) fn unregister(&mut self, signal: &Signal) {
        if let Some(entry) = self.entry.take() {
            self.owed |= !signal.unregister(entry);
        }
    }

    /// A look after a notification uses it up.
    #[inline]
    pub(crate) fn used_up(&mut self) {
        self.owed = false;
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.entry.is_some()
    }

    /// Waits no more: what it was notified of and has not used is passed on, since what it got, if
    /// anything, it may have got before.
    pub(crate) fn leave(&mut self, signal: &Signal) {
        self.unregister(signal);
        self.pass_on(signal);
    }

    /// Passes a notification on that was not used.
    pub(crate) fn pass_on(&mut self, signal: &Signal) {
        if std::mem::take(&mut self.owed) && !fault::is("future_pass_on") {
            signal.notify_one();
        }
    }
}

/// Makes attempts for a task that waits on a signal of `owner`: what [`block`] is to a thread.
/// `place` gives the signal, and where the wait is kept; a caller that gives up must leave.
pub(crate) fn poll_on<O, R>(
    owner: &mut O,
    place: impl Fn(&mut O) -> (&Signal, &mut Registration),
    context: &Context<'_>,
    mut attempt: impl FnMut(&mut O) -> Option<R>,
) -> Poll<R> {
    let waker = context.waker();
    let (signal, listed) = place(owner);
    listed.stay(signal, waker);
    loop {
        // A wait that a notification has ended is over: the look that follows uses it up.
        place(owner).1.used_up();
        let found = attempt(owner);
        let (signal, listed) = place(owner);
        if let Some(found) = found {
            listed.leave(signal);
            return Poll::Ready(found);
        }
        // Listed since before that look, there is nothing new to look for.
        if listed.is_listed() && listed.stay(signal, waker) {
            return Poll::Pending;
        }
        listed.register(signal, waker, Kind::Task);
        if fault::is("future_look_again") {
            return Poll::Pending;
        }
    }
}

/// Returns a wait on one signal: for [`block_listed`], or to be awaited by a task. Where `listed`
/// is kept in an endpoint, that can end the wait when the future is forgotten.
pub(crate) fn wait_on<R, F: FnMut() -> Option<R>, L: BorrowMut<Registration>>(
    signal: &Signal,
    listed: L,
    attempt: F,
) -> OnSignal<'_, F, L> {
    OnSignal {
        signal,
        attempt,
        listed,
    }
}

/// A wait on one signal.
pub(crate) struct OnSignal<'s, F, L: BorrowMut<Registration> = Registration> {
    signal: &'s Signal,
    attempt: F,
    listed: L,
}

impl<R, F: FnMut() -> Option<R>> Listing for OnSignal<'_, F> {
    type Found = R;

    fn look(&mut self) -> Option<R> {
        (self.attempt)()
    }

    fn list(&mut self, waker: &Waker) -> Option<R> {
        self.listed.entry = Some(self.signal.list(waker, Kind::Thread));
        // A notification in between may have been for something else than was found; the drop
        // passes it on.
        (self.attempt)()
    }

    fn leave(&mut self) -> Option<R> {
        self.listed.unregister(self.signal);
        let found = (self.attempt)();
        // Also if someone else was faster: the notification was for what that one took.
        self.listed.used_up();
        found
    }
}

impl<R, F: FnMut() -> Option<R> + Unpin, L: BorrowMut<Registration> + Unpin> Future
    for OnSignal<'_, F, L>
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        poll_on(
            self.get_mut(),
            |this| (this.signal, this.listed.borrow_mut()),
            context,
            |this| (this.attempt)(),
        )
    }
}

impl<F, L: BorrowMut<Registration>> Drop for OnSignal<'_, F, L> {
    /// Notifications that it did not use are passed on, also if an attempt panics.
    fn drop(&mut self) {
        // A model that has failed is torn down, and nothing of it may be touched.
        if !is_model_over() {
            self.listed.borrow_mut().leave(self.signal);
        }
    }
}

/// A wait that lists itself, on several signals or somewhere else.
pub(crate) trait Listing {
    type Found;

    /// Returns whether this side must be listed before it spins: at a rendezvous, the other side
    /// does not see it before.
    fn spins_listed(&mut self) -> bool {
        false
    }

    /// Looks, while it is not listed.
    fn look(&mut self) -> Option<Self::Found>;

    /// Lists this wait so that `waker` is woken when there is something to look at, and looks
    /// again. When it returns something, it is not listed any more.
    fn list(&mut self, waker: &Waker) -> Option<Self::Found>;

    /// Takes this wait off all lists, and looks. Must also happen when the owner is dropped.
    fn leave(&mut self) -> Option<Self::Found>;
}

/// Works as [`block`], for a wait that lists itself; the caller has looked once.
///
/// # Errors
/// [`TimedOut`] when the deadline is reached and there is nothing; the wait is not listed then.
#[cold]
pub(crate) fn block_listed<L: Listing>(
    listing: &mut L,
    pace: &mut Pace,
    deadline: Option<Instant>,
) -> Result<L::Found, TimedOut> {
    pace.begin(deadline);
    let mut spins_listed = listing.spins_listed();
    if !spins_listed {
        while pace.spin_more() {
            if let Some(found) = listing.look() {
                pace.found_spinning();
                return Ok(found);
            }
        }
    }
    parker::with(|parker| {
        loop {
            parker.reset();
            if let Some(found) = listing.list(parker.waker()) {
                return Ok(found);
            }
            let is_notified = std::mem::take(&mut spins_listed) && spin(parker, pace);
            let ended = if is_notified {
                Ended::Awake
            } else {
                pace.before_sleep();
                parker.park_until(deadline)
            };
            if let Ended::Asleep(woken) = ended {
                pace.woken(woken);
            }
            if let Some(found) = listing.leave() {
                return Ok(found);
            }
            let is_late = |deadline| Instant::now() >= deadline;
            if ended == Ended::TimedOut || deadline.is_some_and(is_late) {
                pace.timed_out();
                return Err(TimedOut);
            }
        }
    })
}

/// Spins until the waker is woken; returns whether it was.
fn spin(parker: &Parker, pace: &mut Pace) -> bool {
    while pace.spin_more() {
        if parker.is_woken() {
            pace.found_spinning();
            return true;
        }
    }
    false
}
