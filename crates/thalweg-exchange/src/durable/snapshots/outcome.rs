//! The results of snapshots that were asked for.

use std::time::Duration;

use crate::durable::error::SnapshotFailed;

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
    pub failed: Option<SnapshotFailed>,
    /// Whether one is being made.
    pub is_running: bool,
}
