//! Waking one thread after the other (rules 4 and 7).

use super::waking::must_publish;
use super::{OLD, SHUT, Signal, WAITER, WAKING};
use crate::ring::sync::{IS_MODEL, Ordering, fault, fence, order};
use crate::wait::{barrier, wake};
use thalweg_measure::clock::Clock;

/// A thread that has not looked so long after its wake-up has no core, and the next is woken. In a
/// crowd that happens all the time, and each wake-up is 2 µs of the sender's: no less than this.
const OVERDUE_NS: u64 = if cfg!(test) { 10_000_000_000 } else { 250_000 };
/// Notifications that a mark holds back between two looks at it: then it is old, and they cost no
/// fence any more.
pub(super) const HELD: u32 = 16;

/// A mark that was taken off.
#[derive(Debug, Clone, Copy)]
#[must_use = "its thread must pass a barrier"]
pub(super) enum Mark {
    Fresh,
    Old,
}

impl Mark {
    /// The thread that had it passes the barrier between that and its look.
    pub(super) fn pass(self) {
        if matches!(self, Self::Old) && is_passed_over() {
            return barrier::heavy();
        }
        if fault::is("chain_fence") {
            return;
        }
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `notify_next` (rule 4).
        fence(order::dekker());
    }
}

impl Signal {
    /// Works as [`notify_one`](Self::notify_one) where waiters wake each other: no thread is woken
    /// while a thread that this woke less than 0.25 ms ago has not looked yet. A thread that finds
    /// something after a wait must notify the next if there may be more. A sender that is faster
    /// than threads wake up so pays for one wake-up (2 µs), not for one per element, and there is
    /// no herd.
    ///
    /// Waiters must be content with anything that comes, and an attempt that takes long, or waits
    /// itself, holds up the others for as long.
    ///
    /// Gives what [`notify_one`](Self::notify_one) does.
    #[inline(always)]
    pub(crate) fn notify_chained(&self) -> bool {
        match self.word_behind_light() {
            0 => false,
            word => self.notify_next(word),
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_next(&self, word: u32) -> bool {
        self.continue_chain(word);
        self.is_shut()
    }

    /// The second half of rule 1, with rules 4 and 7; `word` was seen behind a light barrier.
    fn continue_chain(&self, mut word: u32) {
        if word & OLD == 0 {
            // ORDERING: SeqCst (order::dekker), pairs with the fences in `list` and `Mark::pass`
            // (rules 1, 2 and 4).
            fence(order::dekker());
            // ORDERING: Relaxed; ordered by the fence.
            word = self.front.word.load(Ordering::Relaxed);
        }
        if word & WAKING != 0 {
            return self.hold_back(word);
        }
        if word / WAITER == 0 {
            return self.count_idle();
        }
        // ORDERING: Relaxed; a guess at how busy waiters are, and losing some is fine.
        self.back.idle.store(0, Ordering::Relaxed);
        self.wake_next(false);
    }

    /// A thread is on its way: looks now and then whether it has been for too long.
    fn hold_back(&self, word: u32) {
        // ORDERING: Relaxed; a count that may miss some.
        let held = self.back.held.load(Ordering::Relaxed) + 1;
        // ORDERING: Relaxed, as above.
        self.back.held.store(held % HELD, Ordering::Relaxed);
        let is_old = word & OLD != 0;
        let is_turn = held >= HELD;
        if word / WAITER > 0 && (is_turn || !is_old) && self.is_overdue() {
            self.wake_next(true);
        } else if is_turn && !is_old {
            self.make_old();
        }
    }

    /// Returns whether the thread with the mark should long have looked.
    fn is_overdue(&self) -> bool {
        // ORDERING: Relaxed; a stamp that says how long ago something was.
        let since = self.back.since.load(Ordering::Relaxed);
        let clock = Clock::global();
        !IS_MODEL && clock.ticks().saturating_sub(since) > clock.ticks_from_ns(OVERDUE_NS)
    }

    /// From here on notifications pass the mark, if there is one, without a fence.
    pub(super) fn make_old(&self) {
        let mut list = self.lock();
        // ORDERING: Relaxed; the word changes under the lock only.
        let is_shut = self.front.word.load(Ordering::Relaxed) & SHUT != 0;
        if list.is_marked() && !is_shut && barrier::is_available() {
            list.make_old();
            self.publish(&list);
        }
    }

    /// Takes one waiter off the list and wakes it, unless a thread of the chain is on its way and
    /// not overdue.
    pub(super) fn wake_next(&self, is_overdue: bool) {
        let mut list = self.lock();
        // Another notifier may have been faster.
        let is_overdue = is_overdue && !fault::is("overdue");
        let wakers = if !list.is_marked() || (is_overdue && (IS_MODEL || self.is_overdue())) {
            list.pop(true)
        } else {
            None
        };
        if wakers.is_some() && !IS_MODEL {
            // ORDERING: Relaxed, as in `is_overdue` and `hold_back`.
            self.back
                .since
                .store(Clock::global().ticks(), Ordering::Relaxed);
            // ORDERING: Relaxed, as above.
            self.back.held.store(0, Ordering::Relaxed);
        }
        if must_publish(wakers.is_some()) {
            self.publish(&list);
        }
        drop(list);
        wakers.into_iter().flatten().for_each(wake);
    }
}

/// Returns whether notifiers have passed an old mark without a fence: they do.
pub(super) fn is_passed_over() -> bool {
    !fault::is("old_mark")
}
