//! The messages that subscribers receive.

use super::Channels;
use crate::command::Action;
use crate::ids::SymbolId;

/// The start of a feed that a message belongs to: its session, in other feeds' terms.
///
/// Whoever starts a [`Builder`](super::Builder) chooses it. It must differ at each start, and
/// should grow: a count of starts that outlives them, or the time in nanoseconds since 1970. The
/// numbers of messages count within one epoch and begin again in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The number of a message among all messages of a feed, from 1, without gaps. 0 is before the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedSequence(pub u64);

/// The number of a message among those of its symbol, from 1, without gaps. 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolSequence(pub u64);

/// What a feed calls a resting order: a count of those that came to rest in its symbol, from 1, in
/// its [`Epoch`].
///
/// It is the feed's own, so that clients' order ids stay private, and it is never used twice. All
/// messages about an order have the same, from [`OrderChange::Added`] on. An order that is moved
/// leaves and comes as a new one, and so do the lots that an order shows after it hid them: each
/// reference has one place in its queue, behind all lower ones of its price. Its owner is told of
/// it by [`Builder::reference`](super::Builder::reference), nobody else is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderReference(pub u64);

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
    /// Whose book.
    pub symbol: SymbolId,
    /// True on the last message of a command for this symbol: the book is consistent again.
    pub is_last: bool,
    /// What happened.
    pub body: Body,
}

/// What happened in a book. Prices are in the symbol's quote units, sizes and volumes in lots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Two orders met. The one that came has no reference before it rests, and never if it does
    /// not; one that was moved has left its book before it takes. In an auction both rest, and both
    /// are told as [`OrderChange::Filled`].
    Trade {
        /// The resting order's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The side of the order that came.
        taker_side: Action,
        /// The order that rested; 0 in a feed without [orders](Channels::orders).
        maker: OrderReference,
    },
    /// A resting order changed.
    Order(OrderChange),
    /// A price level is now like this. Told once a command and level, if it differs from before.
    Level(LevelDelta),
    /// The best prices, when they or the volumes at them have changed.
    Best(BestPrices),
    /// The book is gone, with everything in it. If the symbol is added again it starts empty; the
    /// numbers of its messages go on.
    Cleared,
}

/// What happened to one resting order; without its owner or the owner's id for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderChange {
    /// It rests now, at the end of the queue of its price: an order that came, what is left of one
    /// that was moved, or lots that were hidden.
    Added {
        /// The order.
        order: OrderReference,
        /// Its side.
        side: Action,
        /// Its price.
        price: i64,
        /// Lots that rest; what it took before resting is not counted.
        size: i64,
    },
    /// Lots were taken off; it keeps its place.
    Reduced {
        /// The order.
        order: OrderReference,
        /// Lots taken off.
        by: i64,
        /// Lots left.
        left: i64,
    },
    /// It traded; with nothing left, it is gone. Comes after its [`Body::Trade`].
    Filled {
        /// The order.
        order: OrderReference,
        /// Lots that traded.
        size: i64,
        /// Lots left.
        left: i64,
    },
    /// It left with what it had: its owner cancelled or moved it, a self-trade took it out, its
    /// time had come, or the operator removed it.
    Removed {
        /// The order.
        order: OrderReference,
        /// Lots that were left.
        left: i64,
    },
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
    /// The lowest price at which somebody sells.
    pub ask: Option<Quote>,
    /// The highest price at which somebody buys.
    pub bid: Option<Quote>,
}
