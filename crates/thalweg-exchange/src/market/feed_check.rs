//! Detects missing messages of a feed, whatever their symbols.

use super::Channels;
use super::message::{Epoch, FeedSequence, Message};
use std::cmp::Ordering;

use thiserror::Error;

/// Why a message does not follow those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Messages are missing, of whatever symbols.
    #[error("the feed has a gap: message {} expected, {} came", .expected.0, .got.0)]
    Gap {
        /// The number that should have come.
        expected: FeedSequence,
        /// The number that came.
        got: FeedSequence,
    },
    /// The message is from an earlier start of the feed. It may be dropped. If all that come are,
    /// the new epoch did not grow: take snapshots.
    #[error("the message is stale: it is of epoch {}, which was before {}", .got.0, .current.0)]
    StaleEpoch {
        /// The epoch that is followed.
        current: Epoch,
        /// The epoch of the message.
        got: Epoch,
    },
    /// The feed has started again: a snapshot of that epoch is needed, of each symbol.
    #[error("the feed started again: epoch {1} came after {0}, and a \
        snapshot of epoch {1} is needed", .current.0, .got.0)]
    NewEpoch {
        /// The epoch that is followed.
        current: Epoch,
        /// The epoch of the message.
        got: Epoch,
    },
    /// The message is of another feed, which has other messages under other numbers.
    #[error("the message is of another feed: it has {got}, the one that is followed {current}")]
    OtherChannels {
        /// Which messages the feed that is followed has.
        current: Channels,
        /// Which that of the message has.
        got: Channels,
    },
}

/// Which feed a message is of: its epoch and its channels.
pub(super) fn same_feed(
    current: Option<(Epoch, Channels)>,
    message: &Message,
) -> Result<(), FeedError> {
    let Some((epoch, channels)) = current else {
        return Ok(());
    };
    let (current, got) = (epoch, message.epoch);
    match got.cmp(&current) {
        Ordering::Less => Err(FeedError::StaleEpoch { current, got }),
        Ordering::Greater => Err(FeedError::NewEpoch { current, got }),
        Ordering::Equal if channels == message.channels => Ok(()),
        Ordering::Equal => Err(FeedError::OtherChannels {
            current: channels,
            got: message.channels,
        }),
    }
}

/// Stands before the replicas of a subscriber who gets a whole feed, and notices what they cannot:
/// that the last message of a symbol is missing, of which nothing comes any more.
///
/// After an error nothing has changed. If it is a gap or a new epoch, every symbol needs a new
/// [`Snapshot`](super::Snapshot); the check goes on [after](Self::after) the first of them.
///
/// A loss at the end of a feed does not show in the messages that arrive: the transport must send
/// the number of the last message from time to time, even when the feed is silent.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedCheck {
    feed: Option<(Epoch, Channels)>,
    sequence: FeedSequence,
}

impl FeedCheck {
    /// Returns a check before the first message of a feed, of whatever epoch and channels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a check after this message of a feed: as a snapshot says, or any message from which
    /// to go on.
    #[must_use]
    pub const fn after(epoch: Epoch, channels: Channels, sequence: FeedSequence) -> Self {
        Self {
            feed: Some((epoch, channels)),
            sequence,
        }
    }

    /// Takes the next message. False where it came already; replicas may get it all the same.
    ///
    /// # Errors
    /// It does not follow the one before.
    pub fn check(&mut self, message: &Message) -> Result<bool, FeedError> {
        same_feed(self.feed, message)?;
        let got = message.sequence;
        if got <= self.sequence {
            return Ok(false);
        }
        let expected = FeedSequence(self.sequence.0 + 1);
        if got != expected {
            return Err(FeedError::Gap { expected, got });
        }
        *self = Self::after(message.epoch, message.channels, got);
        Ok(true)
    }

    /// Returns the number of the last message that was taken.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.sequence
    }
}
