//! The events of streams.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use thalweg_exchange::SymbolId;

use super::candle::Candle;
use super::depth::{BestLevels, DepthSnapshot, Diff, Level, Speed};
use super::interval::Interval;
use super::symbol_market::AVERAGE_MINUTES;
use super::ticker::Ticker;
use super::trade::{AggregateTrade, Trade};
use super::units::{Units, percent};
use crate::time_unit::TimeUnit;

/// The name of a symbol, and how its numbers are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The name, such as `BTCUSDT`.
    pub(crate) name: String,
    /// How its numbers are written.
    pub(crate) units: Units,
}

/// The subject of a stream of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// `depth`: changes of the book.
    Diff(Speed),
    /// `depth5` and so on: the best levels.
    Partial(usize, Speed),
    /// `trade`.
    Trade,
    /// `aggTrade`.
    AggregateTrade,
    /// `bookTicker`.
    BookTicker,
    /// `kline_1m` and so on.
    Candle(Interval),
    /// `miniTicker`.
    MiniTicker,
    /// `ticker`.
    Ticker,
    /// `avgPrice`.
    Average,
}

impl Kind {
    /// Returns the kind of a stream's name behind the `@`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (name, speed) = match name.split_once('@') {
            None => (name, None),
            Some((name, "100ms")) => (name, Some(Speed::Fast)),
            Some((name, "1000ms")) => (name, Some(Speed::Slow)),
            Some(("depth", "0ms")) => ("depth", Some(Speed::Immediate)),
            Some(_) => return None,
        };
        let or_slow = speed.unwrap_or(Speed::Slow);
        match name {
            "depth" => Some(Self::Diff(or_slow)),
            "depth5" => Some(Self::Partial(5, or_slow)),
            "depth10" => Some(Self::Partial(10, or_slow)),
            "depth20" => Some(Self::Partial(20, or_slow)),
            _ if speed.is_some() => None,
            "trade" => Some(Self::Trade),
            "aggTrade" => Some(Self::AggregateTrade),
            "bookTicker" => Some(Self::BookTicker),
            "miniTicker" => Some(Self::MiniTicker),
            "ticker" => Some(Self::Ticker),
            "avgPrice" => Some(Self::Average),
            _ => Some(Self::Candle(name.strip_prefix("kline_")?.parse().ok()?)),
        }
    }

    /// Returns whether a newer event may take the place of one that was not sent.
    pub(crate) const fn is_conflated(self) -> bool {
        !matches!(self, Self::Diff(_) | Self::Trade | Self::AggregateTrade)
    }
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Changes of the book.
    Diff(Diff),
    /// The best levels.
    Partial(DepthSnapshot),
    /// A trade.
    Trade(Trade),
    /// The trades of a command at a price.
    AggregateTrade(AggregateTrade),
    /// The number of the book, and its best levels.
    BookTicker(u64, BestLevels),
    /// A candle, and whether it is complete.
    Candle(Candle, bool),
    /// The figures of a day.
    Ticker(Box<Ticker>),
    /// The average price as price × lots and lots, and when the last trade was, in microseconds.
    Average((i128, i128), i64),
}

/// An event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    /// The symbol.
    pub(crate) symbol: SymbolId,
    /// The stream that it is for.
    pub(crate) kind: Kind,
    /// When it was made, in microseconds since 1970.
    pub(crate) time_us: i64,
    /// Name and units of the symbol.
    pub(crate) label: Arc<Label>,
    /// Its content.
    pub(crate) body: Body,
}

impl StreamEvent {
    /// Returns about how many bytes its text has.
    pub(crate) const fn weight(&self) -> usize {
        const LEVEL: usize = 32;
        match &self.body {
            Body::Diff(diff) => 128 + LEVEL * (diff.bids.len() + diff.asks.len()),
            Body::Partial(depth) => 128 + LEVEL * (depth.bids.len() + depth.asks.len()),
            Body::Trade(_) | Body::AggregateTrade(_) | Body::BookTicker(..) | Body::Average(..) => {
                160
            }
            Body::Candle(..) | Body::Ticker(_) => 512,
        }
    }

    /// Returns the JSON of the event.
    pub(crate) fn text(&self, time_unit: TimeUnit) -> String {
        let mut text = String::with_capacity(self.weight());
        // A string takes everything.
        let _ = self.write(&mut text, time_unit);
        text
    }

