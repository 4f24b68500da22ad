//! The books and last trades of symbols, as market data gives them.

use std::collections::{BTreeMap, VecDeque};
use thalweg_exchange::book::Level;
use thalweg_exchange::market::{Body, BookReplica, Message, ReplicaError, Snapshot};
use thalweg_exchange::{Action, SymbolId};

/// Trades of a symbol that are kept to be shown.
const TRADES_KEPT: usize = 200;

/// A trade that everybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublicTrade {
    pub(super) price: i64,
    pub(super) size: i64,
    pub(super) taker: Action,
}

/// A book with its last trades.
#[derive(Debug)]
pub(super) struct Market {
    pub(super) replica: BookReplica,
    /// The newest first.
    pub(super) trades: VecDeque<PublicTrade>,
    /// Trades and lots since the program began to look.
    pub(super) traded: (u64, i128),
}

/// The best level of a side, where there is one.
pub(super) type Best = [Option<Level>; 2];

impl Market {
    fn new(symbol: SymbolId) -> Market {
        Market {
            replica: BookReplica::new(symbol),
            trades: VecDeque::new(),
            traded: (0, 0),
        }
    }

    /// Returns the best level of the buyers and that of the sellers.
    pub(super) fn best(&self) -> Best {
        [Action::Bid, Action::Ask].map(|side| self.replica.levels(side).next())
    }

    fn note(&mut self, trade: PublicTrade) {
        self.trades.truncate(TRADES_KEPT - 1);
        self.trades.push_front(trade);
        self.traded.0 += 1;
        self.traded.1 += i128::from(trade.size);
    }
}

/// The markets of all symbols that are watched.
#[derive(Debug, Default)]
pub(super) struct Books(BTreeMap<SymbolId, Market>);

impl Books {
    pub(super) fn get(&self, symbol: SymbolId) -> Option<&Market> {
        self.0.get(&symbol)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SymbolId, &Market)> {
        self.0.iter().map(|(symbol, market)| (*symbol, market))
    }

    fn market(&mut self, symbol: SymbolId) -> &mut Market {
        self.0.entry(symbol).or_insert_with(|| Market::new(symbol))
    }

    /// Begins a book again with a snapshot.
    ///
    /// # Errors
    /// The feed has no levels.
    pub(super) fn restart(&mut self, snapshot: &Snapshot) -> Result<(), ReplicaError> {
        self.market(snapshot.symbol).replica.restart(snapshot)
    }

    /// Applies a message. Returns the trade that it is, if it is one.
    ///
    /// # Errors
    /// Messages are missing: a snapshot is needed.
    pub(super) fn apply(&mut self, message: &Message) -> Result<Option<PublicTrade>, ReplicaError> {
        let market = self.market(message.symbol);
        let is_new = message.symbol_sequence > market.replica.sequence();
        market.replica.apply(message)?;
        let trade = match message.body {
            Body::Trade {
                price,
                size,
                taker_side: taker,
            } if is_new => Some(PublicTrade { price, size, taker }),
            _ => None,
        };
        if let Some(trade) = trade {
            market.note(trade);
        }
        Ok(trade)
    }
}
