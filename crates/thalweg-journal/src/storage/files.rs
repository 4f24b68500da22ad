//! A real directory.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::{Archived, Storage, StorageFile, WriteSync, archive};
use crate::format::{is_part, is_spare, segment_number};

/// The name of the file that is locked. It stays when the journal is closed, and means nothing
/// then: the system takes the lock back from a process that ends, however it ends.
const LOCK: &str = "lock";
/// The text of the error where something else stands in the place of a file.
const NOT_REGULAR: &str = "it is no regular file; remove it";

/// A directory of the file system.
///
/// A durable write is one `pwritev2` with `RWF_DSYNC` on Linux. Elsewhere, and on a file system
/// that does not know it, it is a write and a sync (`fdatasync`).
#[derive(Debug, Clone)]
pub struct Files {
    /// As it was given, for messages.
    place: PathBuf,
    /// From the root on, since a program may change its working directory.
    directory: PathBuf,
    archive: Option<PathBuf>,
    /// Whether the files of the archive are read as if they were here.
    reads_archive: bool,
    #[cfg(target_os = "linux")]
    lacks_dsync: Arc<AtomicBool>,
}

impl Files {
    /// Returns the storage in this directory, which need not be there yet.
    #[must_use]
    pub fn new(directory: impl AsRef<Path>) -> Files {
        let place = directory.as_ref().to_owned();
        Files {
            directory: absolute(&place),
            place,
            archive: None,
            reads_archive: false,
            #[cfg(target_os = "linux")]
            lacks_dsync: Arc::default(),
        }
    }

    /// Returns this storage with an archive: segments and other files that are given up are put
    /// there before they go here. Where that is not possible they stay, and the call that gives
    /// them up fails. The directory must be there, and be of this journal alone.
    #[must_use]
    pub fn archiving(mut self, archive: impl AsRef<Path>) -> Files {
        self.archive = Some(absolute(archive.as_ref()));
        self
    }

    /// Returns this storage with the files of an archive among its own, to be read: not for a
    /// journal that is written.
    #[must_use]
    pub fn with_archive(mut self, archive: impl AsRef<Path>) -> Files {
        self.archive = Some(absolute(archive.as_ref()));
        self.reads_archive = true;
        self
    }

    /// Makes the directory and what is missing above it. Until there is a journal in it, the names
    /// of all of them are synced: a program that was killed may have made some of them before.
    fn create_directory_with(
        &self,
        mut sync: impl FnMut(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        if self
            .list()
            .is_ok_and(|names| names.iter().any(|name| segment_number(name).is_some()))
        {
            return Ok(());
        }
        let mut maker = fs::DirBuilder::new();
        maker.recursive(true).mode(0o700);
        maker
            .create(&self.directory)
            .map_err(|error| match self.directory.is_file() {
                true => io::ErrorKind::NotADirectory.into(),
                false => error,
            })?;
        let place = fs::canonicalize(&self.directory)?;
        let device = fs::metadata(&place)?.dev();
        let is_here = |above: &&Path| fs::metadata(above).is_ok_and(|of| of.dev() == device);
        for above in place.ancestors().skip(1).take_while(is_here) {
            match sync(above) {
                // The entries of a directory that this user may not read were made by another user.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
        }
        Ok(())
    }

    /// Opens a file, and nothing else: a named pipe would wait for its other end, and neither it
    /// nor a directory holds what is looked for.
    fn open_regular(&self, path: PathBuf, options: &mut OpenOptions) -> io::Result<File> {
        let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR);
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
        let opened = options.custom_flags(nonblocking as i32).open(&path);
        match opened.and_then(|file| Ok((file.metadata()?.is_file(), file))) {
            Ok((true, file)) => Ok(file),
            Ok((false, _)) => Err(not_regular()),
            // A directory cannot be opened to write, and a link may lead to nothing.
            Err(_) if fs::symlink_metadata(&path).is_ok_and(|of| !of.is_file()) => {
                Err(not_regular())
            }
            Err(error) => Err(error),
        }
    }

    fn file(&self, file: File) -> JournalFile {
        JournalFile {
            file,
            #[cfg(target_os = "linux")]
            lacks_dsync: Arc::clone(&self.lacks_dsync),
        }
    }
}

impl Storage for Files {
    type File = JournalFile;
    type Lock = FilesLock;

    fn location(&self) -> String {
        self.place.display().to_string()
    }

