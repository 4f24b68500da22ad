//! One round of a select: check all arms, register with them, unregister; its arms, and the order
//! in which it checks them. That is another one each time, so that ready arms have equal shares,
//! whichever arms that are not ready are between them.
//!
//! # State
//! While it waits, a select is registered with the event count of each arm's channel. At a
//! rendezvous it is registered with its element or as a request, and with a token that all its arms
//! share.
//!
//! # Rules
//! 1. It checks all arms; registers with all event counts; checks all arms again; then registers at
//!    the rendezvous, which looks for a counterpart in the same step; and sleeps only if no arm was
//!    ready.
//! 2. Before it attempts an operation again, it unregisters at all rendezvous: it shuts its token,
//!    and if that was taken, the arm for which it was taken fires.
//! 3. It unregisters everywhere before a closure runs. A notification is used by a check of its arm
//!    that comes after it; notifications of other arms are passed on.
//! 4. A select that is to report that no arm is ready loads, for each arm, a version that changes
//!    whenever another thread makes the arm not ready; checks all arms; loads the versions again;
//!    and repeats the check if one has changed. An arm that only this select can make not ready (of
//!    the one receiver, or the one sender, of a channel) needs no version.
//!
//! # Why it works
//! By rule 1, and the arguments of [`EventCount`](crate::wait::EventCount) and the rendezvous, an
//! arm that becomes ready after the registration wakes the select: one registration is enough, and
//! it never registers in a loop. By rule 2 and the rules of the token, exactly one arm fires. By
//! rule 3 no other waiter sleeps while its operation could be done. By rule 4: take the moment
//! between the first versions and the first check. An arm that was ready then, and not when it was
//! checked, has stopped being ready in between, so its version has changed. So if no version has,
//! no arm was ready at that moment; nor was an arm without a version, which would be ready still.
//! Each repeated check follows an operation that another thread has completed.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::channel::rendezvous::{ArmRef, LentToken};
use crate::ring::sync::IS_MODEL;
use crate::wait::{self, Entry, Kind, Pace, Waiter, block_waiter};

pub(super) struct Round<'s, A> {
    pub(super) arms: &'s mut A,
    pub(super) token: &'s mut LentToken,
    /// Arms are checked in the order in which they were added.
    pub(super) is_biased: bool,
}

