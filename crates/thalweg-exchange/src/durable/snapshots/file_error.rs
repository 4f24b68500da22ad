//! Errors in snapshots.

use std::fmt;

use thiserror::Error;

use crate::snapshot::SnapshotError;

/// The version of snapshot files. Those of version 1 have other checks of commands beside answers.
pub const SNAPSHOT_VERSION: u32 = 2;

/// An error in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// It does not begin as a snapshot does.
    #[error("it does not begin as a snapshot does")]
    Magic,
    /// It is of a version that is not known here.
    #[error("version {version} of the format; this program knows {SNAPSHOT_VERSION}")]
    Version {
        /// Its version.
        version: u32,
    },
    /// Its length is not what its header says; or it is too short to have one.
    #[error("it has {bytes} bytes instead of {expected}")]
    Length {
        /// Its length in bytes.
        bytes: u64,
        /// The length that it should have, at least.
        expected: u64,
    },
    /// A checksum does not agree.
    #[error("the checksum of the {what} does not agree")]
    Sum {
        /// The part: `header` or `file`.
        what: &'static str,
    },
    /// The state has not the hash that the header gives.
    #[error("its state has another hash than its header gives")]
    StateHash,
    /// The state cannot be read.
    #[error("its state: {0}")]
    State(SnapshotError),
    /// A field has a value that it cannot have.
    #[error("{what} at byte {at} is {value}, which cannot be")]
    Field {
        /// Which.
        what: &'static str,
        /// Where in its part (the header, the sessions, the reports) it begins, bytes.
        at: usize,
        /// The value that was found.
        value: u64,
    },
    /// A list ends before its last entry does.
    #[error("{what} end at byte {at}, too early")]
    Truncated {
        /// The list.
        what: &'static str,
        /// Where in its part.
        at: usize,
    },
    /// The file cannot be read: why.
    #[error("it cannot be read: {0}")]
    Io(String),
    /// It belongs to another journal.
    #[error("it belongs to another journal, {journal:016x}")]
    OtherJournal {
        /// The journal's number, that it gives.
        journal: u64,
    },
}

/// A snapshot that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub file: String,
    /// How many commands it holds, by its name.
    pub commands: u64,
    /// The error in it.
    pub why: SnapshotFileError,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: damaged, passed over: {}", self.file, self.why)
    }
}
