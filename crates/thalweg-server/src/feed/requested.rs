//! The market data that a session has asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::Symbols;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requested {
    pub(crate) all: bool,
    /// Shared by the session and its subscription, until the session changes it.
    pub(crate) symbols: Arc<BTreeSet<SymbolId>>,
}

impl Requested {
    /// Adds symbols.
    pub(crate) fn add(&mut self, symbols: &Symbols<'_>) {
        self.all |= symbols.is_all();
        Arc::make_mut(&mut self.symbols).extend(symbols.iter());
    }

    /// Takes symbols away; all of them, with the subscription to all. A symbol that is named has no
    /// effect on that.
    pub(crate) fn remove(&mut self, symbols: &Symbols<'_>) {
        if symbols.is_all() {
            *self = Self::default();
            return;
        }
        let named = Arc::make_mut(&mut self.symbols);
        for symbol in symbols.iter() {
            named.remove(&symbol);
        }
    }
}
