//! One round of a select: look at all arms, list them, leave; its arms, and the order in which it
//! looks at them, each time another one, so that those that are ready have equal shares, whatever
//! silent ones are between them.
//!
//! # State
//! While it waits, a select is listed on the signal of each arm's channel. At a rendezvous it is
//! listed with its element or its request, and with a token that all its arms share.
//!
//! # Rules
//! 1. It looks at all arms; lists itself at all that have a signal; looks at all again; then lists
//!    itself at the rendezvous, which looks for a counterpart there in the same step; and sleeps
//!    only if there was nothing.
//! 2. Before it looks to take something, it leaves all rendezvous: it shuts its token, and if that
//!    was taken, the arm for which it was taken is the one that fires.
//! 3. It leaves all lists before a closure runs. A notification is used up by a look at its arm
//!    that comes after it; those of other arms are passed on.
//! 4. A select that is to report that nothing is ready reads, of each arm, a count that grows
//!    whenever the arm stops being ready by another thread's doing; looks at all arms; reads the
//!    counts again; and looks once more if one has changed. An arm that stops being ready by this
//!    select's doing only (of the one receiver, or the one sender, of a channel) needs no count.
//!
//! # Why it works
//! By rule 1, and what [`Signal`](crate::wait::Signal) and the meeting say of themselves, whatever
//! happens to an arm after it was listed wakes the select: nothing is in doubt when it has listed
//! itself once, and it never lists itself in a loop. By rule 2 and the rules of the token, exactly
//! one arm fires. By rule 3 no other waiter sleeps beside something that it could have. By rule 4:
//! take the moment between the first counts and the first look. An arm that was ready then, and not
//! when it was looked at, has stopped being ready in between, and its count has changed. So if no
//! count has, none was ready at that moment; nor was an arm without a count, which would be ready
//! still. Each look more is due to something that another thread has got done.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::channel::meeting::{LentToken, Stake};
use crate::ring::sync::IS_MODEL;
use crate::wait::{self, Entry, Kind, Listing, Pace, block_listed};

pub(super) struct Round<'s, A> {
    pub(super) arms: &'s mut A,
    pub(super) token: &'s mut LentToken,
    /// Arms are looked at in their order.
    pub(super) is_biased: bool,
}

