//! The time of an executor.
//!
//! An executor counts time from its beginning in ticks of 16,384 ns. A timer's tick is the first
//! that does not begin before its time, and the present one is the last that has begun: so nothing
//! is early, and nothing is late by more than a tick once the executor looks. The executor looks at
//! its clock when no task is ready, and after each budget of polls: a read of the clock is 22 ns, a
//! poll 7 (on a two-core cloud machine, November 2026). The cost of a timer is in
//! `docs/notes/results-tasks.md`.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// One step of the wheel, ns. Nothing is early; what is late by this is no later than a thread
/// that sleeps wakes up.
const TICK_NS: u64 = 1 << 14;

/// `None` for more than 584 years.
#[inline]
fn nanoseconds(time: Duration) -> Option<u64> {
    let whole = time.as_secs().checked_mul(1_000_000_000)?;
    whole.checked_add(u64::from(time.subsec_nanos()))
}

/// Where an executor's time comes from, and where its count of ticks begins.
pub(crate) struct Time {
    now: Box<dyn Fn() -> Instant>,
    begin: Instant,
    /// The present, when it was looked at last.
    pub(crate) last: Cell<Instant>,
    /// Whether the wheel has ended: it is not advanced any more.
    pub(crate) is_over: Cell<bool>,
}

impl Time {
    pub(crate) fn new(now: Box<dyn Fn() -> Instant>) -> Self {
        let begin = now();
        Self {
            now,
            begin,
            last: Cell::new(begin),
            is_over: Cell::new(false),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        let now = (self.now)();
        self.last.set(now);
        now
    }

    /// Returns the first tick that is not before `at`.
    #[inline]
    pub(crate) fn tick_after(&self, at: Instant) -> u64 {
        let ns = nanoseconds(at.saturating_duration_since(self.begin));
        ns.map_or(u64::MAX, |ns| ns.div_ceil(TICK_NS))
    }

    pub(crate) fn ticks(&self) -> u64 {
        let ns = nanoseconds(self.now().saturating_duration_since(self.begin));
        ns.map_or(u64::MAX, |ns| ns / TICK_NS)
    }

    /// Returns when a tick is; `None` where that is more than the system's clock can say.
    pub(crate) fn at(&self, tick: u64) -> Option<Instant> {
        let ns = tick.checked_mul(TICK_NS)?;
        self.begin.checked_add(Duration::from_nanos(ns))
    }
}
