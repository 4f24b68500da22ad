//! The metrics by which two commands are compared.

use super::Run;
use thalweg_measure::table::{Nanoseconds, three_digits};

/// A metric of a run.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name in JSON.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Returns its value for a run; `None` where the system does not report it.
    pub of: fn(&Run) -> Option<f64>,
    /// Whether a smaller value is called "faster" rather than "less".
    pub is_speed: bool,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Unit {
    /// The value is in seconds.
    #[serde(rename = "s")]
    Seconds,
    /// The value is in bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// The value is a count.
    #[serde(rename = "1")]
    Count,
}

macro_rules! metrics {
    ($($name:ident $title:literal $unit:ident $is_speed:literal $of:expr;)*) => {
        /// All metrics, in the order of a report.
        pub const METRICS: &[Metric] = &[
            $(Metric {
                name: stringify!($name),
                title: $title,
                unit: Unit::$unit,
                of: $of,
                is_speed: $is_speed,
            },)*
        ];
    };
}

metrics! {
    wall "wall time" Seconds true |run| Some(run.wall);
    user "user CPU" Seconds true |run| Some(run.user);
    system "system CPU" Seconds true |run| Some(run.system);
    max_rss "max RSS" Bytes false |run| Some(run.max_rss);
    minor_faults "page faults, minor" Count false |run| Some(run.minor_faults);
    major_faults "page faults, major" Count false |run| Some(run.major_faults);
    voluntary_switches "switches, voluntary" Count false |run| Some(run.voluntary_switches);
    involuntary_switches "switches, involuntary" Count false |run| Some(run.involuntary_switches);
    queue_wait "run-queue wait" Seconds false |run| run.queue_wait;
}

impl Unit {
    /// Formats a value for people, with three digits.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Unit::Seconds if value == 0.0 => "0 s".to_owned(),
            Unit::Seconds => Nanoseconds(value * 1e9).to_string(),
            Unit::Count => format!("{value:.0}"),
            Unit::Bytes => {
                let size = value.abs();
                let (scale, name) = match size {
                    _ if size < 999.5 => return format!("{value:.0} B"),
                    _ if size < 999.5e3 => (1e3, "kB"),
                    _ if size < 999.5e6 => (1e6, "MB"),
                    _ => (1e9, "GB"),
                };
                format!("{} {name}", three_digits(value / scale))
            }
        }
    }

    /// Formats a difference for people, with its sign.
    #[must_use]
    pub fn signed(self, value: f64) -> String {
        let sign = if value > 0.0 { "+" } else { "" };
        format!("{sign}{}", self.shown(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits() {
        assert_eq!(Unit::Seconds.signed(0.0153), "+15.3 ms");
        assert_eq!(Unit::Seconds.signed(-2e-6), "-2.00 µs");
        assert_eq!(Unit::Seconds.signed(0.0), "0 s");
        assert_eq!(Unit::Count.signed(0.0), "0");
        let sizes = [999.0, 1e4, 4_096e3, 123_456_789.0, 9.996e9, -4_096.0];
        let shown = sizes.map(|bytes| Unit::Bytes.shown(bytes));
        let known = [
            "999 B", "10.0 kB", "4.10 MB", "123 MB", "10.0 GB", "-4.10 kB",
        ];
        assert_eq!(shown, known);
    }
}