impl<A: Arms> Round<'_, A> {
    #[inline]
    fn order(&self) -> ArmOrder {
        ArmOrder::new(self.arms.count(), self.is_biased)
    }

    fn each(&mut self, mut work: impl FnMut(&mut dyn Arm)) {
        (0..self.arms.count()).for_each(|at| self.arms.with(at, &mut work));
    }

    /// Does the first operation that can be done; returns its arm.
    #[inline]
    pub(super) fn check_all(&mut self) -> Option<usize> {
        self.order()
            .find(|&at| self.arms.with(at, |arm| arm.attempt()))
    }

    /// Works as [`check_all`](Self::check_all); `None` says that at one moment no arm was ready
    /// (rule 4).
    pub(super) fn check_at_one_instant(&mut self) -> Option<usize> {
        self.is_unchanged();
        loop {
            let found = self.check_all();
            if found.is_some() || self.is_unchanged() {
                return found;
            }
        }
    }

    /// Returns whether the version of no arm has changed since the last call.
    fn is_unchanged(&mut self) -> bool {
        if self.arms.count() < 2 {
            return true;
        }
        if crate::ring::sync::fault::is("select_glance") {
            return true;
        }
        let mut is_same = true;
        self.each(|arm| is_same &= arm.is_unchanged());
        is_same
    }

    /// Registers with all arms, and checks them again (rule 1). Returns the arm that fired; then
    /// nothing is registered any more.
    fn register_all(&mut self, waker: &Waker, kind: Kind) -> Option<usize> {
        loop {
            let (mut is_rendezvous, mut is_registered) = (false, false);
            self.each(|arm| {
                if arm.is_rendezvous() {
                    is_rendezvous = true;
                } else {
                    is_registered = true;
                    arm.register(waker, kind, None);
                }
            });
            // No other thread can fire these arms, so they may be checked while registered.
            if is_registered && let Some(at) = self.check_again() {
                self.each(|arm| arm.unregister());
                return Some(at);
            }
            if !is_rendezvous || !self.register_at_rendezvous(waker, kind) {
                return None;
            }
            if let Some(at) = self.unregister_all() {
                return Some(at);
            }
            // The counterpart that was found has left again.
        }
    }

    /// Registers the arms at rendezvous, which looks for their counterparts in the same step;
    /// returns whether the wait is over.
    fn register_at_rendezvous(&mut self, waker: &Waker, kind: Kind) -> bool {
        // A single arm fires once in any case.
        let token = (self.arms.count() > 1).then(|| self.token.fetch().clone());
        if let Some(token) = &token {
            token.open();
        }
        self.order().any(|at| {
            let arm_ref = token.as_ref().map(|token| ArmRef::of(token, at));
            (self.arms).with(at, |arm| {
                arm.is_rendezvous() && arm.register(waker, kind, arm_ref)
            })
        })
    }

    fn check_again(&mut self) -> Option<usize> {
        if crate::ring::sync::fault::is("select_look_again") {
            return None;
        }
        self.check_all()
    }

    /// Unregisters everywhere (rule 2) and checks. Returns the arm that fired.
    fn unregister_all(&mut self) -> Option<usize> {
        let taken = self.token.get().and_then(|token| token.shut());
        self.each(|arm| arm.unregister());
        taken.or_else(|| self.check_all())
    }

    /// Waits as a thread, after a check: until an arm fires, or the deadline.
    #[cold]
    pub(super) fn wait(&mut self, pace: &mut Pace, deadline: Option<Instant>) -> Option<usize> {
        let found = loop {
            let mut until = deadline;
            self.each(|arm| until = arm.due().into_iter().chain(until).min());
            match block_waiter(self, pace, until) {
                Ok(at) => break Some(at),
                Err(_) if until == deadline => break self.check_at_one_instant(),
                // A timer is due.
                Err(_) => {}
            }
        };
        found.inspect(|&at| self.finish(at))
    }

    /// Passes on notifications that were not used, after arm `fired` fired.
    fn finish(&mut self, fired: usize) {
        for at in 0..self.arms.count() {
            self.arms.with(at, |arm| arm.finish_wait(at == fired));
        }
    }

    /// Waits as a task does.
    pub(super) async fn wait_async(&mut self) -> usize {
        let mut is_registered = false;
        poll_fn(|context| {
            let waker = context.waker();
            let found = if is_registered {
                let mut stays = true;
                // All arms, so that each has the waker.
                self.each(|arm| stays &= arm.update(waker));
                if stays {
                    return Poll::Pending;
                }
                self.unregister_all()
            } else {
                self.check_all()
            };
            is_registered = true;
            match found.or_else(|| self.register_all(waker, Kind::Task)) {
                Some(at) => {
                    self.finish(at);
                    Poll::Ready(at)
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl<A: Arms> Waiter for Round<'_, A> {
    type Found = usize;

    fn spins_registered(&mut self) -> bool {
        let mut is_rendezvous = false;
        self.each(|arm| is_rendezvous |= arm.is_rendezvous());
        is_rendezvous
    }

    fn check(&mut self) -> Option<usize> {
        self.check_all()
    }

    fn register(&mut self, waker: &Waker) -> Option<usize> {
        self.register_all(waker, Kind::Select)
    }

    fn unregister(&mut self) -> Option<usize> {
        self.unregister_all()
    }
}

/// An operation that a select may do. Not to be implemented elsewhere, and not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: the type is not nameable outside
pub trait Arm {
    /// Attempts the operation; returns whether it was done, and keeps the outcome.
    fn attempt(&mut self) -> bool;
    /// Returns whether no other thread has made the arm ready or not ready since the last call.
    /// Only `true` is certain.
    fn is_unchanged(&mut self) -> bool;
    /// Returns whether it waits at a rendezvous, where other threads may fire it.
    fn is_rendezvous(&self) -> bool;
    /// Registers the arm; at a rendezvous with an `ArmRef`. Returns whether the wait is over.
    fn register(&mut self, waker: &Waker, kind: Kind, arm_ref: Option<ArmRef>) -> bool;
    /// Replaces the waker; returns whether the arm is still registered.
    fn update(&mut self, waker: &Waker) -> bool;
    /// Unregisters the arm; keeps the outcome if another thread has fired it.
    fn unregister(&mut self);
    /// Ends the wait: passes on a notification that was not used, and after the arm fired, another
    /// one if more can be done.
    fn finish_wait(&mut self, is_fired: bool);
    /// Returns the instant at which it becomes ready by itself.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Returns how its endpoint waits.
    fn pace(&mut self) -> Option<&mut Pace> {
        None
    }
}

/// An arm with a closure.
#[doc(hidden)]
pub trait Choice<R>: Arm {
    /// Calls the closure with the outcome.
    fn finish(&mut self) -> R;
}

/// Arms by their indexes.
#[doc(hidden)]
pub trait Arms {
    fn count(&self) -> usize;
    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O;
}

/// Arms with closures.
#[doc(hidden)]
pub trait Choices<R>: Arms {
    fn finish(&mut self, at: usize) -> R;
}

/// Arms that can be waited for without a time limit.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a select without arms would wait for ever",
    label = "add an arm, or wait with a time limit"
)]
pub trait Waits<R>: Choices<R> {
    type Waited;
    /// Returns what the wait returns, from the result of a closure, or from `None` without arms.
    fn waited(result: Option<R>) -> Self::Waited;
}

/// Arms that need no clock.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a select with a timer can't be awaited: a task needs the timer of its runtime",
    label = "use the runtime's timeout around it, without `after` and `timer` here"
)]
pub trait Untimed {}

