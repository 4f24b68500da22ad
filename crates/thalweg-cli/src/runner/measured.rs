//! From measured ticks to facts: distributions, and throughput over time.

use crate::report::facts::{Distribution, Point, Throughput};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

/// Points of a curve in each halving of what is left of the percentiles.
const CURVE_POINTS_PER_HALF: u32 = 8;
/// How many intervals the run is cut into, at most.
const INTERVALS_MAX: u64 = 100;
/// How many commands share one reading of the time.
const COMMANDS_PER_SAMPLE_MIN: u64 = 64;
/// How many readings are kept, at most.
const READINGS_MAX: usize = 32 * INTERVALS_MAX as usize;

/// The facts of a histogram of nanoseconds.
pub(crate) fn distribution(times: &Histogram) -> Distribution {
    let summary = times.summary();
    let mut curve: Vec<Point> = times
        .curve(CURVE_POINTS_PER_HALF)
        .into_iter()
        .map(|(percentile, ns)| Point {
            quantile: percentile / 100.0,
            ns,
        })
        .filter(|point| point.quantile < 1.0)
        .collect();
    // The curve ends where the last value begins: one in so many is as slow as the slowest.
    let last = 1.0 - 1.0 / summary.count.max(1) as f64;
    curve.retain(|point| point.quantile < last);
    if summary.count > 0 {
        curve.push(Point {
            quantile: last,
            ns: summary.max,
        });
    }
    Distribution {
        count: summary.count,
        mean_ns: summary.mean,
        p50_ns: summary.p50,
        p90_ns: summary.p90,
        p99_ns: summary.p99,
        p99_9_ns: summary.p999,
        p99_99_ns: summary.p9999,
        max_ns: summary.max,
        curve,
    }
}

/// When commands finished, read now and then.
#[derive(Debug)]
pub(crate) struct Finished {
    /// A power of two, which doubles when there are too many readings.
    every: u64,
    ticks: Vec<u64>,
}

impl Finished {
    pub(crate) fn new() -> Finished {
        Finished {
            every: COMMANDS_PER_SAMPLE_MIN,
            ticks: Vec::with_capacity(READINGS_MAX),
        }
    }

    /// Command `i`, counted from 0, finished now.
    #[inline]
    pub(crate) fn at(&mut self, i: u64, ticks: u64) {
        if (i + 1) & (self.every - 1) == 0 {
            self.read(ticks);
        }
    }

    #[cold]
    fn read(&mut self, ticks: u64) {
        self.ticks.push(ticks);
        if self.ticks.len() == READINGS_MAX {
            self.every *= 2;
            let mut is_kept = true;
            self.ticks.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Commands finished in each interval between two moments.
    pub(crate) fn intervals(&self, begin: u64, end: u64, clock: Clock) -> Throughput {
        let intervals = (self.ticks.len() as u64 / 8).min(INTERVALS_MAX);
        let span = end.saturating_sub(begin);
        if intervals < 2 || span < intervals {
            return Throughput::default();
        }
        let width = span.div_ceil(intervals);
        let mut finished = vec![0; intervals as usize];
        for &at in &self.ticks {
            let interval = at.saturating_sub(begin) / width;
            finished[interval.min(intervals - 1) as usize] += self.every;
        }
        Throughput {
            interval_ns: clock.ns(width),
            finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_and_ends_at_the_slowest() {
        let mut times = Histogram::new();
        (1..=1_000).for_each(|ns| times.record(ns));
        let found = distribution(&times);
        let rising = |w: &[Point]| w[0].quantile < w[1].quantile && w[0].ns <= w[1].ns;
        assert!(found.curve.len() > 20 && found.curve.windows(2).all(rising));
        let last = found.curve.last().unwrap();
        assert_eq!((last.quantile, last.ns), (0.999, 1_000));
        assert!(distribution(&Histogram::new()).curve.is_empty());
    }

    #[test]
    fn intervals_count_every_sampled_command() {
        let mut finished = Finished::new();
        for i in 0..6_400 {
            finished.at(i, 1_000 + i * 10);
        }
        let flow = finished.intervals(1_000, 65_000, Clock::with_os());
        assert_eq!(flow.finished.iter().sum::<u64>(), 6_400);
        assert_eq!(flow.finished.len(), 12);
        let few = Finished::new().intervals(0, 1_000, Clock::with_os());
        assert!(few.finished.is_empty(), "too short to say");
    }

    #[test]
    fn readings_of_a_long_run_are_thinned_out() {
        let mut finished = Finished::new();
        let count = 64 * 10_000;
        (0..count).for_each(|i| finished.at(i, i));
        assert!(finished.ticks.len() < READINGS_MAX);
        let every = finished.every;
        let expected = (1..=count / every).map(|n| n * every - 1);
        assert!(finished.ticks.iter().copied().eq(expected), "every {every}");
        let flow = finished.intervals(0, count, Clock::with_os());
        let all = flow.finished.iter().sum::<u64>();
        assert!(all <= count && all > count - every, "{all} of {count}");
    }
}
