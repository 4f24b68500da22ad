//! Market data: trades, changes of levels and orders, best prices, snapshots; numbered without
//! gaps, per symbol and all together.
//!
//! A [`Builder`] is fed what came of each command, in order, usually by the publish closure of a
//! [`Service`](crate::service::Service), and gives [`Message`]s. It needs no book: it follows the
//! resting orders by the commands and events alone. A [`Replica`] is the other end: a book made of
//! level deltas from the first message on, or of a [`Snapshot`] and the deltas after it.
//!
//! *Numbers.* A [`FeedSequence`] counts all messages, a [`SymbolSequence`] those of a symbol; both
//! begin at 1, and messages that [`Channels`] leave out are not numbered, so that a subscriber of
//! the feed as it is configured sees no gap. [`Message::command`] says which command it was.
//! Of a builder made [of books](Builder::from_books), the orders that rest in a symbol already
//! count as its message 1, which only a snapshot tells: without one there is a gap.
//!
//! *Starts.* The numbers are those of one builder. A service that starts again makes a new one,
//! whose numbers begin again and may fit those of before; so each start has an [`Epoch`], as the
//! packets of MoldUDP64 have a session. A replica follows one epoch: it refuses messages of older
//! ones, and when a newer one comes it says so and needs a snapshot of that.
//!
//! The epoch is in every message, not in a message of its own nor once in a batch: a frame is one
//! message, with no header around it here, and messages are collected, filtered by symbol, lost
//! and late one by one. It is 8 of the 44 to 76 bytes of a frame.

mod builder;
mod chain;
mod message;
mod price_ladder;
mod replica;
mod shadow;
mod snapshot;
mod tape;

pub use self::builder::{Builder, OutOfStep};
pub use self::message::{
    BestPrices, Body, Epoch, FeedSequence, LevelDelta, Message, OrderChange, OrderReference, Quote,
    SymbolSequence,
};
pub use self::replica::{Replica, ReplicaError};
pub use self::snapshot::Snapshot;

/// Which messages a feed has. [`Body::Cleared`] is always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// [`Body::Trade`].
    pub trades: bool,
    /// [`Body::Order`]: the full order log.
    pub orders: bool,
    /// [`Body::Level`]; a [`Replica`] needs them.
    pub levels: bool,
    /// [`Body::Best`].
    pub best: bool,
}

impl Default for Channels {
    /// All of them.
    fn default() -> Self {
        Self {
            trades: true,
            orders: true,
            levels: true,
            best: true,
        }
    }
}

/// How a [`Builder`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which messages to make.
    pub channels: Channels,
    /// Room for so many messages of one command from the start; more allocate, once.
    pub messages: usize,
    /// Room for so many levels a side and symbol from the start; more allocate, once.
    pub levels: usize,
}

impl Default for Options {
    /// All messages; room for 64 of a command, and for 64 levels.
    fn default() -> Self {
        Self {
            channels: Channels::default(),
            messages: 64,
            levels: 64,
        }
    }
}
