//! A thread's wait on a signal: look, spin, sleep.

use super::parker::{self, Ended, Parker};
use super::{Entry, Pace, Signal};
use crate::ring::sync::is_model_over;
use std::fmt;
use std::task::Waker;
use std::time::Instant;

/// The deadline was reached, and there was nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing came before the deadline")
    }
}

impl std::error::Error for TimedOut {}

/// Calls `attempt` until it gives something: at once, then again and again for as long as `pace`
/// says, then whenever `signal` is notified. Whoever makes an attempt succeed must notify
/// afterwards.
///
/// `attempt` may wait on signals itself. If it panics, the wait is undone.
///
/// Costs nothing beyond the attempt where that succeeds; allocates nothing, but for the first wait
/// of a thread and for a wait within a wait.
///
/// # Errors
/// [`TimedOut`] when the deadline is reached and an attempt after that gives nothing. There is at
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
        None => wait(signal, pace, deadline, attempt),
    }
}

#[cold]
fn wait<R>(
    signal: &Signal,
    pace: &mut Pace,
    deadline: Option<Instant>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    pace.begin(deadline);
    while pace.spin_more() {
        if let Some(found) = attempt() {
            pace.found_spinning();
            return Ok(found);
        }
    }
    parker::with(|parker| sleep(signal, parker, pace, deadline, attempt))
}

fn sleep<R>(
    signal: &Signal,
    parker: &Parker,
    pace: &mut Pace,
    deadline: Option<Instant>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    pace.before_sleep();
    loop {
        parker.reset();
        let mut listed = Listed::new(signal, parker);
        if let Some(found) = attempt() {
            // What was found may not be what a notification in between was for; dropping `listed`
            // passes that on.
            return Ok(found);
        }
        let ended = parker.park_until(deadline);
        if let Ended::Asleep(woken) = ended {
            pace.woken(woken);
        }
        listed.leave();
        if let Some(found) = attempt() {
            listed.used_up();
            return Ok(found);
        }
        // Someone else was faster. The notification was for what that one took.
        listed.used_up();
        if ended == Ended::TimedOut || has_passed(deadline) {
            pace.timed_out();
            return Err(TimedOut);
        }
    }
}

/// A listed wait: notifications that it does not use are passed on, also if an attempt panics.
struct Listed<'s> {
    signal: &'s Signal,
    entry: Option<Entry>,
    /// A notification that has not been used.
    owed: bool,
}

impl<'s> Listed<'s> {
    fn new(signal: &'s Signal, parker: &Parker) -> Self {
        Self {
            signal,
            entry: Some(signal.register_thread(parker.waker())),
            owed: false,
        }
    }

    fn leave(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.owed = !self.signal.unregister(entry);
        }
    }

    /// An attempt after the notification has used it up.
    fn used_up(&mut self) {
        self.owed = false;
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        // A model that has failed is torn down, and nothing of it may be touched.
        if is_model_over() {
            return;
        }
        self.leave();
        if self.owed {
            self.signal.notify_one();
        }
    }
}

/// A wait that lists itself, on several signals or somewhere else.
pub(crate) trait Listing {
    type Found;

    /// Whether looking finds nothing unless this side is listed: then it spins afterwards.
    fn spins_listed(&mut self) -> bool;

    /// Looks, while it is not listed.
    fn look(&mut self) -> Option<Self::Found>;

    /// Lists this wait so that `waker` is woken when there is something to look at, and looks
    /// again. What it gives, it gives unlisted.
    fn list(&mut self, waker: &Waker) -> Option<Self::Found>;

    /// Takes this wait off all lists, and looks. Must also happen when the owner is dropped.
    fn leave(&mut self) -> Option<Self::Found>;
}

/// As [`block`], for a wait that lists itself; the caller has looked once.
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
            let is_told = std::mem::take(&mut spins_listed) && spin(parker, pace);
            let ended = if is_told {
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
            if ended == Ended::TimedOut || has_passed(deadline) {
                pace.timed_out();
                return Err(TimedOut);
            }
        }
    })
}

/// Whoever is woken in vain again and again never runs into its deadline asleep.
fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Spins until the waker is woken; gives whether it was.
fn spin(parker: &Parker, pace: &mut Pace) -> bool {
    while pace.spin_more() {
        if parker.is_woken() {
            pace.found_spinning();
            return true;
        }
    }
    false
}
