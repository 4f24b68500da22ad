//! The results of snapshots that were asked for.

use std::time::Duration;

use thalweg_journal::Error as JournalError;

use crate::durable::error::SnapshotWriteError;

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
