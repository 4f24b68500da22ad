//! An asymmetric pair of barriers: one is free, and the other pays for both.
//!
//! If one thread passes [`light`] and another [`heavy`], then one of them comes first, as if both
//! were sequentially consistent fences: what stands before the first is seen after the second.
//! `light` only keeps the compiler from moving anything; `heavy` has the system put a full barrier
//! into every running thread of this process (`membarrier`, `PRIVATE_EXPEDITED`, Linux 4.14).
//! Measured on a two-core cloud machine: 0.4 µs where no other thread runs, 10 µs where one does.
//!
//! There is no order between two `light`s, and none between a `light` and a fence.
//!
//! In a model both are sequentially consistent fences; see `simulated` for closer.

use crate::ring::sync::{Ordering, fence};

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
mod system {
    use crate::ring::sync::{AtomicU32, Ordering, fence, yield_now};
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

    pub(crate) fn is_available() -> bool {
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
    pub(crate) fn light() {
        // ORDERING: SeqCst for the compiler alone, pairs with the system call in `heavy`.
        compiler_fence(Ordering::SeqCst);
    }

    /// The other side of [`light`]. If the system has taken the barrier away since it was asked
    /// (a sandbox entered later), `is_available` is false from here on, and this waits until the
    /// stores of other cores must long be out.
    #[cold]
    pub(crate) fn heavy() {
        // ORDERING: SeqCst, so that this thread's own order never depends on the system call; the
        // partner is `light`.
        fence(Ordering::SeqCst);
        let expedited = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        // A forked child may have to register again.
        let done = is_available() && (expedited() || (register() && expedited()));
        if !done && membarrier(MembarrierCommand::Global).is_err() {
            // ORDERING: Relaxed, as in `is_available`.
            STATE.store(MISSING, Ordering::Relaxed);
            outlast_stores();
        }
        // ORDERING: SeqCst, as above.
        fence(Ordering::SeqCst);
    }

    /// Waits until the stores of other cores must long be out. Does not park: the thread may be
    /// unparked meanwhile for a `park` of its own.
    fn outlast_stores() {
        let deadline = Instant::now() + DRAINED;
        while Instant::now() < deadline {
            yield_now();
        }
    }

    #[cfg(test)]
    mod tests {
        use std::sync::mpsc::{RecvTimeoutError, channel};
        use std::time::Duration;

        /// A thread may be unparked for a `park` of its own while it waits here.
        #[test]
        fn the_last_resort_leaves_unparks_to_others() {
            let (done, ended) = channel::<()>();
            let thread = std::thread::spawn(move || {
                let _done = done;
                std::thread::current().unpark();
                super::outlast_stores();
                std::thread::park();
            });
            let outcome = ended.recv_timeout(Duration::from_secs(600));
            assert_ne!(outcome, Err(RecvTimeoutError::Timeout), "it hangs");
            thread.join().unwrap();
        }
    }
}

#[cfg(not(any(loom, shuttle, target_os = "linux")))]
mod system {
    use crate::ring::sync::{Ordering, fence};

    pub(crate) fn is_available() -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn light() {}

    /// Not to be relied on where the other side passes [`light`](super::light) alone.
    pub(crate) fn heavy() {
        // ORDERING: SeqCst, pairs with the fence in `light_or_fence`.
        fence(Ordering::SeqCst);
    }
}

#[cfg(any(loom, shuttle))]
mod system {
    #[cfg(loom)]
    use super::simulated;
    use crate::ring::sync::{fence, order};

    pub(crate) fn is_available() -> bool {
        true
    }

    pub(crate) fn light() {
        #[cfg(loom)]
        if simulated::light() {
            return;
        }
        // ORDERING: SeqCst (order::light), pairs with the fence in `heavy`.
        fence(order::light());
    }

    pub(crate) fn heavy() {
        #[cfg(loom)]
        if simulated::heavy() {
            return;
        }
        // ORDERING: SeqCst (order::heavy), pairs with the fence in `light`.
        fence(order::heavy());
    }
}

pub(crate) use system::{heavy, is_available, light};

/// Works as [`light`], or a fence where there is no heavy barrier.
pub(crate) fn light_or_fence() {
    light();
    if !is_available() {
        // ORDERING: SeqCst, pairs with the fences in `heavy`.
        fence(Ordering::SeqCst);
    }
}

#[cfg(loom)]
#[path = "barrier/models.rs"]
pub(super) mod simulated;
