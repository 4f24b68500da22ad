//! The endpoints of market data.

use std::fmt::Display;

use serde_json::{Value, json};

use super::general::symbols_named;
use super::{Answer, Call};
use crate::error::ApiError;
use crate::market::{
    AVERAGE_MINUTES, AggregateTrade, BestLevels, Candle, DAY, HOUR, Interval, Level, MINUTE, Range,
    SymbolMarket, Trade, Trades, Units, percent,
};
use crate::params::Params;
use crate::state::now_us;
use crate::symbols::Symbol;
use crate::time_unit::TimeUnit;

/// Levels a side of an answer: by default, and at most.
const LEVELS: usize = 100;
const LEVELS_MAX: usize = 5_000;
/// Trades and candles of an answer: by default, and at most.
const ROWS: usize = 500;
const ROWS_MAX: usize = Trades::KEPT;
/// Symbols that a request for tickers of a window may name.
const WINDOW_SYMBOLS_MAX: usize = 100;
/// Times above it are microseconds: as milliseconds it is in the year 5138.
const MILLIS_MAX: i64 = 100_000_000_000_000;

fn text(value: impl Display) -> Value {
    Value::String(value.to_string())
}

/// Returns `limit`; more than the most is the most.
fn limit(params: &Params, default: usize, most: usize) -> Result<usize, ApiError> {
    match params.integer("limit")? {
        None => Ok(default),
        Some(0) => Err(ApiError::invalid_data("limit")),
        Some(limit) => Ok(usize::try_from(limit).map_or(most, |limit| limit.min(most))),
    }
}

/// Returns a time in milliseconds: it may be given in microseconds.
pub(super) fn time_ms(params: &Params, name: &str) -> Result<Option<i64>, ApiError> {
    let time = params.integer(name)?;
    Ok(time.map(|time| {
        if time > MILLIS_MAX {
            time / 1_000
        } else {
            time
        }
    }))
}

/// Returns the weight of `depth`.
pub(super) fn depth_weight(params: &Params) -> u32 {
    match limit(params, LEVELS, LEVELS_MAX) {
        Ok(..=100) | Err(_) => 5,
        Ok(..=500) => 25,
        Ok(..=1_000) => 50,
        Ok(_) => 250,
    }
}

/// Returns how many symbols a list names at most.
fn named(list: &str) -> usize {
    list.split(',').count()
}

/// Returns the weight of tickers, by how many are asked for: few, up to 100, more.
pub(super) fn ticker_weight(params: &Params, few: u32, many: u32, all: u32) -> u32 {
    let count = match (params.raw("symbol"), params.raw("symbols")) {
        (Some(_), _) => 1,
        (None, Some(list)) => named(list),
        (None, None) => usize::MAX,
    };
    match count {
        ..=20 => few,
        21..=100 => many,
        _ => all,
    }
}

/// `GET /api/v3/depth`.
pub(super) async fn depth(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let limit = limit(call.params, LEVELS, LEVELS_MAX)?;
    let depth = call.state.market.depth(symbol.spec.id, limit, now_us());
    let units = Units::from(&*symbol);
    let side = |levels: &[Level]| -> Value {
        let texts = |(price, lots): &Level| {
            json!([text(units.price.text(*price)), text(units.size.text(*lots)),])
        };
        levels.iter().map(texts).collect()
    };
    Ok(json!({
        "lastUpdateId": depth.number,
        "bids": side(&depth.bids),
        "asks": side(&depth.asks),
    }))
}

fn trade(units: &Units, unit: TimeUnit, trade: &Trade) -> Value {
    let quote = i128::from(trade.price) * i128::from(trade.lots);
    json!({
        "id": trade.id,
        "price": text(units.price.text(trade.price)),
        "qty": text(units.size.text(trade.lots)),
        "quoteQty": text(units.quote.text(quote)),
        "time": unit.of(trade.time_us),
        "isBuyerMaker": trade.is_buyer_maker(),
        "isBestMatch": true,
    })
}

