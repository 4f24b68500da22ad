//! A wait on an event count: a thread checks, spins and sleeps, by a pace; a task is polled.

use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::parker::{self, Ended, Parker};
use super::{Entry, EventCount, Kind, Pace, WaitMode};
use crate::ring::sync::{fault, is_model_over};

/// The error of a wait whose deadline was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

errors!(TimedOut {
    Self => "nothing came before the deadline";
});

/// Calls `attempt` until it returns `Some`: at once, then repeatedly for as long as `pace` spins,
/// then whenever `event_count` is notified. The thread that makes an attempt succeed must notify
/// the event count afterwards.
///
/// `attempt` may wait on event counts itself. If it panics, the wait is cancelled.
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
    event_count: &EventCount,
    pace: &mut Pace,
    deadline: Option<Instant>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    match attempt() {
        Some(found) => Ok(found),
        None => block_waiter(
            &mut wait_until(event_count, Registration::default(), attempt),
            pace,
            deadline,
        ),
    }
}

/// Works as [`block`], by a pace of its own that never spins.
pub(crate) fn block_at_low_power<R>(
    event_count: &EventCount,
    deadline: Option<Instant>,
    attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    block(
        event_count,
        &mut Pace::new(WaitMode::LowPower),
        deadline,
        attempt,
    )
}

/// A waiter's registration with an event count, which the caller passes to each method.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    entry: Option<Entry>,
    /// It was notified, and has not checked its condition since.
    has_unconsumed_notification: bool,
}

impl Registration {
    pub(crate) fn register(&mut self, event_count: &EventCount, waker: &Waker, kind: Kind) {
        self.entry = Some(event_count.register_as(waker, kind));
    }

    /// Replaces the waker by `waker`; returns `false` if it was notified since it registered.
    pub(crate) fn update(&mut self, event_count: &EventCount, waker: &Waker) -> bool {
        match self.entry {
            Some(entry) if !event_count.update(entry, waker) => {
                self.entry = None;
                self.has_unconsumed_notification = true;
                false
            }
            _ => !self.has_unconsumed_notification,
        }
    }

    pub(crate) fn unregister(&mut self, event_count: &EventCount) {
        if let Some(entry) = self.entry.take() {
            self.has_unconsumed_notification |= !event_count.unregister(entry);
        }
    }

    /// Marks the notification as used: the caller checks its condition next.
    #[inline]
    pub(crate) fn mark_used(&mut self) {
        self.has_unconsumed_notification = false;
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.entry.is_some()
    }

    /// Cancels the wait. A notification that was not used is passed on: what the caller found, if
    /// anything, it may have found before the notification.
    pub(crate) fn cancel(&mut self, event_count: &EventCount) {
        self.unregister(event_count);
        self.pass_on(event_count);
    }

    /// Passes on a notification that was not used.
    pub(crate) fn pass_on(&mut self, event_count: &EventCount) {
        if std::mem::take(&mut self.has_unconsumed_notification) && !fault::is("future_pass_on") {
            event_count.notify_one();
        }
    }
}

/// Polls `attempt` for a task that waits on an event count of `owner`: the counterpart of
/// [`block`]. `parts` returns the event count and the registration with it; a caller that gives up
/// must [`cancel`](Registration::cancel) that.
pub(crate) fn poll_until<O, R>(
    owner: &mut O,
    parts: impl Fn(&mut O) -> (&EventCount, &mut Registration),
    context: &Context<'_>,
    mut attempt: impl FnMut(&mut O) -> Option<R>,
) -> Poll<R> {
    let waker = context.waker();
    let (event_count, registration) = parts(owner);
    registration.update(event_count, waker);
    loop {
        // The attempt that follows uses a notification that has come.
        parts(owner).1.mark_used();
        let found = attempt(owner);
        let (event_count, registration) = parts(owner);
        if let Some(found) = found {
            registration.cancel(event_count);
            return Poll::Ready(found);
        }
        // It was registered before that attempt, and has not been notified since.
        if registration.is_registered() && registration.update(event_count, waker) {
            return Poll::Pending;
        }
        registration.register(event_count, waker, Kind::Task);
        if fault::is("future_look_again") {
            return Poll::Pending;
        }
    }
}

