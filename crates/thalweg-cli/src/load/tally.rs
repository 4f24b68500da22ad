//! The results of the commands of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_client::Outcome;
use thalweg_measure::histogram::Histogram;

/// The counts of one session, or of all.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The maximum number of commands without an answer.
    window: u64,
    under_way: u64,
    /// The number of commands that were due while the window was full.
    pub(super) held_up: u64,
    /// The latency of executed commands, from when they were due to the acknowledgement.
    pub(super) latency_ns: Histogram,
    pub(super) results: BTreeMap<&'static str, u64>,
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// The number of commands that were sent again after a connection was lost.
    pub(super) repeated: u64,
    pub(super) unanswered: u64,
}

impl Tally {
    pub(super) fn of(window: u64) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    pub(super) fn sent(&mut self) {
        self.held_up += u64::from(self.under_way >= self.window);
        self.under_way += 1;
    }

    pub(super) fn not_sent(&mut self) {
        self.under_way -= 1;
    }

    pub(super) fn done(&mut self, outcome: &Outcome, latency_ns: u64) {
        self.under_way -= 1;
        match outcome {
            Outcome::Executed {
                result,
                is_repeated,
                ..
            } => {
                self.latency_ns.record(latency_ns);
                *self.results.entry(result.name()).or_default() += 1;
                self.repeated += u64::from(*is_repeated);
            }
            Outcome::Refused { why, .. } => *self.refused.entry(why.name()).or_default() += 1,
            _ => self.unanswered += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.held_up += other.held_up;
        self.latency_ns.merge(&other.latency_ns);
        for (result, count) in &other.results {
            *self.results.entry(result).or_default() += count;
        }
        for (reason, count) in &other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self.repeated += other.repeated;
        // A command that has no answer when all is over will get none.
        self.unanswered += other.unanswered + other.under_way;
    }

    /// Returns whether every command was executed.
    pub(super) fn is_whole(&self) -> bool {
        self.unanswered == 0 && self.refused.is_empty()
    }
}

/// Returns the processor time that this program has used so far.
#[cfg(unix)]
pub(super) fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

/// Returns zero, as the processor time is not known on this platform.
#[cfg(not(unix))]
pub(super) const fn cpu_time() -> Duration {
    Duration::ZERO
}
