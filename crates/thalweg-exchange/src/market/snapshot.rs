//! A picture of a book, from which a replica can start.

use super::Channels;
use super::message::{Epoch, FeedSequence, OrderReference, SymbolSequence};
use super::order_log::OrderLog;
use super::symbol_feed::SymbolFeed;
use super::tape::Tape;
use crate::book::Level;
use crate::command::Action;
use crate::ids::SymbolId;

/// A book as it was after a message; a buffer to be used again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Whose book.
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
    /// If it was asked for, every order that sells, in the order in which they would be filled.
    pub selling: Vec<ShownOrder>,
    /// The same of the orders that buy.
    pub buying: Vec<ShownOrder>,
}

/// What a feed shows of a resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownOrder {
    /// The order. At one price, those with lower references are filled first.
    pub order: OrderReference,
    /// Its price.
    pub price: i64,
    /// Lots that it shows.
    pub left: i64,
}

impl Snapshot {
    /// The levels of one side, best first.
    #[must_use]
    pub fn levels(&self, side: Action) -> &[Level] {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }

    /// The orders of one side, if they were asked for.
    #[must_use]
    pub fn orders(&self, side: Action) -> &[ShownOrder] {
        match side {
            Action::Ask => &self.selling,
            Action::Bid => &self.buying,
        }
    }

    pub(super) fn fill(&mut self, tape: &Tape, feed: &SymbolFeed, depth: usize) {
        self.symbol = feed.numbers.symbol;
        self.epoch = tape.epoch;
        self.channels = tape.channels;
        self.sequence = tape.sequence;
        self.as_of = feed.numbers.sequence;
        for (side, levels, cut) in [
            (Action::Ask, &mut self.asks, &mut self.asks_cut),
            (Action::Bid, &mut self.bids, &mut self.bids_cut),
        ] {
            let all = feed.ladder(side).levels();
            *cut = all.len() > depth;
            levels.clear();
            levels.extend(all.take(depth));
        }
        self.selling.clear();
        self.buying.clear();
    }

    pub(super) fn fill_orders(&mut self, orders: &OrderLog) {
        orders.resting(Action::Ask, &mut self.selling);
        orders.resting(Action::Bid, &mut self.buying);
    }
}