/// Returns a wait on one event count, for [`block_waiter`], or to be awaited by a task. If
/// `registration` is kept in an endpoint, that can cancel the wait when the future is forgotten.
pub(crate) fn wait_until<R, F: FnMut() -> Option<R>, L: BorrowMut<Registration>>(
    event_count: &EventCount,
    registration: L,
    attempt: F,
) -> EventWait<'_, F, L> {
    EventWait {
        event_count,
        attempt,
        registration,
    }
}

/// A wait on one event count.
pub(crate) struct EventWait<'s, F, L: BorrowMut<Registration> = Registration> {
    event_count: &'s EventCount,
    attempt: F,
    registration: L,
}

impl<R, F: FnMut() -> Option<R>> Waiter for EventWait<'_, F> {
    type Found = R;

    fn check(&mut self) -> Option<R> {
        (self.attempt)()
    }

    fn register(&mut self, waker: &Waker) -> Option<R> {
        self.registration.entry = Some(self.event_count.register_as(waker, Kind::Thread));
        // If the attempt succeeds, a notification may have come for another element; the drop
        // passes it on.
        (self.attempt)()
    }

    fn unregister(&mut self) -> Option<R> {
        self.registration.unregister(self.event_count);
        let found = (self.attempt)();
        // Also if it found nothing: the notification was for an element that another waiter took.
        self.registration.mark_used();
        found
    }
}

impl<R, F: FnMut() -> Option<R> + Unpin, L: BorrowMut<Registration> + Unpin> Future
    for EventWait<'_, F, L>
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        poll_until(
            self.get_mut(),
            |this| (this.event_count, this.registration.borrow_mut()),
            context,
            |this| (this.attempt)(),
        )
    }
}

impl<F, L: BorrowMut<Registration>> Drop for EventWait<'_, F, L> {
    /// Passes on a notification that was not used, also if an attempt panics.
    fn drop(&mut self) {
        // A model that has failed is torn down, and its objects may not be accessed.
        if !is_model_over() {
            self.registration.borrow_mut().cancel(self.event_count);
        }
    }
}

/// A waiter that registers itself: with several event counts, or at a rendezvous.
pub(crate) trait Waiter {
    type Found;

    /// Returns whether this side must be registered before it spins: at a rendezvous, the other
    /// side does not see it before.
    fn spins_registered(&mut self) -> bool {
        false
    }

    /// Checks the condition, while it is not registered.
    fn check(&mut self) -> Option<Self::Found>;

    /// Registers `waker` wherever the condition may become true, and checks the condition again. If
    /// that succeeds, nothing is registered any more.
    fn register(&mut self, waker: &Waker) -> Option<Self::Found>;

    /// Ends all registrations, and checks the condition. The owner's drop must do so, too.
    fn unregister(&mut self) -> Option<Self::Found>;
}

/// Works as [`block`], for a waiter that registers itself; the caller has checked once.
///
/// # Errors
/// [`TimedOut`] when the deadline is reached and the condition does not hold; nothing is registered
/// then.
#[cold]
pub(crate) fn block_waiter<L: Waiter>(
    waiter: &mut L,
    pace: &mut Pace,
    deadline: Option<Instant>,
) -> Result<L::Found, TimedOut> {
    pace.begin(deadline);
    let mut spins_registered = waiter.spins_registered();
    if !spins_registered {
        while pace.spin_more() {
            if let Some(found) = waiter.check() {
                pace.found_spinning();
                return Ok(found);
            }
        }
    }
    parker::with(|parker| {
        loop {
            parker.reset();
            if let Some(found) = waiter.register(parker.waker()) {
                return Ok(found);
            }
            let is_notified = std::mem::take(&mut spins_registered) && spin(parker, pace);
            let ended = if is_notified {
                Ended::Awake
            } else {
                pace.before_sleep();
                parker.park_until(deadline)
            };
            if let Ended::Asleep(woken) = ended {
                pace.woken(woken);
            }
            if let Some(found) = waiter.unregister() {
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
