//! Files that a command writes: opened before the work begins, so that a place that cannot be
//! written to is told at once.

use crate::failure::{Failure, shown};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// What tells a file from all others, however it is named; a device is not one.
fn identity(file: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.is_file().then(|| (file.dev(), file.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// A file to be written, or standard output. What it held before is there until then.
#[derive(Debug)]
pub(crate) struct Output {
    name: String,
    /// None: standard output.
    file: Option<File>,
}

impl Output {
    /// Opens it for writing; `-` is standard output.
    ///
    /// # Errors
    /// It cannot be made, or not be written to.
    pub(crate) fn open(path: &Path) -> Result<Output, Failure> {
        if path.as_os_str() == "-" {
            let (name, file) = ("standard output".to_owned(), None);
            return Ok(Output { name, file });
        }
        let name = shown(path.as_os_str());
        let mut options = OpenOptions::new();
        match options.write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Output {
                name,
                file: Some(file),
            }),
            Err(source) => Err(Failure::Write { name, source }),
        }
    }

    /// Its name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is standard output.
    pub(crate) fn is_standard(&self) -> bool {
        self.file.is_none()
    }

    fn identity(&self) -> Option<(u64, u64)> {
        identity(&self.file.as_ref()?.metadata().ok()?)
    }

    /// Whether writing this would write over the other.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        let is_standard = self.is_standard() && other.is_standard();
        is_standard || self.identity().is_some() && self.identity() == other.identity()
    }

    /// Whether writing this would write over the file of that path.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let file = path.metadata().ok().as_ref().and_then(identity);
        file.is_some() && self.identity() == file
    }

    /// Begins anew: what a file held before is gone.
    ///
    /// # Errors
    /// It cannot be cut.
    pub(crate) fn begin(&mut self) -> io::Result<Box<dyn Write + '_>> {
        let Some(file) = &mut self.file else {
            return Ok(Box::new(io::stdout().lock()));
        };
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(Box::new(file))
    }

    /// What is said where writing fails.
    pub(crate) fn failure(&self, source: io::Error) -> Failure {
        let name = self.name.clone();
        match self.file {
            Some(_) => Failure::Write { name, source },
            None => Failure::Output(source),
        }
    }

    /// Writes all that it holds from now on.
    ///
    /// # Errors
    /// Writing fails.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        let written = self.begin().and_then(|mut file| {
            file.write_all(data)?;
            file.flush()
        });
        written.map_err(|source| self.failure(source))
    }
}
