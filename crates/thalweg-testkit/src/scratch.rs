//! A directory of a test's own.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory, which is removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a directory below that for temporary files, whose name begins with `thalweg-` and
    /// this.
    ///
    /// # Panics
    /// It cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::within(std::env::temp_dir(), name)
    }

    /// Makes one below another directory, such as `CARGO_TARGET_TMPDIR`, which is on a disk.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn within(parent: impl AsRef<Path>, name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed, pairs with nothing; only the numbers must differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("thalweg-{name}-{}-{number}", std::process::id());
        let directory = parent.as_ref().join(name);
        // A process of this number may have been killed here.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("the parent takes directories");
        Self(directory)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
