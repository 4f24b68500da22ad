//! Errors in the bytes of a state.

use thiserror::Error;

use crate::codec::CodecError;

/// Why bytes were not decoded, as text: what is where, and what it should be. Positions count from
/// 0 at the beginning of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SnapshotError(pub(super) String);

impl SnapshotError {
    /// A number is less or more than it may be, given what stands before it.
    #[cold]
    pub(super) fn out_of_range(
        what: &str,
        at: usize,
        value: i128,
        (min, max): (i128, i128),
    ) -> Self {
        Self(format!(
            "{what} at byte {at} is {value}, it may be from {min} to {max}"
        ))
    }

    /// Something refers to what is not there.
    #[cold]
    pub(super) fn unknown(what: &str, at: usize, id: impl Into<i64>) -> Self {
        let id = id.into();
        Self(format!(
            "there is no {what} {id}, which byte {at} refers to"
        ))
    }

    /// Something must not be there.
    #[cold]
    pub(super) fn forbidden(what: &str, at: usize, why: &str) -> Self {
        Self(format!("{what} at byte {at}: {why}"))
    }

    /// An order has the id of another one.
    #[cold]
    pub(super) fn twice(at: usize, order: i64) -> Self {
        Self(format!(
            "the order at byte {at} has the id {order} of another one"
        ))
    }

    /// An entry of a sorted list does not belong after the one before it.
    #[cold]
    pub(super) fn out_of_order(what: &str, at: usize, value: i64, before: i64) -> Self {
        Self(format!(
            "{what} at byte {at}: {value} may not follow {before}"
        ))
    }
}

/// A struct in a state is decoded as one in a frame is.
impl From<CodecError> for SnapshotError {
    fn from(error: CodecError) -> Self {
        Self(error.to_string())
    }
}
