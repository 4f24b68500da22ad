//! The waiter that a slot, a task or a timer wakes.

use std::mem::ManuallyDrop;
use std::task::{RawWakerVTable, Waker};

use super::{NodeRef, catch_panic, waker};
use crate::family::sealed::{Key, WakeOnce, Wakes};

/// A waker, which may be of any code: to wake it, or to drop it, may panic. That goes no further:
/// the panic hook has reported it, and the notifier may hold a value that must not be lost.
#[allow(unreachable_pub)] // a sealed trait of a public type names it
pub struct ForeignWaker(Option<Waker>);

impl Drop for ForeignWaker {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            catch_panic(|| drop(waker));
        }
    }
}

impl WakeOnce for ForeignWaker {
    #[inline]
    fn wake(mut self) {
        if let Some(waker) = self.0.take() {
            catch_panic(|| waker.wake());
        }
    }

    #[inline]
    fn resume(self) -> bool {
        match self.0.as_ref().and_then(waker::local) {
            Some(node) => node.resume(),
            None => {
                self.wake();
                false
            }
        }
    }
}

impl Wakes for ForeignWaker {
    type BorrowedWaiter = Self;

    #[inline]
    fn of(waker: &Waker) -> Self {
        Self(Some(waker.clone()))
    }

    #[inline]
    fn is(&self, waker: &Waker) -> bool {
        (self.0.as_ref()).is_some_and(|mine| mine.will_wake(waker))
    }

    #[inline]
    fn keeps(kept: &mut Option<Self>, waker: &Waker) -> bool {
        kept.as_ref().is_some_and(|kept| kept.is(waker))
    }

    /// Goes, since a clone costs as much as the next one.
    #[inline]
    fn lend(_: Key, kept: &mut Option<Self>) -> Option<Self> {
        kept.take()
    }
}

/// A task of this thread's, or any waker. `!Send`.
#[allow(unreachable_pub)] // a sealed trait of a public type names it
pub struct Waiter(Target);

// With a tag of its own, one comparison distinguishes no waiter, a node and a waker.
#[repr(u8)]
enum Target {
    Node(NodeRef),
    Waker(ForeignWaker),
}

impl Waiter {
    /// Returns the waiter that `waker` wakes. Where that is a task of this thread's, nothing atomic
    /// is done.
    #[inline(always)]
    pub(crate) fn of(waker: &Waker) -> Self {
        // By its parts, so that a waker that is made for a poll need not be in memory.
        // SAFETY: they are those of `waker`.
        unsafe { Self::of_parts(waker.data(), waker.vtable()) }
    }

    /// # Safety
    /// They are those of a waker that is there until this returns.
    #[inline(never)]
    unsafe fn of_parts(data: *const (), vtable: &'static RawWakerVTable) -> Self {
        // SAFETY: as the caller says.
        let waker = unsafe { waker::of_parts(data, vtable) };
        match waker::local(&waker) {
            Some(node) => Self(Target::Node(node)),
            None => Self(Target::Waker(ForeignWaker::of(&waker))),
        }
    }

    /// Returns whether it is the one that `waker` wakes.
    #[inline(always)]
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        match &self.0 {
            Target::Node(node) => waker::is_of(waker, node),
            Target::Waker(mine) => mine.is(waker),
        }
    }

    /// Returns whether the waiter that is kept is the one that `waker` wakes; most often it is a
    /// node. Where none is kept, a task of this thread's is kept now, since that runs nothing
    /// foreign.
    #[inline(always)]
    pub(crate) fn keeps(kept: &mut Option<Self>, waker: &Waker) -> bool {
        match kept {
            Some(Self(Target::Node(node))) => waker::is_of(waker, node),
            Some(Self(Target::Waker(mine))) => mine.is(waker),
            None => {
                *kept = waker::local(waker).map(|node| Self(Target::Node(node)));
                kept.is_some()
            }
        }
    }

    /// Returns one to wake with, of the one that is kept: a node stays, for the next time; a waker
    /// goes, since to clone it is foreign code.
    #[inline(always)]
    pub(crate) fn lend(kept: &mut Option<Self>) -> Option<BorrowedWaiter> {
        if let Some(Self(Target::Node(node))) = kept {
            return Some(BorrowedWaiter(BorrowedTarget::Node(node.lend())));
        }
        kept.take()
            .map(|kept| BorrowedWaiter(BorrowedTarget::Other(kept)))
    }

    /// Wakes it.
    #[inline]
    pub(crate) fn wake(self) {
        match self.0 {
            Target::Node(node) => node.wake(),
            Target::Waker(waker) => waker.wake(),
        }
    }

    /// Runs it here and now where it is a task of this thread's that can run, else wakes it.
    /// Returns whether it ran.
    #[inline(always)]
    pub(crate) fn resume(self) -> bool {
        match self.0 {
            Target::Node(node) => node.resume(),
            Target::Waker(waker) => waker.resume(),
        }
    }
}

/// The task or waker that a kept [`Waiter`] wakes, for now: rule 9 of [`super`].
#[allow(unreachable_pub)] // a sealed trait of a public type names it
pub struct BorrowedWaiter(BorrowedTarget);

enum BorrowedTarget {
    Node(ManuallyDrop<NodeRef>),
    Other(Waiter),
}

impl WakeOnce for Waiter {
    #[inline]
    fn wake(self) {
        self.wake();
    }

    #[inline(always)]
    fn resume(self) -> bool {
        self.resume()
    }
}

impl WakeOnce for BorrowedWaiter {
    #[inline]
    fn wake(self) {
        match self.0 {
            BorrowedTarget::Node(node) => node.wake(),
            BorrowedTarget::Other(waiter) => waiter.wake(),
        }
    }

    #[inline(always)]
    fn resume(self) -> bool {
        match self.0 {
            BorrowedTarget::Node(node) => node.resume(),
            BorrowedTarget::Other(waiter) => waiter.resume(),
        }
    }
}
