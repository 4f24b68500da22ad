//! Errors of slots.

use std::fmt;

use thiserror::Error;

/// A value that was not sent; it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError<T> {
    /// There is a value in the slot, which no receiver has taken yet.
    #[error("the slot holds a value that was not received yet (1 of 1)")]
    Full(T),
    /// The receiver was dropped.
    #[error("the slot's receiver is gone")]
    Closed(T),
    /// The receiver cancelled.
    #[error("the slot's receiver has cancelled")]
    Cancelled(T),
}

impl<T> SendError<T> {
    /// Returns the value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) | Self::Cancelled(value) => value,
        }
    }
}

// Values need not be `Debug`, as with the errors of `std::sync::mpsc`.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
            Self::Cancelled(_) => "Cancelled(..)",
        })
    }
}

/// The error of a wait for an empty slot into which nothing can be sent any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WaitEmptyError {
    /// The receiver was dropped.
    #[error("the slot's receiver is gone")]
    Closed,
    /// The receiver cancelled.
    #[error("the slot's receiver has cancelled")]
    Cancelled,
}

/// The error of a receive when no value will come any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecvError {
    /// The sender was dropped, and all that it sent was received.
    #[error("the slot's sender is gone")]
    Closed,
    /// The sender cancelled, or another receiver, where there are several.
    #[error("the slot's sender, or another of several receivers, has cancelled")]
    Cancelled,
}

/// The error of a `try_recv` that found no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TryRecvError {
    /// The slot is empty, and its sender is there.
    #[error("the slot is empty")]
    Empty,
    /// The sender was dropped, and all that it sent was received.
    #[error("the slot's sender is gone")]
    Closed,
    /// The sender cancelled, or another receiver, where there are several.
    #[error("the slot's sender, or another of several receivers, has cancelled")]
    Cancelled,
}

impl From<RecvError> for TryRecvError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Closed => Self::Closed,
            RecvError::Cancelled => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_describes_what_is_wrong() {
        let texts = [
            SendError::Full(1).to_string(),
            SendError::Closed(1).to_string(),
            SendError::Cancelled(1).to_string(),
            WaitEmptyError::Closed.to_string(),
            WaitEmptyError::Cancelled.to_string(),
            TryRecvError::Empty.to_string(),
            TryRecvError::from(RecvError::Closed).to_string(),
            TryRecvError::from(RecvError::Cancelled).to_string(),
        ];
        let expected = [
            "the slot holds a value that was not received yet (1 of 1)",
            "the slot's receiver is gone",
            "the slot's receiver has cancelled",
            "the slot's receiver is gone",
            "the slot's receiver has cancelled",
            "the slot is empty",
            "the slot's sender is gone",
            "the slot's sender, or another of several receivers, has cancelled",
        ];
        assert_eq!(texts, expected);
        assert_eq!(format!("{:?}", SendError::Full(())), "Full(..)");
        assert_eq!(SendError::Cancelled(7).into_inner(), 7);
    }
}
