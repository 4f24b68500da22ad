//! The one place where `std`, loom and shuttle are swapped.
//!
//! Everything in `ring` and `wait` takes its atomics, cells and spin hints from here, so that under
//! `--cfg loom` the same code runs on loom's model of the memory, in every interleaving of a few
//! steps, and under `--cfg shuttle` on shuttle's schedules, which are chosen at random: many
//! threads and many steps, but every atomic is sequentially consistent there whatever its ordering
//! says, and a fence is nothing. Only loom can show the need for an ordering.
//!
//! The orderings that carry a proof are functions, not literals. Outside loom they are constants;
//! under loom a model can weaken one of them by name (see [`fault`]) to show that the model would
//! notice.

#[cfg(all(loom, feature = "std"))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
    thread::{self, yield_now},
};

#[cfg(not(loom))]
pub(crate) use self::std_cell::UnsafeCell;
#[cfg(all(not(any(loom, shuttle)), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(all(not(any(loom, shuttle)), not(target_has_atomic = "64")))]
pub(crate) use portable_atomic::AtomicU64;
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use {
    alloc::sync::Arc,
    core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence},
};
// Threads are not modelled under loom, which has no pipelines.
/// Where a thread sleeps until it is unparked.
#[cfg(all(feature = "std", not(loom)))]
pub(crate) use self::thread as parking;
#[cfg(all(feature = "std", loom))]
pub(crate) use loom::thread as parking;
#[cfg(all(feature = "std", not(shuttle)))]
pub(crate) use std::thread;

/// Whether this runs in a model: there time does not count, and no thread may wait for an event
/// that only the clock would bring.
pub(crate) const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// One turn of a spin loop: a pause on hardware, a switch to another thread in a model.
#[inline]
pub(crate) fn spin_hint() {
    #[cfg(any(loom, shuttle))]
    yield_now();
    #[cfg(not(any(loom, shuttle)))]
    core::hint::spin_loop();
}

/// Returns whether a model has failed and is being torn down; then its locks can't be taken any
/// more, and destructors do nothing.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn is_model_over() -> bool {
    IS_MODEL && std::thread::panicking()
}

/// Locks a mutex. No code panics in the middle of a change under the locks of this crate, so a
/// poisoned one is consistent.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Orderings by the job they do. Each is the strongest that its proof needs.
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
        /// A writer makes elements visible.
        publish = Release, weak Relaxed;
        /// A reader sees what a writer published.
        observe = Acquire, weak Relaxed;
        /// A reader releases slots.
        release = Release, weak Relaxed;
        /// A writer learns that slots are free again.
        reclaim = Acquire, weak Relaxed;
        /// A producer claims a position below a limit, after it has loaded what was popped.
        admit = Release, weak Relaxed;
        /// A producer sees what was popped before other producers claimed their positions.
        weigh = Acquire, weak Relaxed;
        /// An endpoint publishes that it was dropped.
        close = Release, weak Relaxed;
        /// The other endpoint sees that it was dropped.
        closed = Acquire, weak Relaxed;
        /// An endpoint leaves, or a last stage is done with an event: the last one sees everything
        /// that the others did.
        leave = AcqRel, weak Relaxed;
        /// A state is changed.
        change = Release, weak Relaxed;
        /// A thread that sees the new state sees what was done before.
        changed = Acquire, weak Relaxed;
        /// Stages are recalled, or handed over.
        recall = Release, weak Relaxed;
        /// The other thread sees that, and the events that wait for the stages.
        recalled = Acquire, weak Relaxed;
        /// The fence after loads of the progress of all stages: what they did is visible.
        level = Acquire, weak Release;
        /// A producer reports that it published when the consumer may have checked for the last
        /// time.
        late = AcqRel, weak Relaxed;
        /// A consumer has checked for the last time, and leaves later elements to the producer.
        done = AcqRel, weak Relaxed;
        /// One of two sides publishes what it did, and sees what the other did before.
        exchange = AcqRel, weak Relaxed;
        /// The fence between publishing and checking for waiters, and between registering a waiter
        /// and checking the condition (Dekker). The weak form is only acquire-release, which lets
        /// both sides miss each other.
        dekker = SeqCst, weak AcqRel;
        /// In a model, the cheap side of an asymmetric barrier.
        #[cfg(any(loom, shuttle))]
        light = SeqCst, weak AcqRel;
        /// In a model, the expensive side of an asymmetric barrier.
        #[cfg(any(loom, shuttle))]
        heavy = SeqCst, weak AcqRel;
        /// The last receiver finds no sender left, and sees what senders sent; the last of the last
        /// stages sees when the others ended.
        all_left = Acquire, weak Relaxed;
        /// A thread that checks for the last time publishes that, and its work before.
        end = Release, weak Relaxed;
        /// A waiter that registers later passes that on.
        carry_end = Release, weak Relaxed;
        /// A notifier sees that no thread will check again.
        ended = Acquire, weak Relaxed;
        /// A thread wakes another one, and publishes what it did before.
        wake = Release, weak Relaxed;
        /// A woken thread sees what its waker did before.
        woken = Acquire, weak Relaxed;
    }
}

