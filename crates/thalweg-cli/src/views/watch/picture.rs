//! The picture of a market: ladder, last trades, own orders, figures by stage.

use super::books::{Books, Market};
use super::figures::{Figures, Stage};
use crate::message::{counted, grouped};
use crate::terminal::line::{Line, Tone};
use crate::views::Names;
use crate::views::query::side_name;
use std::collections::BTreeSet;
use std::time::Instant;
use thalweg_exchange::book::Level;
use thalweg_exchange::codec::session::OpenOrder;
use thalweg_exchange::{Action, SymbolId};
use thalweg_measure::table::Nanoseconds;

/// From this width on, the last trades are beside the ladder.
const WIDE: usize = 72;
const LADDER_WIDTH: usize = 46;
const BAR_WIDTH: i128 = 12;
/// Symbols, own orders and rows of the ladder at most.
const SYMBOLS_SHOWN: usize = 5;
const ORDERS_SHOWN: usize = 6;
const BODY_MAX: usize = 42;
/// A ladder keeps rows for this many levels a side, also where there are fewer.
const DEPTH_MIN: usize = 4;
/// Rows below which the ladder does not go while something else can be left out.
const BODY_MIN: usize = 8;

/// The connection to the exchange.
#[derive(Debug)]
pub(super) enum Link {
    /// Connected, and no book has come yet.
    Waiting,
    Live,
    /// All that is shown is old.
    Stale {
        since: Instant,
        why: String,
    },
}

/// All that is shown.
#[derive(Debug)]
pub(super) struct View {
    pub(super) names: Names,
    pub(super) address: String,
    pub(super) user: i64,
    pub(super) link: Link,
    pub(super) books: Books,
    /// The symbol whose ladder is shown; the first, if none was chosen.
    pub(super) chosen: Option<SymbolId>,
    /// The user's open orders, and whether there are more; none before the first answer.
    pub(super) orders: Option<(Vec<OpenOrder>, bool)>,
    /// The figures, or why there are none.
    pub(super) figures: Option<Result<Figures, String>>,
}

impl View {
    /// Returns the symbol whose ladder is shown.
    pub(super) fn symbol(&self) -> Option<SymbolId> {
        let first = || self.books.iter().next().map(|(symbol, _)| symbol);
        self.chosen.or_else(first)
    }

    /// Returns the lines of a picture of at most this height.
    pub(super) fn lines(&self, (width, height): (usize, usize)) -> Vec<Line> {
        let mut head = vec![self.head()];
        let symbols = self.symbols();
        if symbols.len() > 1 && height > 2 * BODY_MIN {
            head.push(Line::default());
            head.extend(symbols);
        }
        head.push(Line::default());
        let mut tails = vec![self.figures(), self.own_orders()];
        let rows = |tails: &[Vec<Line>]| tails.iter().map(|tail| tail.len() + 1).sum::<usize>();
        while !tails.is_empty() && head.len() + BODY_MIN + rows(&tails) > height {
            tails.remove(0);
        }
        let body = height.saturating_sub(head.len() + rows(&tails));
        let mut lines = head;
        lines.extend(self.body(width, body.min(BODY_MAX)));
        for tail in tails.into_iter().rev() {
            lines.push(Line::default());
            lines.extend(tail);
        }
        lines.truncate(height);
        lines
    }

    fn head(&self) -> Line {
        let name = self.symbol().map_or("no symbol".to_owned(), |symbol| {
            match self.names.of(symbol) {
                number if number == symbol.0.to_string() => format!("symbol {number}"),
                name => name,
            }
        });
        let line = Line::new(Tone::Strong, name).and(Tone::Plain, "  ");
        let line = match &self.link {
            Link::Live => line.and(Tone::Plain, "live"),
            Link::Waiting => line.and(Tone::Plain, "waiting for the book"),
            Link::Stale { since, why } => {
                let text = format!(" STALE for {} s ", since.elapsed().as_secs());
                return line
                    .and(Tone::Warning, text)
                    .and(Tone::Plain, format!("  {why}; trying again"));
            }
        };
        let text = format!("  q quits  user {} at {}", self.user, self.address);
        line.and(Tone::Faint, text)
    }

