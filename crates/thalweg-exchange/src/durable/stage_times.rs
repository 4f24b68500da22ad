//! How long commands wait and are served on their way: of those that are stamped.

use std::time::Instant;

use thalweg::pipeline::{StageStats, Stats};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use super::in_flight::Slot;

/// Times of one stage, in ticks.
#[derive(Debug, Default)]
struct Times {
    waited: Histogram,
    served: Histogram,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct StageTimes {
    began: Instant,
    every: u64,
    execute: Times,
    journal: Times,
    publish: Times,
    end_to_end: Histogram,
}

impl StageTimes {
    /// One command in `every` is stamped.
    pub(super) fn new(every: u64) -> Self {
        Self {
            began: Instant::now(),
            every,
            execute: Times::default(),
            journal: Times::default(),
            publish: Times::default(),
            end_to_end: Histogram::new(),
        }
    }

    /// Records a command that was stamped and is published.
    #[cold]
    pub(super) fn record(&mut self, slot: &Slot, published: u64) {
        let (stamps, clock) = (&slot.stamps, Clock::global());
        let ns = |from: u64, to: u64| clock.ns(to.saturating_sub(from));
        self.execute.waited.record(ns(slot.taken, stamps.begun));
        self.execute.served.record(ns(stamps.begun, stamps.settled));
        self.journal
            .waited
            .record(ns(stamps.settled, stamps.journaled));
        self.journal.served.record(0);
        self.publish.waited.record(0);
        self.publish.served.record(ns(stamps.journaled, published));
        self.end_to_end.record(ns(slot.sent(), published));
    }

    /// Returns the figures as a pipeline has them, of this number of commands.
    pub(super) fn stats(&self, commands: u64) -> Stats {
        let stage = |name: &str, times: &Times| {
            StageStats::of(name, commands, times.waited.clone(), times.served.clone())
        };
        let stages = vec![
            stage("execute", &self.execute),
            stage("journal", &self.journal),
            stage("publish", &self.publish),
        ];
        Stats::of(
            self.began.elapsed(),
            self.every,
            stages,
            self.end_to_end.clone(),
        )
    }
}
