//! A clock that is cheap enough to read several times an event.
//!
//! [`Clock::ticks`] reads the counter of the processor: the invariant time stamp counter of
//! x86_64 (CPUID says whether it is invariant), the virtual counter of ARMv8, or else the
//! operating system's monotonic clock; Linux says which counters it found to be unreliable, and
//! those are not used. Ticks are kept as they are where time is short, and become
//! nanoseconds ([`Clock::ns`]) where they are reported.
//!
//! The rate is found once per process: both clocks are read together, 10 ms apart, 32 times at
//! each end, and the tightest read of each end counts.
//!
//! Ticks of different threads may be compared as far as the operating system keeps the counters
//! of the cores in step; it does on every machine where it uses them itself. A difference may
//! still come out a few ticks below zero, so subtract with `saturating_sub`.

mod calibration;
#[allow(
    unsafe_code,
    reason = "reads the counter of the processor; the only such module"
)]
mod hardware;

use calibration::{Calibration, Scale};
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

/// The counter that a [`Clock`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The invariant time stamp counter of x86_64.
    Tsc,
    /// The virtual counter of ARMv8, `cntvct_el0`.
    ArmCounter,
    /// The monotonic clock of the operating system; a tick is a nanosecond.
    Os,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Tsc => "tsc",
            Source::ArmCounter => "arm-counter",
            Source::Os => "os",
        })
    }
}

/// A source of time, as a seam: [`Clock`] in a program, a hand-driven clock in a test.
pub trait TimeSource {
    /// Returns the present time in ticks. Never goes backwards on one thread.
    fn ticks(&self) -> u64;
    /// Returns a span in ticks as nanoseconds.
    fn ns(&self, ticks: u64) -> u64;
    /// Returns a span in nanoseconds as ticks.
    fn ticks_from_ns(&self, ns: u64) -> u64;
}

/// A calibrated clock: a small value to be copied to wherever time is read.
///
/// ```
/// use thalweg_measure::clock::Clock;
/// let clock = Clock::global();
/// let begin = clock.ticks();
/// let took_ns = clock.ns(clock.ticks().saturating_sub(begin));
/// # let _ = took_ns;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    scale: Scale,
}

/// The one calibration of this process.
static CALIBRATION: OnceLock<Calibration> = OnceLock::new();

impl Clock {
    /// Returns the clock of this process. The first call calibrates it, which takes 10 ms and a
    /// little; every later call copies the result. Call it before time is short.
    pub fn global() -> Clock {
        let Calibration { source, scale } = *CALIBRATION.get_or_init(Calibration::take);
        Clock { source, scale }
    }

    /// Returns a clock that reads the operating system, whatever the processor has.
    pub fn with_os() -> Clock {
        Clock {
            source: Source::Os,
            scale: Scale::ONE,
        }
    }

    /// Returns the present time in ticks: 8–20 ns for a hardware counter, 25 ns and more for the
    /// operating system ([`Clock::read_cost_ns`] says how much here). Not ordered against the loads
    /// and stores around it; the processor may move it by some tens of instructions.
    #[inline(always)]
    #[must_use]
    pub fn ticks(self) -> u64 {
        // One compare of a value in a register, always predicted.
        match self.source {
            Source::Os => os_ns(),
            Source::Tsc | Source::ArmCounter => hardware::counter(),
        }
    }

    /// Works as [`ticks`](Self::ticks) when everything before it is done: for spans so short that a
    /// processor has still most of the work before it when it reads the counter. It waits for that
    /// work, so it costs a little more, and what overlaps with it no longer does.
    #[inline(always)]
    #[must_use]
    pub fn ticks_after(self) -> u64 {
        match self.source {
            Source::Os => os_ns(),
            Source::Tsc | Source::ArmCounter => hardware::counter_after(),
        }
    }

    /// Returns a span in ticks as nanoseconds, rounded to nearest: exact to 1 ppm of the calibrated
    /// rate at any length. No overflow below 500 years; beyond, `u64::MAX`. Costs one
    /// multiplication.
    #[inline]
    #[must_use]
    pub fn ns(self, ticks: u64) -> u64 {
        self.scale.ns(ticks)
    }

    /// Returns a span in nanoseconds as ticks, rounded to nearest; `u64::MAX` where it has no room.
    #[inline]
    #[must_use]
    pub fn ticks_from_ns(self, ns: u64) -> u64 {
        self.scale.ticks(ns)
    }

