//! Why an exchange was not opened, did not take a command, or has stopped.

use std::any::Any;
use std::io;
use std::sync::Arc;

use thalweg_journal::{Error as JournalError, Lsn};
use thiserror::Error;

use super::record::RecordError;
use super::snapshots::{Skipped, SnapshotFileError};
use crate::digest::Digest;
use crate::service::OptionsError;
use crate::session::Refusal;

/// Why an exchange was not opened.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The journal cannot be opened or read.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// The directory holds other files, and no exchange.
    #[error("{place}: no exchange is here, and the directory is not empty: {file}")]
    NotOurs {
        /// The directory.
        place: String,
        /// One of its files.
        file: String,
    },
    /// A record of the journal is no command of an exchange.
    #[error("{place}: record {lsn} is no command of an exchange: {why}")]
    Record {
        /// The directory.
        place: String,
        /// Which record.
        lsn: Lsn,
        /// The error in it.
        #[source]
        why: RecordError,
    },
    /// The journal begins after the newest whole snapshot ends.
    #[error(
        "{place}: commands from {missing} on are missing: the \
        journal begins with {first}, and no whole snapshot reaches so far"
    )]
    Gap {
        /// The directory.
        place: String,
        /// The number of the first command that is missing.
        missing: u64,
        /// The number of the first command that is there.
        first: u64,
    },
    /// A snapshot of another version, or of another exchange.
    #[error("{file}: {why}")]
    Snapshot {
        /// The file.
        file: String,
        /// The error in it.
        why: SnapshotFileError,
    },
    /// No snapshot is whole.
    #[error("no snapshot is whole{}",
        .skipped.iter().map(|one| format!("; {one}")).collect::<String>())]
    NoSnapshot {
        /// Those that are there.
        skipped: Vec<Skipped>,
    },
    /// There is a journal and no snapshot, so that the rules are unknown.
    #[error(
        "{place}: there is a journal and no snapshot: it is none of an exchange, \
        or its snapshots were removed"
    )]
    NoRules {
        /// The directory.
        place: String,
    },
    /// There is no exchange.
    #[error("{place}: no exchange is here")]
    NoExchange {
        /// The directory.
        place: String,
    },
    /// There are snapshots and no journal.
    #[error("{place}: there are snapshots and no journal")]
    NoJournal {
        /// The directory.
        place: String,
    },
    /// The journal ends before the newest snapshot.
    #[error(
        "{place}: the journal ends after {commands} commands, \
        the newest snapshot has {snapshot}"
    )]
    Behind {
        /// The directory.
        place: String,
        /// Commands in the journal.
        commands: u64,
        /// Commands in the snapshot.
        snapshot: u64,
    },
    /// No snapshot is whole, and the journal does not give what the header of one of them says:
    /// the exchange was made under other rules.
    #[error(
        "{place}: no snapshot is whole, and the journal, executed \
        under the rules that were given, does not lead to the state that the snapshot after \
        {commands} commands names: give the rules that the exchange was made with"
    )]
    OtherRules {
        /// The directory.
        place: String,
        /// Commands in that snapshot.
        commands: u64,
    },
    /// The first snapshot of a new exchange could not be written.
    #[error("{0}")]
    First(SnapshotWriteError),
    /// The system gives no thread for commits.
    #[error("a thread could not be started: {0}")]
    Thread(String),
    /// Options that are out of range.
    #[error("{what} is {asked}; {least} to {most} are possible")]
    Limit {
        /// Which.
        what: &'static str,
        /// The value that was asked for.
        asked: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// Options that the service refuses.
    #[error("{0}")]
    Service(#[from] OptionsError),
}

/// Why an exchange has stopped. It takes no more commands, and answers none: the outcome of those
/// without an answer is known once the directory is opened again.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A write or a sync of the journal failed, or a further segment could not be made for another
    /// reason than a lack of room, files or memory.
    #[error("the exchange has stopped: {0}")]
    Journal(Arc<JournalError>),
    /// The closure that publishes has panicked, or a thread of the exchange, which means a fault in
    /// this crate.
    #[error("the exchange has stopped: a part of it has panicked")]
    Panicked,
    /// It was closed while the disk was full: some commands could not be made durable.
    #[error("the exchange was closed while commands waited for room on the disk: {0}")]
    NoRoom(Arc<JournalError>),
    /// Another replica has claimed the command log: this one must not acknowledge anything any
    /// more. What has no answer is in the log once or not at all, and the new primary knows.
    #[error(
        "another replica has claimed the command log, which was this one's in epoch {epoch}: \
        nothing is acknowledged here any more; started again, it follows the new primary"
    )]
    Fenced {
        /// The epoch in which it wrote the log.
        epoch: u64,
    },
    /// The disk of the primary has no room: another replica takes over.
    #[error(
        "there is no storage space for the journal of this replica ({why}), which leaves the \
        command log to another one; started again, it follows, and waits for room"
    )]
    NoRoomToLead {
        /// The lack, as a refusal.
        why: Refusal,
    },
    /// It was to be closed while the command log did not answer.
    #[error(
        "the command log gave no answer for {seconds} s, and the exchange was closed without: \
        whether its last {in_flight} commands and queries are executed is not known here; the \
        next primary knows"
    )]
    LogSilent {
        /// For how long.
        seconds: u64,
        /// How many commands and queries have no answer.
        in_flight: usize,
    },
}

/// EMFILE and ENFILE: the standard library has no kind for them.
const NO_FILES: [i32; 2] = [24, 23];

