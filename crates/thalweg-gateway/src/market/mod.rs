//! Market data for clients: books, trades, candles, tickers, kept from the drop copy.
//!
//! One thread applies what the drop copy has, through `&self`; requests and streams read.

pub(crate) mod endpoints;

use thalweg_exchange::market::{Message, Snapshot};
use thalweg_exchange::{Action, Command, SymbolId};

/// A trade as all clients may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    /// Its number among those of its symbol, from 1, without gaps; the same after a restart.
    pub(crate) id: i64,
    pub(crate) symbol: SymbolId,
    /// The engine's price.
    pub(crate) price: i64,
    pub(crate) lots: i64,
    pub(crate) taker_side: Action,
    pub(crate) time_us: i64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Market {}

impl Market {
    pub(crate) const fn new() -> Self {
        Self {}
    }

    /// Forgets all books: those that are there follow.
    pub(crate) fn restart(&self) {}

    /// Takes a book, from which messages go on.
    pub(crate) fn book(&self, _book: &Snapshot) {}

    /// Takes a message of the command that [ends](Self::end) next.
    pub(crate) fn message(&self, _message: &Message) {}

    /// Takes a trade: of the log, before all others, or of the command that ends next.
    pub(crate) fn trade(&self, _trade: &Trade) {}

    /// Takes an administrator's command, which succeeded.
    pub(crate) fn admin(&self, _command: &Command) {}

    /// The command with this number is complete, and in the log. What it changed may be published:
    /// `u` of its depth events is its number and 1.
    pub(crate) fn end(&self, _number: u64, _time_us: i64) {}
}