    /// Returns a line for each symbol near the chosen one, with its best prices.
    fn symbols(&self) -> Vec<Line> {
        let all: Vec<(SymbolId, &Market)> = self.books.iter().collect();
        let chosen = self.symbol();
        let at = all.iter().position(|(symbol, _)| Some(*symbol) == chosen);
        let last = all.len().saturating_sub(SYMBOLS_SHOWN);
        let from = at.unwrap_or(0).saturating_sub(SYMBOLS_SHOWN / 2).min(last);
        let shown = &all[from..all.len().min(from + SYMBOLS_SHOWN)];
        let wide = shown.iter().map(|(symbol, _)| self.names.of(*symbol).len());
        let wide = wide.max().unwrap_or(0);
        let mut lines: Vec<Line> = Vec::new();
        for (symbol, market) in shown {
            let is_chosen = Some(*symbol) == chosen;
            let name = self.names.of(*symbol);
            let [bid, ask] = market.best().map(|level| match level {
                Some(level) => format!("{} x {}", level.price, level.volume),
                None => "-".to_owned(),
            });
            let last = market.trades.front();
            let last = last.map_or("-".to_owned(), |trade| trade.price.to_string());
            let mark = if is_chosen { ">" } else { " " };
            let tone = if is_chosen { Tone::Strong } else { Tone::Plain };
            let text = format!("{mark} {name:<wide$}  bid {bid:<13} ask {ask:<13} last {last}");
            lines.push(Line::new(tone, text));
        }
        if all.len() > shown.len()
            && let Some(line) = lines.pop()
        {
            let more = format!("  {} symbols: n, p", all.len());
            lines.push(line.and(Tone::Faint, more));
        }
        lines
    }

    fn body(&self, width: usize, rows: usize) -> Vec<Line> {
        let Some(market) = self.symbol().and_then(|symbol| self.books.get(symbol)) else {
            return vec![Line::plain("no book yet")];
        };
        if width >= WIDE {
            let tape = tape(market, rows);
            return Line::beside(self.ladder(market, rows), tape, LADDER_WIDTH);
        }
        // One below the other: the ladder has two thirds.
        let above = rows.saturating_sub(1) * 2 / 3;
        let mut lines = self.ladder(market, above);
        if rows > above + 2 {
            lines.push(Line::default());
            lines.extend(tape(market, rows - above - 1));
        }
        lines
    }

    /// Returns the ladder: sellers above, buyers below, the spread always in the same row.
    fn ladder(&self, market: &Market, rows: usize) -> Vec<Line> {
        let depth = (rows.saturating_sub(2) / 2).max(1);
        let [bids, asks] = [Action::Bid, Action::Ask].map(|side| {
            let levels = market.replica.levels(side);
            levels.take(depth).collect::<Vec<Level>>()
        });
        let levels = asks.len().max(bids.len());
        let depth = depth.min(levels.max(DEPTH_MIN));
        let own = self.own_levels(market.replica.symbol());
        let all = || asks.iter().chain(&bids);
        let digits = |of: fn(&Level) -> i64, name: &str| {
            let longest = all().map(|level| of(level).to_string().len()).max();
            longest.unwrap_or(0).max(name.len())
        };
        let price_width = digits(|level| level.price, "price");
        let size_width = digits(|level| level.volume, "size");
        let most = all().map(|level| level.volume).max().unwrap_or(1).max(1);
        let row = |side: Action, level: &Level| {
            let (word, tone) = (side_name(side), tone(side));
            let mark = match own.contains(&(side as u8, level.price)) {
                true => "*",
                false => " ",
            };
            let most = i128::from(most);
            let bar = (i128::from(level.volume) * BAR_WIDTH + most - 1) / most;
            let text = format!(
                "{word:<4} {:>price_width$}{mark} {:>size_width$}  {:>6}  ",
                level.price, level.volume, level.orders
            );
            Line::new(tone, text).and(tone, "=".repeat(bar.clamp(0, BAR_WIDTH) as usize))
        };
        let heading = format!(
            "     {:>price_width$}  {:>size_width$}  {:>6}",
            "price", "size", "orders"
        );
        let mut lines = vec![Line::new(Tone::Faint, heading)];
        lines.resize_with(1 + depth - asks.len(), Line::default);
        lines.extend(asks.iter().rev().map(|level| row(Action::Ask, level)));
        lines.push(spread(market));
        lines.extend(bids.iter().map(|level| row(Action::Bid, level)));
        lines
    }

    /// Returns the levels at which the user has orders that rest.
    fn own_levels(&self, symbol: SymbolId) -> BTreeSet<(u8, i64)> {
        let orders = self.orders.iter().flat_map(|(orders, _)| orders);
        let here = orders.filter(|order| order.symbol == symbol && order.trigger.is_none());
        here.map(|order| (order.action as u8, order.price))
            .collect()
    }