/// Returns the last of items from behind, in order.
fn newest<T>(items: impl DoubleEndedIterator<Item = T>, count: usize) -> Vec<T> {
    let mut newest: Vec<T> = items.rev().take(count).collect();
    newest.reverse();
    newest
}

/// `GET /api/v3/trades`, and with `fromId` `GET /api/v3/historicalTrades`: of the trades that are
/// kept.
pub(super) async fn trades(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let limit = limit(call.params, ROWS, ROWS_MAX)?;
    let from = call.params.integer("fromId")?;
    let units = Units::from(&*symbol);
    Ok(call.state.market.read(symbol.spec.id, |market| {
        let kept = market.trades.from(from.unwrap_or(0));
        let found: Vec<&Trade> = match from {
            Some(_) => kept.take(limit).collect(),
            None => newest(kept, limit),
        };
        let rows = found.iter().map(|one| trade(&units, call.unit, one));
        rows.collect()
    }))
}

/// `GET /api/v3/aggTrades`: of the trades that are kept.
pub(super) async fn aggregate_trades(call: &Call<'_>) -> Answer {
    let params = call.params;
    let symbol = params.symbol(&call.state.symbols)?;
    let limit = limit(params, ROWS, ROWS_MAX)?;
    let from = params.integer("fromId")?;
    let (start, end) = (time_ms(params, "startTime")?, time_ms(params, "endTime")?);
    if from.is_some() && (start.is_some() || end.is_some()) {
        return Err(ApiError::BAD_COMBINATION);
    }
    let units = Units::from(&*symbol);
    let row = |trade: &AggregateTrade| {
        json!({
            "a": trade.first.id,
            "p": text(units.price.text(trade.first.price)),
            "q": text(units.size.text(trade.lots)),
            "f": trade.first.id,
            "l": trade.last,
            "T": call.unit.of(trade.first.time_us),
            "m": trade.first.is_buyer_maker(),
            "M": true,
        })
    };
    Ok(call.state.market.read(symbol.spec.id, |market| {
        let all = market.trades.aggregate_from(from.unwrap_or(0));
        let is_within = |trade: &&AggregateTrade| {
            let time_ms = trade.first.time_us.div_euclid(1_000);
            start.is_none_or(|start| time_ms >= start) && end.is_none_or(|end| time_ms <= end)
        };
        let found = all.filter(is_within);
        let found: Vec<&AggregateTrade> = match from.or(start) {
            Some(_) => found.take(limit).collect(),
            None => newest(found, limit),
        };
        found.into_iter().map(row).collect()
    }))
}

/// `GET /api/v3/klines`.
pub(super) async fn candles(call: &Call<'_>) -> Answer {
    let params = call.params;
    let symbol = params.symbol(&call.state.symbols)?;
    let interval: Result<Interval, ()> = params.required("interval")?.parse();
    let interval = interval.map_err(|()| ApiError::BAD_INTERVAL)?;
    check_zone(params)?;
    let range = Range {
        start: time_ms(params, "startTime")?,
        end: time_ms(params, "endTime")?,
        limit: limit(params, ROWS, ROWS_MAX)?,
    };
    let now_ms = now_us().div_euclid(1_000);
    let units = Units::from(&*symbol);
    let candles = (call.state.market).read(symbol.spec.id, |market| {
        market.candles.range(interval, range, now_ms)
    });
    let row = |candle: Candle| {
        json!([
            call.unit.of_ms(candle.open_time),
            text(units.price.text(candle.open)),
            text(units.price.text(candle.high)),
            text(units.price.text(candle.low)),
            text(units.price.text(candle.close)),
            text(units.size.text(candle.volume)),
            call.unit.of_ms(interval.next(candle.open_time)) - 1,
            text(units.quote.text(candle.quote_volume)),
            candle.count(),
            text(units.size.text(candle.taker_volume)),
            text(units.quote.text(candle.taker_quote_volume)),
            "0",
        ])
    };
    Ok(candles.into_iter().map(row).collect())
}

