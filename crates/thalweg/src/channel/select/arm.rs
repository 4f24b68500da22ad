//! The arms of a select, as a list in a type.

use std::task::Waker;

use crate::channel::meeting::{Seat, Token};
use crate::ring::sync::Arc;
use crate::wait::{Entry, Pace, Signal};

/// What a select does with its arms. Not to be implemented elsewhere, and not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: nobody outside can name what is asked for
pub trait Arms<R> {
    const COUNT: usize;

    /// Does the operation if it can be done now, and keeps the outcome.
    fn attempt(&mut self, at: usize) -> bool;
    /// Lists the arm; gives whether there is something to do at once. `token` only if some arm
    /// meets.
    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool;
    /// Whether an attempt at some arm that is listed may succeed.
    fn is_ready(&mut self) -> bool;
    /// Has `waker` woken from now on; gives whether all arms are still listed.
    fn stay(&mut self, waker: &Waker) -> bool;
    /// Takes all arms off their lists.
    fn unlist(&mut self);
    /// Passes on the notifications that were not used; `fired` is the arm that did something.
    fn settle(&mut self, fired: usize);
    /// Whether an arm takes part in a rendezvous.
    fn meets(&self) -> bool;
    /// Calls the closure of the arm that did something.
    fn finish(&mut self, at: usize) -> R;
    /// How the first arm's endpoint waits.
    fn pace(&mut self) -> Option<&mut Pace>;
}

/// No arms yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoArms;

#[allow(private_interfaces)] // as the trait
impl<R> Arms<R> for NoArms {
    const COUNT: usize = 0;

    fn attempt(&mut self, _: usize) -> bool {
        false
    }

    fn list(&mut self, _: usize, _: &Waker, _: Option<&Arc<Token>>) -> bool {
        false
    }

    fn is_ready(&mut self) -> bool {
        false
    }

    fn stay(&mut self, _: &Waker) -> bool {
        true
    }

    fn unlist(&mut self) {}

    fn settle(&mut self, _: usize) {}

    fn meets(&self) -> bool {
        false
    }

    fn finish(&mut self, at: usize) -> R {
        unreachable!("arm {at} was not found by an attempt")
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        None
    }
}

/// One arm more.
#[doc(hidden)]
#[derive(Debug)]
pub struct List<N, A> {
    pub(super) rest: A,
    pub(super) arm: N,
}

#[allow(private_interfaces)] // as the trait
impl<R, N: Arm<R>, A: Arms<R>> Arms<R> for List<N, A> {
    const COUNT: usize = A::COUNT + 1;

    #[inline]
    fn attempt(&mut self, at: usize) -> bool {
        if at == A::COUNT {
            self.arm.attempt()
        } else {
            self.rest.attempt(at)
        }
    }

    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool {
        if at == A::COUNT {
            self.arm.list(at, waker, token)
        } else {
            self.rest.list(at, waker, token)
        }
    }

    fn is_ready(&mut self) -> bool {
        self.arm.is_ready() || self.rest.is_ready()
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        // Both, so that every list has the waker.
        let stays = self.arm.stay(waker);
        self.rest.stay(waker) && stays
    }

    fn unlist(&mut self) {
        self.arm.unlist();
        self.rest.unlist();
    }

    fn settle(&mut self, fired: usize) {
        self.arm.settle(fired == A::COUNT);
        self.rest.settle(fired);
    }

    fn meets(&self) -> bool {
        self.arm.meets() || self.rest.meets()
    }

    fn finish(&mut self, at: usize) -> R {
        if at == A::COUNT {
            self.arm.finish()
        } else {
            self.rest.finish(at)
        }
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        self.rest.pace().or_else(|| Some(self.arm.pace()))
    }
}

/// One arm; see [`Arms`].
#[doc(hidden)]
#[allow(private_interfaces)] // as `Arms`
pub trait Arm<R> {
    fn attempt(&mut self) -> bool;
    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool;
    fn is_ready(&mut self) -> bool;
    fn stay(&mut self, waker: &Waker) -> bool;
    fn unlist(&mut self);
    fn settle(&mut self, is_fired: bool);
    fn meets(&self) -> bool;
    fn finish(&mut self) -> R;
    fn pace(&mut self) -> &mut Pace;
}

/// Where an arm is listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) entry: Option<Entry>,
    pub(super) seat: Option<Seat>,
    /// A notification that no look at this arm has used up.
    pub(super) owed: bool,
}

impl Listed {
    pub(super) fn stay(&mut self, signal: &Signal, waker: &Waker) -> bool {
        match self.entry {
            Some(entry) if !signal.update(entry, waker) => {
                self.entry = None;
                self.owed = true;
                false
            }
            _ => !self.owed,
        }
    }

    pub(super) fn unlist(&mut self, signal: &Signal) {
        if let Some(entry) = self.entry.take() {
            self.owed |= !signal.unregister(entry);
        }
    }

    pub(super) fn pass_on(&mut self, signal: &Signal) {
        if std::mem::take(&mut self.owed) {
            signal.notify_one();
        }
    }
}
