//! Errors in the bytes of a state.

use thiserror::Error;

use super::{MAGIC, STATE_VERSION};
use crate::codec::CodecError;

/// Why bytes were not decoded. Positions count from 0 at the beginning of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes do not begin as a state does.
    #[error("the bytes at 0 are {found:02x?}, a state begins with {MAGIC:02x?}")]
    NotAState {
        /// How they begin.
        found: [u8; 4],
    },
    /// The state is of a version that is not known here.
    #[error("the version at byte 4 is {version}, only {STATE_VERSION} is known")]
    UnknownVersion {
        /// Its version.
        version: u32,
    },
    /// The bytes end within a field.
    #[error("{what} at byte {at} needs {bytes} bytes, the state ends after {length}")]
    Truncated {
        /// The field, or the first of some.
        what: &'static str,
        /// Where it begins.
        at: usize,
        /// How many bytes it has.
        bytes: usize,
        /// How many there are in all.
        length: usize,
    },
    /// The bytes go on after the state.
    #[error("the state ends at byte {at}, {bytes} more are there")]
    TrailingBytes {
        /// Where it ends.
        at: usize,
        /// Bytes after that.
        bytes: usize,
    },
    /// A list is said to be longer than the bytes that are left can hold.
    #[error("the number of {what} at byte {at} is {count}, there is room for {max}")]
    TooMany {
        /// The kind of entries in the list.
        what: &'static str,
        /// Where its length is.
        at: usize,
        /// Its length.
        count: usize,
        /// The most that there is room for.
        max: usize,
    },
    /// A number is less or more than it may be, given what stands before it.
    #[error("{what} at byte {at} is {value}, it may be from {min} to {max}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Where it is, or what it belongs to.
        at: usize,
        /// The value that was found.
        value: i128,
        /// The least that it may be.
        min: i128,
        /// The most that it may be.
        max: i128,
    },
    /// A number that stands for something stands for nothing known.
    #[error("{what} at byte {at} is {code}, which is not known")]
    UnknownCode {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// The value that was found.
        code: i64,
    },
    /// An entry of a sorted list does not belong after the one before it.
    #[error("{what} at byte {at}: {value} may not follow {before}")]
    OutOfOrder {
        /// The kind of entries in the list.
        what: &'static str,
        /// Where the entry is.
        at: usize,
        /// The entry's sort key.
        value: i64,
        /// The sort key of the entry before.
        before: i64,
    },
    /// An order has the id of another one.
    #[error("the order at byte {at} has the id {order} of another one")]
    Twice {
        /// Where the order is.
        at: usize,
        /// Its id.
        order: i64,
    },
    /// Something refers to what is not there.
    #[error("there is no {what} {id}, which byte {at} refers to")]
    Unknown {
        /// The thing that should be there.
        what: &'static str,
        /// Where it is referred to.
        at: usize,
        /// Its id.
        id: i64,
    },
    /// Something must not be there.
    #[error("{what} at byte {at}: {why}")]
    Forbidden {
        /// The thing that must not be there.
        what: &'static str,
        /// Where.
        at: usize,
        /// Why not, such as `futures are not traded`.
        why: &'static str,
    },
}

/// A struct in a state is decoded as one in a frame is, and has codes and numbers only.
impl From<CodecError> for SnapshotError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::UnknownCode { what, at, code } => Self::UnknownCode { what, at, code },
            error => unreachable!("{error}"),
        }
    }
}
