//! Records a run over time: how many commands finished in each interval, and how long they took.

use crate::report::facts::{Throughput, times_min};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{group_middle, group_of};
use thalweg_measure::load::Rate;

/// The maximum number of intervals; beyond it, pairs of intervals are merged.
const INTERVALS_MAX: usize = 120;
/// The initial length of an interval.
const INTERVAL_NS: u64 = 62_500;
/// The number of groups of times: four per octave, up to 2^40 ticks.
pub(super) const GROUPS: usize = 160;

/// Returns the group of a time in ticks.
#[inline]
pub(super) fn group(ticks: u64) -> usize {
    group_of::<2>(ticks).min(GROUPS - 1)
}

/// The commands that finished in an interval.
#[derive(Clone, Debug)]
struct Interval {
    count: u64,
    sum_ticks: u64,
    groups: [u32; GROUPS],
}

impl Interval {
    const EMPTY: Interval = Interval {
        count: 0,
        sum_ticks: 0,
        groups: [0; GROUPS],
    };

    fn merge(&mut self, other: &Interval) {
        self.count += other.count;
        self.sum_ticks = self.sum_ticks.saturating_add(other.sum_ticks);
        for (n, more) in self.groups.iter_mut().zip(&other.groups) {
            *n = n.saturating_add(*more);
        }
    }

    fn quantile(&self, quantile: f64) -> Option<u64> {
        let rank = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.groups.iter().position(|&n| {
            below += u64::from(n);
            below >= rank
        });
        found.map(group_middle::<2>)
    }
}

/// All commands of a run, by when they finished. Nothing is allocated after `new`.
#[derive(Debug)]
pub(super) struct Timeline {
    width: u64,
    /// The end of the current interval; `None` before the first command.
    end: Option<u64>,
    intervals: Vec<Interval>,
}

impl Timeline {
    pub(super) fn new(clock: Clock) -> Timeline {
        Timeline {
            width: clock.ticks_from_ns(INTERVAL_NS).max(1),
            end: None,
            intervals: Vec::with_capacity(INTERVALS_MAX + 1),
        }
    }

    /// Records that a command that was due at `due` is done.
    #[inline]
    pub(super) fn note(&mut self, due: u64, now: u64) {
        if self.end.is_none_or(|end| now >= end) {
            self.go_on(due, now);
        }
        if let Some(interval) = self.intervals.last_mut() {
            let took = now.saturating_sub(due);
            interval.count += 1;
            interval.sum_ticks = interval.sum_ticks.saturating_add(took);
            interval.groups[group(took)] += 1;
        }
    }

    /// Advances to the interval of this moment.
    #[cold]
    fn go_on(&mut self, due: u64, now: u64) {
        let mut end = *self.end.get_or_insert(due);
        while end <= now {
            if self.intervals.len() == INTERVALS_MAX {
                self.halve();
            }
            self.intervals.push(Interval::EMPTY);
            end = end.saturating_add(self.width);
        }
        self.end = Some(end);
    }

    fn halve(&mut self) {
        for at in 0..INTERVALS_MAX / 2 {
            let mut both = self.intervals[2 * at].clone();
            both.merge(&self.intervals[2 * at + 1]);
            self.intervals[at] = both;
        }
        self.intervals.truncate(INTERVALS_MAX / 2);
        self.width *= 2;
    }

    /// Returns the facts, where `commands` were sent at this rate.
    pub(super) fn facts(&self, rate: Rate, commands: u64, clock: Clock) -> Throughput {
        let interval_ns = clock.ns(self.width);
        if self.intervals.len() < 2 {
            return Throughput::default();
        }
        let mut done = 0;
        let backlog = self.intervals.iter().zip(1_u64..).map(|(interval, at)| {
            done += interval.count;
            match rate.per_s() {
                Some(per_s) => {
                    let due = u128::from(at * interval_ns) * u128::from(per_s) / 1_000_000_000;
                    (due.min(u128::from(commands)) as u64).saturating_sub(done)
                }
                // Little's law gives the mean backlog.
                None => interval.sum_ticks / self.width,
            }
        });
        let quantile = |quantile: f64| {
            let intervals = self.intervals.iter();
            let spans = intervals.map(move |interval| {
                let ticks = interval.quantile(quantile);
                ticks.filter(|_| interval.count >= times_min(quantile))
            });
            spans
                .map(|ticks| ticks.map(|ticks| clock.ns(ticks)))
                .collect()
        };
        Throughput {
            interval_ns,
            backlog: backlog.collect(),
            finished: self.intervals.iter().map(|i| i.count).collect(),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commands: u64, gap: u64, took: impl Fn(u64) -> u64) -> (Timeline, Clock) {
        let clock = Clock::with_os();
        let mut timeline = Timeline::new(clock);
        for i in 0..commands {
            let due = 5_000 + i * gap;
            timeline.note(due, due + took(i));
        }
        (timeline, clock)
    }

    #[test]
    fn every_command_is_in_an_interval_however_long_the_run() {
        for commands in [200, 10_000, 1_000_000] {
            let (timeline, clock) = run(commands, 1_000, |_| 700);
            let per_s = Rate::per_second(1_000_000).unwrap();
            let found = timeline.facts(per_s, commands, clock);
            assert_eq!(found.finished.iter().sum::<u64>(), commands);
            let n = found.finished.len();
            assert!((2..=INTERVALS_MAX).contains(&n), "{n}");
            assert!(n as u64 * found.interval_ns >= commands * 1_000);
            let p50 = found.p50_ns[0].unwrap();
            assert!((600..800).contains(&p50), "{p50}");
            assert!(found.backlog.iter().all(|&n| n <= 1), "{:?}", found.backlog);
        }
    }

    #[test]
    fn a_backlog_grows_where_commands_are_due_faster_than_they_finish() {
        // One command is due every 1,000 ns, and one is done every 2,000.
        let clock = Clock::with_os();
        let mut timeline = Timeline::new(clock);
        for i in 0..1_000 {
            timeline.note(i * 1_000, (i + 1) * 2_000);
        }
        let per_s = Rate::per_second(1_000_000).unwrap();
        let found = timeline.facts(per_s, 1_000, clock);
        let half = found.backlog.len() / 2;
        assert!((480..=520).contains(&found.backlog[half - 1]), "{found:?}");
        assert_eq!(found.backlog.last(), Some(&0));
        // At the maximum rate, half of the time is spent on average.
        let found = timeline.facts(Rate::MAX, 1_000, clock);
        assert!(found.backlog[half] > 200, "{found:?}");
    }

    #[test]
    fn a_pause_is_intervals_without_commands_and_few_commands_have_no_p99() {
        let clock = Clock::with_os();
        let mut timeline = Timeline::new(clock);
        timeline.note(0, 100);
        timeline.note(1_000_000_000, 1_000_000_300);
        let found = timeline.facts(Rate::MAX, 2, clock);
        assert_eq!(found.finished.iter().sum::<u64>(), 2);
        assert_eq!((found.finished[0], found.finished[1]), (1, 0));
        assert_eq!(found.p50_ns[1], None);
        assert!(found.p99_ns.iter().all(Option::is_none));
        let (one, clock) = run(1, 1, |_| 5);
        assert!(one.facts(Rate::MAX, 1, clock).finished.is_empty());
    }
}
