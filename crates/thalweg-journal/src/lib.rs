//! A durable log of records: after a crash it holds every acknowledged record, in order, and only
//! records that were appended. Also a buffer to build records in.
//!
//! - [`Journal`]: append records in place, commit, get a [`Durable`] number to acknowledge.
//! - [`Shared`]: the same for several threads, with group commit.
//! - [`Reader`]: from any record on, of a live journal too; checks all that it reads.
//! - [`truncate()`]: truncates a damaged journal.
//! - [`AppendBuffer`]: a buffer of records that is handed over when it is full; no disk.
//! - [`Storage`]: where the files are; [`SimDisk`] is a disk for tests, which loses power.
//!
//! A commit is one write to a place that was written before, with `RWF_DSYNC` on Linux. The format
//! is in `docs/journal-format.md` in the repository.
//!
//! # Errors
//! Where there is no room for a further segment, nothing has changed, and a call may be repeated. A
//! failed write or sync stops a journal, and every thread that waits gets the error: after a failed
//! sync the system may have forgotten the data, and the next sync says that all is well. The next
//! open of the directory finds out what is there. An unfinished write at the end is cut off and
//! reported; damage to durable records is an error that names file, byte and record.
//!
//! # Limits
//! One process writes a journal at a time. Files are for Unix; `io_uring` and `O_DIRECT` are not
//! used. Damage to the blocks of the last commit cannot be distinguished from a write that a crash
//! tore.
#![forbid(unsafe_code)]

mod append_buffer;
mod error;
mod fault;
pub mod format;
mod journal;
mod lsn;
mod options;
mod pages;
mod prepare;
mod reader;
mod record;
mod recovery;
mod scan;
mod shared;
mod storage;
mod tail;
mod truncate;
mod unsynced;
mod watermark;

#[cfg(test)]
mod simulation;

pub use append_buffer::AppendBuffer;
pub use error::Error;
pub use journal::Journal;
pub use lsn::{Durable, Lsn};
pub use options::JournalOptions;
pub use reader::{Block, Reader, Records};
pub use record::{Record, RecordType};
pub use recovery::{Recovery, TornWrite, first_readable_after};
pub use shared::{AppendGuard, GroupCommit, Shared};
pub use storage::{Archived, Fault, Operation, SimDisk, SimFile, Storage, StorageFile, WriteSync};
#[cfg(unix)]
pub use storage::{Files, FilesLock, JournalFile};
#[doc(hidden)]
pub use storage::{read_fully, write_fully};
pub use truncate::{Truncation, truncate};

/// The default storage of a journal: files, where there are any.
#[cfg(unix)]
pub type DefaultStorage = Files;
/// The default storage of a journal. There are no files here yet.
#[cfg(not(unix))]
pub type DefaultStorage = SimDisk;
