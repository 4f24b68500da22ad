//! Waiting for a condition with a strategy.

use super::Bell;
use crate::ring::sync::{spin_hint, yield_now};
use thalweg_measure::clock::Clock;

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Burn the core. The shortest reaction (a cache-line hand-off, 0.1 to 0.2 µs), for a thread
    /// that has a core of its own; a disaster where it has not.
    Spin,
    /// Give the turn away, again and again. Burns what is left of the core and lets others on it
    /// run.
    Yield,
    /// Sleep at once. Costs nothing while idle; a wake-up takes some 4 µs across cores, of which
    /// the waking thread pays 2.
    Park,
    /// Spin or yield for about as long as a wake-up takes, then sleep.
    #[default]
    Adaptive,
}

impl Strategy {
    /// Whether a waiting thread may sleep, so that somebody must ring its bell.
    pub fn may_sleep(self) -> bool {
        matches!(self, Self::Park | Self::Adaptive)
    }
}

/// What [`Strategy::Adaptive`] does before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adaptive {
    /// Every thread has a core: spin until the deadline.
    Spin,
    /// Threads share cores: no spinning; yield until the deadline, so that the others on the core
    /// come first.
    Share,
    /// One core for all: yield once.
    Alone,
}

impl Adaptive {
    /// What fits `threads` threads that all want to run on `cores` cores.
    pub fn fit(threads: usize, cores: usize) -> Self {
        if cores <= 1 {
            Self::Alone
        } else if threads > cores {
            Self::Share
        } else {
            Self::Spin
        }
    }
}

/// Spinning this long costs as much as a futex hand-off across cores, ns (4.3 µs on a two-core
/// cloud machine).
const SPIN_NS: u64 = 5_000;
/// Yielding is cheap for the others on the core, so that it may last longer: two time slices' worth
/// of short turns, ns. Sleeping sooner makes every gap between events cost a wake-up.
const SHARE_NS: u64 = 200_000;
/// Turns between two looks at the clock while spinning; a pause takes some 10 ns and the clock 20.
const TURNS_PER_LOOK: u32 = 16;

/// A thread's way of waiting, with what it counted.
#[derive(Debug)]
pub struct Waiter {
    strategy: Strategy,
    adaptive: Adaptive,
    clock: Clock,
    sleeps: u64,
}

impl Waiter {
    /// Waits by `strategy`; `adaptive` says what [`Strategy::Adaptive`] does first.
    pub fn new(strategy: Strategy, adaptive: Adaptive) -> Self {
        Self {
            strategy,
            adaptive,
            clock: Clock::global(),
            sleeps: 0,
        }
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// How often this thread went to sleep.
    pub fn sleeps(&self) -> u64 {
        self.sleeps
    }

    /// Returns once `ready` says `true`. If the strategy may sleep, whoever makes it true must ring
    /// `bell` afterwards.
    pub fn until(&mut self, bell: &Bell, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        match self.strategy {
            Strategy::Spin => {
                while !ready() {
                    spin_hint();
                }
            }
            Strategy::Yield => {
                while !ready() {
                    yield_now();
                }
            }
            Strategy::Park => self.sleep(bell, &mut ready),
            Strategy::Adaptive => {
                if !self.before_sleep(&mut ready) {
                    self.sleep(bell, &mut ready);
                }
            }
        }
    }

    /// The cheap part of adaptive waiting; gives whether the wait is over.
    fn before_sleep(&self, ready: &mut impl FnMut() -> bool) -> bool {
        let (budget_ns, turns, turn): (_, _, fn()) = match self.adaptive {
            Adaptive::Alone => {
                yield_now();
                return ready();
            }
            Adaptive::Spin => (SPIN_NS, TURNS_PER_LOOK, spin_hint),
            Adaptive::Share => (SHARE_NS, 1, yield_now),
        };
        let deadline = self.clock.ticks() + self.clock.ticks_from_ns(budget_ns);
        loop {
            for _ in 0..turns {
                turn();
                if ready() {
                    return true;
                }
            }
            if self.clock.ticks() >= deadline {
                return false;
            }
        }
    }

    fn sleep(&mut self, bell: &Bell, ready: &mut impl FnMut() -> bool) {
        while !ready() {
            self.sleeps += 1;
            bell.sleep_unless(&mut *ready);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn every_strategy_ends_when_the_condition_holds() {
        for strategy in [
            Strategy::Spin,
            Strategy::Yield,
            Strategy::Park,
            Strategy::Adaptive,
        ] {
            for adaptive in [Adaptive::Spin, Adaptive::Share, Adaptive::Alone] {
                let shared = Arc::new((AtomicBool::new(false), Bell::new()));
                let waiting = Arc::clone(&shared);
                let thread = std::thread::spawn(move || {
                    let mut waiter = Waiter::new(strategy, adaptive);
                    waiter.until(&waiting.1, || waiting.0.load(SeqCst));
                    waiter.sleeps()
                });
                // Mostly long enough that a thread which may sleep does.
                for _ in 0..1_000 {
                    std::thread::yield_now();
                }
                shared.0.store(true, SeqCst);
                shared.1.ring();
                let sleeps = thread.join().unwrap();
                assert!(strategy.may_sleep() || sleeps == 0);
            }
        }
    }

    #[test]
    fn nobody_spins_where_threads_outnumber_cores() {
        assert_eq!(Adaptive::fit(2, 2), Adaptive::Spin);
        assert_eq!(Adaptive::fit(3, 2), Adaptive::Share);
        assert_eq!(Adaptive::fit(2, 1), Adaptive::Alone);
        assert_eq!(Adaptive::fit(1, 1), Adaptive::Alone);
    }
}
