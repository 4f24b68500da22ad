//! Errors in bytes that are decoded, and of buffers that are too small to encode into.

use thiserror::Error;

use super::layout::{FRAME_BYTES_MAX, HEAD_BYTES};

/// Why bytes were not decoded, or a value not encoded. Positions count from 0 at the beginning of
/// the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end before the frame does. As far as its head goes (version, kind, length, own
    /// bytes) and the numbers of items of a batch or a snapshot, it is good: read more. The other
    /// fields are looked at when all of them are there.
    #[error("the frame needs {needed} bytes, {have} are there")]
    Incomplete {
        /// Bytes of the frame, or of its head while not even that is there.
        needed: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The frame says that it is shorter than its own head.
    #[error("the length at byte 0 is {length}, a frame has {HEAD_BYTES} bytes at least")]
    TooShort {
        /// The length that it gives.
        length: usize,
    },
    /// The frame is longer than [`FRAME_BYTES_MAX`].
    #[error("a frame of {length} bytes, the limit is {FRAME_BYTES_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// The frame is of a version that is not known here.
    #[error("the version at byte 5 is {version}, only {known} is known")]
    UnknownVersion {
        /// Its version.
        version: u8,
        /// The one that is known for its family.
        known: u8,
    },
    /// The frame is of no known kind, or of one that was not asked for.
    #[error("the kind at byte 4 is {kind}, which is no known {wanted}")]
    UnknownKind {
        /// Its kind.
        kind: u8,
        /// The expected family of frames, such as `command`.
        wanted: &'static str,
    },
    /// The length of the frame is not that of its kind.
    #[error("the length at byte 0 is {length}, that of {what} is {expected}")]
    WrongLength {
        /// The kind.
        what: &'static str,
        /// The length that the frame gives.
        length: usize,
        /// The length of the kind; of a batch, the next lower one, or its least.
        expected: usize,
    },
    /// One of the kind's own bytes in the head is above its greatest value.
    #[error("byte {at} of {what} is {value}, the greatest is {max}")]
    HeadByte {
        /// The kind.
        what: &'static str,
        /// Where it is: 6 or 7.
        at: usize,
        /// The value that was found.
        value: u8,
        /// The greatest value.
        max: u8,
    },
    /// An order with conditions has none: it is another kind, an order without.
    #[error("byte 6 of a conditional order names no condition; such an order has kind 1")]
    NoCondition,
    /// A small field is above its greatest value, or a bit without a meaning is set.
    #[error("{what} at byte {at} is {value}, the greatest is {max}")]
    OutOfRange {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// The value that was found.
        value: u64,
        /// The greatest value.
        max: u64,
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
    /// A list is said to be longer than the rest of the frame can hold.
    #[error("{count} {what} said at byte {at}, the frame has room for {max}")]
    TooMany {
        /// The kind of items in the list.
        what: &'static str,
        /// Where its length is.
        at: usize,
        /// Its length.
        count: usize,
        /// The most that there is room for.
        max: usize,
    },
    /// The frame, which is all there, ends within its fields: a list in it is longer than it says.
    #[error("the frame ends at byte {length}, and {bytes} bytes are wanted from byte {at} on")]
    Truncated {
        /// Where the field begins that does not fit.
        at: usize,
        /// Bytes of that field.
        bytes: usize,
        /// The length of the frame.
        length: usize,
    },
    /// The frame goes on after its last field.
    #[error("the frame's fields end at byte {at}, and {bytes} bytes follow")]
    TrailingBytes {
        /// Where its fields end.
        at: usize,
        /// Bytes after that.
        bytes: usize,
    },
    /// A number is below its least value.
    #[error("{what} at byte {at} is {value}, the least is {min}")]
    TooSmall {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// The value that was found.
        value: u64,
        /// The least value.
        min: u64,
    },
    /// A list that must ascend does not.
    #[error("{what} at byte {at} is not above the one before it")]
    NotAscending {
        /// The kind of items in the list.
        what: &'static str,
        /// Where the item is that is not above the one before it.
        at: usize,
    },
    /// A text is not UTF-8.
    #[error("{what} is no UTF-8 from byte {at} on")]
    InvalidUtf8 {
        /// The text.
        what: &'static str,
        /// Where it ceases to be.
        at: usize,
    },
    /// A frame within another one does not begin as it should: another kind or version, or a length
    /// that is not that of the rest.
    #[error("at byte {at} begins something else than {what}")]
    WrongHead {
        /// The frame that should begin there.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// The buffer is too small for the frame. Nothing was written.
    #[error("the frame needs {needed} bytes, the buffer has {have}")]
    BufferTooSmall {
        /// Bytes of the frame.
        needed: usize,
        /// Bytes of the buffer.
        have: usize,
    },
}

impl CodecError {
    /// Returns the error of a code, at this place, that stands for nothing known.
    pub(crate) fn unknown(what: &'static str, at: usize, code: impl Into<i64>) -> Self {
        let code = code.into();
        Self::UnknownCode { what, at, code }
    }

    /// Returns the same error with its place counted in an outer frame: the inner frame begins at
    /// byte `by` of it, where `frame` should be.
    pub(super) const fn within(self, frame: &'static str, by: usize) -> Self {
        let mut moved = self;
        match &mut moved {
            Self::HeadByte { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::UnknownCode { at, .. }
            | Self::TooMany { at, .. }
            | Self::TrailingBytes { at, .. }
            | Self::TooSmall { at, .. } => *at += by,
            Self::Truncated { at, length, .. } => {
                *at += by;
                *length += by;
            }
            _ => {
                moved = Self::WrongHead {
                    what: frame,
                    at: by,
                }
            }
        }
        moved
    }
}
