//! Timers, and receivers to which nothing comes.

use std::borrow::BorrowMut;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::Select;
use super::arm::{Arm, Choice, Meets};
use crate::channel::error::{RecvError, TryRecvError};
use crate::channel::hub::{Habits, Hub};
use crate::channel::meeting::{Meeting, Stake};
use crate::channel::receiver::Receiver;
use crate::channel::recv_end::RecvEnd;
use crate::channel::shape::Shape;
use crate::ring::sync::Arc;
use crate::wait::Kind;

/// A source of moments: made by [`after`], [`at`] and [`tick`], received from by
/// [`Select::timer`] or by itself.
///
/// There is no thread behind it, and no list of timers: it is a point in time, and a thread that
/// waits for it sleeps no longer than until then. A timer for which no thread waits costs nothing.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg::channel::{Select, spsc, tick};
///
/// let (_tx, mut rx) = spsc::<u8>(8);
/// let mut ticks = tick(Duration::from_millis(1));
/// let begin = Instant::now();
/// for _ in 0..3 {
///     Select::new()
///         .recv(&mut rx, |_| unreachable!("nothing is sent"))
///         .timer(&mut ticks, |_due| ())
///         .wait();
/// }
/// assert!(begin.elapsed() >= Duration::from_millis(3));
/// ```
#[derive(Clone)]
#[must_use = "a timer does nothing unless somebody waits for it"]
pub struct Timer {
    due: Option<Instant>,
    period: Option<Duration>,
}

/// Returns a timer for one moment, `duration` from now.
///
/// As the receiver of this name in `crossbeam-channel`, but it is disconnected when it is over.
/// After a duration beyond the clock's range it never comes.
pub fn after(duration: Duration) -> Timer {
    at(later(Instant::now(), duration))
}

/// Returns the moment `duration` after `now`, or the last that the clock can say, which does not
/// come.
fn later(now: Instant, duration: Duration) -> Instant {
    let mut shorter = std::iter::successors(Some(duration), |longer| Some(*longer / 2));
    (shorter.find_map(|duration| now.checked_add(duration))).unwrap_or(now)
}

/// Returns a timer for the moment `when`.
pub fn at(when: Instant) -> Timer {
    Timer {
        due: Some(when),
        period: None,
    }
}

/// Returns a timer for a moment every `period`, the first of them one period from now.
///
/// The next period begins when a moment is received, so that there is never more than one to
/// receive: a late receiver does not find a queue of them. A period of 0 makes it always ready.
pub fn tick(period: Duration) -> Timer {
    Timer {
        period: Some(period),
        ..after(period)
    }
}

/// Returns a receiver to which nothing comes and that is not disconnected, for a place that may
/// have no receiver.
///
/// ```
/// use std::time::Duration;
/// use thalweg::channel::{RecvTimeoutError, Spsc, never};
/// let mut nothing = never::<u8, Spsc>();
/// let outcome = nothing.recv_timeout(Duration::from_millis(1));
/// assert_eq!(outcome, Err(RecvTimeoutError::Timeout));
/// ```
pub fn never<T: Send, S: Shape>() -> Receiver<T, S> {
    let end = RecvEnd::Meeting(Arc::new(Meeting::new()), Arc::default());
    // The hub counts a sender that does not exist.
    Receiver::new(end, Arc::new(Hub::new(Habits::default())))
}

impl Timer {
    /// Returns when it is due next; `None` if never again.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the moment that has come, if it has.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] before that, and [`TryRecvError::Disconnected`] if none will come
    /// any more.
    pub fn try_recv(&mut self) -> Result<Instant, TryRecvError> {
        let due = self.due.ok_or(TryRecvError::Disconnected)?;
        let now = Instant::now();
        if now < due {
            return Err(TryRecvError::Empty);
        }
        self.due = self.period.map(|period| later(now, period));
        Ok(due)
    }

    /// Waits for the next moment, and gives when it was due.
    ///
    /// # Errors
    /// [`RecvError`] if none will come any more.
    pub fn recv(&mut self) -> Result<Instant, RecvError> {
        self.due.ok_or(RecvError)?;
        Ok(Select::new().timer(self, |due| due).wait())
    }
}

/// The moments to come, each of them waited for.
impl Iterator for Timer {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        self.recv().ok()
    }
}

shown!([] Timer, "Timer", this, "due": this.due, "period": this.period);

/// An arm that waits for a moment.
#[doc(hidden)]
#[derive(Debug)]
pub struct TimerArm<M, F> {
    timer: M,
    then: Option<F>,
    came: Option<Instant>,
}

impl<M, F> TimerArm<M, F> {
    pub(super) fn new(timer: M, then: F) -> Self {
        Self {
            timer,
            then: Some(then),
            came: None,
        }
    }
}

#[allow(private_interfaces)] // as `Arm`
impl<M: BorrowMut<Timer>, F> Arm for TimerArm<M, F> {
    fn attempt(&mut self) -> bool {
        self.came = self.timer.borrow_mut().try_recv().ok();
        self.came.is_some()
    }

    fn glance(&mut self) -> bool {
        // No other receiver can take its element.
        true
    }

    fn meets(&self) -> Meets {
        Meets::No
    }

    fn list(&mut self, _: &Waker, _: Kind, _: Option<Stake>) -> bool {
        false
    }

    fn stay(&mut self, _: &Waker) -> bool {
        true
    }

    fn unlist(&mut self) {}

    fn settle(&mut self, _: bool) {}

    fn due(&self) -> Option<Instant> {
        self.timer.borrow().due
    }
}

impl<R, M: BorrowMut<Timer>, F: FnOnce(Instant) -> R> Choice<R> for TimerArm<M, F> {
    fn finish(&mut self) -> R {
        match (self.then.take(), self.came.take()) {
            (Some(then), Some(came)) => then(came),
            _ => unreachable!("the attempt left a moment, and it is used once"),
        }
    }
}