/// Answers with a row for each symbol that is named, or for all; one that is named by `symbol`
/// comes alone. `read` is called for each with the time now in milliseconds.
fn rows<T>(
    call: &Call<'_>,
    read: impl Fn(&SymbolMarket, i64) -> T,
    row: impl Fn(&Symbol, &Units, &T) -> Value,
) -> Answer {
    let now_ms = now_us().div_euclid(1_000);
    let one = |symbol: &Symbol| {
        let read = (call.state.market).read(symbol.spec.id, |market| read(market, now_ms));
        row(symbol, &Units::from(symbol), &read)
    };
    let named = symbols_named(call)?;
    let is_alone = call.params.raw("symbol").is_some();
    let symbols = named.unwrap_or_else(|| call.state.symbols.all());
    match symbols.first() {
        Some(symbol) if is_alone => Ok(one(symbol)),
        _ => Ok(symbols.iter().map(|symbol| one(symbol)).collect()),
    }
}

/// Returns whether a ticker has few fields.
fn is_mini(params: &Params) -> Result<bool, ApiError> {
    match params.text("type")? {
        None | Some("FULL") => Ok(false),
        Some("MINI") => Ok(true),
        Some(_) => Err(ApiError::invalid_data("type")),
    }
}

/// The first and the last millisecond of a ticker, and its trades.
type Window = (i64, i64, Candle);

/// Returns the fields that all tickers have.
fn window_row(call: &Call<'_>, symbol: &Symbol, units: &Units, shown: &Window) -> Value {
    let (open_time, close_time, window) = shown;
    let price = |price: i64| text(units.price.text(price));
    json!({
        "symbol": symbol.name,
        "openPrice": price(window.open),
        "highPrice": price(window.high),
        "lowPrice": price(window.low),
        "lastPrice": price(window.close),
        "volume": text(units.size.text(window.volume)),
        "quoteVolume": text(units.quote.text(window.quote_volume)),
        "openTime": call.unit.of_ms(*open_time),
        "closeTime": call.unit.of_ms(*close_time),
        "firstId": window.first,
        "lastId": window.last,
        "count": window.count(),
    })
}

/// Adds the fields of a full ticker that are about its window.
fn add_changes(row: &mut Value, units: &Units, window: &Candle) {
    row["priceChange"] = text(units.price.text(window.change()));
    row["priceChangePercent"] = text(percent(window.change(), window.open));
    row["weightedAvgPrice"] = text(units.average(window.quote_volume, window.volume));
}

/// `GET /api/v3/ticker/24hr`.
pub(super) async fn ticker_24hr(call: &Call<'_>) -> Answer {
    let is_mini = is_mini(call.params)?;
    rows(call, SymbolMarket::ticker, |symbol, units, ticker| {
        let mut row = window_row(
            call,
            symbol,
            units,
            &(ticker.open_time, ticker.close_time, ticker.window),
        );
        if !is_mini {
            add_changes(&mut row, units, &ticker.window);
            row["prevClosePrice"] = text(units.price.text(ticker.previous_close));
            row["lastQty"] = text(units.size.text(ticker.last_size));
            add_best(&mut row, units, &ticker.best);
        }
        row
    })
}

/// Returns the tickers of the symbols that are named, of one window.
fn windows(call: &Call<'_>, window: impl Fn(&SymbolMarket, i64) -> Window) -> Answer {
    let params = call.params;
    let is_mini = is_mini(params)?;
    if params.raw("symbol").or(params.raw("symbols")).is_none() {
        return Err(ApiError::either("symbol", "symbols"));
    }
    if params
        .raw("symbols")
        .is_some_and(|list| named(list) > WINDOW_SYMBOLS_MAX)
    {
        return Err(ApiError::too_many_values("symbols", WINDOW_SYMBOLS_MAX));
    }
    rows(call, window, |symbol, units, shown| {
        let mut row = window_row(call, symbol, units, shown);
        if !is_mini {
            add_changes(&mut row, units, &shown.2);
        }
        row
    })
}

