//! A closer model of `membarrier` than two fences: one thread at a time is the interrupted one.
//!
//! `light` is no barrier at all there, and `heavy` makes the interrupted thread pass a fence at
//! some point of its own course: before, at, or after its next `light`, or at its end. With fences,
//! a model could not distinguish a `heavy` that is over from one that is still under way.

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
