//! Candles of all intervals.

use std::collections::VecDeque;

use super::interval::Interval;
use super::trade::Trade;

/// The trades of an interval. Prices are in the symbol's quote units; volumes are in lots, quote
/// volumes are sums of price × lots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candle {
    /// When it opens, in milliseconds since 1970.
    pub(crate) open_time: i64,
    /// The price of the first trade; without trades, the one before.
    pub(crate) open: i64,
    /// The highest price.
    pub(crate) high: i64,
    /// The lowest price.
    pub(crate) low: i64,
    /// The price of the last trade.
    pub(crate) close: i64,
    /// The number of the first trade; −1 without trades.
    pub(crate) first: i64,
    /// The number of the last trade; −1 without trades.
    pub(crate) last: i64,
    /// Lots.
    pub(crate) volume: i128,
    /// Price × lots.
    pub(crate) quote_volume: i128,
    /// Lots that takers bought.
    pub(crate) taker_volume: i128,
    /// Price × lots of what takers bought.
    pub(crate) taker_quote_volume: i128,
}

impl Candle {
    /// Returns the candle of no trade after a price.
    pub(crate) const fn flat(open_time: i64, price: i64) -> Self {
        Self {
            open_time,
            open: price,
            high: price,
            low: price,
            close: price,
            first: -1,
            last: -1,
            volume: 0,
            quote_volume: 0,
            taker_volume: 0,
            taker_quote_volume: 0,
        }
    }

    /// Returns the candle of one trade.
    pub(crate) fn of(open_time: i64, trade: &Trade) -> Self {
        let mut candle = Self::flat(open_time, trade.price);
        candle.first = trade.id;
        candle.add(trade);
        candle
    }

    /// Returns by how much the price changed.
    pub(crate) fn change(&self) -> i128 {
        i128::from(self.close) - i128::from(self.open)
    }

    /// Returns how many trades it has.
    pub(crate) const fn count(&self) -> i64 {
        if self.last < 0 {
            return 0;
        }
        self.last - self.first + 1
    }

    fn add(&mut self, trade: &Trade) {
        let volume = i128::from(trade.lots);
        let quote_volume = volume * i128::from(trade.price);
        self.high = self.high.max(trade.price);
        self.low = self.low.min(trade.price);
        self.close = trade.price;
        self.last = trade.id;
        self.volume += volume;
        self.quote_volume += quote_volume;
        if !trade.is_buyer_maker() {
            self.taker_volume += volume;
            self.taker_quote_volume += quote_volume;
        }
    }

    /// Adds a later candle.
    pub(super) fn merge(&mut self, later: &Self) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.close = later.close;
        self.last = later.last;
        self.volume += later.volume;
        self.quote_volume += later.quote_volume;
        self.taker_volume += later.taker_volume;
        self.taker_quote_volume += later.taker_quote_volume;
    }
}

/// The candles of one interval that have trades; those without are made when they are read.
#[derive(Clone, Debug)]
struct Series {
    interval: Interval,
    candles: VecDeque<Candle>,
}

impl Series {
    fn add(&mut self, trade: &Trade, millis: i64) {
        let open_time = self.interval.open(millis);
        match self.candles.back_mut() {
            Some(last) if last.open_time == open_time => last.add(trade),
            _ => self.push(Candle::of(open_time, trade)),
        }
    }

    fn push(&mut self, candle: Candle) {
        if self.candles.len() == Candles::KEPT {
            self.candles.pop_front();
        }
        self.candles.push_back(candle);
    }
}

/// Times of requests beyond this, in the year 37,648, are this: sums with them do not overflow.
const LATEST: i64 = 1 << 50;

/// Which candles to read: times are in milliseconds since 1970, and of when candles open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Not before this; where it is given, the oldest come.
    pub(crate) start: Option<i64>,
    /// Not after this.
    pub(crate) end: Option<i64>,
    /// How many at most.
    pub(crate) limit: usize,
}

/// The candles of a symbol, [`KEPT`](Self::KEPT) with trades of each interval.
///
/// *Memory.* A candle has 128 bytes; 16 intervals are 4.2 MB at most, taken as candles come.
/// *Cost.* A trade changes one candle of each interval.
#[derive(Clone, Debug)]
pub(crate) struct Candles {
    series: [Series; Interval::COUNT],
    /// The time of the last trade: candles do not go back with a clock.
    millis: i64,
}

