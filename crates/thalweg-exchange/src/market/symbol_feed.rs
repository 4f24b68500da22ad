//! One symbol's part of a feed.

use super::MarketOptions;
use super::message::{BestPrices, Body, LevelDelta, Quote};
use super::price_ladder::PriceLadder;
use super::tape::{Numbers, Tape};
use crate::book::{Book, Level};
use crate::command::Action;
use crate::event::{Event, LevelChange};

/// The levels of a symbol.
#[derive(Clone, Debug)]
pub(super) struct SymbolFeed {
    pub(super) numbers: Numbers,
    pub(super) asks: PriceLadder,
    pub(super) bids: PriceLadder,
    pub(super) best: BestPrices,
}

impl SymbolFeed {
    pub(super) fn new(numbers: Numbers, options: &MarketOptions) -> Self {
        Self {
            numbers,
            asks: PriceLadder::new(Action::Ask, options.levels),
            bids: PriceLadder::new(Action::Bid, options.levels),
            best: BestPrices::default(),
        }
    }

    /// Learns what rests in a book already.
    pub(super) fn learn(&mut self, book: &Book) {
        for side in [Action::Ask, Action::Bid] {
            for level in book.levels(side, usize::MAX) {
                self.put(side, level);
            }
        }
        self.best = self.best_now();
    }

    pub(super) const fn ladder(&self, side: Action) -> &PriceLadder {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }

    /// Puts a level in its place and returns it as it was.
    fn put(&mut self, side: Action, level: Level) -> Level {
        match side {
            Action::Ask => self.asks.put(level),
            Action::Bid => self.bids.put(level),
        }
    }

    /// Adds the messages of a command, or of what a command did in this book.
    pub(super) fn follow(&mut self, events: &[Event], levels: &[LevelChange], to: &mut Tape) {
        let from = to.len();
        self.add_trades(events, to);
        self.change_levels(levels, to);
        to.close(from);
    }

    fn add_trades(&mut self, events: &[Event], to: &mut Tape) {
        for event in events {
            if let Event::Trade {
                price,
                size,
                taker_action: taker_side,
                ..
            } = *event
            {
                let trade = Body::Trade {
                    price,
                    size,
                    taker_side,
                };
                to.add(&mut self.numbers, trade);
            }
        }
    }

    /// Adds the levels that are not as they were, and the best prices where they changed.
    fn change_levels(&mut self, levels: &[LevelChange], to: &mut Tape) {
        let mut is_changed = false;
        for &LevelChange {
            side,
            price,
            volume,
            orders,
            ..
        } in levels
        {
            let level = Level {
                price,
                volume,
                orders,
            };
            if self.put(side, level) != level {
                is_changed = true;
                let delta = LevelDelta {
                    side,
                    price,
                    volume,
                    orders,
                };
                to.add(&mut self.numbers, Body::Level(delta));
            }
        }
        if is_changed {
            let best = self.best_now();
            if best != self.best {
                self.best = best;
                to.add(&mut self.numbers, Body::Best(best));
            }
        }
    }

    fn best_now(&self) -> BestPrices {
        let quote = |ladder: &PriceLadder| {
            let best = ladder.best();
            best.map(|Level { price, volume, .. }| Quote { price, volume })
        };
        BestPrices {
            ask: quote(&self.asks),
            bid: quote(&self.bids),
        }
    }
}