    fn create_directory(&self) -> io::Result<()> {
        self.create_directory_with(|above| File::open(above)?.sync_all())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = match list(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        if let Some(archive) = self.archive.as_deref().filter(|_| self.reads_archive) {
            let known: BTreeSet<&String> = names.iter().collect();
            let is_new = |name: &String| !(is_part(name) || is_spare(name) || known.contains(name));
            let archived: Vec<String> = list(archive)?.into_iter().filter(is_new).collect();
            names.extend(archived);
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<JournalFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(self.file(options.open(self.directory.join(name))?))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<JournalFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(writable);
        let opened = self.open_regular(self.directory.join(name), &mut options);
        let archive = self.archive.as_deref().filter(|_| self.reads_archive);
        Ok(self.file(match (opened, archive) {
            // It may have been moved there meanwhile, too.
            (Err(error), Some(archive)) if error.kind() == io::ErrorKind::NotFound => {
                self.open_regular(archive.join(name), &mut options)?
            }
            (opened, _) => opened?,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.directory.join(name);
        fs::remove_file(&path).map_err(|error| match path.is_dir() {
            true => io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR),
            false => error,
        })
    }

    fn archive(&self, name: &str) -> io::Result<Archived> {
        match &self.archive {
            Some(archive) => archive::archive(&self.directory, archive, name),
            None => Ok(Archived::No),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn lock(&self) -> io::Result<Option<FilesLock>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = self.directory.join(LOCK);
        let file = self.open_regular(lock, &mut options).map_err(|error| {
            let why = format!("its file {LOCK}: {error}");
            io::Error::new(error.kind(), why)
        })?;
        // `File::try_lock` is the same call, from Rust 1.89 on.
        match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(FilesLock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a path from the root on. Without a working directory, or without a name, it is as it
/// was, and the system says what is wrong.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the names in a directory.
fn list(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        // A name that is no text is none of ours.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// The lock on a directory.
#[derive(Debug)]
pub struct FilesLock(File);

impl Drop for FilesLock {
    /// A process that was just started has a copy of every open file until it runs its program. The
    /// lock ends with this value, whichever other process holds the file.
    fn drop(&mut self) {
        // An error leaves it to the system, which unlocks once no process has the file open.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// An open file of [`Files`].
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    #[cfg(target_os = "linux")]
    lacks_dsync: Arc<AtomicBool>,
}

impl JournalFile {
    fn write_then_sync(&self, offset_bytes: u64, data: &[u8]) -> io::Result<usize> {
        let bytes = self.file.write_at(data, offset_bytes)?;
        self.file.sync_data()?;
        Ok(bytes)
    }

    #[cfg(target_os = "linux")]
    fn write_durably(&self, offset_bytes: u64, data: &[u8]) -> io::Result<usize> {
        use rustix::io::{ReadWriteFlags, pwritev2};
        // ORDERING: Relaxed, pairs with the store below; it is a hint, and either way is right.
        if self.lacks_dsync.load(Ordering::Relaxed) {
            return self.write_then_sync(offset_bytes, data);
        }
        let pieces = [io::IoSlice::new(data)];
        match pwritev2(&self.file, &pieces, offset_bytes, ReadWriteFlags::DSYNC) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                // ORDERING: Relaxed, pairs with the load above.
                self.lacks_dsync.store(true, Ordering::Relaxed);
                self.write_then_sync(offset_bytes, data)
            }
            written => Ok(written?),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn write_durably(&self, offset_bytes: u64, data: &[u8]) -> io::Result<usize> {
        self.write_then_sync(offset_bytes, data)
    }
}

impl StorageFile for JournalFile {
    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset_bytes)
    }

    fn write_at(&self, offset_bytes: u64, data: &[u8], sync: WriteSync) -> io::Result<usize> {
        match sync {
            WriteSync::Deferred => self.file.write_at(data, offset_bytes),
            WriteSync::Immediate => self.write_durably(offset_bytes, data),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        use rustix::fs::{FallocateFlags, fallocate};
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, bytes)) {
            // The zeros that are written next do the same, more slowly.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            asked => asked.map(|()| true).map_err(io::Error::from),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self, _bytes: u64) -> io::Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_testkit::Scratch;

    use super::*;

    /// A child that another thread starts holds the parent's files for a moment.
    #[test]
    fn a_lock_ends_although_another_process_still_has_the_file() {
        let place = Scratch::new("lock");
        let files = Files::new(&*place);
        files.create_directory().expect("it can be made");
        let lock = files.lock().expect("it can be locked").expect("it is new");
        let inherited = lock.0.try_clone().expect("files can be copied");
        assert!(files.lock().expect("it can be asked").is_none());
        drop(lock);
        assert!(files.lock().expect("it can be asked").is_some());
        drop(inherited);
    }

    /// A crash takes a directory whose name is not durable, and with it the journal and all that it
    /// acknowledged.
    #[test]
    fn the_names_of_all_directories_above_are_durable() {
        let place = Scratch::new("made");
        let base = place.join("base");
        let files = Files::new(base.join("a/b/c"));
        let synced = || {
            let mut synced = Vec::new();
            let made = files.create_directory_with(|above| {
                synced.push(above.to_owned());
                Ok(())
            });
            made.expect("it can be made");
            synced
        };
        for _ in 0..2 {
            // The second time as by a program whose predecessor was killed.
            let synced = synced();
            let base = fs::canonicalize(&base).expect("it was made");
            let expected = [&*base.join("a/b"), &base.join("a"), &base];
            assert_eq!(synced[..3], expected);
            assert!(synced.len() > 3, "the place where it was made");
        }
        let name = crate::format::segment_name(1);
        fs::write(files.directory.join(name), "").expect("the test's own folder");
        assert!(
            synced().is_empty(),
            "once there is a journal, they are durable"
        );
    }
}
