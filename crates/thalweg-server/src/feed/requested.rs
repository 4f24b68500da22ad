//! The market data that a session has asked for.

use std::collections::BTreeSet;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::Symbols;

/// Symbols that a session may name in its subscriptions, all together.
const SYMBOLS_MAX: usize = 1 << 16;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requested {
    pub(crate) all: bool,
    pub(crate) symbols: BTreeSet<SymbolId>,
}

impl Requested {
    /// Adds symbols. Returns false where they would be too many.
    pub(crate) fn add(&mut self, symbols: &Symbols<'_>) -> bool {
        self.all |= symbols.is_all();
        self.symbols.extend(symbols.iter());
        self.symbols.len() <= SYMBOLS_MAX
    }

    /// Takes symbols away; all of them, with the subscription to all. A symbol that is named has no
    /// effect on that.
    pub(crate) fn remove(&mut self, symbols: &Symbols<'_>) {
        if symbols.is_all() {
            self.all = false;
            self.symbols.clear();
        }
        for symbol in symbols.iter() {
            self.symbols.remove(&symbol);
        }
    }
}
