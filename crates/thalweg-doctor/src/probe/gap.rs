//! A time for which switches are not recorded, and the window before it.

use crate::probe::totals::Totals;

/// The minimum share of a window that must remain after the cost of its records is subtracted.
const LEFT_MIN: f64 = 0.3;

/// The window that a gap follows, and the gap.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    pub(crate) window_from_ns: u64,
    pub(crate) before: Totals,
    pub(crate) since_ns: Option<u64>,
    /// The time since which all threads were blocked when it began, if they were.
    pub(crate) idle_since_ns: Option<u64>,
    /// The number of threads when it began.
    pub(crate) threads: usize,
    /// The time that the records of the window cost the program.
    pub(crate) cost_ns: f64,
    pub(crate) total_ns: u64,
}

impl Gap {
    /// Returns the factor by which events are more frequent while they are not recorded: the
    /// records lengthen the window by their cost, divided by the number of threads that run at
    /// once.
    pub(crate) fn often(&self, totals: &Totals, window_ns: u64) -> f64 {
        let ran_ns = totals.all.ran_ns - self.before.all.ran_ns;
        let window_ns = window_ns as f64;
        let at_once = (ran_ns as f64 / window_ns).max(1.0);
        let left = 1.0 - self.cost_ns / at_once / window_ns;
        1.0 / left.max(LEFT_MIN)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.since_ns.is_some()
    }
}
