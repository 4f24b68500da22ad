//! The market data of one symbol.

use super::candle::Candles;
use super::depth::Depth;
use super::interval::{DAY, MINUTE};
use super::ticker::Ticker;
use super::trade::{Trade, Trades};

/// The window of average prices, in minutes.
pub(crate) const AVERAGE_MINUTES: i64 = 5;
const AVERAGE: i64 = AVERAGE_MINUTES * MINUTE;

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
        self.ticker_of(DAY, now_ms)
    }

    /// Returns those of another length, in milliseconds.
    pub(crate) fn ticker_of(&self, length: i64, now_ms: i64) -> Ticker {
        let best = self.depth.best();
        Ticker::at(&self.candles, self.trades.last(), best, now_ms, length)
    }

    /// Returns the average price of the last five minutes, as price × lots and lots; without a
    /// trade in them, that of the last trade.
    pub(crate) fn average(&self, now_ms: i64) -> (i128, i128) {
        let window = self.ticker_of(AVERAGE, now_ms).window;
        match window.volume {
            0 => (window.close.into(), 1),
            volume => (window.quote_volume, volume),
        }
    }
}
