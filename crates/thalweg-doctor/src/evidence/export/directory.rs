//! Finds and makes the directory of the exported files.

use crate::evidence::export::Exported;
use crate::probe::procfs;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that names the directory a program exports to.
pub const VARIABLE: &str = "THALWEG_EXPORT";

/// The maximum number of files that are read in a directory, and the maximum size of one. A program
/// writes at most 256 files, and a few hundred bytes for each stage.
const FILES_MAX: usize = 4_096;
const BYTES_MAX: u64 = 1 << 20;
/// The sum of sizes after which no more files are read.
const SUM_BYTES_MAX: u64 = 64 << 20;
/// The maximum size of an environment: the kernel's limit on all data that a program is started
/// with is 6 MiB (three quarters of `_STK_LIM`, `fs/exec.c`).
const ENVIRONMENT_BYTES_MAX: u64 = 6 << 20;
/// The number of names that are tried for a new directory.
const NAMES_MAX: u32 = 1_000;

/// The prefix of the names of the doctor's own directories.
const NAME: &str = "thalweg-doctor-";

/// A directory for a program that the doctor starts: either one in memory that is removed when this
/// is dropped, or the one that the user names in [`VARIABLE`].
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The lock that is held as long as the directory is used, so that others see whether its owner
    /// is gone. `None` means that the directory is the user's.
    lock: Option<fs::File>,
}

impl Directory {
    /// Returns the directory that the user names, or else a new one.
    ///
    /// # Errors
    /// Returns the errors of [`Directory::new`].
    pub fn named_or_new() -> io::Result<Self> {
        let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
        match named {
            Some(named) => Ok(Self {
                path: named.into(),
                lock: None,
            }),
            None => Self::new(),
        }
    }

