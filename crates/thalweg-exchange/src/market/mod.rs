//! Market data: trades, changes of levels, best prices, snapshots; numbered without
//! gaps, per symbol and all together.
//!
//! A [`Builder`] is fed the outcome of each command, in order, by default by the publish closure of
//! a [`Service`](crate::service::Service), and gives [`Message`]s. It needs no book: the events
//! [list the levels](crate::Events::with_levels) that each command changed, as they are after it,
//! and it keeps those. A [`BookReplica`] is the other end: a book made of level deltas from the
//! first message on, or of a [`Snapshot`] and the deltas after it.
//!
//! *Numbers.* A [`FeedSequence`] counts all messages, a [`SymbolSequence`] those of a symbol; both
//! begin at 1, and messages that [`Channels`] leave out are not numbered, so that a subscriber of
//! the feed as it is configured sees no gap. Every message says which channels its feed has, so
//! that no subscriber mixes two feeds. No message says which command made it: such numbers would
//! reveal commands that are not public, and which orders of several symbols went together. In a
//! builder made [of books](Builder::from_books), the orders that rest in a symbol already count as
//! its message 1, and as message 1 of the feed. Only a snapshot carries them: without one there is
//! a gap.
//!
//! *Starts.* The numbers are those of one builder. A service that starts again makes a new one,
//! whose numbers begin again and may fit those of before; so each start has an [`Epoch`], as the
//! packets of MoldUDP64 have a session. A replica follows one epoch: it refuses messages of older
//! ones, and when a newer one comes, with whatever symbol, it says so and needs a snapshot of that.
//!
//! The epoch is in every message, not in a message of its own nor once in a batch: a frame is one
//! message, with no header around it here, and messages are collected, filtered by symbol, lost
//! and late one by one. It is 8 of the 36 to 68 bytes of a frame.
//!
//! *Loss.* A [`BookReplica`] sees that a message of its symbol is missing when the next one comes;
//! a [`GapDetector`] before it, which gets the whole feed, when the next one of any symbol comes.

mod book_replica;
mod builder;
mod message;
mod price_ladder;

use std::fmt;

pub use self::book_replica::{BookReplica, FeedError, GapDetector, KnownDepth, ReplicaError};
pub use self::builder::{Builder, OutcomeError};
pub use self::message::{
    BestPrices, Body, Epoch, FeedSequence, LevelDelta, Message, Quote, Snapshot, SymbolSequence,
};

/// Which messages a feed has. [`Body::Cleared`] is always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// [`Body::Trade`].
    pub trades: bool,
    /// [`Body::Level`]; a [`BookReplica`] needs them.
    pub levels: bool,
    /// [`Body::Best`].
    pub best: bool,
}

impl Channels {
    /// Returns one bit each, as frames have them: trades 1, levels 4, best prices 8.
    #[must_use]
    pub const fn code(self) -> u8 {
        let Self {
            trades,
            levels,
            best,
        } = self;
        trades as u8 | (levels as u8) << 2 | (best as u8) << 3
    }

    /// Returns the channels of a code; `None` where any other bit is set.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code & !Self::CODE_MAX != 0 {
            return None;
        }
        Some(Self {
            trades: code & 1 != 0,
            levels: code & 4 != 0,
            best: code & 8 != 0,
        })
    }

    /// The code of all channels.
    pub(crate) const CODE_MAX: u8 = 13;
}

impl fmt::Display for Channels {
    /// Their names, such as `trades and levels`, or `nothing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["trades", "", "levels", "best prices"];
        let bits = self.code();
        let mut chosen = names
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 != 0);
        let Some((_, first)) = chosen.next() else {
            return f.write_str("nothing");
        };
        f.write_str(first)?;
        chosen.try_for_each(|(_, name)| write!(f, " and {name}"))
    }
}

impl Default for Channels {
    /// Returns all of them.
    fn default() -> Self {
        Self {
            trades: true,
            levels: true,
            best: true,
        }
    }
}