impl<A: Arms> Round<'_, A> {
    #[inline]
    fn turns(&self) -> Turns {
        Turns::new(self.arms.count(), self.is_biased)
    }

    fn each(&mut self, mut work: impl FnMut(&mut dyn Arm)) {
        (0..self.arms.count()).for_each(|at| self.arms.with(at, &mut work));
    }

    /// Does the first operation that can be done; gives its arm.
    #[inline]
    pub(super) fn look_at_all(&mut self) -> Option<usize> {
        self.turns()
            .find(|&at| self.arms.with(at, |arm| arm.attempt()))
    }

    /// Works as [`look_at_all`](Self::look_at_all); `None` says that at one moment no arm was ready
    /// (rule 4).
    pub(super) fn look_surely(&mut self) -> Option<usize> {
        self.glance();
        loop {
            let found = self.look_at_all();
            if found.is_some() || self.glance() {
                return found;
            }
        }
    }

    /// Returns whether nothing has moved at any arm since the last glance.
    fn glance(&mut self) -> bool {
        if self.arms.count() < 2 {
            return true;
        }
        if crate::ring::sync::fault::is("select_glance") {
            return true;
        }
        let mut is_same = true;
        self.each(|arm| is_same &= arm.glance());
        is_same
    }

    /// Lists all arms, and looks again (rule 1). Gives the arm that did something; then nothing is
    /// listed any more.
    fn list_all(&mut self, waker: &Waker, kind: Kind) -> Option<usize> {
        loop {
            let (mut meets, mut is_listed) = (false, false);
            self.each(|arm| {
                if arm.meets() {
                    meets = true;
                } else {
                    is_listed = true;
                    arm.list(waker, kind, None);
                }
            });
            // No thread can fire an arm so far, so that it may look while it is listed.
            if is_listed && let Some(at) = self.look_again() {
                self.each(|arm| arm.unlist());
                return Some(at);
            }
            if !meets || !self.list_at_meetings(waker, kind) {
                return None;
            }
            if let Some(at) = self.leave_all() {
                return Some(at);
            }
            // The counterpart that was waited for has gone again.
        }
    }

    /// Lists the arms that meet, which looks for their counterparts in the same step; returns
    /// whether the wait is over.
    fn list_at_meetings(&mut self, waker: &Waker, kind: Kind) -> bool {
        // One arm that is alone fires once in any case.
        let token = (self.arms.count() > 1).then(|| self.token.fetch().clone());
        if let Some(token) = &token {
            token.open();
        }
        self.turns().any(|at| {
            let stake = token.as_ref().map(|token| Stake::of(token, at));
            (self.arms).with(at, |arm| arm.meets() && arm.list(waker, kind, stake))
        })
    }

    fn look_again(&mut self) -> Option<usize> {
        if crate::ring::sync::fault::is("select_look_again") {
            return None;
        }
        self.look_at_all()
    }

    /// Leaves all lists (rule 2) and looks. Gives the arm that did something.
    fn leave_all(&mut self) -> Option<usize> {
        let taken = self.token.get().and_then(|token| token.shut());
        self.each(|arm| arm.unlist());
        taken.or_else(|| self.look_at_all())
    }

    /// Waits as a thread, after a look: until an arm does something, or the deadline.
    #[cold]
    pub(super) fn wait(&mut self, pace: &mut Pace, deadline: Option<Instant>) -> Option<usize> {
        let found = loop {
            let mut until = deadline;
            self.each(|arm| until = arm.due().into_iter().chain(until).min());
            match block_listed(self, pace, until) {
                Ok(at) => break Some(at),
                Err(_) if until == deadline => break self.look_surely(),
                // A timer's time has come.
                Err(_) => {}
            }
        };
        found.inspect(|&at| self.settle(at))
    }

    /// One arm did something, and nothing is listed.
    fn settle(&mut self, fired: usize) {
        for at in 0..self.arms.count() {
            self.arms.with(at, |arm| arm.settle(at == fired));
        }
    }

    /// Waits as a task does.
    pub(super) async fn wait_async(&mut self) -> usize {
        let mut is_listed = false;
        poll_fn(|context| {
            let waker = context.waker();
            let found = if is_listed {
                let mut stays = true;
                // Each, so that every list has the waker.
                self.each(|arm| stays &= arm.stay(waker));
                if stays {
                    return Poll::Pending;
                }
                self.leave_all()
            } else {
                self.look_at_all()
            };
            is_listed = true;
            match found.or_else(|| self.list_all(waker, Kind::Task)) {
                Some(at) => {
                    self.settle(at);
                    Poll::Ready(at)
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl<A: Arms> Listing for Round<'_, A> {
    type Found = usize;

    fn spins_listed(&mut self) -> bool {
        let mut meets = false;
        self.each(|arm| meets |= arm.meets());
        meets
    }

    fn look(&mut self) -> Option<usize> {
        self.look_at_all()
    }

    fn list(&mut self, waker: &Waker) -> Option<usize> {
        self.list_all(waker, Kind::Select)
    }

    fn leave(&mut self) -> Option<usize> {
        self.leave_all()
    }
}

/// An operation that a select may do. Not to be implemented elsewhere, and not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: the type is not nameable outside
pub trait Arm {
    /// Does the operation if it can be done now, and keeps the outcome.
    fn attempt(&mut self) -> bool;
    /// Returns whether no other thread has made the arm ready for a while, or not ready, since this
    /// was asked last. Only a `true` is certain.
    fn glance(&mut self) -> bool;
    /// Returns whether it waits at a rendezvous, and may be fired by others there.
    fn meets(&self) -> bool;
    /// Lists the arm; at a rendezvous with a stake. Returns whether the wait is over.
    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool;
    /// Has `waker` woken from now on; returns whether the arm is still listed.
    fn stay(&mut self, waker: &Waker) -> bool;
    /// Takes the arm off its list; keeps the outcome if another thread has fired it.
    fn unlist(&mut self);
    /// Passes on a notification that was not used.
    fn settle(&mut self, is_fired: bool);
    /// Returns when it will be ready without any other thread's doing.
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

/// Arms by their places.
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
    /// `None` if there is no arm.
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

/// Where an endpoint is listed: on a signal, or at a meeting. It is kept in the endpoint, so that a
/// wait that was forgotten can be ended.
#[derive(Debug, Default)]
pub(in crate::channel) struct EndRegistration {
    /// Something has borrowed the endpoint that waits or holds room, and has not ended it yet.
    pub(in crate::channel) is_lent: bool,
    /// It waits for room for several elements.
    pub(in crate::channel) claims: bool,
    pub(in crate::channel) on: wait::Registration,
    pub(in crate::channel) seat: Option<Entry>,
    /// The count that the last glance saw.
    glance: Option<u64>,
}

impl EndRegistration {
    /// Keeps what a glance sees now, which is `None` where the arm is ready; returns whether that
    /// is what the last one saw.
    pub(super) fn is_same(&mut self, now: Option<u64>) -> bool {
        std::mem::replace(&mut self.glance, now) == now && now.is_some()
    }
}

/// Arms up to this number come in a permutation of which all are as likely. More of them begin at
/// one chosen at random and go on by a random stride that has no divisor in common with their
/// number: so each of two that are ready is as often the first.
const SHUFFLED_MAX: usize = u64::BITS as usize;

struct Turns {
    count: usize,
    given: usize,
    /// For shuffled turns: the arms that were not given yet.
    left: u64,
    random: u64,
    /// For more arms than can be shuffled: the last one, and the step to the next.
    at: usize,
    stride: usize,
}

impl Turns {
    /// Returns all of `count` arms once; in order of their places if `is_biased`.
    #[inline]
    fn new(count: usize, is_biased: bool) -> Self {
        // A model tries all orders of threads, and needs the same arms each time.
        let is_random = !is_biased && !IS_MODEL && count > 1;
        let mut turns = Self {
            count,
            given: 0,
            left: u64::MAX,
            random: if is_random { random() } else { 0 },
            at: count - usize::from(count > 0),
            stride: 1,
        };
        if !is_random {
            turns.left = 0;
        } else if count > SHUFFLED_MAX {
            turns.leap();
        }
        turns
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

impl Iterator for Turns {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.given == self.count {
            return None;
        }
        let rest = self.count - self.given;
        self.given += 1;
        if self.left == 0 {
            // In order too, which is a stride of 1 from the last.
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
    // Not a model's: only that threads begin differently matters.
    use std::sync::atomic::{AtomicU64, Ordering};

    static SEEDS: AtomicU64 = AtomicU64::new(0);
    std::thread_local! {
        // ORDERING: Relaxed; only that no two are equal matters.
        static STATE: Cell<u64> = Cell::new(SEEDS.fetch_add(1 << 32, Ordering::Relaxed));
    }
    // Where the thread is past its last breath, any order will do.
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
                let mut order: Vec<_> = Turns::new(count, is_biased).collect();
                assert!(!is_biased || order.iter().copied().eq(0..count));
                order.sort_unstable();
                assert!(order.into_iter().eq(0..count), "of {count}");
            }
        }
    }

    /// Which of the ready ones comes first, how often in a thousand.
    fn shares(count: usize, ready: &[usize]) -> Vec<usize> {
        const ROUNDS: usize = 40_000;
        let mut shares = vec![0; ready.len()];
        for _ in 0..ROUNDS {
            let first = Turns::new(count, false).find_map(|at| ready.iter().position(|r| *r == at));
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
