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
#[non_exhaustive]
pub enum StreamErrorKind {
    /// Reading failed; a truncated or damaged gzip file is reported by this, too.
    #[error("cannot read on: {0}")]
    Io(io::Error),
    /// The line is not ASCII text.
    #[error("not ASCII text")]
    InvalidUtf8,
    /// The line is longer than the limit, in bytes.
    #[error("the line is longer than the limit of {limit_bytes} bytes")]
    LineTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// The first line does not say what file this is.
    #[error("the first line must be a comment with '{expected}'")]
    NoHeader {
        /// The text that it must contain.
        expected: &'static str,
    },
    /// The line starts with nothing that is known.
    #[error("unknown kind of line '{kind}'")]
    UnknownKind {
        /// Its first field.
        kind: String,
    },
    /// A field is missing.
    #[error("field {number} ({name}) is missing")]
    MissingField {
        /// Which one, counted from 1.
        number: usize,
        /// The field's name.
        name: &'static str,
    },
    /// There are more fields than the kind of line has.
    #[error("more fields than the {limit} that this kind of line has")]
    SurplusField {
        /// How many the kind has.
        limit: usize,
    },
    /// A field is not a whole number.
    #[error("field {number} ({name}) is '{text}', not a whole number")]
    NotANumber {
        /// Which one, counted from 1.
        number: usize,
        /// The field's name.
        name: &'static str,
        /// The text that was found.
        text: String,
    },
    /// A number is outside its limits.
    #[error("field {number} ({name}) is {text}, outside its limits {min} to {max}")]
    OutOfRange {
        /// Which one, counted from 1.
        number: usize,
        /// The field's name.
        name: &'static str,
        /// The text that was found.
        text: String,
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A field is not one of the words that it may be.
    #[error("field {number} ({name}) is '{text}', not one of {allowed}")]
    UnknownWord {
        /// Which one, counted from 1.
        number: usize,
        /// The field's name.
        name: &'static str,
        /// The text that was found.
        text: String,
        /// The words.
        allowed: &'static str,
    },
    /// The command counter jumps.
    #[error("the command counter is {found}, expected {expected}")]
    Sequence {
        /// The number that must come next.
        expected: u64,
        /// The number in the line.
        found: u64,
    },
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
