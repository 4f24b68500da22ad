//! Reads from the system which machine a run uses, and how much of it others take during the run.

use crate::report::facts::{Disturbance, Machine};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg::wait::cores;
use thalweg_measure::clock::Clock;
use thalweg_measure::noise::{GapLoop, Gaps};

/// The length of the idle loop that runs before and after a run.
const LOOP_NS: u64 = 10_000_000;
const GAP_NS: u64 = 10_000;

/// The commit, if it was known when the program was built.
const COMMIT: Option<&str> = option_env!("THALWEG_COMMIT");

/// Returns the facts about the machine that are known before a run.
pub(crate) fn describe() -> Machine {
    let version = env!("CARGO_PKG_VERSION");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Machine {
        processor: processor(),
        usable_cores: cores::usable().count() as u64,
        thalweg: COMMIT.map_or_else(|| version.to_owned(), |at| format!("{version} ({at})")),
        date: date(now.map_or(0, |since| since.as_secs())),
        disturbance: Disturbance::default(),
    }
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Formats seconds since 1970 as a date and a time of day.
fn date(seconds: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut days, mut year) = (seconds / 86_400, 1970);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!(
        "{year}-{month:02}-{:02} {hour:02}:{minute:02} UTC",
        days + 1
    )
}

/// The system's counts at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The number of times that threads of this process lost their core.
    interrupted: Option<u64>,
    /// The ticks that were stolen and the ticks of all kinds, summed over all processors.
    stolen: Option<(u64, u64)>,
}

impl Counts {
    fn now() -> Counts {
        let stat = fs::read_to_string("/proc/stat").ok();
        Counts {
            interrupted: interrupted(),
            stolen: stat.and_then(|stat| stolen(&stat)),
        }
    }
}

fn interrupted() -> Option<u64> {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        // A thread may have ended in the meantime.
        let status = task.and_then(|task| fs::read_to_string(task.path().join("status")));
        let status = status.unwrap_or_default();
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        sum += count.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    }
    Some(sum)
}

/// Parses the line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and steal.
fn stolen(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    Some((*ticks.get(7)?, ticks[..8].iter().sum()))
}

/// Watches the machine during a run.
#[derive(Debug)]
pub(crate) struct Watch {
    idle: GapLoop<Clock>,
    gaps: Gaps,
    before: Counts,
    after: Counts,
}

impl Watch {
    /// Starts to watch, before the run; this takes 10 ms.
    pub(crate) fn begin() -> Watch {
        let idle = GapLoop::new(Clock::global(), GAP_NS);
        let gaps = idle.run(LOOP_NS);
        Watch {
            idle,
            gaps,
            before: Counts::now(),
            after: Counts::default(),
        }
    }

    /// Reads the counts when the work is done and its threads still exist.
    pub(crate) fn done(&mut self) {
        self.after = Counts::now();
    }

    /// Ends the watch, after the run; this takes 10 ms.
    pub(crate) fn end(self) -> Disturbance {
        let gaps = self.gaps.with(self.idle.run(LOOP_NS));
        let (before, after) = (self.before, self.after);
        let stolen = before.stolen.zip(after.stolen).map(|(before, after)| {
            let (stolen, all) = (
                after.0.saturating_sub(before.0),
                after.1.saturating_sub(before.1),
            );
            stolen as f64 / all.max(1) as f64
        });
        let interrupted = before.interrupted.zip(after.interrupted);
        Disturbance {
            interrupted: interrupted.map(|(before, after)| after.saturating_sub(before)),
            stolen,
            gaps: gaps.count,
            gap_longest_ns: Clock::global().ns(gaps.longest_ticks),
            gap_share: gaps.disturbance(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_right() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_868_799), "2000-02-29 23:59 UTC");
        assert_eq!(date(1_795_412_400), "2026-11-23 05:40 UTC");
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(stolen(stat), Some((8, 36)));
        assert_eq!(stolen("cpu  1 2 3\n"), None);
        assert_eq!(stolen(""), None);
    }

    #[test]
    fn a_run_is_watched() {
        let mut watch = Watch::begin();
        watch.done();
        let found = watch.end();
        assert!((0.0..=1.0).contains(&found.gap_share), "{found:?}");
        assert!(found.stolen.is_none_or(|part| (0.0..=1.0).contains(&part)));
        assert!(describe().usable_cores > 0);
    }
}
