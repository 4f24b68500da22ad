//! Figures of a durable exchange.

use thalweg::pipeline;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};

use super::snapshots::SnapshotStats;
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
