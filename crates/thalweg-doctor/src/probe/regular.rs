//! Opens files at paths from elsewhere: from a process's mappings, its environment or its control
//! groups.
//!
//! Any file may lie at such a path by now, such as a named pipe or an endless file. The type of a
//! file is therefore checked before it is opened, only regular files are opened, and the amount
//! that is read is bounded.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The maximum size of a text in bytes. The mappings of a process are the longest: 65,530 of them
/// by default (`vm.max_map_count`), of about a hundred bytes each.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Opens a regular file for reading; `more` are flags for how its path is followed.
///
/// No other kind of file is opened, so that this neither waits for the writer of a pipe nor wakes
/// it, and has no effect on a device.
pub(crate) fn open(path: impl AsRef<Path>, more: OFlags) -> io::Result<File> {
    let look = OFlags::PATH | OFlags::CLOEXEC | more;
    let found = File::from(rustix::fs::open(path.as_ref(), look, Mode::empty())?);
    if !found.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // The path may lead elsewhere by now; this link leads to the file that was checked.
    let same = format!("/proc/self/fd/{}", found.as_raw_fd());
    let read = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(same, read, Mode::empty())?))
}

/// Reads a file of at most `bytes_max` bytes; a longer one is an error.
pub(crate) fn read(path: impl AsRef<Path>, bytes_max: u64, more: OFlags) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut limited = open(path, more)?.take(bytes_max + 1);
    limited.read_to_end(&mut content)?;
    match content.len() as u64 <= bytes_max {
        true => Ok(content),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Reads a text of `/proc` or `/sys`. Names in it may be invalid UTF-8, as a thread's name is cut
/// after 15 bytes.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let content = read(path, TEXT_BYTES_MAX, OFlags::empty()).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::fs;

    /// A folder that is removed when this is dropped.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_a_regular_file_of_a_moderate_size_is_read() {
        let name = format!("thalweg-doctor-regular-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir(&folder.0).unwrap();
        let at = |name: &str| folder.0.join(name);
        fs::write(at("text"), b"caf\xc3 1\n").unwrap();
        std::os::unix::fs::symlink(at("text"), at("link")).unwrap();
        mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
        let all = OFlags::empty();
        assert_eq!(read(at("link"), 8, all).unwrap(), b"caf\xc3 1\n");
        assert_eq!(text(at("text")).as_deref(), Some("caf\u{fffd} 1\n"));
        let refused = [
            read(at("text"), 6, all),
            read(at("link"), 8, OFlags::NOFOLLOW),
            read(at("pipe"), 8, all),
            read(&folder.0, 8, all),
            read("/dev/zero", 8, all),
            read(at("nowhere"), 8, all),
        ];
        assert!(refused.iter().all(Result::is_err), "{refused:?}");
    }
}
