//! Writes to standard output, and to files that are named on the command line.

use crate::failure::Failure;
use crate::message::shown;
use serde::Serialize;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the pair that identifies a file, whatever its name; a device has none.
fn identity(file: &Metadata) -> Option<(u64, u64)> {
    file.is_file().then(|| (file.dev(), file.ino()))
}

/// A file to be written, or standard output. The file keeps its old content until writing begins.
#[derive(Debug)]
pub(crate) struct Output {
    name: String,
    /// The file; `None` for standard output.
    file: Option<File>,
}

impl Output {
    /// Opens the output for writing; `-` is standard output.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or written to.
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

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether this is standard output.
    pub(crate) fn is_standard(&self) -> bool {
        self.file.is_none()
    }

    fn identity(&self) -> Option<(u64, u64)> {
        identity(&self.file.as_ref()?.metadata().ok()?)
    }

    /// Returns whether writing this would overwrite the other output.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        let is_standard = self.is_standard() && other.is_standard();
        is_standard || self.identity().is_some() && self.identity() == other.identity()
    }

    /// Returns whether writing this would overwrite the file at that path.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let file = path.metadata().ok().as_ref().and_then(identity);
        file.is_some() && self.identity() == file
    }

    /// Truncates the file and starts to write: the old content is lost.
    ///
    /// # Errors
    /// Returns an error if the file cannot be truncated.
    pub(crate) fn begin(&mut self) -> io::Result<Box<dyn Write + '_>> {
        let Some(file) = &mut self.file else {
            return Ok(Box::new(io::stdout().lock()));
        };
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(Box::new(file))
    }

    /// Returns the failure to report where writing fails.
    pub(crate) fn failure(&self, source: io::Error) -> Failure {
        let name = self.name.clone();
        match self.file {
            Some(_) => Failure::Write { name, source },
            None => Failure::Output(source),
        }
    }

    /// Replaces the whole content by `data`.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        let written = self.begin().and_then(|mut file| {
            file.write_all(data)?;
            file.flush()
        });
        written.map_err(|source| self.failure(source))
    }
}

/// Returns the facts as JSON, with a line end.
pub(crate) fn json(facts: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(facts);
    json.map(|text| text + "\n")
        .map_err(|error| Failure::Output(io::Error::other(error)))
}

/// Writes data to standard output.
pub(crate) fn print(data: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(data)
        .and_then(|()| out.flush())
        .map_err(Failure::Output)
}

/// Writes an object or a list to standard output, as JSON.
pub(crate) fn print_json(rows: &impl Serialize) -> Result<(), Failure> {
    print(json(rows)?.as_bytes())
}
