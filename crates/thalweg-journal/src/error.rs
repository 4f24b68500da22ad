//! Errors of journals, and their texts.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::format::LENGTH_BYTES;
use crate::lsn::Lsn;

/// The reason why a journal cannot do what it is asked. Cloned where several threads wait for one
/// write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    Io {
        /// The file or directory.
        file: String,
        /// The operation that failed, in words: "be written".
        what: &'static str,
        /// Why it did not.
        source: Arc<io::Error>,
    },
    /// Another process, or another journal of this one, writes here.
    InUse {
        /// The directory.
        place: String,
    },
    /// Nothing to read.
    NoJournal {
        /// The directory.
        place: String,
    },
    /// A segment of a newer version of this library.
    NewerVersion {
        /// The segment.
        file: String,
        /// Its version.
        version: u32,
        /// The newest that this library knows.
        known: u32,
    },
    /// A file with the name of a segment that is none, or that of another journal.
    BadSegment {
        /// The file.
        file: String,
        /// The reason, in words.
        why: &'static str,
    },
    /// A segment between two others is not there.
    MissingSegment {
        /// The file that should be there.
        file: String,
        /// The next one that is there.
        next: String,
    },
    /// Records that were durable cannot be read any more.
    Corrupt {
        /// The segment.
        file: String,
        /// Where the damage begins, bytes from the begin of the file.
        offset_bytes: u64,
        /// The first record that cannot be read.
        lsn: Lsn,
        /// The damage, in words, and how the record is known to have been durable.
        why: &'static str,
    },
    /// The journal holds records of another size.
    OtherRecords {
        /// The directory.
        place: String,
        /// The size of its records in bytes; 0 if it varies.
        stored: u32,
        /// The size that was asked for.
        asked: u32,
    },
    /// A record does not fit into a block.
    RecordTooLong {
        /// Its length.
        bytes: usize,
        /// The limit, which the options set.
        bytes_max: usize,
    },
    /// A write or a sync failed earlier, so that it is not known what is on disk. Open the journal
    /// again to find out.
    Stopped {
        /// The failure.
        cause: Box<Error>,
    },
    /// A closure that builds a record for a shared journal called that journal.
    Building,
    /// A record that is not there: before the first that was kept, or after the last.
    NoRecord {
        /// The record asked for.
        lsn: Lsn,
        /// The first that there is.
        first: Lsn,
        /// The last that there is.
        last: Lsn,
    },
    /// A journal is cut between two blocks.
    InsideBlock {
        /// Where it should be cut.
        lsn: Lsn,
        /// The first record of the block around it.
        first: Lsn,
        /// The first record of the next block.
        next: Lsn,
    },
    /// Options that cannot be.
    Options {
        /// Which and why.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(file: impl Into<String>, what: &'static str, source: io::Error) -> Error {
        Error::Io {
            file: file.into(),
            what,
            source: Arc::new(source),
        }
    }

    /// Returns the error for a caller that gave `bytes` bytes, in front of which their length is
    /// written.
    #[cold]
    pub(crate) fn of_content(self, bytes: usize) -> Error {
        match self {
            Error::RecordTooLong { bytes_max, .. } => Error::RecordTooLong {
                bytes,
                bytes_max: bytes_max - LENGTH_BYTES,
            },
            error => error,
        }
    }

    /// Returns the failure as later callers get it.
    pub(crate) fn stopped(&self) -> Error {
        match self {
            Error::Stopped { .. } => self.clone(),
            cause => Error::Stopped {
                cause: Box::new(cause.clone()),
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { file, what, source } => {
                let text = source.to_string();
                let why = text.split(" (os error ").next().unwrap_or(&text);
                write!(f, "{file}: cannot {what}: {why}")
            }
            Error::InUse { place } => write!(f, "{place}: another journal writes here"),
            Error::NoJournal { place } => write!(f, "{place}: no journal"),
            Error::NewerVersion {
                file,
                version,
                known,
            } => write!(
                f,
                "{file}: version {version} of the format; this program knows up to {known}"
            ),
            Error::BadSegment { file, why } => write!(f, "{file}: {why}"),
            Error::MissingSegment { file, next } => {
                write!(f, "{file}: this segment is missing; the next is {next}")
            }
            Error::Corrupt {
                file,
                offset_bytes,
                lsn,
                why,
            } => write!(
                f,
                "{file}: damaged at byte {offset_bytes}: record {lsn} was durable and cannot be \
                 read: {why}"
            ),
            Error::OtherRecords {
                place,
                stored,
                asked,
            } => {
                let size = |bytes: &u32| match bytes {
                    0 => "any length".to_owned(),
                    bytes => format!("{bytes} bytes"),
                };
                let (stored, asked) = (size(stored), size(asked));
                write!(f, "{place}: holds records of {stored}, not of {asked}")
            }
            Error::RecordTooLong { bytes, bytes_max } => {
                write!(f, "a record of {bytes} bytes; the limit is {bytes_max}")
            }
            Error::Stopped { cause } => {
                write!(f, "the journal has stopped, open it again: {cause}")
            }
            Error::NoRecord { lsn, first, last } if last < first => {
                write!(f, "no record {lsn}: there is none, the next is {first}")
            }
            Error::NoRecord { lsn, first, last } => {
                write!(f, "no record {lsn}: there are {first} to {last}")
            }
            Error::InsideBlock { lsn, first, next } => write!(
                f,
                "record {lsn} is inside a block: cut at {first} or at {next}"
            ),
            Error::Building => f.write_str("a closure that builds a record calls its own journal"),
            Error::Options { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(&**source),
            Error::Stopped { cause } => Some(cause),
            _ => None,
        }
    }
}
