//! Open-loop load: events are due by a schedule that waits for no response.
//!
//! Each event has an intended send time. A sender that is late, since the system under test
//! pushed back or the machine took the core away, sends what is due back to back; nothing is
//! skipped, and nothing is moved to a later time. Latency is measured from the intended time, so
//! an event that had to wait before it could be sent counts that wait. (Measuring from the real
//! send time hides just the worst moments: "coordinated omission", G. Tene, "How NOT to measure
//! latency", 2013.)

mod number;
mod rate;

pub use number::{NumberError, whole_number};
pub use rate::{PER_S_MAX, Rate, RateError};

use crate::clock::TimeSource;
use crate::histogram::{Histogram, Recorder};
use std::ops::ControlFlow;

/// A schedule of intended send times, and the sender that keeps to it.
///
/// ```
/// use thalweg_measure::clock::Clock;
/// use thalweg_measure::load::{OpenLoop, Rate};
/// let clock = Clock::global();
/// let mut load = OpenLoop::new(clock, Rate::per_second(1_000_000)?);
/// let mut latency_max = 0;
/// let report = load.run(100, |_, intended_ticks| {
///     // Do the work, then:
///     latency_max = latency_max.max(clock.ticks().saturating_sub(intended_ticks));
/// });
/// assert_eq!(report.sent, 100);
/// # Ok::<(), thalweg_measure::load::RateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenLoop<T> {
    clock: T,
    rate: Rate,
    /// The number of the next event, which is due `next / rate` after the begin: computed from the
    /// begin each time, so that no rounding adds up.
    next: u64,
    yielding: bool,
    /// When event 0 is due; set by the first event.
    begin_ticks: Option<u64>,
}

/// The report of a sender on itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadReport {
    /// The number of events that were sent.
    pub sent: u64,
    /// The time by which each event was sent later than intended, in nanoseconds: 0 where on time.
    /// Large values mean that the sender was held up, by the system under test or by the machine.
    /// Empty for [`Rate::MAX`], where nothing is intended.
    pub lateness_ns: Histogram,
    /// The time from the first intended time to after the last send, in nanoseconds.
    pub span_ns: u64,
    /// The time from the first intended time to when the event after the last one was due, in
    /// nanoseconds: as many gaps as events. 0 for [`Rate::MAX`].
    pub scheduled_ns: u64,
}

impl LoadReport {
    /// Returns the number of events a second that were really sent: the scheduled rate where the
    /// sender kept to it. 0 where no time passed.
    #[must_use]
    pub fn sent_per_s(&self) -> f64 {
        match self.span_ns.max(self.scheduled_ns) {
            0 => 0.0,
            ns => self.sent as f64 * 1e9 / ns as f64,
        }
    }
}

impl<T: TimeSource> OpenLoop<T> {
    /// Returns a regular schedule: events at equal distances. It begins with the first call of
    /// [`next_due`](Self::next_due) or [`run`](Self::run).
    pub fn new(clock: T, rate: Rate) -> Self {
        OpenLoop {
            clock,
            rate,
            next: 0,
            yielding: false,
            begin_ticks: None,
        }
    }

    /// Sets whether to give the core to other threads while the next event is not due, for a sender
    /// that shares its core. Costs precision: the core comes back when the others let it.
    #[must_use]
    pub fn yielding(mut self, yielding: bool) -> Self {
        self.yielding = yielding;
        self
    }

    /// Returns the intended time of the next event in ticks; each call moves on by one event. For a
    /// sender with a loop of its own. With [`Rate::MAX`] it is the present time.
    pub fn next_due(&mut self) -> u64 {
        if self.rate == Rate::MAX {
            return self.clock.ticks();
        }
        let begin = *self.begin_ticks.get_or_insert_with(|| self.clock.ticks());
        let due = begin + self.next_offset();
        self.next += 1;
        due
    }

    /// Returns how long after the begin the next event is due, in ticks; 0 for [`Rate::MAX`].
    fn next_offset(&self) -> u64 {
        let Some(per_s) = self.rate.per_s() else {
            return 0;
        };
        let ticks_per_s = self.clock.ticks_from_ns(1_000_000_000);
        (u128::from(self.next) * u128::from(ticks_per_s) / u128::from(per_s)) as u64
    }

    /// Spins, or yields, until `due_ticks`, and returns the time that it has become. Returns
    /// at once where that time has passed.
    pub fn wait_until(&self, due_ticks: u64) -> u64 {
        loop {
            let now = self.clock.ticks();
            if now >= due_ticks {
                return now;
            }
            if self.yielding {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Sends `n` events, `send(i, intended_ticks)` each no earlier than intended, with `i` from 0.
    /// A second run goes on with the schedule where the first left it; a gap between the two is
    /// caught up, so make a new `OpenLoop` for a fresh start.
    pub fn run(&mut self, n: u64, mut send: impl FnMut(u64, u64)) -> LoadReport {
        self.run_until(n, |i, intended_ticks| {
            send(i, intended_ticks);
            ControlFlow::Continue(())
        })
    }

    /// Works as [`run`](Self::run), and ends early where `send` answers `Break`; that event does
    /// not count as sent.
    pub fn run_until(
        &mut self,
        n: u64,
        mut send: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> LoadReport {
        let lateness = Recorder::new();
        let scheduled = self.rate != Rate::MAX;
        let first_offset = self.next_offset();
        let mut first_due = None;
        let mut end_offset = None;
        let mut sent = 0;
        while sent < n {
            let offset = self.next_offset();
            let due = self.next_due();
            first_due.get_or_insert(due);
            let late = if scheduled {
                self.wait_until(due).saturating_sub(due)
            } else {
                0
            };
            if send(sent, due).is_break() {
                end_offset = Some(offset);
                break;
            }
            if scheduled {
                lateness.record(late);
            }
            sent += 1;
        }
        let span = first_due.map_or(0, |first| self.clock.ticks().saturating_sub(first));
        let end_offset = end_offset.unwrap_or_else(|| self.next_offset());
        LoadReport {
            sent,
            lateness_ns: lateness.snapshot(|ticks| self.clock.ns(ticks)),
            span_ns: self.clock.ns(span),
            scheduled_ns: self.clock.ns(end_offset - first_offset),
        }
    }
}
