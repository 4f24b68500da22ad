//! The market of a symbol, and the events of its streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_exchange::SymbolId;

use super::candle::Candles;
use super::depth::{BestLevels, Speed};
use super::stream::{Body, Kind, Label, StreamEvent};
use super::symbol_market::SymbolMarket;
use super::trade::Trade;

/// The state that the last event of a stream was made of: none is made of the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The number of the book.
    Book(u64),
    /// The best levels.
    Best(BestLevels),
    /// The last trade, the number of the book or 0, and the minute.
    Figures(i64, u64, i64),
    /// When the candle opened, and its last trade; `None` if only that it opened was noted.
    Candle(i64, Option<i64>),
}

/// Events that wait to be published.
pub(super) const EVENTS_MAX: usize = 65_536;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) symbol: SymbolId,
    /// `None` before a stream is followed.
    label: Option<Arc<Label>>,
    pub(super) market: SymbolMarket,
    /// The streams that are followed, each with the mark of its last event.
    watched: BTreeMap<Kind, Option<Mark>>,
    /// Events that were made and not taken yet.
    pub(super) events: Vec<StreamEvent>,
    /// Whether some were lost.
    is_lost: bool,
    /// Whether a snapshot has had the waiting changes of the book reported since the last tick.
    is_flushed: bool,
}

impl Entry {
    pub(super) fn new(symbol: SymbolId, number: u64) -> Self {
        Self {
            symbol,
            label: None,
            market: SymbolMarket::new(number),
            watched: BTreeMap::new(),
            events: Vec::new(),
            is_lost: false,
            is_flushed: false,
        }
    }

    /// Begins to make events of a stream. Called again for each new follower, it has the next one
    /// made though nothing changed; a candle that is complete by then comes before that.
    pub(super) fn watch(&mut self, kind: Kind, label: Label) {
        if let Kind::Diff(speed) = kind {
            self.market.depth.start(speed);
        }
        let mark = self.watched.entry(kind).or_default();
        *mark = match *mark {
            Some(Mark::Candle(open_time, _)) => Some(Mark::Candle(open_time, None)),
            _ => None,
        };
        if self.label.as_deref() != Some(&label) {
            self.label = Some(Arc::new(label));
        }
    }

    /// Makes no more events of a stream.
    pub(super) fn unwatch(&mut self, kind: Kind) {
        self.watched.remove(&kind);
        if let Kind::Diff(speed) = kind {
            self.market.depth.stop(speed);
        }
    }

