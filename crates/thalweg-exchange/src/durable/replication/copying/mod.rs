//! A copy of a replica, as a stream of bytes to another one that is too far behind the log: a whole
//! snapshot, and the commands of the journal after it.
//!
//! # Format
//! A head, the bytes of the snapshot's file, and chunks of commands, each with a sum; the last
//! chunk is empty. So a stream that ends early is seen, and so is each byte that has changed: the
//! snapshot has sums of its own.
//!
//! # Rules
//! 1. The sender reads what it has on disk, with all checks of a reader, and stops nothing: it
//!    needs no memory but for one block, and what it is to send may be given up meanwhile, which
//!    ends the stream ([`send`]).
//! 2. The receiver writes into an empty directory ([`receive`]), which is worth nothing before it
//!    is [checked](check): opened as after a crash, and followed by at least one batch of the log,
//!    which has the digest of all commands before it. So that there is such a batch, a copy ends
//!    before the newest one.

mod receiving;
mod sending;

use std::io;

use thalweg_hash::xxh64;
use thalweg_journal::Error as JournalError;
use thiserror::Error;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use self::receiving::{check, commands_in, gap, receive};
pub use self::sending::send;
use super::halt_reason::HaltReason;
use crate::durable::error::{ExchangeError, OpenError};
use crate::durable::snapshots::SnapshotFileError;

const MAGIC: [u8; 8] = *b"thalwegC";
/// The version of the stream, behind the magic number.
pub const COPY_VERSION: u32 = 1;
/// Bytes of a chunk's records at most: a block of the journal has up to 320 KiB, and one of an
/// exchange that was configured otherwise is sent in parts.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A copy that was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// How many commands the snapshot has.
    pub snapshot: u64,
    /// How many commands the copy has.
    pub commands: u64,
    /// Bytes of the snapshot and of the commands after it.
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The stream cannot be read or written, or it ends early.
    #[error("the stream of the copy: {0}")]
    Stream(String),
    /// The bytes are none of a copy, or were changed.
    #[error("the stream of the copy: its {what} is {found:x}, expected {expected:x}")]
    Field {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The value that it must have.
        expected: u64,
    },
    /// The sender has no whole snapshot that is old enough.
    #[error("{place}: no whole snapshot has {until} commands or fewer")]
    NoSnapshot {
        /// The directory.
        place: String,
        /// The number of commands before the newest batch of the log.
        until: u64,
    },
    /// A snapshot cannot be read.
    #[error("{file}: {why}")]
    Snapshot {
        /// The file.
        file: String,
        /// The error in it.
        why: SnapshotFileError,
    },
    /// A journal cannot be read or written.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// The copy does not open.
    #[error("{0}")]
    Open(Box<OpenError>),
    /// The copy does not go on with the log.
    #[error("{0}")]
    Halted(#[from] HaltReason),
    /// The copy was not closed.
    #[error("{0}")]
    Failed(#[from] ExchangeError),
    /// No batch of the log comes after the copy, which could show that it is the right one.
    #[error("the copy has {commands} commands, and the log has no batch after them to check it by")]
    Unchecked {
        /// How many commands it has.
        commands: u64,
    },
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Stream(error.to_string())
    }
}

impl From<OpenError> for CopyError {
    fn from(error: OpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

/// The head of a copy, little-endian.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeadForm {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    /// The number of the journal.
    journal: U64,
    /// How many commands the snapshot has.
    commands: U64,
    /// Bytes of the snapshot's file.
    snapshot_bytes: U64,
    /// The XXH64 of the fields above.
    sum: U64,
}

impl HeadForm {
    fn new(journal: u64, commands: u64, snapshot_bytes: u64) -> Self {
        let mut form = Self {
            magic: MAGIC,
            version: U32::new(COPY_VERSION),
            reserved: U32::ZERO,
            journal: U64::new(journal),
            commands: U64::new(commands),
            snapshot_bytes: U64::new(snapshot_bytes),
            sum: U64::ZERO,
        };
        form.sum = U64::new(sum_of(form.as_bytes(), 0));
        form
    }

    fn check(&self) -> Result<(), CopyError> {
        let version = self.version.get().into();
        let fields = [
            (
                "magic number",
                u64::from_le_bytes(self.magic),
                u64::from_le_bytes(MAGIC),
            ),
            ("head's sum", self.sum.get(), sum_of(self.as_bytes(), 0)),
            ("version", version, COPY_VERSION.into()),
            ("reserved field", self.reserved.get().into(), 0),
        ];
        check_fields(&fields)
    }
}

/// The head of a chunk of commands, little-endian; the records follow, each behind its length (32
/// bits).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ChunkForm {
    /// The number of the first command; in the last chunk, that after the last command.
    first: U64,
    /// How many there are; none in the last chunk.
    count: U32,
    /// Bytes of the records with their lengths.
    bytes: U32,
    /// The XXH64 of the fields above, seeded by that of the records.
    sum: U64,
}

impl ChunkForm {
    fn new(first: u64, count: u32, records: &[u8]) -> Self {
        let mut form = Self {
            first: U64::new(first),
            count: U32::new(count),
            bytes: U32::new(records.len() as u32),
            sum: U64::ZERO,
        };
        form.sum = U64::new(sum_of(form.as_bytes(), xxh64(0, records)));
        form
    }

    /// Checks a chunk whose first command must have this number.
    fn check(&self, first: u64, records: &[u8]) -> Result<(), CopyError> {
        let sum = sum_of(self.as_bytes(), xxh64(0, records));
        check_fields(&[
            ("chunk's sum", self.sum.get(), sum),
            ("first command of a chunk", self.first.get(), first),
        ])
    }
}

/// Returns the sum of all fields of a form but the last, which holds it.
fn sum_of(form: &[u8], seed: u64) -> u64 {
    xxh64(seed, &form[..form.len() - size_of::<U64>()])
}

fn check_fields(fields: &[(&'static str, u64, u64)]) -> Result<(), CopyError> {
    let wrong = fields.iter().find(|(_, found, expected)| found != expected);
    wrong.map_or(Ok(()), |&(what, found, expected)| {
        Err(CopyError::Field {
            what,
            found,
            expected,
        })
    })
}

#[cfg(test)]
mod tests;
