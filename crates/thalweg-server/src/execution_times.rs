//! How long the parts of execution take, for the commands that the exchange stamps.

use thalweg_exchange::service::Stamps;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};

use crate::command_trace::CommandTraces;

/// Written by the publish stage alone.
#[derive(Debug, Default)]
pub(crate) struct ExecutionTimes {
    /// In ticks.
    parts: [Recorder; 3],
    /// The stamped commands of the last second, one by one.
    pub(crate) traces: CommandTraces,
}

impl ExecutionTimes {
    /// A command that was stamped is published.
    pub(crate) fn note(&self, stamps: &Stamps) {
        let ends = [stamps.checked, stamps.matched, stamps.settled];
        let mut from = stamps.begun;
        for (times, end) in self.parts.iter().zip(ends) {
            times.record(end.saturating_sub(from));
            from = end;
        }
    }

    /// Returns the times of each part in nanoseconds.
    pub(crate) fn parts(&self) -> [(&'static str, Histogram); 3] {
        let clock = Clock::global();
        let times = |at: usize| self.parts[at].snapshot(|ticks| clock.ns(ticks));
        [
            ("risk", times(0)),
            ("match", times(1)),
            ("settle", times(2)),
        ]
    }
}