/// Faults that a loom model seeds, to show that it would catch them.
#[cfg(loom)]
pub(crate) mod fault {
    use std::cell::Cell;

    std::thread_local! {
        // loom runs all threads of a model on one OS thread, so this reaches the whole model and
        // no other test.
        static ACTIVE: Cell<&'static str> = const { Cell::new("") };
    }

    /// Returns whether `name` is the seeded fault.
    pub(crate) fn is(name: &str) -> bool {
        ACTIVE.with(|active| active.get() == name)
    }

    /// Runs `model` with the fault `name` seeded; gives back whether the model failed, as it must.
    pub(crate) fn caught(name: &'static str, model: impl Fn() + Send + Sync + 'static) -> bool {
        caught_by(name, &loom::model::Builder::new(), model)
    }

    /// The model holds, and notices each of these faults.
    ///
    /// # Panics
    /// It does not.
    pub(crate) fn check(model: impl Fn() + Send + Sync + Copy + 'static, faults: &[&'static str]) {
        loom::model(model);
        for fault in faults {
            assert!(caught(fault, model), "`{fault}` was not caught");
        }
    }

    /// Works as [`caught`], explored as far as `builder` says.
    pub(crate) fn caught_by(
        name: &'static str,
        builder: &loom::model::Builder,
        model: impl Fn() + Send + Sync + 'static,
    ) -> bool {
        ACTIVE.with(|active| active.set(name));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            builder.check(model);
        }));
        ACTIVE.with(|active| active.set(""));
        outcome.is_err()
    }
}

/// Declares a test for each model: it holds, and notices each of these faults.
#[cfg(all(loom, test, feature = "std"))]
macro_rules! models {
    ($check:path; $($name:ident: $model:expr, $faults:expr;)+) => {$(
        #[test]
        fn $name() {
            $check($model, &$faults);
        }
    )+};
}
#[cfg(all(loom, test, feature = "std"))]
pub(crate) use models;

/// Faults that a run under shuttle seeds: the environment names one for the whole process, since
/// an integration test reaches nothing in here.
#[cfg(shuttle)]
pub(crate) mod fault {
    use std::sync::OnceLock;

    /// Returns whether `name` is the seeded fault.
    pub(crate) fn is(name: &str) -> bool {
        static SEEDED: OnceLock<String> = OnceLock::new();
        SEEDED.get_or_init(|| std::env::var("THALWEG_FAULT").unwrap_or_default()) == name
    }
}

/// Outside of models there is no fault, and the compiler removes what one would do.
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod fault {
    /// Returns whether `name` is the seeded fault.
    #[inline(always)]
    pub(crate) const fn is(_name: &str) -> bool {
        false
    }
}

#[cfg(not(loom))]
mod std_cell {
    /// `std`'s cell behind loom's interface.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[inline]
        pub(crate) const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
