//! One core or two, what a run is there, and how its threads pass time.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use thalweg_measure::clock::Clock;

use crate::experiment::channels::duo::Seats;

/// On how many cores the two threads of a run are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cores {
    One,
    Two,
}

impl Cores {
    pub(super) const EACH: [Self; 2] = [Self::One, Self::Two];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "1 core",
            Self::Two => "2 cores",
        }
    }

    /// Where its threads are.
    ///
    /// # Errors
    /// There are too few.
    pub(super) fn seats(self) -> Result<Seats, String> {
        match self {
            Self::One => Seats::together(),
            Self::Two => Seats::apart(),
        }
    }

    /// One turn of a thread that polls: it gives its core away only where the other needs it.
    #[inline]
    pub(super) fn turn(self) {
        match self {
            Self::One => std::thread::yield_now(),
            Self::Two => std::hint::spin_loop(),
        }
    }

    /// Passes the time until `due` ticks. On two cores it spins, as a producer does that is busy
    /// with its own work; on one core it sleeps, and the other has the core. Says whether it slept.
    pub(super) fn until(self, due: u64) -> bool {
        let clock = Clock::global();
        let left = due.saturating_sub(clock.ticks());
        match self {
            Self::One if left > 0 => {
                std::thread::sleep(Duration::from_nanos(clock.ns(left)));
                true
            }
            Self::One => false,
            Self::Two => {
                while clock.ticks() < due {
                    std::hint::spin_loop();
                }
                false
            }
        }
    }

    /// Passes the time until `due` ticks in turns, so that it is met closely on one core too, if
    /// the other gives way.
    pub(super) fn poll_until(self, due: u64) {
        while Clock::global().ticks() < due {
            self.turn();
        }
    }
}

/// Has the calling thread's sleeps end when they are due, as far as the system can; without it
/// they are up to 50 µs late.
pub(super) fn sleep_precisely() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Sleeps, as a thread does that waits for something else.
pub(super) fn sleep_ns(ns: u64) {
    std::thread::sleep(Duration::from_nanos(ns));
}

/// Keeps the core busy for so long.
#[inline]
pub(super) fn work_ns(ns: u64) {
    let clock = Clock::global();
    let end = clock.ticks() + clock.ticks_from_ns(ns);
    while clock.ticks() < end {
        std::hint::spin_loop();
    }
}

/// A value on lines of its own: two, since processors fetch pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Line<T>(pub(super) T);