    /// Returns whether events were lost since this was called last.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_lost)
    }

    fn push(&mut self, time_us: i64, kind: Kind, body: Body) {
        if self.events.len() == EVENTS_MAX {
            self.events.clear();
            self.is_lost = true;
        }
        if let Some(label) = self.label.clone() {
            self.events.push(StreamEvent {
                symbol: self.symbol,
                kind,
                time_us,
                label,
                body,
            });
        }
    }

    /// Makes an event if the stream is watched, and its last one had another mark.
    fn push_new(
        &mut self,
        time_us: i64,
        kind: Kind,
        mark: Mark,
        body: impl FnOnce(&SymbolMarket) -> Body,
    ) {
        if let Some(last) = self.watched.get_mut(&kind)
            && last.replace(mark) != Some(mark)
        {
            let body = body(&self.market);
            self.push(time_us, kind, body);
        }
    }

    /// Reports the changes of the book to the stream of a speed.
    fn push_diff(&mut self, time_us: i64, speed: Speed) {
        if let Some(diff) = self.market.depth.diff(speed) {
            self.push(time_us, Kind::Diff(speed), Body::Diff(diff));
        }
    }

    /// Takes the trades of a command in.
    pub(super) fn trades(&mut self, time_us: i64, trades: &[Trade]) {
        let Some(first) = trades.first() else {
            return;
        };
        for trade in trades {
            self.market.trade(*trade);
        }
        if self.watched.contains_key(&Kind::Trade) {
            for trade in trades {
                self.push(time_us, Kind::Trade, Body::Trade(*trade));
            }
        }
        if self.watched.contains_key(&Kind::AggregateTrade) {
            let made = self.market.trades.aggregate_from(first.id);
            for trade in made.copied().collect::<Vec<_>>() {
                self.push(time_us, Kind::AggregateTrade, Body::AggregateTrade(trade));
            }
        }
    }

    /// Reports what is sent at once.
    pub(super) fn push_immediate(&mut self, time_us: i64) {
        self.push_diff(time_us, Speed::Immediate);
        if self.watched.contains_key(&Kind::BookTicker) {
            let best = self.market.depth.best();
            let number = self.market.depth.number();
            self.push_new(time_us, Kind::BookTicker, Mark::Best(best), |_| {
                Body::BookTicker(number, best)
            });
        }
    }

    /// Reports what is due each tenth of a second, and with `is_second` each second. Trades of
    /// before `settled_us` are applied.
    pub(super) fn tick(&mut self, (time_us, settled_us): (i64, i64), is_second: bool) {
        self.is_flushed = false;
        if self.watched.is_empty() {
            return;
        }
        // For followers that are new.
        self.push_immediate(time_us);
        self.push_diff(time_us, Speed::Fast);
        if is_second {
            self.push_diff(time_us, Speed::Slow);
        }
        let now_ms = time_us.div_euclid(1_000);
        let number = self.market.depth.number();
        let last = self.market.trades.last().map_or(0, |trade| trade.id);
        let kinds: Vec<Kind> = self.watched.keys().copied().collect();
        for kind in kinds {
            match kind {
                Kind::Partial(levels, speed) if is_second || speed == Speed::Fast => {
                    self.push_new(time_us, kind, Mark::Book(number), |market| {
                        Body::Partial(market.depth.snapshot(levels))
                    });
                }
                Kind::MiniTicker | Kind::Ticker if is_second => {
                    let number = if kind == Kind::Ticker { number } else { 0 };
                    let mark = Mark::Figures(last, number, now_ms.div_euclid(60_000));
                    self.push_new(time_us, kind, mark, |market| {
                        Body::Ticker(Box::new(market.ticker(now_ms)))
                    });
                }
                Kind::Average if is_second => {
                    let mark = Mark::Figures(last, 0, now_ms.div_euclid(60_000));
                    self.push_new(time_us, kind, mark, |market| {
                        let traded_us = market.trades.last().map_or(0, |trade| trade.time_us);
                        Body::Average(market.average(now_ms), traded_us)
                    });
                }
                Kind::Candle(_) => self.push_candle((time_us, settled_us), kind, is_second),
                _ => {}
            }
        }
    }

    /// Reports a candle: a complete one at the next tick, the oldest first; the present one each
    /// second.
    fn push_candle(&mut self, (time_us, settled_us): (i64, i64), kind: Kind, is_second: bool) {
        let Kind::Candle(interval) = kind else {
            return;
        };
        let now_ms = settled_us.div_euclid(1_000);
        let Some(candle) = self.market.candles.at(interval, now_ms) else {
            return;
        };
        let Some(last) = self.watched.get_mut(&kind) else {
            return;
        };
        match *last {
            // The next candle comes a tick later: it would else take the place of this one.
            Some(Mark::Candle(open_time, _)) if open_time < candle.open_time => {
                let kept = interval.back(candle.open_time, Candles::KEPT as i64);
                let next = interval.next(open_time.max(kept));
                *last = Some(Mark::Candle(next, None));
                if let Some(before) = self.market.candles.before(interval, next) {
                    self.push(time_us, kind, Body::Candle(before, true));
                }
            }
            Some(Mark::Candle(_, Some(sent))) if !is_second || sent == candle.last => {}
            _ => {
                *last = Some(Mark::Candle(candle.open_time, Some(candle.last)));
                self.push(time_us, kind, Body::Candle(candle, false));
            }
        }
    }

    /// Reports the changes of the book that wait for the next events, at most once a tick: so the
    /// event that follows a snapshot of now has the next number.
    pub(super) fn flush_depth(&mut self, time_us: i64) {
        if !std::mem::replace(&mut self.is_flushed, true) {
            for speed in [Speed::Immediate, Speed::Fast, Speed::Slow] {
                self.push_diff(time_us, speed);
            }
        }
    }
}
