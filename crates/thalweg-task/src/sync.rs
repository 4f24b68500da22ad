//! The one place where `std` and loom are swapped.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    sync::{Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    sync::{Mutex, MutexGuard},
};

/// `std`'s cell behind loom's interface.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// Locks. Nothing of the caller's runs under the locks of this crate, so a poisoned one is as good.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns whether a model has failed and is being taken down; then nothing of it can be locked any
/// more, and destructors leave it as it is.
#[inline(always)]
pub(crate) fn is_model_over() -> bool {
    cfg!(loom) && std::thread::panicking()
}

/// Orderings by the job they do; a model weakens one by name, and must then fail.
pub(crate) mod order {
    use super::Ordering;

    macro_rules! orderings {
        ($($(#[$doc:meta])* $name:ident = $proper:ident, weak $weak:ident;)*) => {$(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name() -> Ordering {
                if super::fault::is(stringify!($name)) {
                    return Ordering::$weak;
                }
                Ordering::$proper
            }
        )*};
    }

    orderings! {
        /// A node goes onto the stack, with what its waker did before.
        push = AcqRel, weak Relaxed;
        /// The owner takes all nodes off the stack, and sees what wakers did; at the end it leaves
        /// the mark that says that it is gone, and what it granted before.
        take = AcqRel, weak Relaxed;
        /// A reference is given up: the last one sees what the others did.
        leave = AcqRel, weak Relaxed;
        /// The owner finds that it is the last, and sees what the others did.
        alone = Acquire, weak Relaxed;
        /// A node may be pushed again: what its wakers did before is seen by the poll that follows.
        again = AcqRel, weak Relaxed;
        /// A waker marks a node as pushed, or finds it marked: then its owner sees what it did.
        mark = AcqRel, weak Relaxed;
    }
}

/// Faults that a loom model seeds, to show that it would catch them.
#[cfg(loom)]
pub(crate) mod fault {
    use std::cell::Cell;

    std::thread_local! {
        // loom runs all threads of a model on one OS thread.
        static ACTIVE: Cell<&'static str> = const { Cell::new("") };
    }

    /// Returns whether `name` is the seeded fault.
    pub(crate) fn is(name: &str) -> bool {
        ACTIVE.with(|active| active.get() == name)
    }

    /// Runs `model` with the fault `name` seeded; gives back whether the model failed, as it must.
    #[cfg(test)]
    pub(crate) fn caught(name: &'static str, model: impl Fn() + Send + Sync + 'static) -> bool {
        ACTIVE.with(|active| active.set(name));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            loom::model(model);
        }));
        ACTIVE.with(|active| active.set(""));
        outcome.is_err()
    }
}

/// Outside of models there is no fault, and the compiler removes what one would do.
#[cfg(not(loom))]
pub(crate) mod fault {
    /// Returns whether `name` is the seeded fault.
    #[inline(always)]
    pub(crate) const fn is(_name: &str) -> bool {
        false
    }
}
