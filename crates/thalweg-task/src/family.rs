//! Families: reference counts and guarded state for one thread, and for several threads.

pub(crate) mod sealed;

use std::fmt;
use std::ops::Deref;
use std::rc::{self, Rc};
use std::sync::{self, Arc};
use std::task::Waker;

use crate::node::{BorrowedWaiter, ForeignWaker, OneAtATime, Waiter};
use crate::sync::{Mutex, lock};
use sealed::{Guarded, Key, Wakes};

/// The way in which the ends of a slot share it: [`Local`] by cells, on one thread; [`Shared`] by a
/// lock, across threads. It is a type parameter, so that each slot pays only for what it uses.
pub trait Family: sealed::Sealed + fmt::Debug + 'static {
    /// A counted reference.
    type Strong<T>: Deref<Target = T> + Clone;
    /// A reference that keeps nothing alive.
    type Weak<T>: Clone;
    /// State behind a cell or a lock.
    type Guarded<S>: Guarded<S>;

    /// Counts a first reference to `value`. Allocates.
    fn strong<T>(value: T) -> Self::Strong<T>;
    /// Makes a strong reference to a default value, which is made where it stays. It allocates.
    fn strong_default<T: Default>() -> Self::Strong<T>;
    /// Returns a weak reference beside a strong one.
    fn downgrade<T>(strong: &Self::Strong<T>) -> Self::Weak<T>;
    /// Returns a strong reference, while there is another.
    fn upgrade<T>(weak: &Self::Weak<T>) -> Option<Self::Strong<T>>;
}

/// One thread: `Rc` and a cell. Types of this family are `!Send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {}

/// Any threads: `Arc` and a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {}

impl sealed::Sealed for Local {
    type Waiter = Waiter;
    type Mark = sealed::Unmarked;
}

impl sealed::Sealed for Shared {
    type Waiter = ForeignWaker;
    type Mark = bool;
}

impl Wakes for Waiter {
    type BorrowedWaiter = BorrowedWaiter;

    #[inline(always)]
    fn of(waker: &Waker) -> Self {
        Waiter::of(waker)
    }

    #[inline(always)]
    fn is(&self, waker: &Waker) -> bool {
        self.is(waker)
    }

    #[inline(always)]
    fn keeps(kept: &mut Option<Self>, waker: &Waker) -> bool {
        Waiter::keeps(kept, waker)
    }

    #[inline(always)]
    fn lend(_: Key, kept: &mut Option<Self>) -> Option<BorrowedWaiter> {
        Waiter::lend(kept)
    }
}

macro_rules! family {
    ($name:ident: $strong:ident, $module:ident, $guarded:ident) => {
        impl Family for $name {
            type Strong<T> = $strong<T>;
            type Weak<T> = $module::Weak<T>;
            type Guarded<S> = $guarded<S>;

            #[inline]
            fn strong<T>(value: T) -> $strong<T> {
                $strong::new(value)
            }

            #[inline]
            fn strong_default<T: Default>() -> $strong<T> {
                $strong::default()
            }

            #[inline]
            fn downgrade<T>(strong: &$strong<T>) -> $module::Weak<T> {
                $strong::downgrade(strong)
            }

            #[inline]
            fn upgrade<T>(weak: &$module::Weak<T>) -> Option<$strong<T>> {
                weak.upgrade()
            }
        }
    };
}

family!(Local: Rc, rc, OneAtATime);
family!(Shared: Arc, sync, Mutex);

impl<S> Guarded<S> for Mutex<S> {
    #[inline]
    fn new(state: S) -> Self {
        Mutex::new(state)
    }

    #[inline]
    fn with<R>(&self, _: Key, change: impl FnOnce(&mut S) -> R) -> R {
        change(&mut lock(self))
    }
}

/// Even to code that finds a way to their traits, what lends without a count needs a key.
#[cfg(test)]
const _: () = {
    use crate::slot::waiting::Waiting;
    type Next<W, L> = fn(&mut W, Key) -> Option<L>;
    const _: fn(Key, &mut Option<Waiter>) -> Option<BorrowedWaiter> = <Waiter as Wakes>::lend;
    const _: Next<crate::slot::One<Local>, BorrowedWaiter> = Waiting::<Waiter>::next;
};
