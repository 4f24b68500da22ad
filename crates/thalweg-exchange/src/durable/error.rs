//! Why an exchange was not opened, did not take a command, or has stopped.

use std::io;
use std::sync::Arc;

use thalweg_journal::{Error as JournalError, Lsn};

use super::record::RecordError;
use super::snapshots::{Skipped, SnapshotFailed, SnapshotFlaw};
use crate::error_texts::error_texts;
use crate::service::OptionsError;
use crate::session::Refusal;

/// Why an exchange was not opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The journal cannot be opened or read.
    Journal(JournalError),
    /// The directory holds other files, and no exchange.
    NotOurs {
        /// The directory.
        place: String,
        /// One of its files.
        file: String,
    },
    /// A record of the journal is no command of an exchange.
    Record {
        /// The directory.
        place: String,
        /// Which record.
        lsn: Lsn,
        /// The error in it.
        why: RecordError,
    },
    /// The journal begins after the newest whole snapshot ends.
    Gap {
        /// The directory.
        place: String,
        /// The number of the first command that is missing.
        missing: u64,
        /// The number of the first command that is there.
        first: u64,
    },
    /// A snapshot of another version, or of another exchange.
    Snapshot {
        /// The file.
        file: String,
        /// The error in it.
        why: SnapshotFlaw,
    },
    /// No snapshot is whole.
    NoSnapshot {
        /// Those that are there.
        skipped: Vec<Skipped>,
    },
    /// There is a journal and no snapshot, so that the rules are unknown.
    NoRules {
        /// The directory.
        place: String,
    },
    /// There is no exchange.
    NoExchange {
        /// The directory.
        place: String,
    },
    /// There are snapshots and no journal.
    NoJournal {
        /// The directory.
        place: String,
    },
    /// The journal ends before the newest snapshot.
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
    OtherRules {
        /// The directory.
        place: String,
        /// Commands in that snapshot.
        commands: u64,
    },
    /// The first snapshot of a new exchange could not be written.
    First(SnapshotFailed),
    /// The system gives no thread for commits.
    Thread(String),
    /// Options that are out of range.
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
    Service(OptionsError),
}

error_texts! { OpenError:
    Journal(error) from JournalError, caused by 0 => "{error}";
    NotOurs { place, file } =>
        "{place}: no exchange is here, and the directory is not empty: {file}";
    Record { place, lsn, why }, caused by why =>
        "{place}: record {lsn} is no command of an exchange: {why}";
    Gap { place, missing, first } => "{place}: commands from {missing} on are missing: the \
        journal begins with {first}, and no whole snapshot reaches so far";
    Snapshot { file, why } => "{file}: {why}";
    NoSnapshot { skipped } => "no snapshot is whole{}",
        skipped.iter().map(|one| format!("; {one}")).collect::<String>();
    NoRules { place } => "{place}: there is a journal and no snapshot: it is none of an exchange, \
        or its snapshots were removed";
    NoExchange { place } => "{place}: no exchange is here";
    NoJournal { place } => "{place}: there are snapshots and no journal";
    Behind { place, commands, snapshot } => "{place}: the journal ends after {commands} commands, \
        the newest snapshot has {snapshot}";
    OtherRules { place, commands } => "{place}: no snapshot is whole, and the journal, executed \
        under the rules that were given, does not lead to the state that the snapshot after \
        {commands} commands names: give the rules that the exchange was made with";
    First(failed) => "{failed}";
    Thread(why) => "a thread could not be started: {why}";
    Limit { what, asked, least, most } => "{what} is {asked}; {least} to {most} are possible";
    Service(error) from OptionsError, caused by 0 => "{error}";
}

/// Why an exchange has stopped. It takes no more commands, and answers none: the outcome of those
/// without an answer is known once the directory is opened again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failed {
    /// A write or a sync of the journal failed, or a further segment could not be made for another
    /// reason than a lack of room, files or memory.
    Journal(Arc<JournalError>),
    /// The closure that publishes has panicked, or a thread of the exchange, which means a fault in
    /// this crate.
    Panicked,
    /// It was closed while the disk was full: some commands could not be made durable.
    NoRoom(Arc<JournalError>),
}

error_texts! { Failed:
    Journal(error) => "the exchange has stopped: {error}";
    Panicked => "the exchange has stopped: a part of it has panicked";
    NoRoom(error) =>
        "the exchange was closed while commands waited for room on the disk: {error}";
}

/// EMFILE and ENFILE: the standard library has no kind for them.
const NO_FILES: [i32; 2] = [24, 23];

/// Why there is no further segment for now; none of an error that waiting does not mend.
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

/// Why a command was not taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The command is refused, for a reason that is sent to the client. It is one of
    /// [`InFlight`](Refusal::InFlight), [`Sessions`](Refusal::Sessions),
    /// [`DiskFull`](Refusal::DiskFull), [`Resources`](Refusal::Resources), [`Role`](Refusal::Role),
    /// [`SequenceReused`](Refusal::SequenceReused), [`AnswerGone`](Refusal::AnswerGone),
    /// [`NotExecuted`](Refusal::NotExecuted).
    Refused(Refusal),
    /// The client sequence is 0; they begin with 1.
    SequenceZero,
    /// The command's record is longer than a block of the journal.
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit, which the journal's options set.
        bytes_max: usize,
    },
    /// The exchange has stopped.
    Failed(Failed),
}

error_texts! { SubmitError:
    Refused(refusal) from Refusal => "{refusal}";
    SequenceZero => "the client sequence is 0; they begin with 1";
    TooLong { bytes, bytes_max } =>
        "the command takes {bytes} bytes in the journal; the limit is {bytes_max}";
    Failed(failed) from Failed => "{failed}";
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
        let full = Arc::new(JournalError::InUse { place: place() });
        let bytes_max = 7;
        let submitting = [
            SubmitError::Refused(Refusal::DiskFull),
            SubmitError::SequenceZero,
            SubmitError::TooLong {
                bytes: 8,
                bytes_max,
            },
            SubmitError::Failed(Failed::Journal(Arc::clone(&full))),
            SubmitError::Failed(Failed::NoRoom(full)),
            SubmitError::Failed(Failed::Panicked),
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
}
