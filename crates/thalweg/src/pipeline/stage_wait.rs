//! How a thread of a pipeline waits.

use thalweg_measure::clock::Clock;

use crate::ring::sync::{IS_MODEL, spin_hint, yield_now};
use crate::wait::{EventCount, Pace, WaitMode, WaitStrategy, block, prepare_parker};

/// The time for which a thread yields before it sleeps, where threads outnumber the cores, ns. It
/// is longer than the thread would spin: yielding costs the other threads of the core little, and a
/// thread that slept sooner would pay a wake-up for every gap between events.
const YIELD_NS: u64 = 200_000;
/// The time for which a thread that waits for a free slot of a ring spins before it sleeps, ns: 25
/// wake-ups of 2 µs. The stage that frees the slot pays for a wake-up: at most 4 % of its time.
const ROOM_NS: u64 = 50_000;
/// The poll interval: the time between two checks of a full ring, ns. A check takes the line with
/// the last stage's sequence away from that stage (some 0.2 µs), and the fewer slots it finds, the
/// sooner the next check is due. But a thread sees the first free slot late by up to this time.
const POLL_NS: std::ops::RangeInclusive<u64> = 100..=10_000;
/// The time after which a waiting thread checks for each single free slot, ns. Stages publish free
/// slots once a round of 64 events, which takes this time at 150 ns an event.
const LONG_NS: u64 = 10_000;

/// How a thread of a pipeline waits: for events, and for room.
#[derive(Debug)]
pub(super) struct StageWait {
    strategy: WaitStrategy,
    /// Threads outnumber the cores.
    is_oversubscribed: bool,
    pace: Pace,
    clock: Clock,
    /// The poll interval now, ns.
    poll_ns: u64,
}

impl StageWait {
    /// Returns a wait by `strategy`. Where threads outnumber the cores (`is_oversubscribed`),
    /// [`WaitStrategy::Adaptive`] yields instead of spinning.
    pub(super) fn new(strategy: WaitStrategy, is_oversubscribed: bool) -> Self {
        let mode = match strategy {
            WaitStrategy::Adaptive if !is_oversubscribed => WaitMode::Balanced,
            // They spin or yield here, not in the pace, or not at all.
            WaitStrategy::Adaptive
            | WaitStrategy::Spin
            | WaitStrategy::Yield
            | WaitStrategy::Park => WaitMode::LowPower,
        };
        Self {
            strategy,
            is_oversubscribed,
            pace: Pace::new(mode),
            clock: Clock::global(),
            poll_ns: *POLL_NS.start(),
        }
    }

    /// Has the calling thread allocate now what its first sleep would.
    pub(super) fn prepare(&self) {
        if self.strategy.may_sleep() {
            prepare_parker();
        }
    }

    /// Returns whether pausing for a moment keeps no thread from running.
    pub(super) fn may_spin(&self) -> bool {
        match self.strategy {
            WaitStrategy::Spin => !IS_MODEL,
            WaitStrategy::Adaptive => self.pace.may_spin(),
            WaitStrategy::Yield | WaitStrategy::Park => false,
        }
    }

    fn yields(&self) -> bool {
        match self.strategy {
            WaitStrategy::Yield => true,
            WaitStrategy::Adaptive => self.is_oversubscribed,
            WaitStrategy::Spin | WaitStrategy::Park => false,
        }
    }

    /// Returns once `ready` returns `true`. If the strategy may sleep, the thread that makes it
    /// true must notify `event_count` afterwards.
    pub(super) fn until(&mut self, event_count: &EventCount, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        let awake_ns = match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Yield => u64::MAX,
            WaitStrategy::Adaptive if self.is_oversubscribed && !IS_MODEL => YIELD_NS,
            WaitStrategy::Adaptive | WaitStrategy::Park => 0,
        };
        let (step, began) = (self.spin_step(), self.clock.ticks());
        let awake = self.clock.ticks_from_ns(awake_ns);
        while awake_ns == u64::MAX || self.clock.ticks().saturating_sub(began) < awake {
            step();
            if ready() {
                return;
            }
        }
        // Without a deadline it returns when there is something.
        let _ = block(event_count, &mut self.pace, None, || ready().then_some(()));
    }

    /// Returns the function that a thread calls while it is awake.
    fn spin_step(&self) -> fn() {
        if self.yields() { yield_now } else { spin_hint }
    }

    /// Works as [`until`](Self::until) for room in a ring: returns once `room(is_long)` is not 0,
    /// where `is_long` asks for a check that finds any room, and costs the stage that makes it
    /// more. Checks less often if the last check found fewer than `plenty` slots, and goes on for
    /// longer than `until` before it sleeps.
    pub(super) fn until_room(
        &mut self,
        event_count: &EventCount,
        plenty: usize,
        mut room: impl FnMut(bool) -> usize,
    ) {
        let budget = if self.is_oversubscribed {
            YIELD_NS
        } else {
            ROOM_NS
        };
        let begin = self.clock.ticks();
        let deadline = begin + self.clock.ticks_from_ns(budget);
        let long = begin + self.clock.ticks_from_ns(LONG_NS);
        while !IS_MODEL && (self.may_spin() || self.yields()) {
            let now = self.pause_for(self.poll_ns);
            let found = room(now >= long);
            if found > 0 {
                let next = if found < plenty {
                    self.poll_ns * 2
                } else {
                    self.poll_ns / 2
                };
                self.poll_ns = next.clamp(*POLL_NS.start(), *POLL_NS.end());
                return;
            }
            if self.strategy.may_sleep() && now >= deadline {
                break;
            }
        }
        self.until(event_count, || room(true) > 0);
    }

    fn pause_for(&self, ns: u64) -> u64 {
        let end = self.clock.ticks() + self.clock.ticks_from_ns(ns);
        let step = self.spin_step();
        loop {
            step();
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
        for &strategy in WaitStrategy::ALL {
            for (is_oversubscribed, room) in [(false, 0), (true, 0), (false, 64), (true, 64)] {
                let shared = Arc::new((AtomicBool::new(false), EventCount::new()));
                let waiting = Arc::clone(&shared);
                let thread = std::thread::spawn(move || {
                    let mut wait = StageWait::new(strategy, is_oversubscribed);
                    let (condition, event_count) = &*waiting;
                    match room {
                        0 => wait.until(event_count, || condition.load(SeqCst)),
                        _ => wait.until_room(event_count, room, |_| condition.load(SeqCst).into()),
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
