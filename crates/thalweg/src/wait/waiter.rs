//! Waiting for a condition with a strategy.

use super::{Mode, Pace, Signal, block, parker};
use crate::ring::sync::{IS_MODEL, spin_hint, yield_now};
use thalweg_measure::clock::Clock;

/// The way in which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Burn the core. The shortest reaction (a cache-line hand-off, 0.1 to 0.2 µs), for a thread
    /// that has a core of its own; many times slower than the others where it has not.
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
    /// Returns whether a waiting thread may sleep, so that another one must wake it.
    pub fn may_sleep(self) -> bool {
        matches!(self, Self::Park | Self::Adaptive)
    }
}

/// Yielding is cheap for the others on the core, so that it may last longer than spinning: two time
/// slices' worth of short turns, ns. Sleeping sooner makes every gap between events cost a wake-up.
const SHARE_NS: u64 = 200_000;
/// The time for which a thread that waits for room in a ring spins: 25 wake-ups of 2 µs, which the
/// stage that makes the room would have to pay. So waking costs a stage 4 % of its time at most.
const ROOM_NS: u64 = 50_000;
/// Time between two looks at a full ring, ns. Each look takes the line of the last stage's sequence
/// away from it (some 0.2 µs), and the less room there is, the sooner it is used up; but a waiting
/// thread must see the first free slot, and sees it later by this time at most.
const LOOK_NS: std::ops::RangeInclusive<u64> = 100..=10_000;

/// Stages publish free slots by the round, of 64 events. A thread that has waited for this time (a
/// round of 150 ns an event) looks for each single one.
const LONG_NS: u64 = 10_000;

/// A thread's way of waiting.
#[derive(Debug)]
pub(crate) struct Waiter {
    strategy: Strategy,
    /// Threads outnumber the cores.
    shares: bool,
    pace: Pace,
    clock: Clock,
    /// How long to pause between two looks at a full ring, ns.
    look_ns: u64,
}

impl Waiter {
    /// Waits by `strategy`; `shares` says that threads share cores, so that no thread may spin.
    pub(crate) fn new(strategy: Strategy, shares: bool) -> Self {
        let mode = match strategy {
            Strategy::Adaptive if !shares => Mode::Balanced,
            _ => Mode::Power,
        };
        Self {
            strategy,
            shares,
            pace: Pace::new(mode),
            clock: Clock::global(),
            look_ns: *LOOK_NS.start(),
        }
    }

    /// Has the calling thread allocate now what its first sleep would.
    pub(crate) fn prepare(&self) {
        if self.strategy.may_sleep() {
            parker::prepare();
        }
    }

    /// Returns whether pausing for a moment keeps no thread from running.
    pub(crate) fn may_pause(&self) -> bool {
        match self.strategy {
            Strategy::Spin => !IS_MODEL,
            Strategy::Adaptive => self.pace.may_spin(),
            Strategy::Yield | Strategy::Park => false,
        }
    }

    fn gives_turns(&self) -> bool {
        self.strategy == Strategy::Yield || (self.strategy == Strategy::Adaptive && self.shares)
    }

    /// Returns once `ready` returns `true`. If the strategy may sleep, the thread that makes it
    /// true must notify `signal` afterwards.
    pub(crate) fn until(&mut self, signal: &Signal, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        let awake_ns = match self.strategy {
            Strategy::Spin | Strategy::Yield => u64::MAX,
            Strategy::Adaptive if self.shares && !IS_MODEL => SHARE_NS,
            Strategy::Adaptive | Strategy::Park => 0,
        };
        let (turn, began) = (self.turn(), self.clock.ticks());
        let awake = self.clock.ticks_from_ns(awake_ns);
        while awake_ns == u64::MAX || self.clock.ticks().saturating_sub(began) < awake {
            turn();
            if ready() {
                return;
            }
        }
        // Without a deadline it returns when there is something.
        let _ = block(signal, &mut self.pace, None, || ready().then_some(()));
    }

    /// Returns the function that a thread calls while it is awake.
    fn turn(&self) -> fn() {
        if self.gives_turns() {
            yield_now
        } else {
            spin_hint
        }
    }

    /// Works as [`until`](Self::until) for room in a ring: returns once `room(is_long)` is not 0,
    /// where `is_long` asks for a check that finds any room, and costs the stage that makes it
    /// more. Looks less often if there was less than `plenty` the last time, and goes on for longer
    /// before it sleeps.
    pub(crate) fn until_room(
        &mut self,
        signal: &Signal,
        plenty: usize,
        mut room: impl FnMut(bool) -> usize,
    ) {
        let budget = if self.shares { SHARE_NS } else { ROOM_NS };
        let begin = self.clock.ticks();
        let deadline = begin + self.clock.ticks_from_ns(budget);
        let long = begin + self.clock.ticks_from_ns(LONG_NS);
        while !IS_MODEL && (self.may_pause() || self.gives_turns()) {
            let now = self.pause_for(self.look_ns);
            let found = room(now >= long);
            if found > 0 {
                let next = if found < plenty {
                    self.look_ns * 2
                } else {
                    self.look_ns / 2
                };
                self.look_ns = next.clamp(*LOOK_NS.start(), *LOOK_NS.end());
                return;
            }
            if self.strategy.may_sleep() && now >= deadline {
                break;
            }
        }
        self.until(signal, || room(true) > 0);
    }

    fn pause_for(&self, ns: u64) -> u64 {
        let end = self.clock.ticks() + self.clock.ticks_from_ns(ns);
        let turn = self.turn();
        loop {
            turn();
            let now = self.clock.ticks();
            if now >= end {
                return now;
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
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
            for (shares, room) in [(false, 0), (true, 0), (false, 64), (true, 64)] {
                let shared = Arc::new((AtomicBool::new(false), Signal::new()));
                let waiting = Arc::clone(&shared);
                let thread = std::thread::spawn(move || {
                    let mut waiter = Waiter::new(strategy, shares);
                    let (condition, signal) = &*waiting;
                    match room {
                        0 => waiter.until(signal, || condition.load(SeqCst)),
                        _ => waiter.until_room(signal, room, |_| condition.load(SeqCst).into()),
                    }
                });
                // Mostly long enough that a thread which may sleep does.
                for _ in 0..1_000 {
                    std::thread::yield_now();
                }
                shared.0.store(true, SeqCst);
                shared.1.notify_one();
                thread.join().unwrap();
            }
        }
    }
}
