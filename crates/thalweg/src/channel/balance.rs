//! Rate balance: a sender that is faster than the receivers gives its turn away.
//!
//! A queue that grows costs no throughput, but every element waits behind all of it. A sender looks
//! now and then whether more than a limit of elements wait. If so, it gives turns away until half
//! the limit is left: so that it does not look all the time, and receivers work through a run.
//! Where receivers do not come on in that time (they are busy, or the caller itself receives
//! later), it looks again only after ever more sends, so that sending into a channel that no
//! receiver empties costs little more.

use super::hub::Gate;
use super::send_end::SendEnd;
use crate::ring::sync::yield_now;

/// Sends between two looks at most. (2-core Intel virtual machine, 5 to 20 senders of a burst: wall
/// time with looks after 16 sends up to 5 % above that after 64.)
const LOOK_EVERY_MAX: usize = 64;
/// The number of turns to give away at most, at 0.2 µs each where no other thread wants the core.
const TURNS: u32 = 64;
/// As many of them before receivers must have come on.
const TURNS_IN_VAIN: u32 = 16;

/// The state that a sender keeps of the balance.
#[derive(Debug)]
pub(super) struct Balance {
    /// Elements that may wait; `usize::MAX` for no limit.
    limit: usize,
    /// Sends until the next look, and between the last two.
    left: usize,
    every: usize,
}

impl Balance {
    pub(super) fn new(limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(usize::MAX);
        let every = every(limit);
        Self {
            limit,
            left: every,
            every,
        }
    }

    /// Gives turns away, after `sent` more sends, if it is time to look and too many elements wait.
    #[inline(always)]
    pub(super) fn keep<T>(&mut self, sent: usize, end: &mut SendEnd<T>, gate: &Gate) {
        if self.limit != usize::MAX {
            self.left = self.left.saturating_sub(sent);
            if self.left == 0 {
                self.look(end, gate);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn look<T>(&mut self, end: &mut SendEnd<T>, gate: &Gate) {
        let pushed = end.pushed();
        if !end.is_behind(self.limit, pushed) || self.give_turns(end, gate, pushed) {
            self.every = every(self.limit);
        } else {
            self.every = self.every.saturating_mul(2);
        }
        self.left = self.every;
    }

    /// Gives turns away until half the limit is left; returns whether that was reached.
    fn give_turns<T>(&self, end: &mut SendEnd<T>, gate: &Gate, pushed: u64) -> bool {
        gate.balanced.add(1);
        for turn in 0..TURNS {
            yield_now();
            if !end.is_behind(self.limit / 2, pushed) {
                return true;
            }
            if turn == TURNS_IN_VAIN && end.is_behind(self.limit, pushed) {
                return false;
            }
        }
        false
    }
}

/// Sends between looks while the balance is kept: few where few may wait.
fn every(limit: usize) -> usize {
    (limit / 8).clamp(1, LOOK_EVERY_MAX)
}
