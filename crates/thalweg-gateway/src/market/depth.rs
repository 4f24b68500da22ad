//! A book by price level, and what has changed in it since it was last reported.
//!
//! *Numbers.* A book's number is that of the engine's last command that changed it, or of the last
//! one before the book was first seen. Such numbers rise over restarts of the server. An
//! event of a [`Diff`] covers the numbers from the one after its predecessor's to the book's; so
//! these follow each other without gaps, though most commands change other books, and a snapshot
//! that is taken when nothing waits is followed by exactly the next event.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_exchange::Action;

/// How often the changes of a book are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Speed {
    /// With each batch of the feed.
    Immediate,
    /// Each tenth of a second.
    Fast,
    /// Each second.
    Slow,
}

impl Speed {
    const ALL: [Self; 3] = [Self::Immediate, Self::Fast, Self::Slow];
}

/// A price and the lots at it; 0 lots where the level is gone.
pub(crate) type Level = (i64, i64);

/// The levels of a book that have changed from one number to another: each level as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    /// One more than the last number of the event before.
    pub(crate) first: u64,
    /// The number of the book.
    pub(crate) last: u64,
    /// Levels that buy, the best first.
    pub(crate) bids: Vec<Level>,
    /// Levels that sell, the best first.
    pub(crate) asks: Vec<Level>,
}

/// A book, or the best levels of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DepthSnapshot {
    /// The number of the book.
    pub(crate) number: u64,
    /// Levels that buy, the best first.
    pub(crate) bids: Vec<Level>,
    /// Levels that sell, the best first.
    pub(crate) asks: Vec<Level>,
}

/// The best level of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BestLevels {
    /// The highest price of a buyer.
    pub(crate) bid: Option<Level>,
    /// The lowest price of a seller.
    pub(crate) ask: Option<Level>,
}

/// The prices whose levels changed since an event: those too where the change was taken back, since
/// a snapshot may have been taken before that.
#[derive(Clone, Debug, Default)]
struct Changed {
    /// The number of the book then.
    number: u64,
    bids: BTreeSet<i64>,
    asks: BTreeSet<i64>,
}

/// A book by price level. See the [module](self).
///
/// *Memory.* It holds the levels of the book, and the levels that changed since the last event of
/// each speed that is [on](Self::start).
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    number: u64,
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    changed: [Option<Changed>; Speed::ALL.len()],
}

impl Depth {
    /// Returns an empty book; `number` is that of the engine's last command.
    pub(crate) const fn new(number: u64) -> Self {
        Self {
            number,
            bids: BTreeMap::new(),
            asks: BTreeMap::new(),
            changed: [const { None }; Speed::ALL.len()],
        }
    }

    /// Sets a level that the command of this number has changed. 0 lots remove it.
    pub(crate) fn set(&mut self, number: u64, side: Action, price: i64, lots: i64) {
        let levels = match side {
            Action::Bid => &mut self.bids,
            Action::Ask => &mut self.asks,
        };
        let before = match lots {
            0 => levels.remove(&price),
            _ => levels.insert(price, lots),
        };
        if before.unwrap_or(0) == lots {
            return;
        }
        self.number = self.number.max(number);
        for changed in self.changed.iter_mut().flatten() {
            match side {
                Action::Bid => changed.bids.insert(price),
                Action::Ask => changed.asks.insert(price),
            };
        }
    }

    /// Makes the book equal to this one, since what changed it in between is not known.
    pub(crate) fn replace(&mut self, number: u64, bids: &[Level], asks: &[Level]) {
        self.number = self.number.max(number);
        for (side, levels) in [(Action::Bid, bids), (Action::Ask, asks)] {
            let kept: BTreeMap<i64, i64> = levels.iter().copied().collect();
            let gone = self
                .side(side)
                .keys()
                .filter(|price| !kept.contains_key(price));
            for price in gone.copied().collect::<Vec<_>>() {
                self.set(number, side, price, 0);
            }
            for (price, lots) in kept {
                self.set(number, side, price, lots);
            }
        }
    }

    const fn side(&self, side: Action) -> &BTreeMap<i64, i64> {
        match side {
            Action::Bid => &self.bids,
            Action::Ask => &self.asks,
        }
    }

    /// Returns the number of the book.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the best levels of the book.
    pub(crate) fn snapshot(&self, limit: usize) -> DepthSnapshot {
        DepthSnapshot {
            number: self.number,
            bids: self.bids().take(limit).collect(),
            asks: self.asks().take(limit).collect(),
        }
    }

    /// Returns the levels that buy, the best first.
    pub(crate) fn bids(&self) -> impl Iterator<Item = Level> + '_ {
        self.bids.iter().rev().map(|(price, lots)| (*price, *lots))
    }

    /// Returns the levels that sell, the best first.
    pub(crate) fn asks(&self) -> impl Iterator<Item = Level> + '_ {
        self.asks.iter().map(|(price, lots)| (*price, *lots))
    }

    /// Returns the best level of each side.
    pub(crate) fn best(&self) -> BestLevels {
        BestLevels {
            bid: self.bids().next(),
            ask: self.asks().next(),
        }
    }

    /// Begins to note changes for events of a speed, unless that is on.
    pub(crate) fn start(&mut self, speed: Speed) {
        let number = self.number;
        self.changed[speed as usize].get_or_insert_with(|| Changed {
            number,
            ..Changed::default()
        });
    }

    /// Ends the events of a speed.
    pub(crate) fn stop(&mut self, speed: Speed) {
        self.changed[speed as usize] = None;
    }

    /// Returns the next event of a speed; `None` where nothing changed, or the speed is not on.
    pub(crate) fn diff(&mut self, speed: Speed) -> Option<Diff> {
        let number = self.number;
        let changed = self.changed[speed as usize].as_mut()?;
        if changed.bids.is_empty() && changed.asks.is_empty() {
            return None;
        }
        let changed = std::mem::replace(
            changed,
            Changed {
                number,
                ..Changed::default()
            },
        );
        let level = |levels: &BTreeMap<i64, i64>, price: i64| {
            let lots = levels.get(&price).copied().unwrap_or(0);
            (price, lots)
        };
        let bids = changed.bids.into_iter().rev();
        let asks = changed.asks.into_iter();
        Some(Diff {
            first: changed.number + 1,
            last: number,
            bids: bids.map(|price| level(&self.bids, price)).collect(),
            asks: asks.map(|price| level(&self.asks, price)).collect(),
        })
    }
}
