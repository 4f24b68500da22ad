//! Statistics of a durable exchange: its stages, journal and snapshots.

use std::time::{Duration, Instant};

use thalweg::pipeline::{self, StageStats};
use thalweg_journal::Error as JournalError;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};

use super::error::SnapshotWriteError;
use super::in_flight::Slot;
use crate::session::Refusal;

/// The figures that the thread that commits records.
#[derive(Debug, Default)]
pub(super) struct Meters {
    wait_ticks: Recorder,
    group: Recorder,
}

impl Meters {
    /// Records a commit that made this number of commands durable. Only the thread that commits
    /// calls it.
    pub(super) fn note_commit(&self, commands: u64, ticks: u64) {
        self.wait_ticks.record(ticks);
        self.group.record(commands);
    }

    pub(super) fn commits(&self) -> u64 {
        self.wait_ticks.count()
    }

    pub(super) fn wait_ns(&self) -> Histogram {
        let clock = Clock::global();
        self.wait_ticks.snapshot(|ticks| clock.ns(ticks))
    }

    pub(super) fn group(&self) -> Histogram {
        self.group.snapshot(|commands| commands)
    }
}

/// Figures of the journal since the exchange was opened.
#[derive(Clone, Debug)]
pub struct JournalStats {
    /// Commands that were journaled.
    pub commands: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Commits: waits of the thread that commits for the disk.
    pub commits: u64,
    /// How long they took, in nanoseconds.
    pub commit_ns: Histogram,
    /// How many commands each made durable.
    pub group: Histogram,
    /// Why commands wait for room on the disk, for files or memory, and new ones are refused:
    /// [`Refusal::DiskFull`] or [`Refusal::Resources`]; none where they do not.
    pub lack: Option<Refusal>,
}

/// A snapshot that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotMade {
    /// How many commands it holds.
    pub commands: u64,
    /// The hash of the state.
    pub state_hash: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// How long it took, beside the exchange.
    pub took: Duration,
}

/// Figures of what was given up since the exchange was opened, where the storage has an archive.
#[derive(Clone, Debug, Default)]
pub struct ArchiveStats {
    /// How many attempts have failed. What was to go stays, and is tried again after the next
    /// snapshot.
    pub failures: u64,
    /// Why the last attempt failed, if it did.
    pub failed: Option<JournalError>,
}

/// Figures of the snapshots since the exchange was opened.
#[derive(Clone, Debug, Default)]
pub struct SnapshotStats {
    /// How many were written.
    pub made: u64,
    /// The last one.
    pub last: Option<SnapshotMade>,
    /// How many attempts have failed.
    pub failures: u64,
    /// Why the last attempt failed, if it did.
    pub failed: Option<SnapshotWriteError>,
    /// Whether one is being made.
    pub is_running: bool,
    /// Figures of the archive.
    pub archive: ArchiveStats,
}

/// Figures of a durable [`Exchange`](super::Exchange).
#[derive(Clone, Debug)]
pub struct Stats {
    /// The number of the next command.
    pub number: u64,
    /// Commands and queries in flight: submitted, and not published yet.
    pub in_flight: usize,
    /// Sessions that have sent commands, ever.
    pub sessions: usize,
    /// Execution reports that are kept for users who come back.
    pub reports: usize,
    /// Figures of the journal.
    pub journal: JournalStats,
    /// Figures of the snapshots.
    pub snapshots: SnapshotStats,
    /// Where the time went, stage by stage.
    pub stages: pipeline::Stats,
}

/// Times of one stage, in ticks.
#[derive(Debug, Default)]
struct Times {
    waited: Histogram,
    served: Histogram,
}

/// How long commands wait and are served on their way: those that are stamped.
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
    pub(super) fn stats(&self, commands: u64) -> pipeline::Stats {
        let stage = |name: &str, times: &Times| {
            StageStats::of(name, commands, times.waited.clone(), times.served.clone())
        };
        let stages = vec![
            stage("execute", &self.execute),
            stage("journal", &self.journal),
            stage("publish", &self.publish),
        ];
        pipeline::Stats::of(
            self.began.elapsed(),
            self.every,
            stages,
            self.end_to_end.clone(),
        )
    }
}
