//! Faults of a simulated disk.

use std::io;

/// An operation of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A read of a file.
    Read,
    /// A write that may wait.
    Write,
    /// A write that must be on disk when it returns.
    WriteNow,
    /// A sync of a file.
    Sync,
    /// Room for a file.
    Allocate,
    /// A new file, or one that is opened to write.
    Open,
    /// A change of a name.
    Rename,
    /// A file's end.
    Remove,
    /// A sync of the names.
    SyncNames,
    /// A lock of the directory.
    Lock,
}

/// A fault of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error (EIO).
    Io,
    /// No space left (ENOSPC).
    Full,
    /// The file system is read-only (EROFS).
    ReadOnly,
    /// Too many open files (EMFILE).
    NoFiles,
    /// A write takes only the first sector, without an error.
    Short,
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        match self {
            // EIO: the standard library has no kind for it.
            Fault::Io | Fault::Short => io::Error::from_raw_os_error(5),
            Fault::Full => io::ErrorKind::StorageFull.into(),
            // EMFILE: there is no kind for it either.
            Fault::NoFiles => io::Error::from_raw_os_error(24),
            Fault::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
        }
    }
}
