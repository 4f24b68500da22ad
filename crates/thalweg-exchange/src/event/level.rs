//! Price levels as a command left them.

use crate::command::Action;
use crate::ids::SymbolId;

/// A price level after a command that may have changed it; see
/// [`Events::with_levels`](super::Events::with_levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    /// The symbol of the book.
    pub symbol: SymbolId,
    /// The side.
    pub side: Action,
    /// The price.
    pub price: i64,
    /// Lots that are shown at this price; 0 where the level is gone.
    pub volume: i64,
    /// Orders that they belong to; 0 where the level is gone.
    pub orders: u64,
}

impl LevelChange {
    /// Returns a level that is not read from its book yet.
    pub(crate) const fn unread(symbol: SymbolId, side: Action, price: i64) -> Self {
        Self {
            symbol,
            side,
            price,
            volume: 0,
            orders: 0,
        }
    }

    /// Returns what the level is found by, in the order in which mass changes are listed.
    pub(crate) const fn key(&self) -> (SymbolId, Action, i64) {
        (self.symbol, self.side, self.price)
    }
}
