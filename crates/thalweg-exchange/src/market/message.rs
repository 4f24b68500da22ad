//! The messages that subscribers receive, and the picture of a book from which they can start.

use super::Channels;
use crate::book::Level;
use crate::command::Action;
use crate::ids::SymbolId;

/// The start of a feed that a message belongs to: its session, in other feeds' terms.
///
/// The caller that starts a [`Builder`](super::Builder) chooses it. It must differ at each start,
/// and should grow: a count of starts that outlives them, or the time in nanoseconds since 1970.
/// The numbers of messages count within one epoch. They begin again in the next, unless the same
/// builder [goes on](super::Builder::begin_epoch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The first epoch of a replicated exchange. Epochs that come from a clock are below it.
    pub const FIRST_REPLICATED: Self = Self(1 << 63);
}

/// The number of a message among all messages of a feed, from 1, without gaps. 0 is before the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedSequence(pub u64);

/// The number of a message among those of its symbol, from 1, without gaps. 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolSequence(pub u64);

/// One message of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which start of the feed it is from.
    pub epoch: Epoch,
    /// Its number in the whole feed.
    pub sequence: FeedSequence,
    /// Its number among the messages of this symbol.
    pub symbol_sequence: SymbolSequence,
    /// Which messages the feed has: the numbers count these.
    pub channels: Channels,
    /// The symbol of the book.
    pub symbol: SymbolId,
    /// True on the last message of a command for this symbol: the book is consistent again.
    pub is_last: bool,
    /// The change in the book.
    pub body: Body,
}

/// A change in a book. Prices are in the symbol's quote units, sizes and volumes in lots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Two orders met.
    Trade {
        /// The resting order's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The side of the order that came.
        taker_side: Action,
    },
    /// A price level has changed to this. Sent once per command and level, if it differs from
    /// before.
    Level(LevelDelta),
    /// The best prices, when they or the volumes at them have changed.
    Best(BestPrices),
    /// The book is gone, with everything in it. If the symbol is added again it starts empty; the
    /// numbers of its messages go on.
    Cleared,
}

/// The new state of a price level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelDelta {
    /// Its side.
    pub side: Action,
    /// Its price.
    pub price: i64,
    /// Lots that rest here now.
    pub volume: i64,
    /// Orders that they belong to; 0 where the level is gone.
    pub orders: u64,
}

/// A price and what rests at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The price.
    pub price: i64,
    /// Lots.
    pub volume: i64,
}

/// The best price of each side, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestPrices {
    /// The lowest price of a resting ask.
    pub ask: Option<Quote>,
    /// The highest price of a resting bid.
    pub bid: Option<Quote>,
}

/// A book as it was after a message; a buffer to be used again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The symbol of the book.
    pub symbol: SymbolId,
    /// Which start of the feed it is from: both numbers count in it.
    pub epoch: Epoch,
    /// Which messages the feed has: both numbers count these.
    pub channels: Channels,
    /// The last message of the whole feed before the picture was taken.
    pub sequence: FeedSequence,
    /// The last message of this symbol that is in the picture: those after it are to be applied.
    pub as_of: SymbolSequence,
    /// The selling levels, best first.
    pub asks: Vec<Level>,
    /// The buying levels, best first.
    pub bids: Vec<Level>,
    /// True where there are more selling levels than these.
    pub asks_cut: bool,
    /// True where there are more buying levels than these.
    pub bids_cut: bool,
}

impl Snapshot {
    /// Returns the levels of one side, best first.
    #[must_use]
    pub fn levels(&self, side: Action) -> &[Level] {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }
}
