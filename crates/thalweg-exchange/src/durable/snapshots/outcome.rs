//! The results of snapshots that were asked for.

use std::any::Any;
use std::time::Duration;

use thalweg_journal::Error as JournalError;
use thiserror::Error;

use super::SnapshotFlaw;
use crate::digest::Digest;
use crate::durable::error::OpenError;

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

/// Why a snapshot was not written. The exchange goes on.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SnapshotFailed {
    /// The journal, or the file system.
    #[error("no snapshot was written: {0}")]
    Journal(#[from] JournalError),
    /// The snapshot before, or a record, cannot be read.
    #[error("no snapshot was written: {0}")]
    Reading(Box<OpenError>),
    /// The journal, executed again, gives another digest than the live exchange: one of them is at
    /// fault.
    #[error("no snapshot was written: after {commands} commands \
        the digest of the exchange is {:016x}, and that of its journal, executed again, {:016x}",
        .live.value(), .replayed.value())]
    Digest {
        /// The number of commands.
        commands: u64,
        /// The digest of the live exchange.
        live: Digest,
        /// The digest of the journal, executed again.
        replayed: Digest,
    },
    /// The bytes that were to be written cannot be read again.
    #[error("no snapshot was written: it could not be read again: {0}")]
    Unreadable(SnapshotFlaw),
    /// The exchange was closed first.
    #[error("no snapshot was written: the exchange was closed first")]
    Closed,
    /// Making it has panicked, which means a fault in this crate: with this message.
    #[error("no snapshot was written: making it has panicked: {0}")]
    Panicked(String),
}

impl SnapshotFailed {
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(text.unwrap_or("no message").to_owned())
    }
}

impl From<OpenError> for SnapshotFailed {
    fn from(error: OpenError) -> Self {
        Self::Reading(Box::new(error))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_why_there_is_no_snapshot() {
        let place = "/srv/exchange".to_owned();
        let failed = [
            SnapshotFailed::Journal(JournalError::InUse {
                place: place.clone(),
            }),
            SnapshotFailed::from(OpenError::NoRules { place }),
            SnapshotFailed::Digest {
                commands: 7,
                live: Digest::from_parts(1, 7),
                replayed: Digest::from_parts(2, 7),
            },
            SnapshotFailed::Unreadable(SnapshotFlaw::StateHash),
            SnapshotFailed::Closed,
            SnapshotFailed::panicked(&"odd"),
        ];
        assert_eq!(
            failed.map(|failed| failed.to_string()),
            [
                "no snapshot was written: /srv/exchange: another journal writes here",
                "no snapshot was written: /srv/exchange: there is a journal and no snapshot: it is \
                 none of an exchange, or its snapshots were removed",
                "no snapshot was written: after 7 commands the digest of the exchange is \
                 0000000000000001, and that of its journal, executed again, 0000000000000002",
                "no snapshot was written: it could not be read again: its state has another hash \
                 than its header gives",
                "no snapshot was written: the exchange was closed first",
                "no snapshot was written: making it has panicked: odd",
            ]
        );
    }
}