impl Default for Candles {
    fn default() -> Self {
        let mut intervals = Interval::all();
        let series = std::array::from_fn(|_| Series {
            interval: intervals.next().expect("there are as many"),
            candles: VecDeque::new(),
        });
        Self {
            series,
            millis: i64::MIN,
        }
    }
}

impl Candles {
    /// How many candles with trades are kept of each interval: a day of minutes is among them.
    pub(crate) const KEPT: usize = 2_048;

    /// Returns candles at a time, to which [`keep`](Self::keep) adds those that were kept.
    pub(crate) fn kept_at(millis: i64) -> Self {
        Self {
            millis,
            ..Self::default()
        }
    }

    /// Returns the time of the last trade, in milliseconds.
    pub(crate) const fn millis(&self) -> i64 {
        self.millis
    }

    /// Takes a candle that was kept of the interval at a position, after those before it.
    pub(crate) fn keep(&mut self, at: u8, candle: Candle) {
        if let Some(series) = self.series.get_mut(usize::from(at)) {
            series.push(candle);
        }
    }

    /// Takes the next trade in.
    pub(crate) fn add(&mut self, trade: &Trade) {
        self.millis = self.millis.max(trade.time_us.div_euclid(1_000));
        for series in &mut self.series {
            series.add(trade, self.millis);
        }
    }

    /// Returns the candles with trades of an interval, the oldest first.
    pub(crate) fn traded(
        &self,
        interval: Interval,
    ) -> impl DoubleEndedIterator<Item = &Candle> + ExactSizeIterator {
        self.series[interval.index()].candles.iter()
    }

    /// Returns the candle at a time, in milliseconds: a flat one where nothing was traded since it
    /// opened; `None` before the first trade.
    pub(crate) fn at(&self, interval: Interval, now: i64) -> Option<Candle> {
        let open_time = interval.open(now.max(self.millis));
        let last = self.series[interval.index()].candles.back()?;
        if last.open_time == open_time {
            return Some(*last);
        }
        Some(Candle::flat(open_time, last.close))
    }

    /// Returns the candle that opened before the one at a time, as [`at`](Self::at) does.
    pub(crate) fn before(&self, interval: Interval, open_time: i64) -> Option<Candle> {
        let candles = &self.series[interval.index()].candles;
        let wanted = interval.back(open_time, 1);
        let after = candles.partition_point(|candle| candle.open_time <= wanted);
        let last = candles.get(after.checked_sub(1)?)?;
        if last.open_time == wanted {
            return Some(*last);
        }
        Some(Candle::flat(wanted, last.close))
    }

    /// Returns the candles of a range, the oldest first, up to the one at `now`. None is left out
    /// between the first trade that is kept and now: without trades they are flat.
    pub(crate) fn range(&self, interval: Interval, range: Range, now: i64) -> Vec<Candle> {
        let candles = &self.series[interval.index()].candles;
        let Some(first) = candles.front() else {
            return Vec::new();
        };
        let last_open = interval.open(now.max(self.millis));
        let bounded = |time: i64| time.clamp(0, LATEST);
        let end = range
            .end
            .map_or(last_open, |end| interval.open(bounded(end)).min(last_open));
        let from = match range.start.map(bounded) {
            Some(start) if interval.open(start) == start => start,
            Some(start) => interval.next(interval.open(start)),
            None => interval.back(end, range.limit as i64 - 1),
        };
        let mut open_time = from.max(first.open_time);
        let mut at = candles.partition_point(|candle| candle.open_time < open_time);
        let mut found = Vec::new();
        while open_time <= end && found.len() < range.limit {
            let candle = match candles.get(at) {
                Some(candle) if candle.open_time == open_time => {
                    at += 1;
                    *candle
                }
                // There is one before: nothing is read before the first.
                _ => Candle::flat(open_time, candles[at - 1].close),
            };
            found.push(candle);
            open_time = interval.next(open_time);
        }
        found
    }
}