    fn write(&self, text: &mut String, time_unit: TimeUnit) -> fmt::Result {
        let units = &self.label.units;
        match &self.body {
            Body::Diff(diff) => {
                self.write_head(text, time_unit, "depthUpdate")?;
                write!(text, "\"U\":{},\"u\":{},\"b\":", diff.first, diff.last)?;
                write_levels(text, units, &diff.bids)?;
                text.push_str(",\"a\":");
                write_levels(text, units, &diff.asks)?;
                text.push('}');
                Ok(())
            }
            Body::Partial(depth) => {
                write!(text, "{{\"lastUpdateId\":{},\"bids\":", depth.number)?;
                write_levels(text, units, &depth.bids)?;
                text.push_str(",\"asks\":");
                write_levels(text, units, &depth.asks)?;
                text.push('}');
                Ok(())
            }
            Body::Trade(trade) => {
                self.write_head(text, time_unit, "trade")?;
                self.write_trade(text, time_unit, trade)
            }
            Body::AggregateTrade(trade) => {
                self.write_head(text, time_unit, "aggTrade")?;
                self.write_aggregate(text, time_unit, trade)
            }
            Body::BookTicker(number, best) => {
                write!(text, "{{\"u\":{number},\"s\":\"{}\",", self.label.name)?;
                self.write_best(text, best)?;
                text.push('}');
                Ok(())
            }
            Body::Candle(candle, is_closed) => {
                self.write_head(text, time_unit, "kline")?;
                self.write_candle(text, time_unit, candle, *is_closed)
            }
            Body::Average((quote, lots), last_us) => {
                self.write_head(text, time_unit, "avgPrice")?;
                let average = units.average(*quote, *lots);
                let last = time_unit.of(*last_us);
                write!(
                    text,
                    "\"i\":\"{AVERAGE_MINUTES}m\",\"w\":\"{average}\",\"T\":{last}}}"
                )
            }
            Body::Ticker(ticker) if self.kind == Kind::MiniTicker => {
                self.write_head(text, time_unit, "24hrMiniTicker")?;
                self.write_window(text, &ticker.window)?;
                text.push('}');
                Ok(())
            }
            Body::Ticker(ticker) => {
                self.write_head(text, time_unit, "24hrTicker")?;
                self.write_window(text, &ticker.window)?;
                text.push(',');
                self.write_best(text, &ticker.best)?;
                self.write_figures(text, time_unit, ticker)
            }
        }
    }

    fn write_head(&self, text: &mut String, time_unit: TimeUnit, event: &str) -> fmt::Result {
        let (time, name) = (time_unit.of(self.time_us), &self.label.name);
        write!(text, "{{\"e\":\"{event}\",\"E\":{time},\"s\":\"{name}\",")
    }

    fn write_trade(&self, text: &mut String, time_unit: TimeUnit, trade: &Trade) -> fmt::Result {
        write!(
            text,
            "\"t\":{},\"p\":\"{}\",\"q\":\"{}\",\"T\":{},\"m\":{},\"M\":true}}",
            trade.id,
            self.label.units.price.text(trade.price),
            self.label.units.size.text(trade.lots),
            time_unit.of(trade.time_us),
            trade.is_buyer_maker(),
        )
    }

    fn write_aggregate(
        &self,
        text: &mut String,
        time_unit: TimeUnit,
        trade: &AggregateTrade,
    ) -> fmt::Result {
        write!(
            text,
            "\"a\":{},\"p\":\"{}\",\"q\":\"{}\",\"f\":{},\"l\":{},\"T\":{},\"m\":{},\"M\":true}}",
            trade.first.id,
            self.label.units.price.text(trade.first.price),
            self.label.units.size.text(trade.lots),
            trade.first.id,
            trade.last,
            time_unit.of(trade.first.time_us),
            trade.first.is_buyer_maker(),
        )
    }

    fn write_best(&self, text: &mut String, best: &BestLevels) -> fmt::Result {
        let units = &self.label.units;
        let (bid, ask) = (best.bid.unwrap_or((0, 0)), best.ask.unwrap_or((0, 0)));
        write!(
            text,
            "\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\"",
            units.price.text(bid.0),
            units.size.text(bid.1),
            units.price.text(ask.0),
            units.size.text(ask.1),
        )
    }

