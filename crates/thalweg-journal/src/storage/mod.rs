//! Where a journal keeps its files: a directory, or a disk that is simulated for tests.

#[cfg(unix)]
mod archive;
#[cfg(unix)]
mod files;
mod sim;

use std::fmt;
use std::io;

#[cfg(unix)]
pub use files::{Files, FilesLock, JournalFile};
pub use sim::{Fault, Operation, SimDisk, SimFile};

/// The time by which a write has to be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteSync {
    /// With the next [`StorageFile::sync`].
    Deferred,
    /// When the call returns. This makes these bytes durable, not those of earlier writes.
    Immediate,
}

/// Where a file is that was to be archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archived {
    /// Where it was, and nowhere else: there is no archive, or no such file.
    No,
    /// In the archive, durably, and still where it was.
    Copied,
    /// In the archive, and no longer where it was.
    Moved,
}

/// A directory. Clones are handles to the same one.
pub trait Storage: Clone + fmt::Debug + Send + Sync + 'static {
    /// An open file.
    type File: StorageFile;
    /// Keeps others out while it lives.
    type Lock: fmt::Debug + Send;

    /// Returns the directory's name in messages.
    fn location(&self) -> String;

    /// Makes the directory if it is not there.
    ///
    /// # Errors
    /// It can be neither found nor made.
    fn create_directory(&self) -> io::Result<()>;

    /// Returns the names of its files, in any order; none where there is no directory.
    ///
    /// # Errors
    /// It cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a new file.
    ///
    /// # Errors
    /// It cannot be made; there is one of this name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file to read, and if `writable` to write.
    ///
    /// # Errors
    /// It cannot be opened; [`InvalidInput`](io::ErrorKind::InvalidInput) where something else has
    /// its name, such as a directory.
    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File>;

    /// Gives a file another name; durable with the next [`Storage::sync_names`].
    ///
    /// # Errors
    /// It cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; durable with the next [`Storage::sync_names`].
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Puts a file into the archive before it is given up, if there is an archive.
    ///
    /// # Errors
    /// The archive is full, or not there: the file must stay.
    fn archive(&self, _name: &str) -> io::Result<Archived> {
        Ok(Archived::No)
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// The disk fails.
    fn sync_names(&self) -> io::Result<()>;

    /// Locks the directory; returns none if another process has locked it.
    ///
    /// # Errors
    /// It cannot be locked at all.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;
}

/// An open file of a [`Storage`].
pub trait StorageFile: fmt::Debug + Send + 'static {
    /// Returns its length.
    ///
    /// # Errors
    /// The file system fails.
    fn length_bytes(&self) -> io::Result<u64>;

    /// Reads from `offset_bytes` on; fewer bytes than asked for are no error, and 0 is the end.
    ///
    /// # Errors
    /// The disk fails.
    fn read_at(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset_bytes`, and says how many of the bytes: not all is no error.
    ///
    /// # Errors
    /// The disk is full or fails.
    fn write_at(&self, offset_bytes: u64, data: &[u8], sync: WriteSync) -> io::Result<usize>;

    /// Makes all that was written durable, and the length.
    ///
    /// # Errors
    /// The disk fails. The written data is in doubt from then on, also if a later call succeeds.
    fn sync(&self) -> io::Result<()>;

    /// Allocates space, so that later writes up to `bytes` do not find the disk full. Returns
    /// whether it did: then the file has this length, and what was not written reads as zeros.
    ///
    /// # Errors
    /// The disk is full.
    fn allocate(&self, bytes: u64) -> io::Result<bool>;
}

/// Reads until `into` is full or the file ends, and says how much.
pub fn read_fully(
    file: &impl StorageFile,
    offset_bytes: u64,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(offset_bytes + done as u64, &mut into[done..]) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `data`, however many calls it takes.
pub fn write_fully(
    file: &impl StorageFile,
    offset_bytes: u64,
    data: &[u8],
    sync: WriteSync,
) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match file.write_at(offset_bytes + done as u64, &data[done..], sync) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
