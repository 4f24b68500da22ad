//! Errors of the operations on a channel. Their names are those of `std::sync::mpsc` and
//! `crossbeam-channel`.

use std::fmt;

use crate::ring::{PopError, RingClaimError};

/// The reason why a `send` did not take the element, which it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<T> {
    /// Every receiver was dropped, or the channel was closed.
    Disconnected(T),
    /// The channel is full (at a rendezvous: no receiver is waiting), and its policy is
    /// [`Overflow::Reject`](super::Overflow::Reject), or the send was one that does not wait.
    Full(T),
}

/// The reason why a `try_send` did not take the element, which is one of those of a `send`.
pub type TrySendError<T> = SendError<T>;

/// The reason why a send with a time limit did not take the element, which it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendTimeoutError<T> {
    /// No slot was free in time.
    Timeout(T),
    /// Every receiver was dropped, or the channel was closed.
    Disconnected(T),
    /// The channel is full, and its policy is [`Overflow::Reject`](super::Overflow::Reject).
    Full(T),
}

giving_back!(SendError,
    /// Returns whether no later try can succeed: every receiver was dropped, or the channel was
    /// closed.
    is_disconnected Disconnected:
    Disconnected "sending into a channel without receivers",
    Full "sending into a full channel without waiting");
giving_back!(SendTimeoutError,
    /// Returns whether no later try can succeed: every receiver was dropped, or the channel was
    /// closed.
    is_disconnected Disconnected:
    Timeout "sending into a channel that stayed full until the time limit",
    Disconnected "sending into a channel without receivers",
    Full "sending into a full channel without waiting");

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Disconnected(value) => Self::Disconnected(value),
            SendError::Full(value) => Self::Full(value),
        }
    }
}

/// A batch was not sent as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendManyError<T> {
    /// The number of elements that were sent.
    pub sent: usize,
    /// The element after those, and why it was not taken. Later elements were not asked for.
    pub error: SendError<T>,
}

shown!([T] SendManyError<T>, "SendManyError", this, "sent": this.sent, "error": this.error);

impl<T> fmt::Display for SendManyError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, after {} elements of a batch", self.error, self.sent)
    }
}

impl<T> std::error::Error for SendManyError<T> {}

/// The reason why slots were not claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// Fewer slots are free now than were asked for.
    Full {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The number of slots that were free.
        free: usize,
    },
    /// More was asked for than the capacity of the channel, so no later try can succeed.
    TooLarge {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The capacity of the channel, in elements.
        capacity: usize,
    },
    /// Every receiver was dropped, or the channel was closed.
    Disconnected,
    /// The channel has no slots to write into.
    Unsupported {
        /// The kind of the channel: an unbounded channel, a rendezvous, or one that drops its
        /// oldest elements.
        channel: &'static str,
    },
}

impl From<RingClaimError> for ClaimError {
    fn from(error: RingClaimError) -> Self {
        match error {
            RingClaimError::Full { asked, free } => Self::Full { asked, free },
            RingClaimError::TooLarge { asked, capacity } => Self::TooLarge { asked, capacity },
            RingClaimError::Closed => Self::Disconnected,
        }
    }
}

errors!(ClaimError {
    Self::Full { asked, free } => "claim of {asked} elements in a channel with {free} free";
    Self::TooLarge { asked, capacity } =>
        "claim of {asked} elements in a channel that holds {capacity}";
    Self::Disconnected => "claim in a channel without receivers";
    Self::Unsupported { channel } => "claim in {channel}, which has no memory to give away";
});

/// No element will come any more: every sender was dropped, or the channel was closed, and all that
/// was sent has been received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecvError;

errors!(RecvError {
    Self => "receiving from an empty channel without senders";
});

/// The reason why a `try_recv` gave no element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryRecvError {
    /// The channel is empty now.
    Empty,
    /// The channel is empty, and no element will come any more; see [`RecvError`].
    Disconnected,
}

errors!(TryRecvError {
    Self::Empty => "receiving from an empty channel";
    Self::Disconnected => "{RecvError}";
});

impl From<PopError> for TryRecvError {
    fn from(error: PopError) -> Self {
        match error {
            PopError::Empty => Self::Empty,
            PopError::Closed => Self::Disconnected,
        }
    }
}

impl From<RecvError> for TryRecvError {
    fn from(_: RecvError) -> Self {
        Self::Disconnected
    }
}

/// The reason why a receive with a time limit gave no element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvTimeoutError {
    /// None came in time.
    Timeout,
    /// The channel is empty, and no element will come any more; see [`RecvError`].
    Disconnected,
}

errors!(RecvTimeoutError {
    Self::Timeout => "receiving from a channel that stayed empty until the time limit";
    Self::Disconnected => "{RecvError}";
});

impl From<RecvError> for RecvTimeoutError {
    fn from(_: RecvError) -> Self {
        Self::Disconnected
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_happened() {
        assert_eq!(
            SendError::Disconnected(1).to_string(),
            "sending into a channel without receivers"
        );
        assert_eq!(
            SendError::Full(1).to_string(),
            "sending into a full channel without waiting"
        );
        assert_eq!(
            SendTimeoutError::Timeout(1).to_string(),
            "sending into a channel that stayed full until the time limit"
        );
        assert_eq!(
            SendManyError {
                sent: 3,
                error: SendError::Disconnected(4)
            }
            .to_string(),
            "sending into a channel without receivers, after 3 elements of a batch"
        );
        assert_eq!(
            TryRecvError::Disconnected.to_string(),
            "receiving from an empty channel without senders"
        );
        assert_eq!(
            TryRecvError::Empty.to_string(),
            "receiving from an empty channel"
        );
        assert_eq!(
            RecvTimeoutError::Timeout.to_string(),
            "receiving from a channel that stayed empty until the time limit"
        );
    }

    #[test]
    fn a_refused_element_comes_back_without_being_debug() {
        struct Opaque(u8);
        let error = TrySendError::from(SendError::Disconnected(Opaque(7)));
        assert_eq!(format!("{error:?}"), "Disconnected(..)");
        assert!(error.is_disconnected());
        assert_eq!(error.into_inner().0, 7);
        assert!(!SendTimeoutError::from(SendError::Full(1)).is_disconnected());
    }
}
