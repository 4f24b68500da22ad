//! The market data of one symbol.

use super::candle::Candles;
use super::depth::Depth;
use super::ticker::Ticker;
use super::trade::{Trade, Trades};

/// Book, trades, candles and figures of a symbol.
///
/// *Memory.* Levels of the book, and [bounded](Candles) candles and [trades](Trades::KEPT): 4.4 MB
/// beside the levels.
#[derive(Clone, Debug)]
pub(crate) struct SymbolMarket {
    pub(crate) depth: Depth,
    pub(crate) trades: Trades,
    pub(crate) candles: Candles,
}

impl SymbolMarket {
    /// Returns an empty market; `number` is that of the last command, and 1.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            depth: Depth::new(number),
            trades: Trades::default(),
            candles: Candles::default(),
        }
    }

    /// Takes the next trade in.
    pub(crate) fn trade(&mut self, trade: Trade) {
        self.trades.add(trade);
        self.candles.add(&trade);
    }

    /// Returns the figures of the last 24 hours, at a time in milliseconds since 1970.
    pub(crate) fn ticker(&self, now_ms: i64) -> Ticker {
        Ticker::at(&self.candles, self.trades.last(), self.depth.best(), now_ms)
    }
}
