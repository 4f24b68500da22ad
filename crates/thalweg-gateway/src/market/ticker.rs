//! The figures of the last 24 hours.

use super::candle::{Candle, Candles};
use super::depth::BestLevels;
use super::interval::{DAY, Interval};
use super::trade::Trade;

/// The trades of a window that ends now, such as a day, and the best prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticker {
    /// When the window begins, in milliseconds since 1970.
    pub(crate) open_time: i64,
    /// When it ends: now.
    pub(crate) close_time: i64,
    /// All its trades as one candle; a flat one where there were none.
    pub(crate) window: Candle,
    /// The price of the last trade before the window; that of its first one where that is not
    /// known.
    pub(crate) previous_close: i64,
    /// The lots of the last trade; 0 where it is not kept.
    pub(crate) last_size: i64,
    /// The best levels of the book.
    pub(crate) best: BestLevels,
}

impl Ticker {
    /// Returns the figures of a length of time that ends now, in milliseconds. Before the first
    /// trade all prices are 0.
    ///
    /// Up to a day is counted in minutes, more in hours: the window is up to one of them longer.
    ///
    /// Cost: goes through the minutes or hours of the window that have trades, 1,441 at most.
    pub(crate) fn at(
        candles: &Candles,
        last: Option<&Trade>,
        best: BestLevels,
        now: i64,
        length: i64,
    ) -> Self {
        let unit = match length {
            ..=DAY => Interval::MINUTE,
            _ => Interval::HOUR,
        };
        let open_time = unit.open(now - length);
        let mut window = None::<Candle>;
        let mut previous = None;
        for part in candles.traded(unit).rev() {
            if part.open_time < open_time {
                previous = Some(part.close);
                break;
            }
            let mut earlier = *part;
            if let Some(window) = &window {
                earlier.merge(window);
            }
            window = Some(earlier);
        }
        let flat = || Candle::flat(open_time, previous.unwrap_or(0));
        let window = window.unwrap_or_else(flat);
        Self {
            open_time,
            close_time: now,
            previous_close: previous.unwrap_or(window.open),
            last_size: last.map_or(0, |trade| trade.lots),
            window,
            best,
        }
    }

    /// Returns by how much the price changed within the window.
    pub(crate) fn change(&self) -> i128 {
        self.window.change()
    }
}
