//! The faults of an input file, each described with file, line and limit.

use crate::message::reason;
use std::io;
use thiserror::Error;

/// A fault of an input file. Its text names the file, the line and what was expected there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum InputError {
    /// The file could not be opened.
    #[error("{file}: cannot be opened: {}", reason(source))]
    Open { file: String, source: io::Error },
    /// Reading the file failed after it was opened.
    #[error("{file}:{line}: reading failed: {}", reason(source))]
    Read {
        file: String,
        line: u64,
        source: io::Error,
    },
    /// The compressed data ends in the middle.
    #[error(
        "{file}: truncated gzip: the compressed data ends in line {line}; fetch the file again"
    )]
    Truncated { file: String, line: u64 },
    /// The compressed data contradicts its checksum or its structure.
    #[error("{file}: corrupt gzip: the data stops making sense in line {line}")]
    Corrupt { file: String, line: u64 },
    /// Data that is not compressed follows the compressed data.
    #[error(
        "{file}: bytes that are not gzip after the compressed data, which ends in line {line}; cut \
         them off, or fetch the file again"
    )]
    Trailing { file: String, line: u64 },
    /// The file holds more than can be kept in memory.
    #[error("{file}: larger than the limit of {limit}, all of which are kept in memory")]
    TooLarge { file: String, limit: String },
    /// The file is empty, or holds only comments.
    #[error("{file}: empty file: there is no line of data in it")]
    Empty { file: String },
    /// The first lines match no known format.
    #[error(
        "{file}:{line}: unknown format, the file begins with {first}; known are bitstamp, lobster, \
         orders (whose first line is `thalweg-orders,1`), recorded and load; \
         `exchange run` has --format-in to name one"
    )]
    UnknownFormat {
        file: String,
        line: u64,
        first: String,
    },
    /// A line does not conform to its format.
    #[error("{file}:{line}: {what}")]
    Line {
        file: String,
        line: u64,
        what: String,
    },
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
