//! Where the files are.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::file::Exported;

/// The environment variable that says to a program where to.
pub const VARIABLE: &str = "THALWEG_EXPORT";

/// Files that are looked at in a directory, and bytes of one. A program writes 256 files at most,
/// and some hundred bytes for each stage.
const FILES_MAX: usize = 4_096;
const BYTES_MAX: u64 = 1 << 20;
/// Bytes of an environment: the kernel's limit on all that a program is started with is 6 MiB
/// (three quarters of `_STK_LIM`, `fs/exec.c`).
const ENVIRONMENT_BYTES_MAX: u64 = 6 << 20;
/// Names that are tried for a new directory.
const NAMES_MAX: u32 = 1_000;

/// A directory in memory for a program that the doctor starts. It goes with this.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// A new one that only this user can read: in `/dev/shm`, or where that is not there, where
    /// temporary files are.
    ///
    /// # Errors
    /// None can be made there.
    pub fn new() -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let place = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        Self::within(&place)
    }

    fn within(place: &Path) -> io::Result<Self> {
        let process = std::process::id();
        let mut number = 0;
        loop {
            let path = place.join(format!("thalweg-doctor-{process}-{number}"));
            // One that is there already may be anybody's.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(error) if number == NAMES_MAX => return Err(error),
                Err(_) => number += 1,
            }
        }
    }

    /// Where it is: the value of [`VARIABLE`] for the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It is in nobody's way, and may hold what the program put there.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The directory of a program that runs already: that of its environment, seen as the program sees
/// it. Nothing if it has none, or its environment is not to be read.
#[must_use]
pub fn directory_of(process: u32) -> Option<PathBuf> {
    let mut environment = Vec::new();
    let file = fs::File::open(format!("/proc/{process}/environ")).ok()?;
    let mut limited = file.take(ENVIRONMENT_BYTES_MAX);
    limited.read_to_end(&mut environment).ok()?;
    let named = named(&environment)?;
    // Only under its root is an absolute path what it is to the program.
    let named = named.strip_prefix("/").ok()?;
    Some(Path::new(&format!("/proc/{process}/root")).join(named))
}

fn named(environment: &[u8]) -> Option<&Path> {
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|it| it.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    Some(Path::new(OsStr::from_bytes(value?)))
}

/// All figures in a directory, by process and number. What is no such file is left out: another
/// name, another version, half a file, one that is too large, or none at all.
#[must_use]
pub fn read(directory: &Path) -> Vec<Exported> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.take(FILES_MAX).filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        Some((numbers(&name)?, name))
    });
    let mut read: Vec<Exported> = names
        .filter_map(|((process, number), name)| {
            let exported = Exported::parse(&read_file(&directory.join(name))?)?;
            let is_its = (exported.process, exported.number) == (process, number);
            is_its.then_some(exported)
        })
        .collect();
    read.sort_by_key(|exported| (exported.process, exported.number));
    read
}

/// The process and the number of a file's name.
fn numbers(name: &str) -> Option<(u32, u64)> {
    let (process, number) = name.split_once('-')?;
    Some((process.parse().ok()?, number.parse().ok()?))
}

/// A file's content; nothing unless it is a plain file of a moderate size. Neither a link is
/// followed nor a pipe waited for.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    let mut limited = file.take(BYTES_MAX + 1);
    limited.read_to_end(&mut content).ok()?;
    (content.len() as u64 <= BYTES_MAX).then_some(content)
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
    fn the_directory_of_a_process_is_in_its_environment() {
        let directory = Directory::new().expect("there is a place");
        let mut child = std::process::Command::new("cat")
            .env(VARIABLE, directory.path())
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        // Until it is `cat` its environment may be ours.
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