    fn write_candle(
        &self,
        text: &mut String,
        time_unit: TimeUnit,
        candle: &Candle,
        is_closed: bool,
    ) -> fmt::Result {
        let Kind::Candle(interval) = self.kind else {
            return Err(fmt::Error);
        };
        let Label { name, units } = &*self.label;
        write!(
            text,
            "\"k\":{{\"t\":{},\"T\":{},\"s\":\"{name}\",\"i\":\"{interval}\",\"f\":{},\"L\":{},\
             \"o\":\"{}\",\"c\":\"{}\",\"h\":\"{}\",\"l\":\"{}\",\"v\":\"{}\",\"n\":{},\
             \"x\":{is_closed},\
             \"q\":\"{}\",\"V\":\"{}\",\"Q\":\"{}\",\"B\":\"0\"}}}}",
            time_unit.of_ms(candle.open_time),
            time_unit.of_ms(interval.next(candle.open_time)) - 1,
            candle.first,
            candle.last,
            units.price.text(candle.open),
            units.price.text(candle.close),
            units.price.text(candle.high),
            units.price.text(candle.low),
            units.size.text(candle.volume),
            candle.count(),
            units.quote.text(candle.quote_volume),
            units.size.text(candle.taker_volume),
            units.quote.text(candle.taker_quote_volume),
        )
    }

    /// Writes the fields that both tickers have.
    fn write_window(&self, text: &mut String, window: &Candle) -> fmt::Result {
        let units = &self.label.units;
        write!(
            text,
            "\"c\":\"{}\",\"o\":\"{}\",\"h\":\"{}\",\"l\":\"{}\",\"v\":\"{}\",\"q\":\"{}\"",
            units.price.text(window.close),
            units.price.text(window.open),
            units.price.text(window.high),
            units.price.text(window.low),
            units.size.text(window.volume),
            units.quote.text(window.quote_volume),
        )
    }

    /// Writes the other fields of a full ticker.
    fn write_figures(
        &self,
        text: &mut String,
        time_unit: TimeUnit,
        ticker: &Ticker,
    ) -> fmt::Result {
        let units = &self.label.units;
        let window = &ticker.window;
        write!(
            text,
            ",\"p\":\"{}\",\"P\":\"{}\",\"w\":\"{}\",\"x\":\"{}\",\"Q\":\"{}\",\"O\":{},\"C\":{},\
             \"F\":{},\"L\":{},\"n\":{}}}",
            units.price.text(ticker.change()),
            percent(ticker.change(), window.open),
            units.average(window.quote_volume, window.volume),
            units.price.text(ticker.previous_close),
            units.size.text(ticker.last_size),
            time_unit.of_ms(ticker.open_time),
            time_unit.of_ms(ticker.close_time),
            window.first,
            window.last,
            window.count(),
        )
    }
}

/// How a level without quantity is written, whatever the decimals of the symbol: python-binance's
/// `DepthCache` removes a level at this text only.
const GONE: &str = "0.00000000";

/// Writes levels as pairs of price and quantity.
fn write_levels(text: &mut String, units: &Units, levels: &[Level]) -> fmt::Result {
    text.push('[');
    for (at, (price, lots)) in levels.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let price = units.price.text(*price);
        match lots {
            0 => write!(text, "{comma}[\"{price}\",\"{GONE}\"]")?,
            lots => write!(text, "{comma}[\"{price}\",\"{}\"]", units.size.text(*lots))?,
        }
    }
    text.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_streams_are_known_as_documented() {
        let diff = |speed| Some(Kind::Diff(speed));
        assert_eq!(Kind::parse("depth"), diff(Speed::Slow));
        assert_eq!(Kind::parse("depth@100ms"), diff(Speed::Fast));
        assert_eq!(Kind::parse("depth@1000ms"), diff(Speed::Slow));
        assert_eq!(Kind::parse("depth@0ms"), diff(Speed::Immediate));
        assert_eq!(
            Kind::parse("depth20@100ms"),
            Some(Kind::Partial(20, Speed::Fast))
        );
        assert_eq!(Kind::parse("depth5"), Some(Kind::Partial(5, Speed::Slow)));
        let minute = Kind::Candle(Interval::MINUTE);
        assert_eq!(Kind::parse("kline_1m"), Some(minute));
        for unknown in [
            "depth7",
            "depth@",
            "depth5@0ms",
            "kline_1x",
            "trade@100ms",
            "trade@1000ms",
            "bookTicker@1000ms",
            "kline_1m@1000ms",
            "",
            "@",
        ] {
            assert_eq!(Kind::parse(unknown), None, "{unknown}");
        }
        assert!(minute.is_conflated() && !Kind::Trade.is_conflated());
    }
}
