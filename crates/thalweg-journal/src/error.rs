//! Errors of journals, and their texts.

use std::io;
use std::sync::Arc;

use crate::format::LENGTH_BYTES;
use crate::lsn::Lsn;

/// The reason why a journal cannot do what it is asked. Cloned where several threads wait for one
/// write.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("{file}: cannot {what}: {}", reason(source))]
    Io {
        /// The file or directory.
        file: String,
        /// The operation that failed, in words: "be written".
        what: &'static str,
        /// Why it did not.
        source: Arc<io::Error>,
    },
    /// A file that is no longer needed is not in the archive, and stays where it is.
    #[error("{file}: cannot be archived: {}", reason(source))]
    Archive {
        /// The file.
        file: String,
        /// Why it is not.
        source: Arc<io::Error>,
    },
    /// Another process, or another journal of this one, writes here.
    #[error("{location}: another journal writes here")]
    InUse {
        /// The directory.
        location: String,
    },
    /// The directory has no journal.
    #[error("{location}: no journal")]
    NoJournal {
        /// The directory.
        location: String,
    },
    /// A segment of a newer version of this library.
    #[error("{file}: version {version} of the format; this program knows up to {known}")]
    NewerVersion {
        /// The segment.
        file: String,
        /// Its version.
        version: u32,
        /// The newest that this library knows.
        known: u32,
    },
    /// A file with the name of a segment that is none, or that of another journal.
    #[error("{file}: {why}")]
    BadSegment {
        /// The file.
        file: String,
        /// The reason, in words.
        why: &'static str,
    },
    /// A segment between two others is not there.
    #[error("{file}: this segment is missing; the next is {next}")]
    MissingSegment {
        /// The file that should be there.
        file: String,
        /// The next one that is there.
        next: String,
    },
    /// Records that were durable cannot be read any more.
    #[error(
        "{file}: damaged at byte {offset_bytes}: record {lsn} was durable and cannot be read: {why}"
    )]
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
    #[error(
        "{location}: holds records of {}, not of {}",
        size(stored),
        size(asked)
    )]
    RecordSizeMismatch {
        /// The directory.
        location: String,
        /// The size of its records in bytes; 0 if it varies.
        stored: u32,
        /// The size that was asked for.
        asked: u32,
    },
    /// A record does not fit into a block.
    #[error("a record of {bytes} bytes; the limit is {bytes_max}")]
    RecordTooLong {
        /// Its length.
        bytes: usize,
        /// The limit, which the options set.
        bytes_max: usize,
    },
    /// A write or a sync failed earlier, so that it is not known what is on disk. Open the journal
    /// again to find out.
    #[error("the journal has stopped, open it again: {cause}")]
    Stopped {
        /// The failure.
        #[source]
        cause: Box<Error>,
    },
    /// A closure that builds a record for a shared journal called that journal.
    #[error("a closure that builds a record calls its own journal")]
    Reentrant,
    /// A record that is not there: before the first that was kept, or after the last.
    #[error("no record {lsn}: {}", kept(first, last))]
    NoRecord {
        /// The record asked for.
        lsn: Lsn,
        /// The first that there is.
        first: Lsn,
        /// The last that there is.
        last: Lsn,
    },
    /// A journal is truncated between two blocks.
    #[error("record {lsn} is inside a block: truncate at {first} or at {next}")]
    InsideBlock {
        /// Where it should be truncated.
        lsn: Lsn,
        /// The first record of the block around it.
        first: Lsn,
        /// The first record of the next block.
        next: Lsn,
    },
    /// The options are invalid.
    #[error("{what}")]
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

    /// Returns the error of a file that [`Storage::archive`](crate::Storage::archive) did not keep.
    #[must_use]
    pub fn archive(file: String, source: io::Error) -> Error {
        let source = Arc::new(source);
        Error::Archive { file, source }
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

/// Returns the text of an error of the system without its number.
fn reason(source: &io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_owned()
}

fn size(bytes: &u32) -> String {
    match bytes {
        0 => "any length".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

fn kept(first: &Lsn, last: &Lsn) -> String {
    match last < first {
        true => format!("there is none, the next is {first}"),
        false => format!("there are {first} to {last}"),
    }
}
