//! Which market data a client subscribes to.

use std::collections::BTreeSet;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::{SYMBOLS_MAX, Symbols};

/// Symbols to subscribe to, or to unsubscribe from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subscriptions {
    is_all: bool,
    symbols: BTreeSet<SymbolId>,
}

impl Subscriptions {
    /// Every symbol.
    pub(crate) const ALL: Self = Self {
        is_all: true,
        symbols: BTreeSet::new(),
    };

    pub(crate) fn some(symbols: impl IntoIterator<Item = SymbolId>) -> Self {
        Self {
            is_all: false,
            symbols: symbols.into_iter().collect(),
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.is_all |= more.is_all;
        self.symbols.extend(&more.symbols);
    }

    pub(crate) fn remove(&mut self, fewer: &Self) {
        if fewer.is_all {
            *self = Self::default();
            return;
        }
        self.symbols
            .retain(|symbol| !fewer.symbols.contains(symbol));
    }

    /// Each list that a frame can have.
    pub(crate) fn lists(&self, mut list: impl FnMut(Symbols<'_>)) {
        if self.is_all {
            list(Symbols::ALL);
        }
        let symbols: Vec<SymbolId> = self.symbols.iter().copied().collect();
        symbols
            .chunks(SYMBOLS_MAX)
            .filter_map(Symbols::of)
            .for_each(&mut list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(subscriptions: &Subscriptions) -> Vec<(bool, usize)> {
        let mut lists = Vec::new();
        subscriptions.lists(|list| lists.push((list.is_all(), list.iter().count())));
        lists
    }

    #[test]
    fn symbols_are_asked_for_once_in_lists_that_fit() {
        let mut subscriptions = Subscriptions::default();
        assert_eq!(lists(&subscriptions), []);
        subscriptions.add(&Subscriptions::some([5, 1, 5].map(SymbolId)));
        assert_eq!(lists(&subscriptions), [(false, 2)]);
        subscriptions.add(&Subscriptions::some((0..5_000).map(SymbolId)));
        assert_eq!(lists(&subscriptions), [(false, 4_096), (false, 904)]);
        subscriptions.remove(&Subscriptions::some((1..6_000).map(SymbolId)));
        assert_eq!(subscriptions, Subscriptions::some([SymbolId(0)]));
        subscriptions.add(&Subscriptions::ALL);
        assert_eq!(lists(&subscriptions), [(true, 0), (false, 1)]);
        subscriptions.remove(&Subscriptions::ALL);
        assert_eq!(subscriptions, Subscriptions::default());
    }
}