/// No arms yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoArms;

impl Arms for NoArms {
    fn count(&self) -> usize {
        0
    }

    fn with<O>(&mut self, at: usize, _: impl FnOnce(&mut dyn Arm) -> O) -> O {
        unreachable!("arm {at} of none")
    }
}

impl<R> Choices<R> for NoArms {
    fn finish(&mut self, at: usize) -> R {
        unreachable!("arm {at} of none")
    }
}

impl Untimed for NoArms {}

/// A list with one arm more.
#[doc(hidden)]
#[derive(Debug)]
pub struct List<N, A> {
    pub(super) rest: A,
    pub(super) arm: N,
}

impl<N: Arm, A: Arms> Arms for List<N, A> {
    #[inline]
    fn count(&self) -> usize {
        self.rest.count() + 1
    }

    #[inline]
    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O {
        if at == self.rest.count() {
            work(&mut self.arm)
        } else {
            self.rest.with(at, work)
        }
    }
}

impl<R, N: Choice<R>, A: Choices<R>> Choices<R> for List<N, A> {
    fn finish(&mut self, at: usize) -> R {
        if at == self.rest.count() {
            self.arm.finish()
        } else {
            self.rest.finish(at)
        }
    }
}

impl<R, N: Choice<R>, A: Choices<R>> Waits<R> for List<N, A> {
    type Waited = R;

    fn waited(result: Option<R>) -> R {
        result.unwrap_or_else(|| unreachable!("a wait without a time limit ends with an arm"))
    }
}

impl<N: Untimed, A: Untimed> Untimed for List<N, A> {}

/// The registration of an endpoint: with an event count, or at a rendezvous. The endpoint keeps it,
/// so that it can cancel a wait that was forgotten.
#[derive(Debug, Default)]
pub(in crate::channel) struct EndRegistration {
    /// The endpoint is borrowed by a wait or a claim that has not ended.
    pub(in crate::channel) is_lent: bool,
    /// It waits for slots for several elements.
    pub(in crate::channel) claims: bool,
    pub(in crate::channel) in_event_count: wait::Registration,
    pub(in crate::channel) at_rendezvous: Option<Entry>,
    /// The version that the last check saw.
    last_seen: Option<u64>,
}

impl EndRegistration {
    /// Stores the version that is seen now, which is `None` where the arm is ready; returns whether
    /// it is the one that was seen last.
    pub(super) fn is_same(&mut self, now: Option<u64>) -> bool {
        std::mem::replace(&mut self.last_seen, now) == now && now.is_some()
    }
}

/// Up to this number, arms come in a random permutation. A larger number begins with a random arm
/// and continues by a random stride that is coprime to the number: so each of two ready arms comes
/// first equally often.
const SHUFFLED_MAX: usize = u64::BITS as usize;

