//! Trades, one by one and by the order that took.

use std::collections::VecDeque;

use thalweg_exchange::{Action, SymbolId};

/// A trade as all clients may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    /// Its number among those of its symbol, from 1, without gaps; the same after a restart.
    pub(crate) id: i64,
    /// The number of the command that caused it.
    pub(crate) command: u64,
    pub(crate) symbol: SymbolId,
    /// The engine's price.
    pub(crate) price: i64,
    pub(crate) lots: i64,
    pub(crate) taker_side: Action,
    pub(crate) time_us: i64,
}

impl Trade {
    /// Returns whether the resting order was the buyer's.
    pub(crate) fn is_buyer_maker(&self) -> bool {
        self.taker_side == Action::Ask
    }
}

/// The trades of one command at one price. Its id is that of its first trade: so it is the same
/// after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AggregateTrade {
    pub(crate) first: Trade,
    /// The id of the last trade.
    pub(crate) last: i64,
    /// Lots of all.
    pub(crate) lots: i128,
}

impl AggregateTrade {
    fn of(first: Trade) -> Self {
        Self {
            first,
            last: first.id,
            lots: first.lots.into(),
        }
    }

    /// Adds a trade, if it belongs to these.
    fn extend(&mut self, trade: &Trade) -> bool {
        let key = |trade: &Trade| (trade.command, trade.price, trade.taker_side);
        let fits = key(&self.first) == key(trade);
        if fits {
            self.last = trade.id;
            self.lots += i128::from(trade.lots);
        }
        fits
    }
}

/// The last trades of a symbol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trades {
    single: VecDeque<Trade>,
    aggregate: VecDeque<AggregateTrade>,
}

impl Trades {
    /// How many of each sort are kept.
    pub(crate) const KEPT: usize = 1_000;

    pub(super) fn add(&mut self, trade: Trade) {
        keep(&mut self.single, trade);
        let last = self.aggregate.back_mut();
        if !last.is_some_and(|last| last.extend(&trade)) {
            keep(&mut self.aggregate, AggregateTrade::of(trade));
        }
    }

    /// Takes a trade that was kept, after those before it.
    pub(crate) fn keep(&mut self, trade: Trade) {
        keep(&mut self.single, trade);
    }

    /// Takes an aggregate trade that was kept, after those before it.
    pub(crate) fn keep_aggregate(&mut self, trade: AggregateTrade) {
        keep(&mut self.aggregate, trade);
    }

    pub(crate) fn last(&self) -> Option<&Trade> {
        self.single.back()
    }

    /// Returns the trades from this id on, the oldest first: of those that are kept.
    pub(crate) fn from(&self, id: i64) -> impl DoubleEndedIterator<Item = &Trade> {
        let first = self.single.partition_point(|trade| trade.id < id);
        self.single.range(first..)
    }

    /// Returns the aggregate trades from this id on, the oldest first: of those that are kept.
    pub(crate) fn aggregate_from(
        &self,
        id: i64,
    ) -> impl DoubleEndedIterator<Item = &AggregateTrade> {
        let first = self.aggregate.partition_point(|trade| trade.first.id < id);
        self.aggregate.range(first..)
    }
}

fn keep<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == Trades::KEPT {
        list.pop_front();
    }
    list.push_back(item);
}
