//! A picture of a book, from which a replica can start.

use super::Channels;
use super::message::{Epoch, FeedSequence, SymbolSequence};
use super::symbol_feed::SymbolFeed;
use super::tape::Tape;
use crate::book::Level;
use crate::command::Action;
use crate::ids::SymbolId;

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
    /// The levels of one side, best first.
    #[must_use]
    pub fn levels(&self, side: Action) -> &[Level] {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
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
    }
}
