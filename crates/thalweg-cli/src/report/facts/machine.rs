//! The machine of a run, and how much of it others used meanwhile.

use crate::report::number::{grouped, percent};
use serde::Serialize;
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
    pub(crate) stolen: Option<f64>,
    /// The number of gaps of more than 10 µs in an idle loop, right before and after the run.
    pub(crate) gaps: u64,
    pub(crate) gap_longest_ns: u64,
    /// The share of that loop's time that the gaps took, from 0 to 1.
    pub(crate) gap_share: f64,
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
    pub(crate) fn is_disturbed(&self) -> bool {
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
                crate::failure::plural(n),
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
}