struct ArmOrder {
    count: usize,
    given: usize,
    /// For shuffled order: the arms that were not given yet.
    left: u64,
    random: u64,
    /// For more arms than can be shuffled: the last one, and the step to the next.
    at: usize,
    stride: usize,
}

impl ArmOrder {
    /// Returns each of `count` arms once; by index if `is_biased`.
    #[inline]
    fn new(count: usize, is_biased: bool) -> Self {
        // A model tries all orders of threads, and needs the same arms each time.
        let is_random = !is_biased && !IS_MODEL && count > 1;
        let mut order = Self {
            count,
            given: 0,
            left: u64::MAX,
            random: if is_random { random() } else { 0 },
            at: count - usize::from(count > 0),
            stride: 1,
        };
        if !is_random {
            order.left = 0;
        } else if count > SHUFFLED_MAX {
            order.leap();
        }
        order
    }

    /// Chooses a start and a stride.
    fn leap(&mut self) {
        self.left = 0;
        self.at = self.below(self.count);
        self.stride = 1 + self.below(self.count - 1);
        while !is_coprime(self.stride, self.count) {
            self.stride = 1 + self.below(self.count - 1);
        }
    }

    /// Returns a random number below `count`.
    fn below(&mut self, count: usize) -> usize {
        // The upper half of the product is below `count`.
        let number = ((self.random >> 32) * count as u64) >> 32;
        // The generator and constants of PCG (O'Neill, 2014), of which the upper half is used.
        self.random = (self.random)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        number as usize
    }
}

impl Iterator for ArmOrder {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.given == self.count {
            return None;
        }
        let rest = self.count - self.given;
        self.given += 1;
        if self.left == 0 {
            // Also for the order by index, which is a stride of 1.
            self.at = (self.at + self.stride) % self.count;
            return Some(self.at);
        }
        let mut candidates = self.left;
        for _ in 0..self.below(rest) {
            candidates &= candidates - 1;
        }
        let at = candidates.trailing_zeros();
        self.left ^= 1 << at;
        Some(at as usize)
    }
}

fn is_coprime(mut a: usize, mut b: usize) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

fn random() -> u64 {
    use std::cell::Cell;
    // Not modelled: it matters only that threads begin with different seeds.
    use std::sync::atomic::{AtomicU64, Ordering};

    static SEEDS: AtomicU64 = AtomicU64::new(0);
    std::thread_local! {
        // ORDERING: Relaxed; it matters only that no two seeds are equal.
        static STATE: Cell<u64> = Cell::new(SEEDS.fetch_add(1 << 32, Ordering::Relaxed));
    }
    // While the thread's locals are destroyed, any order will do.
    let step = STATE.try_with(|state| {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let next = state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    });
    step.unwrap_or(0)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_arm_comes_once() {
        for count in (0..70).chain([96, 128, 1_000]) {
            for is_biased in [false, true] {
                let mut order: Vec<_> = ArmOrder::new(count, is_biased).collect();
                assert!(!is_biased || order.iter().copied().eq(0..count));
                order.sort_unstable();
                assert!(order.into_iter().eq(0..count), "of {count}");
            }
        }
    }

    /// Returns which of the ready ones comes first, how often in a thousand.
    fn shares(count: usize, ready: &[usize]) -> Vec<usize> {
        const ROUNDS: usize = 40_000;
        let mut shares = vec![0; ready.len()];
        for _ in 0..ROUNDS {
            let first =
                ArmOrder::new(count, false).find_map(|at| ready.iter().position(|r| *r == at));
            shares[first.expect("all come")] += 1;
        }
        shares.iter().map(|share| share * 1_000 / ROUNDS).collect()
    }

    #[test]
    fn those_that_are_ready_have_equal_shares() {
        for (count, ready) in [
            (4, &[1, 2][..]),
            (4, &[0, 1, 2]),
            (64, &[5, 6, 7, 60]),
            (97, &[3, 4]),
        ] {
            let shares = shares(count, ready);
            let fair = 1_000 / ready.len();
            assert!(
                shares.iter().all(|share| share.abs_diff(fair) < 30),
                "{shares:?} of {count}"
            );
        }
    }
}
