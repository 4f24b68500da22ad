//! Why a replica does not go on.

use thalweg_journal::Error as JournalError;
use thiserror::Error;

use super::batch::BatchError;
use super::log::LogError;
use crate::durable::error::ExchangeError;

/// Why a replica executes nothing more of the log. But for a [log](Self::Log) that is silent and
/// [`NoRoom`](Self::NoRoom), which pass, an operator has to decide: see `docs/replication.md`.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum HaltReason {
    /// The log does not answer for now, or has something that this version has not written.
    #[error("{0}")]
    Log(#[from] LogError),
    /// The disk has no room for now.
    #[error("the disk has no room for the commands of the log")]
    NoRoom,
    /// The exchange of the replica has stopped.
    #[error("{0}")]
    Exchange(#[from] ExchangeError),
    /// Its journal cannot be read.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// A batch is damaged.
    #[error("the batch at command {index} of the log cannot be read: {why}")]
    Batch {
        /// Its index.
        index: u64,
        /// The error in it.
        why: BatchError,
    },
    /// A batch is out of place: its number, its epoch or the checksum of the batch before is not
    /// the one that must come here.
    #[error(
        "the batch at command {index} of the log is out of place: its {what} is \
        {found:x}, expected {expected:x}"
    )]
    OutOfPlace {
        /// Its index.
        index: u64,
        /// Which of its fields.
        what: &'static str,
        /// The value of the field.
        found: u64,
        /// The value that it must have.
        expected: u64,
    },
    /// The commands before had other outcomes here than where the batch was written.
    #[error(
        "before command {index} the digest of this replica is {own:016x}, and that of the writer \
        of the log {written:016x}: the same commands had other outcomes, on one of them"
    )]
    Differs {
        /// The number of the command before which they differ.
        index: u64,
        /// The digest of this replica.
        own: u64,
        /// The digest of the writer.
        written: u64,
    },
    /// A command of the log was not executed here.
    #[error("command {number} of the log cannot be executed here: {why}")]
    Refused {
        /// Its number.
        number: u64,
        /// The refusal.
        why: String,
    },
    /// The log has given up what this replica needs next.
    #[error(
        "this replica has {commands} commands, and the log begins with command {oldest}: started \
        again, it gets a copy of another one, unless its journal has an archive"
    )]
    Behind {
        /// How many commands it has.
        commands: u64,
        /// The number of the first command in the log.
        oldest: u64,
    },
    /// The replica has commands that the log lacks: the log was lost, or is another exchange's.
    #[error(
        "this replica has {commands} commands, and the log ends after {end}: the log has lost \
        commands that were acknowledged, or it is the log of another exchange"
    )]
    Ahead {
        /// How many commands it has.
        commands: u64,
        /// How many the log has.
        end: u64,
    },
    /// The replica has another command than the log.
    #[error(
        "command {number} in the journal of this replica is another one than in the log: \
        the directory belongs to another exchange"
    )]
    OtherCommand {
        /// Its number.
        number: u64,
    },
    /// The replica does not begin where the log does.
    #[error(
        "the log goes on from another state than this replica has after {commands} commands: \
        it was made with other rules, or belongs to another exchange"
    )]
    OtherStart {
        /// How many commands both have.
        commands: u64,
    },
    /// The directory of the replica belongs to another log.
    #[error(
        "the directory of this replica belongs to the command log {own:016x}, and this one is \
        {log:016x}: that of another exchange, or one that was made anew"
    )]
    OtherLog {
        /// The [start of the chain](super::Claim::chain_start) of its own log.
        own: u64,
        /// That of this log.
        log: u64,
    },
    /// The replica is to make a log, and its directory belongs to another one.
    #[error(
        "the directory of this replica belongs to the command log {own:016x}, and there is none \
        here: look for that one first; without its file command-log.thw a new log begins with its \
        commands"
    )]
    NoLog {
        /// The [start of the chain](super::Claim::chain_start) of its own log.
        own: u64,
    },
    /// The replica has other limits of sessions than the one that made the log.
    #[error(
        "the log was made with other limits of sessions (sessions.* in the configuration) than \
        this replica has: all replicas have the same, or a command could be refused at one of them"
    )]
    OtherLimits,
    /// The thread that reads the log has panicked.
    #[error("the thread that reads the command log has ended: it has panicked")]
    ReaderEnded,
    /// The system gives no thread for the sequencer.
    #[error("a thread could not be started: {0}")]
    Thread(String),
}

impl HaltReason {
    /// Returns whether it may pass by itself.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Log(LogError::Silent(_)) | Self::NoRoom)
    }
}