/// Returns the length of a window, in milliseconds: `1m` to `59m`, `1h` to `23h`, `1d` to `7d`.
fn window_ms(name: &str) -> Option<i64> {
    let (count, unit) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let (unit, most) = match unit {
        "m" => (MINUTE, 59),
        "h" => (HOUR, 23),
        "d" => (DAY, 7),
        _ => return None,
    };
    let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = count.parse().ok().filter(|_| is_number)?;
    (1..=most).contains(&count).then_some(count * unit)
}

/// `GET /api/v3/ticker`.
pub(super) async fn ticker_rolling(call: &Call<'_>) -> Answer {
    let name = call.params.text("windowSize")?.unwrap_or("1d");
    let length = window_ms(name).ok_or_else(|| ApiError::invalid_data("windowSize"))?;
    windows(call, |market, now_ms| {
        let ticker = market.ticker_of(length, now_ms);
        (ticker.open_time, ticker.close_time, ticker.window)
    })
}

/// Checks that a request's time zone is UTC, the only one there is.
fn check_zone(params: &Params) -> Result<(), ApiError> {
    match params.text("timeZone")? {
        None | Some("0" | "+0" | "0:00" | "+00:00" | "00:00") => Ok(()),
        Some(_) => Err(ApiError::UNSUPPORTED),
    }
}

/// `GET /api/v3/ticker/tradingDay`.
pub(super) async fn ticker_trading_day(call: &Call<'_>) -> Answer {
    check_zone(call.params)?;
    windows(call, |market, now_ms| {
        let open_time = Interval::DAY.open(now_ms);
        let today = market.candles.at(Interval::DAY, now_ms);
        let close_time = Interval::DAY.next(open_time) - 1;
        let today = today.unwrap_or(Candle::flat(open_time, 0));
        (open_time, close_time, today)
    })
}

/// `GET /api/v3/avgPrice`.
pub(super) async fn average_price(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let now_ms = now_us().div_euclid(1_000);
    let ((quote, lots), last_us) = (call.state.market).read(symbol.spec.id, |market| {
        let last_us = market.trades.last().map_or(0, |trade| trade.time_us);
        (market.average(now_ms), last_us)
    });
    Ok(json!({
        "mins": AVERAGE_MINUTES,
        "price": text(Units::from(&*symbol).average(quote, lots)),
        "closeTime": call.unit.of(last_us),
    }))
}

/// Returns the weight of tickers of a window: 4 a symbol, 200 at most.
pub(super) fn window_weight(params: &Params) -> u32 {
    4 * params.raw("symbols").map_or(1, named).min(50) as u32
}

/// Adds the fields of the best levels.
fn add_best(row: &mut Value, units: &Units, best: &BestLevels) {
    let fields = [("bid", best.bid), ("ask", best.ask)];
    for (side, (price, lots)) in fields.map(|(side, level)| (side, level.unwrap_or((0, 0)))) {
        row[format!("{side}Price")] = text(units.price.text(price));
        row[format!("{side}Qty")] = text(units.size.text(lots));
    }
}

/// `GET /api/v3/ticker/price`.
pub(super) async fn ticker_price(call: &Call<'_>) -> Answer {
    let last = |market: &SymbolMarket, _| market.trades.last().map_or(0, |trade| trade.price);
    rows(call, last, |symbol, units, price| {
        let price = text(units.price.text(*price));
        json!({ "symbol": symbol.name, "price": price })
    })
}

/// `GET /api/v3/ticker/bookTicker`.
pub(super) async fn ticker_book(call: &Call<'_>) -> Answer {
    let best = |market: &SymbolMarket, _| market.depth.best();
    rows(call, best, |symbol, units, best| {
        let mut row = json!({ "symbol": symbol.name });
        add_best(&mut row, units, best);
        row
    })
}
