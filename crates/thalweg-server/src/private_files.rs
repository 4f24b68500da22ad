//! Files and directories that are their owner's alone.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Returns options with which a file that is made is its owner's alone.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a directory that is its owner's alone, and the ones above it, where they are missing.
///
/// # Errors
/// It cannot be made.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(true).create(path)
}