    /// Makes a new directory that only this user can read: in `/dev/shm`, or where that does not
    /// exist, in the directory of temporary files. Directories that killed doctors have left there
    /// are removed.
    ///
    /// # Errors
    /// Returns an error if no directory can be made there.
    pub fn new() -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let place = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        clear(&place);
        Self::within(&place)
    }

    fn within(place: &Path) -> io::Result<Self> {
        let process = std::process::id();
        let mut number = 0;
        loop {
            let path = place.join(format!("{NAME}{process}-{number}"));
            // A directory that exists already may belong to anyone.
            match DirBuilder::new().mode(0o700).create(&path) {
                // A concurrent clean-up may have locked it first.
                Ok(()) => {
                    if let Some(lock) = lock(&path) {
                        let lock = Some(lock);
                        return Ok(Self { path, lock });
                    }
                    number += 1;
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(error) if number >= NAMES_MAX => return Err(error),
                Err(_) => number += 1,
            }
        }
    }

    /// Returns the path: the value of [`VARIABLE`] for the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory is the user's, and may hold the figures of other programs as
    /// well.
    #[must_use]
    pub fn is_users(&self) -> bool {
        self.lock.is_none()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.is_users() {
            // If removal fails, the rest disturbs no other process, and may be data that the
            // program put there.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Locks a directory, if no other process has locked it and it still exists.
fn lock(path: &Path) -> Option<fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (locked, there) = (file.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    ((locked.dev(), locked.ino()) == (there.dev(), there.ino())).then_some(file)
}

/// Removes the directories of doctors that are gone, unless a program still writes there.
fn clear(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        let is_doctors = entry.file_name().to_string_lossy().starts_with(NAME);
        let is_ours = || fs::symlink_metadata(&path).is_ok_and(|it| it.uid() == user);
        if is_doctors
            && is_ours()
            && let Some(_lock) = lock(&path)
            && !is_written(&path)
        {
            // Another process may remove it first.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Returns whether a process that wrote a file there still runs.
fn is_written(directory: &Path) -> bool {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let writers = names.filter_map(|entry| numbers(entry.file_name().to_str()?));
    let mut alive = writers.map(|(process, _)| format!("/proc/{process}"));
    alive.any(|process| Path::new(&process).exists())
}

/// Returns the directory of a program that runs already: the one in its environment, as the program
/// sees the path. Returns `None` if it has none, or if its environment cannot be read.
#[must_use]
pub fn directory_of(process: u32) -> Option<PathBuf> {
    let path = format!("/proc/{process}/environ");
    let environment = procfs::read(path, ENVIRONMENT_BYTES_MAX, OFlags::empty()).ok()?;
    let named = named(&environment)?;
    // An absolute path has the program's meaning only under the program's root.
    let named = named.strip_prefix("/").ok()?;
    Some(Path::new(&format!("/proc/{process}/root")).join(named))
}

fn named(environment: &[u8]) -> Option<&Path> {
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|it| it.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    Some(Path::new(OsStr::from_bytes(value?)))
}

/// An export file of a directory.
#[derive(Debug, Clone)]
pub struct File {
    /// Its figures.
    pub exported: Exported,
    /// The time since it was written; 0 if the clock was set back.
    pub age: Duration,
}

/// The export files of a directory.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The files, by process and number.
    pub files: Vec<File>,
    /// The names of files that have the name of an export file, and are none: another version, a
    /// partial file, one that is too large, or one that is not a regular file.
    pub unreadable: Vec<String>,
    /// The number of export files that were not read, as there were too many.
    pub left_out: usize,
}

/// Lists all figures in a directory.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn list(directory: &Path) -> io::Result<Listing> {
    let (mut found, mut listing) = (Vec::new(), Listing::default());
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().into_string();
        match name.map(|name| (numbers(&name), name)) {
            Ok((Some(_), _)) if found.len() == FILES_MAX => listing.left_out += 1,
            Ok((Some(numbers), name)) => found.push((numbers, name)),
            _ => {}
        }
    }
    found.sort();
    let mut bytes = 0;
    for (numbers, name) in found {
        if bytes > SUM_BYTES_MAX {
            listing.left_out += 1;
            continue;
        }
        let path = directory.join(&name);
        let text = match procfs::read(&path, BYTES_MAX, OFlags::NOFOLLOW) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read.unwrap_or_default(),
        };
        bytes += text.len() as u64;
        let exported = Exported::parse(&text);
        match exported.filter(|it| (it.process, it.number) == numbers) {
            Some(exported) => listing.files.push(File {
                exported,
                age: age(&path),
            }),
            None => listing.unreadable.push(name),
        }
    }
    Ok(listing)
}

fn age(path: &Path) -> Duration {
    let written = fs::symlink_metadata(path).and_then(|it| it.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.unwrap_or_default()
}

/// Returns the figures of [`list`], or none if the directory cannot be read.
#[must_use]
pub fn read(directory: &Path) -> Vec<Exported> {
    let files = list(directory).unwrap_or_default().files;
    files.into_iter().map(|file| file.exported).collect()
}

/// Returns the process and the number in a file's name.
fn numbers(name: &str) -> Option<(u32, u64)> {
    let (process, number) = name.split_once('-')?;
    Some((process.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_new_private_and_gone_at_the_end() {
        use std::os::unix::fs::PermissionsExt;

        let first = Directory::new().expect("there is a place");
        let second = Directory::new().expect("there is a place");
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path()).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o700);
        fs::write(first.path().join("1-1"), "anything").expect("it takes files");
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn what_doctors_that_are_gone_have_left_is_removed() {
        let place = Directory::new().expect("there is a place");
        let mine = Directory::within(place.path()).expect("it takes directories");
        let gone = Directory::within(place.path()).expect("it takes directories");
        let path = gone.path().to_owned();
        // This simulates a killed doctor: the lock is released, and the directory remains.
        drop(std::mem::ManuallyDrop::new(gone).lock.take());
        let own = path.join(format!("{}-1", std::process::id()));
        fs::write(&own, "figures").expect("it takes files");
        clear(place.path());
        assert!(path.exists(), "a program writes there");
        fs::rename(&own, path.join(format!("{}-1", u32::MAX))).expect("another name");
        clear(place.path());
        assert!(!path.exists());
        assert!(mine.path().exists(), "its owner is there");
    }

    #[test]
    fn the_directory_of_a_process_is_in_its_environment() {
        let directory = Directory::new().expect("there is a place");
        let mut child = std::process::Command::new("cat")
            .env(VARIABLE, directory.path())
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        // Until the child has become `cat`, its environment may be ours.
        let found = loop {
            match directory_of(child.id()) {
                Some(found) => break found,
                None => std::thread::yield_now(),
            }
        };
        fs::write(directory.path().join("x"), "seen").expect("it takes files");
        assert_eq!(fs::read(found.join("x")).expect("the same"), b"seen");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(directory_of(u32::MAX), None);
    }

    #[test]
    fn only_the_whole_name_counts() {
        let named = |environment: &[u8]| named(environment).map(Path::to_owned);
        let found = Some(PathBuf::from("/a"));
        assert_eq!(named(b"A=b\0THALWEG_EXPORT=/a\0THALWEG_EXPORT=/b"), found);
        assert_eq!(named(b"THALWEG_EXPORTS=/a\0XTHALWEG_EXPORT=/a\0"), None);
        assert_eq!(named(b""), None);
    }
}
