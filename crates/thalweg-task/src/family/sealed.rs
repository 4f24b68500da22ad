//! Traits that only this crate implements, and calls.

use std::task::Waker;

/// A trait that is implemented in this crate only.
pub trait Sealed {
    /// The waiter that a slot of this family wakes.
    type Waiter: Wakes;
    /// A flag that a waiter may be there, kept where it costs less than to look.
    type Mark: Mark;
}

/// A key that only this crate has, should generic code outside find a way to a method that it
/// must not call, though it can't name the trait.
pub struct Key(());

pub(crate) const KEY: Key = Key(());

/// State that is looked at and changed in one place at a time.
pub trait Guarded<S> {
    /// Guards `state`.
    fn new(state: S) -> Self;
    /// Gives the state to `change`, which must not reach for it a second time: it runs nothing
    /// of the caller's.
    fn with<R>(&self, key: Key, change: impl FnOnce(&mut S) -> R) -> R;
}

/// A flag that says whether a waiter may be there.
pub trait Mark: Default {
    /// Notes it.
    fn set(&mut self, may_wait: bool);
    /// Returns the flag that was set; `true` for a mark that keeps none.
    fn is_set(&self) -> bool;
}

/// The mark that keeps nothing, where it is cheap to look.
#[derive(Debug, Default)]
pub struct Unmarked;

impl Mark for Unmarked {
    #[inline(always)]
    fn set(&mut self, _: bool) {}

    #[inline(always)]
    fn is_set(&self) -> bool {
        true
    }
}

impl Mark for bool {
    #[inline(always)]
    fn set(&mut self, may_wait: bool) {
        *self = may_wait;
    }

    #[inline(always)]
    fn is_set(&self) -> bool {
        *self
    }
}

/// A waiter that is woken once, and used up by that.
pub trait WakeOnce: Sized {
    /// Wakes it.
    fn wake(self);
    /// Runs it here and now, if it can be; returns whether it ran.
    fn resume(self) -> bool;
}

/// A waiter that is kept to be woken.
pub trait Wakes: WakeOnce {
    /// One to wake with, of one that is kept and stays until that is done.
    type BorrowedWaiter: WakeOnce;
    /// Returns the waiter that `waker` wakes.
    fn of(waker: &Waker) -> Self;
    /// Returns whether that is the waiter that `waker` wakes.
    fn is(&self, waker: &Waker) -> bool;
    /// Returns whether the waiter that is kept is the one that `waker` wakes; where none is
    /// kept, it may be kept now, if that runs none of the caller's code.
    fn keeps(kept: &mut Option<Self>, waker: &Waker) -> bool;
    /// Returns one to wake with, of the one that is kept, which stays until that is done.
    fn lend(key: Key, kept: &mut Option<Self>) -> Option<Self::BorrowedWaiter>;
}