    /// Returns the counter that this clock reads.
    #[must_use]
    pub fn source(self) -> Source {
        self.source
    }

    /// Returns the cost of one read on this machine in nanoseconds: the median of 101 batches of 64
    /// reads back to back. It is measured at each call, which takes some 0.2 ms.
    #[must_use]
    pub fn read_cost_ns(self) -> f64 {
        self.cost_ns(Clock::ticks)
    }

    /// Works as [`read_cost_ns`](Self::read_cost_ns) of [`ticks_after`](Self::ticks_after).
    #[must_use]
    pub fn read_after_cost_ns(self) -> f64 {
        self.cost_ns(Clock::ticks_after)
    }

    #[inline(always)]
    fn cost_ns(self, read: impl Fn(Clock) -> u64) -> f64 {
        const BATCHES: usize = 101;
        const READS: u64 = 64;
        let mut spans = [0_u64; BATCHES];
        for span in &mut spans {
            let begin = read(self);
            for _ in 1..READS {
                std::hint::black_box(read(self));
            }
            *span = read(self).saturating_sub(begin);
        }
        spans.sort_unstable();
        // Scaled up before the conversion, so that rounding stays below a thousandth.
        self.ns(spans[BATCHES / 2] * 1000) as f64 / (1000 * READS) as f64
    }
}

impl TimeSource for Clock {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        Clock::ticks(*self)
    }
    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        Clock::ns(*self, ticks)
    }
    #[inline]
    fn ticks_from_ns(&self, ns: u64) -> u64 {
        Clock::ticks_from_ns(*self, ns)
    }
}

/// Nanoseconds of the monotonic clock since this process first asked.
#[inline]
fn os_ns() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    let epoch = *EPOCH.get_or_init(Instant::now);
    // 64 bits of nanoseconds last 584 years.
    Instant::now().saturating_duration_since(epoch).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn both() -> [Clock; 2] {
        [Clock::global(), Clock::with_os()]
    }

    #[test]
    fn never_goes_backwards_on_one_thread() {
        for clock in both() {
            let begin = clock.ticks();
            let mut last = begin;
            for at in 0..100_000 {
                let now = if at % 2 == 0 {
                    clock.ticks_after()
                } else {
                    clock.ticks()
                };
                assert!(now >= last, "{:?}: {last} then {now}", clock.source());
                last = now;
            }
            assert!(last > begin, "{:?} stands still", clock.source());
        }
    }

    #[test]
    fn agrees_with_the_operating_system() {
        for clock in both() {
            // Whatever happens between the reads, one span encloses the other on each side.
            let outer = Instant::now();
            let begin = clock.ticks();
            let inner = Instant::now();
            while inner.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            let inner_ns = inner.elapsed().as_nanos() as u64;
            let took_ns = clock.ns(clock.ticks() - begin);
            let outer_ns = outer.elapsed().as_nanos() as u64;
            let slack_ns = outer_ns / 500;
            assert!(took_ns + slack_ns >= inner_ns, "{took_ns} below {inner_ns}");
            assert!(took_ns <= outer_ns + slack_ns, "{took_ns} above {outer_ns}");
        }
    }

    #[test]
    fn source_is_hardware_where_there_is_some() {
        let expected = if hardware::present() {
            hardware::SOURCE
        } else {
            Source::Os
        };
        assert_eq!(Clock::global().source(), expected);
        assert_eq!(Clock::with_os().source(), Source::Os);
        assert_eq!(Clock::with_os().ns(123_456_789), 123_456_789);
        assert_eq!(Clock::with_os().ticks_from_ns(123_456_789), 123_456_789);
    }

    #[test]
    fn global_is_calibrated_once() {
        assert_eq!(Clock::global().scale, Clock::global().scale);
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(Clock::global)).collect();
        for thread in threads {
            let clock = thread.join().expect("the thread does not panic");
            assert_eq!(clock.scale, Clock::global().scale);
        }
    }

    #[test]
    fn a_read_costs_something() {
        for clock in both() {
            for cost_ns in [clock.read_cost_ns(), clock.read_after_cost_ns()] {
                assert!(cost_ns > 0.1, "{:?}: {cost_ns}", clock.source());
            }
        }
    }

    #[test]
    fn sources_have_names() {
        assert_eq!(Source::Tsc.to_string(), "tsc");
        assert_eq!(Source::ArmCounter.to_string(), "arm-counter");
        assert_eq!(Source::Os.to_string(), "os");
    }
}