/// Returns why there is no further segment for now; none of an error that waiting does not mend.
pub(super) fn shortage(error: &JournalError) -> Option<Refusal> {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    let JournalError::Io { source, .. } = error else {
        return None;
    };
    let has_no_file = |code| NO_FILES.contains(&code);
    match source.kind() {
        StorageFull | QuotaExceeded => Some(Refusal::DiskFull),
        OutOfMemory | WouldBlock | Interrupted => Some(Refusal::Resources),
        _ if source.raw_os_error().is_some_and(has_no_file) => Some(Refusal::Resources),
        _ => None,
    }
}

/// Why a snapshot was not written. The exchange goes on.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SnapshotWriteError {
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
    Unreadable(SnapshotFileError),
    /// The exchange was closed first.
    #[error("no snapshot was written: the exchange was closed first")]
    Closed,
    /// Making it has panicked, which means a fault in this crate: with this message.
    #[error("no snapshot was written: making it has panicked: {0}")]
    Panicked(String),
}

impl SnapshotWriteError {
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(text.unwrap_or("no message").to_owned())
    }
}

impl From<OpenError> for SnapshotWriteError {
    fn from(error: OpenError) -> Self {
        Self::Reading(Box::new(error))
    }
}

/// Why a command was not taken.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The command is refused, for a reason that is sent to the client. It is one of
    /// [`InFlight`](Refusal::InFlight), [`Sessions`](Refusal::Sessions),
    /// [`DiskFull`](Refusal::DiskFull), [`Resources`](Refusal::Resources), [`Role`](Refusal::Role),
    /// [`SequenceReused`](Refusal::SequenceReused), [`AnswerGone`](Refusal::AnswerGone),
    /// [`NotExecuted`](Refusal::NotExecuted).
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The client sequence is 0; they begin with 1.
    #[error("the client sequence is 0; they begin with 1")]
    SequenceZero,
    /// The command's record is longer than a block of the journal.
    #[error("the command takes {bytes} bytes in the journal; the limit is {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit, which the journal's options set.
        bytes_max: usize,
    },
    /// The exchange has stopped.
    #[error("{0}")]
    Failed(#[from] ExchangeError),
}

impl SubmitError {
    /// Returns whether there is no room on the disk for now.
    pub(super) const fn is_shortage(&self) -> bool {
        matches!(self, Self::Refused(Refusal::DiskFull | Refusal::Resources))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_what_is_wrong_where_and_the_limit() {
        let place = || "/srv/exchange".to_owned();
        let opening = [
            OpenError::Record {
                place: place(),
                lsn: Lsn::new(9),
                why: RecordError::TooShort { bytes: 3 },
            },
            OpenError::Gap {
                place: place(),
                missing: 4,
                first: 8,
            },
            OpenError::Limit {
                what: "answers_kept",
                asked: 0,
                least: 1,
                most: 5,
            },
            OpenError::OtherRules {
                place: place(),
                commands: 7,
            },
        ];
        assert_eq!(
            opening.map(|error| error.to_string()),
            [
                "/srv/exchange: record 9 is no command of an exchange: it has 3 bytes, a command \
                 has 24 at least",
                "/srv/exchange: commands from 4 on are missing: the journal begins with 8, and no \
                 whole snapshot reaches so far",
                "answers_kept is 0; 1 to 5 are possible",
                "/srv/exchange: no snapshot is whole, and the journal, executed under the rules \
                 that were given, does not lead to the state that the snapshot after 7 commands \
                 names: give the rules that the exchange was made with",
            ]
        );
        let full = Arc::new(JournalError::InUse { location: place() });
        let bytes_max = 7;
        let submitting = [
            SubmitError::Refused(Refusal::DiskFull),
            SubmitError::SequenceZero,
            SubmitError::TooLong {
                bytes: 8,
                bytes_max,
            },
            SubmitError::Failed(ExchangeError::Journal(Arc::clone(&full))),
            SubmitError::Failed(ExchangeError::NoRoom(full)),
            SubmitError::Failed(ExchangeError::Panicked),
        ];
        assert_eq!(
            submitting.map(|error| error.to_string()),
            [
                "the journal's disk is full",
                "the client sequence is 0; they begin with 1",
                "the command takes 8 bytes in the journal; the limit is 7",
                "the exchange has stopped: /srv/exchange: another journal writes here",
                "the exchange was closed while commands waited for room on the disk: \
                 /srv/exchange: another journal writes here",
                "the exchange has stopped: a part of it has panicked",
            ]
        );
    }

    #[test]
    fn texts_say_why_a_primary_has_ended() {
        let failed = [
            ExchangeError::NoRoomToLead {
                why: Refusal::DiskFull,
            },
            ExchangeError::LogSilent {
                seconds: 5,
                in_flight: 3,
            },
        ];
        assert_eq!(
            failed.map(|failed| failed.to_string()),
            [
                "there is no storage space for the journal of this replica (the journal's disk is \
                 full), which leaves the command log to another one; started again, it follows, \
                 and waits for room",
                "the command log gave no answer for 5 s, and the exchange was closed without: \
                 whether its last 3 commands and queries are executed is not known here; the next \
                 primary knows",
            ]
        );
    }

    #[test]
    fn texts_say_why_there_is_no_snapshot() {
        let place = "/srv/exchange".to_owned();
        let failed = [
            SnapshotWriteError::Journal(JournalError::InUse {
                location: place.clone(),
            }),
            SnapshotWriteError::from(OpenError::NoRules { place }),
            SnapshotWriteError::Digest {
                commands: 7,
                live: Digest::from_parts(1, 7),
                replayed: Digest::from_parts(2, 7),
            },
            SnapshotWriteError::Unreadable(SnapshotFileError::StateHash),
            SnapshotWriteError::Closed,
            SnapshotWriteError::panicked(&"odd"),
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
