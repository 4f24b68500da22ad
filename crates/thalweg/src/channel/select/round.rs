//! One round of a select: look at all arms, list them, leave.

use std::marker::PhantomData;
use std::task::Waker;

use super::arm::Arms;
use crate::channel::meeting::Lent;
use crate::ring::sync::yield_now;
use crate::wait::Listing;

pub(super) struct Round<'s, R, A> {
    arms: &'s mut A,
    token: &'s mut Lent,
    result: PhantomData<fn() -> R>,
}

impl<'s, R, A: Arms<R>> Round<'s, R, A> {
    pub(super) fn new(arms: &'s mut A, token: &'s mut Lent) -> Self {
        Self {
            arms,
            token,
            result: PhantomData,
        }
    }

    /// Does the first operation that can be done; gives its arm.
    #[inline]
    pub(super) fn look_at_all(&mut self) -> Option<usize> {
        turns(A::COUNT).find(|&at| self.arms.attempt(at))
    }

    /// Lists all arms and looks again (rule 1). Gives the arm that did something; then nothing is
    /// listed any more.
    pub(super) fn list_all(&mut self, waker: &Waker) -> Option<usize> {
        loop {
            let meets = self.arms.meets();
            let token = meets.then(|| self.token.fetch().clone());
            if let Some(token) = &token {
                token.open();
            }
            let is_over = turns(A::COUNT).any(|at| self.arms.list(at, waker, token.as_ref()));
            if !meets {
                // Nobody else does anything for this select, so that it may look while listed.
                let found = self.look_again();
                if found.is_some() {
                    self.arms.unlist();
                }
                return found;
            }
            if !is_over && !self.arms.is_ready() {
                return None;
            }
            if let Some(at) = self.leave_all() {
                return Some(at);
            }
            // Somebody was faster, or is in the middle of it.
            yield_now();
        }
    }

    fn look_again(&mut self) -> Option<usize> {
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("select_look_again") {
            return None;
        }
        self.look_at_all()
    }

    /// Leaves all lists (rule 2) and looks. Gives the arm that did something.
    pub(super) fn leave_all(&mut self) -> Option<usize> {
        let taken = self.token.get().and_then(|token| token.shut());
        self.arms.unlist();
        taken.or_else(|| self.look_at_all())
    }

    /// Has `waker` woken from now on; gives whether nothing has happened yet.
    pub(super) fn stay(&mut self, waker: &Waker) -> bool {
        self.arms.stay(waker)
    }
}

impl<R, A: Arms<R>> Listing for Round<'_, R, A> {
    type Found = usize;

    fn spins_listed(&self) -> bool {
        self.arms.meets()
    }

    fn look(&mut self) -> Option<usize> {
        self.look_at_all()
    }

    fn list(&mut self, waker: &Waker) -> Option<usize> {
        self.list_all(waker)
    }

    fn leave(&mut self) -> Option<usize> {
        self.leave_all()
    }
}

/// All arms once, from one chosen at random, so that none starves.
#[inline]
pub(super) fn turns(count: usize) -> impl Iterator<Item = usize> {
    let start = if count > 1 { random_below(count) } else { 0 };
    (start..count).chain(0..start)
}

#[cfg(not(any(loom, shuttle)))]
fn random_below(count: usize) -> usize {
    use crate::ring::sync::{AtomicU64, Ordering};
    use std::cell::Cell;

    static SEEDS: AtomicU64 = AtomicU64::new(0);
    std::thread_local! {
        // ORDERING: Relaxed; only that threads begin differently matters.
        static STATE: Cell<u64> = Cell::new(SEEDS.fetch_add(1 << 32, Ordering::Relaxed));
    }
    // Where the thread is past its last breath, any arm will do.
    let step = STATE.try_with(|state| {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let next = state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    });
    // The upper half of the product is below `count`.
    (((step.unwrap_or(0) >> 32) * count as u64) >> 32) as usize
}

/// A model tries all orders of threads, and needs the same arms each time.
#[cfg(any(loom, shuttle))]
fn random_below(_: usize) -> usize {
    0
}
