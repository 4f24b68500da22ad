//! The figures of the last 24 hours.

use super::candle::{Candle, Candles};
use super::depth::BestLevels;
use super::interval::{DAY, Interval};
use super::trade::Trade;

/// The trades of a day that ends now, and the best prices.
///
/// The window begins with the minute that was 24 hours ago, so it is up to a minute longer.
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
    /// Returns the figures at a time, in milliseconds since 1970. Before the first trade all prices
    /// are 0.
    ///
    /// Cost: goes through the minutes of the window that have trades, 1,441 at most.
    pub(crate) fn at(candles: &Candles, last: Option<&Trade>, best: BestLevels, now: i64) -> Self {
        let open_time = Interval::MINUTE.open(now - DAY);
        let minutes = candles.traded(Interval::MINUTE);
        let mut window = None::<Candle>;
        let mut previous = None;
        for minute in minutes.rev() {
            if minute.open_time < open_time {
                previous = Some(minute.close);
                break;
            }
            let mut earlier = *minute;
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
        i128::from(self.window.close) - i128::from(self.window.open)
    }
}
