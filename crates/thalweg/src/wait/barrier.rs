//! A pair of barriers of which one is free and the other pays for both.
//!
//! If one thread passes [`light`] and another [`heavy`], then one of them comes first, as if both
//! were sequentially consistent fences: what stands before the first is seen after the second.
//! `light` only keeps the compiler from moving anything; `heavy` has the system put a full barrier
//! into every running thread of this process (`membarrier`, `PRIVATE_EXPEDITED`, Linux 4.14).
//! Measured on a two-core cloud machine: 0.4 µs where no other thread runs, 10 µs where one does.
//!
//! There is no order between two `light`s, and none between a `light` and a fence.
//!
//! In a model both are sequentially consistent fences; see [`simulated`] for closer.

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
mod system {
    use crate::ring::sync::{AtomicU32, Ordering, fence};
    use crate::wait::futex::Futex;
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::sync::atomic::compiler_fence;
    use std::time::{Duration, Instant};

    const UNKNOWN: u32 = 0;
    const REGISTERED: u32 = 1;
    const MISSING: u32 = 2;

    /// Whether this process may use the barrier; asked of the system once.
    static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

    /// How long the last resort waits for the stores of other cores. They take nanoseconds.
    const DRAINED: Duration = Duration::from_millis(1);

    pub(in crate::wait) fn is_available() -> bool {
        // ORDERING: Relaxed; the state speaks of the process only, and orders nothing.
        match STATE.load(Ordering::Relaxed) {
            UNKNOWN => register(),
            state => state == REGISTERED,
        }
    }

    #[cold]
    fn register() -> bool {
        let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
        let state = if registered { REGISTERED } else { MISSING };
        // ORDERING: Relaxed, as in `is_available`; registering twice does no harm.
        STATE.store(state, Ordering::Relaxed);
        registered
    }

    #[inline(always)]
    pub(in crate::wait) fn light() {
        // ORDERING: SeqCst for the compiler alone, pairs with the system call in `heavy`.
        compiler_fence(Ordering::SeqCst);
    }

    /// The other side of [`light`]. If the system has taken the barrier away since it was asked
    /// (a sandbox entered later), `is_available` is false from here on, and this waits until the
    /// stores of other cores must long be out.
    #[cold]
    pub(in crate::wait) fn heavy() {
        // ORDERING: SeqCst, so that this thread's own order never depends on the system call; the
        // partner is `light`.
        fence(Ordering::SeqCst);
        let expedited = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        // A forked child may have to register again.
        let done = is_available() && (expedited() || (register() && expedited()));
        if !done && membarrier(MembarrierCommand::Global).is_err() {
            // ORDERING: Relaxed, as in `is_available`.
            STATE.store(MISSING, Ordering::Relaxed);
            let deadline = Instant::now() + DRAINED;
            while Instant::now() < deadline {
                Futex::default().sleep_while_until(0, deadline);
            }
        }
        // ORDERING: SeqCst, as above.
        fence(Ordering::SeqCst);
    }
}

#[cfg(not(any(loom, shuttle, target_os = "linux")))]
mod system {
    use crate::ring::sync::{Ordering, fence};

    pub(in crate::wait) fn is_available() -> bool {
        false
    }

    #[inline(always)]
    pub(in crate::wait) fn light() {}

    /// Not to be relied on: there is no pair where it is not available.
    pub(in crate::wait) fn heavy() {
        // ORDERING: SeqCst; nobody pairs with it.
        fence(Ordering::SeqCst);
    }
}

#[cfg(any(loom, shuttle))]
mod system {
    #[cfg(loom)]
    use super::simulated;
    use crate::ring::sync::{fence, order};

    pub(in crate::wait) fn is_available() -> bool {
        true
    }

    pub(in crate::wait) fn light() {
        #[cfg(loom)]
        if simulated::light() {
            return;
        }
        // ORDERING: SeqCst (order::light), pairs with the fence in `heavy`.
        fence(order::light());
    }

    pub(in crate::wait) fn heavy() {
        #[cfg(loom)]
        if simulated::heavy() {
            return;
        }
        // ORDERING: SeqCst (order::heavy), pairs with the fence in `light`.
        fence(order::heavy());
    }
}

pub(super) use system::{heavy, is_available, light};

/// A closer model of `membarrier` than two fences: one thread at a time is the interrupted one.
///
/// `light` is no barrier at all there, and `heavy` makes the interrupted thread pass a fence at
/// some point of its own course: before, at, or after its next `light`, or at its end. With
/// fences, a model could not tell a `heavy` that is over from one that is still under way.
#[cfg(loom)]
pub(super) mod simulated {
    use crate::ring::sync::{AtomicU32, Ordering, fault, fence};
    use std::cell::RefCell;
    // The model's may not outlive a model that fails.
    use std::sync::Arc;

    struct Interrupts {
        asked: AtomicU32,
        answered: AtomicU32,
    }

    std::thread_local! {
        // All threads of a model run on one OS thread.
        static INTERRUPTS: RefCell<Option<Arc<Interrupts>>> = const { RefCell::new(None) };
    }

    fn interrupts() -> Option<Arc<Interrupts>> {
        INTERRUPTS.with(|cell| cell.borrow().clone())
    }

    /// From here on, in this execution of a model, barriers are simulated. One thread at a time
    /// calls `light`; it says [`over`] when it has done so for the last time.
    pub(crate) struct Simulation;

    impl Simulation {
        pub(crate) fn start() -> Self {
            let interrupts = Interrupts {
                asked: AtomicU32::new(0),
                answered: AtomicU32::new(0),
            };
            INTERRUPTS.with(|cell| cell.replace(Some(Arc::new(interrupts))));
            Self
        }
    }

    impl Drop for Simulation {
        fn drop(&mut self) {
            INTERRUPTS.with(|cell| cell.replace(None));
        }
    }

    /// The interrupted thread answers for ever after.
    pub(crate) fn over() {
        if let Some(interrupts) = interrupts() {
            // ORDERING: SeqCst and Release, as the answer in `light`.
            fence(Ordering::SeqCst);
            interrupts.answered.store(u32::MAX, Ordering::Release);
        }
    }

    pub(super) fn light() -> bool {
        let Some(interrupts) = interrupts() else {
            return false;
        };
        // ORDERING: Relaxed, so that the question orders nothing by itself; it may be seen late.
        let asked = interrupts.asked.load(Ordering::Relaxed);
        // ORDERING: Relaxed; this thread's own.
        if asked != interrupts.answered.load(Ordering::Relaxed) {
            // ORDERING: SeqCst, the barrier that the interrupt brings, pairs with the fences in
            // `heavy`.
            fence(Ordering::SeqCst);
            // ORDERING: Release, pairs with the Acquire in `heavy`.
            interrupts.answered.store(asked, Ordering::Release);
        }
        true
    }

    pub(super) fn heavy() -> bool {
        let Some(interrupts) = interrupts() else {
            return false;
        };
        // ORDERING: SeqCst, pairs with the fences in `light` and `over`.
        fence(Ordering::SeqCst);
        if !fault::is("heavy") {
            // ORDERING: Relaxed; the fence of the interrupted thread orders it.
            let mine = interrupts.asked.fetch_add(1, Ordering::Relaxed) + 1;
            // ORDERING: Acquire, pairs with the Release of the answer.
            while interrupts.answered.load(Ordering::Acquire) < mine {
                loom::thread::yield_now();
            }
        }
        // ORDERING: SeqCst, as above.
        fence(Ordering::SeqCst);
        true
    }
}
