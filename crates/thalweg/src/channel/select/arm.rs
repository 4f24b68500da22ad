//! The arms of a select: what it does with them, and how it holds them.

use std::task::Waker;
use std::time::Instant;

use crate::channel::meeting::Stake;
use crate::wait::{self, Entry, Kind, Pace};

/// An operation that a select may do. Not to be implemented elsewhere, and not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: the type is not nameable outside
pub trait Arm {
    /// Does the operation if it can be done now, and keeps the outcome.
    fn attempt(&mut self) -> bool;
    /// Returns whether no other thread has made the arm ready for a while, or not ready, since this
    /// was asked last. Only a `true` is certain.
    fn glance(&mut self) -> bool;
    fn meets(&self) -> Meets;
    /// Lists the arm; at a rendezvous with a stake. Returns whether the wait is over.
    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool;
    /// Has `waker` woken from now on; returns whether the arm is still listed.
    fn stay(&mut self, waker: &Waker) -> bool;
    /// Takes the arm off its list; keeps the outcome if another thread has fired it.
    fn unlist(&mut self);
    /// Passes on a notification that was not used.
    fn settle(&mut self, is_fired: bool);
    /// Returns when it will be ready without any other thread's doing.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Returns how its endpoint waits.
    fn pace(&mut self) -> Option<&mut Pace> {
        None
    }
}

/// Whether an arm waits at a rendezvous.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    No,
    /// It is listed there, and may be fired by others.
    Yes,
    /// It waits for others to be listed there, and takes no part itself.
    Watches,
}

/// An arm with a closure.
#[doc(hidden)]
pub trait Choice<R>: Arm {
    /// Calls the closure with the outcome.
    fn finish(&mut self) -> R;
}

/// Arms by their places.
#[doc(hidden)]
pub trait Arms {
    fn count(&self) -> usize;
    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O;
}

/// Arms with closures.
#[doc(hidden)]
pub trait Choices<R>: Arms {
    fn finish(&mut self, at: usize) -> R;
}

/// Arms that can be waited for without a time limit.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a select without arms would wait for ever",
    label = "add an arm, or wait with a time limit"
)]
pub trait Waits<R>: Choices<R> {
    type Waited;
    /// `None` if there is no arm.
    fn waited(result: Option<R>) -> Self::Waited;
}

/// Arms that need no clock.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a select with a timer can't be awaited: a task needs the timer of its runtime",
    label = "use the runtime's timeout around it, without `after` and `timer` here"
)]
pub trait Untimed {}

/// No arms yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoArms;

impl Arms for NoArms {
    fn count(&self) -> usize {
        0
    }

    fn with<O>(&mut self, at: usize, _: impl FnOnce(&mut dyn Arm) -> O) -> O {
        unreachable!("arm {at} of none")
    }
}

impl<R> Choices<R> for NoArms {
    fn finish(&mut self, at: usize) -> R {
        unreachable!("arm {at} of none")
    }
}

impl Untimed for NoArms {}

/// A list with one arm more.
#[doc(hidden)]
#[derive(Debug)]
pub struct List<N, A> {
    pub(super) rest: A,
    pub(super) arm: N,
}

impl<N: Arm, A: Arms> Arms for List<N, A> {
    #[inline]
    fn count(&self) -> usize {
        self.rest.count() + 1
    }

    #[inline]
    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O {
        if at == self.rest.count() {
            work(&mut self.arm)
        } else {
            self.rest.with(at, work)
        }
    }
}

impl<R, N: Choice<R>, A: Choices<R>> Choices<R> for List<N, A> {
    fn finish(&mut self, at: usize) -> R {
        if at == self.rest.count() {
            self.arm.finish()
        } else {
            self.rest.finish(at)
        }
    }
}

impl<R, N: Choice<R>, A: Choices<R>> Waits<R> for List<N, A> {
    type Waited = R;

    fn waited(result: Option<R>) -> R {
        result.unwrap_or_else(|| unreachable!("a wait without a time limit ends with an arm"))
    }
}

impl<N: Untimed, A: Untimed> Untimed for List<N, A> {}

/// Where an endpoint is listed: on a signal, or at a meeting. It is kept in the endpoint, so that a
/// wait that was forgotten can be ended.
#[derive(Debug, Default)]
pub(in crate::channel) struct Listed {
    /// Something has borrowed the endpoint that waits or holds room, and has not ended it yet.
    pub(in crate::channel) is_lent: bool,
    /// It waits for room for several elements.
    pub(in crate::channel) claims: bool,
    pub(in crate::channel) on: wait::Listed,
    pub(in crate::channel) seat: Option<Entry>,
    /// The count that the last glance saw.
    glance: Option<u64>,
}

impl Listed {
    /// Keeps what a glance sees now, which is `None` where the arm is ready; returns whether that
    /// is what the last one saw.
    pub(super) fn is_same(&mut self, now: Option<u64>) -> bool {
        std::mem::replace(&mut self.glance, now) == now && now.is_some()
    }
}
