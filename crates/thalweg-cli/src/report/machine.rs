//! The machine that a run used, and how much of it others took during the run.

use crate::message::{grouped, percent};
use serde::Serialize;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg::wait::cores;
use thalweg_doctor::report::processor;
use thalweg_measure::clock::Clock;
use thalweg_measure::noise::{GapLoop, Gaps};
use thalweg_measure::table::Nanoseconds;

/// The machine and the time of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// The processor, named as the system names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processor: Option<String>,
    /// The number of cores that this program may use, by its affinity and its quota.
    pub(crate) usable_cores: u64,
    /// The version of thalweg, with the commit where it is known.
    pub(crate) thalweg: String,
    /// The time at which the run began, in UTC.
    pub(crate) date: String,
    pub(crate) disturbance: Disturbance,
}

/// The disturbance by others. A figure that the system does not report is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Disturbance {
    /// The number of times that the system took the core from one of our threads for another
    /// thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted: Option<u64>,
    /// The share of the processors' time, from 0 to 1, that the host gave to other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    stolen: Option<f64>,
    /// The number of gaps of more than 10 µs in an idle loop, right before and after the run.
    gaps: u64,
    gap_longest_ns: u64,
    /// The share of that loop's time that the gaps took, from 0 to 1.
    gap_share: f64,
}

/// The share of the time from which on the machine is called disturbed.
const DISTURBED: f64 = 0.01;

impl Machine {
    /// Returns one line about the machine, the program and the date.
    pub(crate) fn line(&self) -> String {
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        let cores = match self.usable_cores {
            1 => "1 usable core".to_owned(),
            n => format!("{n} usable cores"),
        };
        format!(
            "{processor}, {cores}; thalweg {}; {}",
            self.thalweg, self.date
        )
    }
}

impl Disturbance {
    fn is_disturbed(&self) -> bool {
        self.gap_share > DISTURBED || self.stolen.is_some_and(|part| part > DISTURBED)
    }

    /// Returns one line about how quiet the machine was.
    pub(crate) fn line(&self) -> String {
        let mut found = Vec::new();
        if let Some(times) = self.interrupted {
            found.push(match times {
                0 => "it interrupted no thread of the run".to_owned(),
                1 => "it interrupted a thread of the run once".to_owned(),
                n => format!("it interrupted threads of the run {} times", grouped(n)),
            });
        }
        if let Some(part) = self.stolen.filter(|part| *part > 0.0) {
            found.push(format!("the host took {} of its time", percent(part)));
        }
        found.push(match self.gaps {
            0 => "an idle loop before and after saw no gap above 10 µs".to_owned(),
            n => format!(
                "an idle loop before and after saw {n} gap{} above 10 µs, up to {}, {} of the time",
                crate::message::plural(n),
                Nanoseconds(self.gap_longest_ns as f64),
                percent(self.gap_share)
            ),
        });
        let verdict = match self.is_disturbed() {
            true => "the machine was disturbed",
            false => "the machine was quiet",
        };
        format!("{verdict}: {}", found.join("; "))
    }
}

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

/// Formats seconds since 1970 as a date and a time of day.
pub(crate) fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Returns year, month and day of a day that is counted from the first of 1970. The years of the
/// computation begin in March (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    let (era, day) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (year * 365 + year / 4 - year / 100);
    let month = (day * 5 + 2) / 153;
    let day = day - (month * 153 + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    (era * 400 + year + u64::from(month <= 2), month, day)
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
    fn how_quiet_it_was_is_said() {
        let quiet = Disturbance {
            interrupted: Some(1),
            stolen: Some(0.0),
            ..Disturbance::default()
        };
        assert_eq!(
            quiet.line(),
            "the machine was quiet: it interrupted a thread of the run once; an idle loop before \
             and after saw no gap above 10 µs"
        );
        let disturbed = Disturbance {
            interrupted: None,
            stolen: Some(0.041),
            gaps: 12,
            gap_longest_ns: 4_100_000,
            gap_share: 0.08,
        };
        assert_eq!(
            disturbed.line(),
            "the machine was disturbed: the host took 4.10 % of its time; an idle loop before and \
             after saw 12 gaps above 10 µs, up to 4.10 ms, 8.00 % of the time"
        );
    }

    #[test]
    fn what_is_not_known_is_said_so() {
        let machine = Machine {
            usable_cores: 1,
            thalweg: "0.1.0".into(),
            date: "2026-11-23 05:40 UTC".into(),
            ..Machine::default()
        };
        let expected = "unknown processor, 1 usable core; thalweg 0.1.0; 2026-11-23 05:40 UTC";
        assert_eq!(machine.line(), expected);
    }

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
