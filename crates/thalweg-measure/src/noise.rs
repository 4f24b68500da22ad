//! How much the machine took away: gaps between clock reads that should follow each other.
//!
//! A thread that only reads the clock sees a step of some 20 ns each time. A longer step means that
//! the core did something else: an interrupt, another thread, a hypervisor that ran another guest.
//! The operating system does not see the last kind (its count of stolen time comes in ticks of
//! 10 ms and misses short gaps), the counter of the processor sees them all.
//!
//! Feed a [`GapMeter`] from a spin loop that a run has anyway, or run a [`GapLoop`] before, after
//! or beside it, and say in the report what it found.

use crate::clock::TimeSource;

/// Collects the gaps above a threshold. One compare for a step that is no gap.
#[derive(Clone, Debug)]
pub struct GapMeter {
    threshold_ticks: u64,
    last_ticks: Option<u64>,
    gaps: Gaps,
}

/// The gaps that a meter found, in the ticks that it was fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The number of gaps.
    pub count: u64,
    /// The sum of their lengths.
    pub total_ticks: u64,
    /// The longest.
    pub longest_ticks: u64,
    /// The time looked at, gaps included.
    pub span_ticks: u64,
}

impl Gaps {
    /// Returns the fraction of the time that gaps took, 0 to 1; 0 where no time was looked at.
    #[must_use]
    pub fn disturbance(&self) -> f64 {
        if self.span_ticks == 0 {
            0.0
        } else {
            self.total_ticks as f64 / self.span_ticks as f64
        }
    }

    /// Returns both together, as if one meter had seen them one after the other.
    #[must_use]
    pub fn with(self, other: Gaps) -> Gaps {
        Gaps {
            count: self.count + other.count,
            total_ticks: self.total_ticks + other.total_ticks,
            longest_ticks: self.longest_ticks.max(other.longest_ticks),
            span_ticks: self.span_ticks + other.span_ticks,
        }
    }
}

impl GapMeter {
    /// Returns a meter for gaps longer than `threshold_ticks`.
    #[must_use]
    pub fn new(threshold_ticks: u64) -> Self {
        GapMeter {
            threshold_ticks,
            last_ticks: None,
            gaps: Gaps::default(),
        }
    }

    /// Takes the present time. Call it as often as the loop turns; the first call begins.
    #[inline]
    pub fn tick(&mut self, now_ticks: u64) {
        let Some(last) = self.last_ticks.replace(now_ticks) else {
            return;
        };
        let gap = now_ticks.saturating_sub(last);
        self.gaps.span_ticks += gap;
        if gap > self.threshold_ticks {
            self.count(gap);
        }
    }

    #[cold]
    fn count(&mut self, gap: u64) {
        self.gaps.count += 1;
        self.gaps.total_ticks += gap;
        self.gaps.longest_ticks = self.gaps.longest_ticks.max(gap);
    }

    /// Leaves out the time until the next [`tick`](Self::tick): the loop has work to do.
    pub fn pause(&mut self) {
        self.last_ticks = None;
    }

    /// Returns the gaps that were found so far.
    #[must_use]
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }
}

/// A loop that does nothing but read the clock and note the gaps.
///
/// ```
/// use thalweg_measure::{clock::Clock, noise::GapLoop};
/// let gaps = GapLoop::new(Clock::global(), 1_000).run(100_000);
/// assert!(gaps.disturbance() <= 1.0);
/// ```
#[derive(Clone, Debug)]
pub struct GapLoop<T> {
    clock: T,
    threshold_ticks: u64,
}

impl<T: TimeSource> GapLoop<T> {
    /// Returns a loop that notes gaps longer than `threshold_ns`. 1,000 ns is well above a clock
    /// read and below what an interrupt takes.
    pub fn new(clock: T, threshold_ns: u64) -> Self {
        let threshold_ticks = clock.ticks_from_ns(threshold_ns);
        GapLoop {
            clock,
            threshold_ticks,
        }
    }

    /// Reads the clock back to back for `span_ns`.
    pub fn run(&self, span_ns: u64) -> Gaps {
        let end = self.clock.ticks() + self.clock.ticks_from_ns(span_ns);
        let mut meter = GapMeter::new(self.threshold_ticks);
        loop {
            let now = self.clock.ticks();
            meter.tick(now);
            if now >= end {
                return meter.gaps();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn only_gaps_above_the_threshold_count() {
        let mut meter = GapMeter::new(100);
        for now in [1_000, 1_020, 1_120, 1_221, 1_240, 1_740, 1_739, 1_760] {
            meter.tick(now);
        }
        let expected = Gaps {
            count: 2,
            total_ticks: 601,
            longest_ticks: 500,
            span_ticks: 761,
        };
        assert_eq!(meter.gaps(), expected);
        assert_eq!(meter.gaps().disturbance(), 601.0 / 761.0);
    }

    #[test]
    fn a_pause_is_no_gap() {
        let mut meter = GapMeter::new(100);
        assert_eq!(meter.gaps().disturbance(), 0.0);
        meter.tick(10);
        meter.tick(20);
        meter.pause();
        meter.tick(9_000);
        meter.tick(9_010);
        assert_eq!(
            meter.gaps(),
            Gaps {
                span_ticks: 20,
                ..Gaps::default()
            }
        );
        let other = Gaps {
            count: 1,
            total_ticks: 7,
            longest_ticks: 7,
            span_ticks: 10,
        };
        let both = Gaps {
            count: 2,
            total_ticks: 14,
            longest_ticks: 7,
            span_ticks: 20,
        };
        assert_eq!(other.with(other), both);
    }

    /// 1 tick a nanosecond, 20 a look, and once 5,000.
    struct Disturbed {
        looks: Cell<u64>,
    }

    impl TimeSource for Disturbed {
        fn ticks(&self) -> u64 {
            self.looks.set(self.looks.get() + 1);
            self.looks.get() * 20 + if self.looks.get() > 30 { 5_000 } else { 0 }
        }
        fn ns(&self, ticks: u64) -> u64 {
            ticks
        }
        fn ticks_from_ns(&self, ns: u64) -> u64 {
            ns
        }
    }

    #[test]
    fn the_loop_finds_the_gap() {
        let gaps = GapLoop::new(
            Disturbed {
                looks: Cell::new(0),
            },
            1_000,
        )
        .run(10_000);
        assert_eq!(
            (gaps.count, gaps.total_ticks, gaps.longest_ticks),
            (1, 5_020, 5_020)
        );
        // The first look sets the end, the second begins.
        assert_eq!(gaps.span_ticks, 9_980);
    }
}
