//! The end of a signal: no waiter will check again, and notifiers learn that.

use super::chain::is_passed_over;
use super::{ARMED, OLD, SHUT, Signal};
use crate::ring::sync::{Ordering, fault, fence, order};
use crate::wait::barrier;

impl Signal {
    /// Shuts the signal: no thread will look again after the look that follows (rule 6). That look
    /// sees what was published by a thread that has passed the barrier of its notification; the
    /// notifications of all other threads return that the signal is shut.
    ///
    /// It stays shut for ever. The call costs an uncontended lock and a fence, and the heavy
    /// barrier where the signal is not armed (0.4 to 10 µs).
    pub(crate) fn shut(&self) {
        if fault::is("shut") {
            return;
        }
        let mut list = self.lock();
        let was_old = list.renew();
        // ORDERING: Relaxed; the word changes under the lock only.
        let word = self.front.word.load(Ordering::Relaxed) & !OLD;
        // ORDERING: Release (order::end), pairs with the Acquire in `is_shut`: what the caller did
        // before, its close above all, is visible to a thread that sees `SHUT`.
        let shut = word | ARMED | SHUT;
        self.front.word.store(shut, order::end());
        if word & ARMED == 0 || (was_old && is_passed_over()) {
            barrier::heavy();
        }
        drop(list);
        // ORDERING: SeqCst (order::dekker), pairs with the fences of notifiers (rules 1 and 6).
        fence(order::dekker());
    }

    /// Returns whether the signal is shut. A notifier calls it after its barrier, which is a fence
    /// or, beside an old mark or without waiters, the heavy barrier of `shut`.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        // ORDERING: Acquire (order::ended), pairs with the Release in `shut`, which the store of
        // `publish` carries on; the notifier's fence orders it after what it published.
        self.front.word.load(order::ended()) & SHUT != 0
    }
}
