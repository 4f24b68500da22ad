//! Errors in a file of commands.

use std::{error, fmt, io};

use thiserror::Error;

/// A file of commands cannot be read: which line, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamError {
    /// The line, counted from 1.
    pub line: u64,
    /// The kind of the error.
    pub kind: StreamErrorKind,
}

/// The kind of an error in a line.
#[derive(Debug, Error)]
pub enum StreamErrorKind {
    /// Reading failed; a truncated or damaged gzip file is reported by this, too.
    #[error("cannot read on: {0}")]
    Io(io::Error),
    /// A line is not of the format; the text says what is wrong with it.
    #[error("{0}")]
    Content(String),
}

impl StreamError {
    pub(super) fn content(line: u64, what: impl Into<String>) -> Self {
        let kind = StreamErrorKind::Content(what.into());
        Self { line, kind }
    }

    /// Returns the error of a first line that does not say what file this is.
    pub(super) fn no_header(expected: &str) -> Self {
        let what = format!("the first line must be a comment with '{expected}'");
        Self::content(1, what)
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

impl error::Error for StreamError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.kind {
            StreamErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