    fn own_orders(&self) -> Vec<Line> {
        let Some((orders, is_cut)) = &self.orders else {
            let text = format!("orders of user {}: not known yet", self.user);
            return vec![Line::new(Tone::Strong, text)];
        };
        let count = counted(orders.len() as u64, "open order");
        let more = if *is_cut { ", and more" } else { "" };
        let title = format!("user {}: {count}{more}", self.user);
        let mut lines = vec![Line::new(Tone::Strong, title)];
        // Orders in the chosen symbol come first.
        let symbol = self.symbol();
        let is_here = |order: &&OpenOrder| Some(order.symbol) == symbol;
        let here = orders.iter().filter(is_here);
        let elsewhere = orders.iter().filter(|order| !is_here(order));
        for order in here.chain(elsewhere).take(ORDERS_SHOWN) {
            let (side, tone) = (side_name(order.action), tone(order.action));
            let text = format!(
                "{side:<4} {} of {} at {}",
                order.size - order.filled,
                order.size,
                order.price
            );
            let name = self.names.of(order.symbol);
            let mut rest = format!("  {name}  order {}", order.order_id);
            if let Some(trigger) = order.trigger {
                rest += &format!(", waits for {trigger}");
            }
            lines.push(Line::new(tone, text).and(Tone::Plain, rest));
        }
        let left = orders.len().saturating_sub(ORDERS_SHOWN);
        if left > 0 {
            lines.push(Line::new(Tone::Faint, format!("... and {left} more")));
        }
        lines
    }

    fn figures(&self) -> Vec<Line> {
        let figures = match &self.figures {
            None => return Vec::new(),
            Some(Err(why)) => {
                return vec![Line::new(
                    Tone::Faint,
                    format!("no figures by stage: {why}"),
                )];
            }
            Some(Ok(figures)) => figures,
        };
        let of = match figures.is_recent {
            true => "lately",
            false => "since the start",
        };
        let rate = figures.commands_per_s;
        let rate = rate.map_or(String::new(), |rate| {
            format!(", {} /s", grouped(rate as i64))
        });
        let text = format!(
            "{} commands{rate}, {} refused, {}",
            grouped(figures.commands as i64),
            grouped(figures.refusals as i64),
            counted(figures.sessions as u64, "session")
        );
        let mut title = Line::new(Tone::Strong, text);
        if figures.is_disk_full {
            title = title
                .and(Tone::Plain, "  ")
                .and(Tone::Warning, " DISK FULL: orders are refused ");
        }
        let heading = format!(
            "{:<8} {:>9} {:>9}  {:>9} {:>9}   {of}",
            "stage", "wait p50", "p99", "work p50", "p99"
        );
        let mut lines = vec![title, Line::new(Tone::Faint, heading)];
        lines.extend(figures.stages.iter().map(stage));
        lines
    }
}

fn stage(stage: &Stage) -> Line {
    let time = |seconds: Option<f64>| match seconds {
        Some(seconds) => Nanoseconds(seconds * 1e9).to_string(),
        None => "-".to_owned(),
    };
    let [wait, wait_p99] = stage.wait.map(time);
    let [work, work_p99] = stage.service.map(time);
    Line::plain(format!(
        "{:<8} {wait:>9} {wait_p99:>9}  {work:>9} {work_p99:>9}",
        stage.name
    ))
}

const fn tone(side: Action) -> Tone {
    match side {
        Action::Ask => Tone::Sell,
        Action::Bid => Tone::Buy,
    }
}

fn spread(market: &Market) -> Line {
    let text = match market.best() {
        [Some(bid), Some(ask)] => format!("---- spread {} ", ask.price - bid.price),
        [None, None] => "---- no orders ".to_owned(),
        [None, _] => "---- no buyers ".to_owned(),
        [_, None] => "---- no sellers ".to_owned(),
    };
    Line::new(Tone::Faint, format!("{text:-<34}"))
}

fn tape(market: &Market, rows: usize) -> Vec<Line> {
    let (count, lots) = market.traded;
    let title = format!("{}, {} lots seen", counted(count, "trade"), grouped(lots));
    let mut lines = vec![Line::new(Tone::Faint, title)];
    for trade in market.trades.iter().take(rows.saturating_sub(1)) {
        let (word, tone) = (side_name(trade.taker), tone(trade.taker));
        let text = format!("{word:<4} {:>10} x {}", trade.price, trade.size);
        lines.push(Line::new(tone, text));
    }
    lines
}

#[cfg(test)]
mod tests;
