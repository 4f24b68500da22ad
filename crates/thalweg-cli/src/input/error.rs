//! The faults of an input file, each described with file, line and limit.

use crate::failure::reason;
use std::fmt;
use std::io;

/// A fault of an input file. Its text names the file, the line and what was expected there.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum InputError {
    /// The file could not be opened.
    Open { file: String, source: io::Error },
    /// Reading the file failed after it was opened.
    Read {
        file: String,
        line: u64,
        source: io::Error,
    },
    /// The compressed data ends in the middle.
    Truncated { file: String, line: u64 },
    /// The compressed data contradicts its checksum or its structure.
    Corrupt { file: String, line: u64 },
    /// Data that is not compressed follows the compressed data.
    Trailing { file: String, line: u64 },
    /// The file holds more than can be kept in memory.
    TooLarge { file: String, limit: String },
    /// The file is empty, or holds only comments.
    Empty { file: String },
    /// The first lines match no known format.
    UnknownFormat {
        file: String,
        line: u64,
        first: String,
    },
    /// A line does not conform to its format.
    Line {
        file: String,
        line: u64,
        what: String,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Open { file, source } => {
                write!(f, "{file}: cannot be opened: {}", reason(source))
            }
            InputError::Read { file, line, source } => {
                write!(f, "{file}:{line}: reading failed: {}", reason(source))
            }
            InputError::Truncated { file, line } => write!(
                f,
                "{file}: truncated gzip: the compressed data ends in line {line}; \
                 fetch the file again"
            ),
            InputError::Corrupt { file, line } => {
                write!(
                    f,
                    "{file}: corrupt gzip: the data stops making sense in line {line}"
                )
            }
            InputError::Trailing { file, line } => write!(
                f,
                "{file}: bytes that are not gzip after the compressed data, which ends in line \
                 {line}; cut them off, or fetch the file again"
            ),
            InputError::TooLarge { file, limit } => write!(
                f,
                "{file}: larger than the limit of {limit}, all of which are kept in memory"
            ),
            InputError::Empty { file } => {
                write!(f, "{file}: empty file: there is no line of data in it")
            }
            InputError::UnknownFormat { file, line, first } => write!(
                f,
                "{file}:{line}: unknown format, the file begins with {first}; known are bitstamp, \
                 lobster, orders (whose first line is `thalweg-orders,1`), recorded and load; \
                 --format-in names one"
            ),
            InputError::Line { file, line, what } => write!(f, "{file}:{line}: {what}"),
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InputError::Open { source, .. } | InputError::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The maximum length of the piece of a line that an error repeats.
const EXCERPT_CHARS_MAX: usize = 60;

/// Returns a piece of input for an error text: quoted, without control characters, and of limited
/// length.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text
        .chars()
        .take(EXCERPT_CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push('…');
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_file_line_and_limit() {
        let truncated = InputError::Truncated {
            file: "a.gz".into(),
            line: 7,
        };
        assert_eq!(
            truncated.to_string(),
            "a.gz: truncated gzip: the compressed data ends in line 7; fetch the file again"
        );
        let large = InputError::TooLarge {
            file: "a".into(),
            limit: "5 bytes".into(),
        };
        assert_eq!(
            large.to_string(),
            "a: larger than the limit of 5 bytes, all of which are kept in memory"
        );
        let line = InputError::Line {
            file: "a".into(),
            line: 3,
            what: "size -1".into(),
        };
        assert_eq!(line.to_string(), "a:3: size -1");
        let unknown = InputError::UnknownFormat {
            file: "a".into(),
            line: 1,
            first: "`x`".into(),
        };
        assert!(
            unknown
                .to_string()
                .contains("known are bitstamp, lobster, orders")
        );
    }

    #[test]
    fn an_excerpt_is_short_and_clean() {
        assert_eq!(excerpt(b"a\x1b[31mb"), "`a\u{fffd}[31mb`");
        assert_eq!(excerpt(&[b'x'; 100]).chars().count(), EXCERPT_CHARS_MAX + 3);
        assert_eq!(excerpt(&[0xff, b'a']), "`\u{fffd}a`");
    }
}
