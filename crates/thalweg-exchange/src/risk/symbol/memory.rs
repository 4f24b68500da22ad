//! What shares of the risk state remember of a symbol's orders, put together.

use super::{Symbol, Symbols};
use crate::risk::ledger::Ledger;
use crate::rules::Rules;

impl Symbol {
    /// Takes over what another share remembers.
    pub(in crate::risk) fn recall(&mut self, other: &mut Self, rules: &Rules) {
        self.drains |= other.drains;
        self.inverted |= other.inverted;
        self.size_max = self.size_max.max(other.size_max);
        self.price_max = self.price_max.max(other.price_max);
        let lots = std::mem::take(&mut other.lots_total);
        self.lots_total = self.lots_total.saturating_add(lots);
        self.renew_calm(rules);
    }

    /// Whether an order was accepted that makes all later ones suspect.
    pub(in crate::risk) const fn is_odd(&self) -> bool {
        self.drains || self.inverted
    }
}

impl Symbols {
    /// Before a symbol is copied to another share: the sum belongs to one.
    pub(in crate::risk) fn forget_orders(&mut self) {
        let slots: Vec<u32> = self.index.slots().collect();
        for slot in slots {
            self.at_mut(slot).lots_total = 0;
        }
    }

    /// Finds the symbols' currencies in another ledger.
    pub(in crate::risk) fn rebook(&mut self, ledger: &mut Ledger) {
        let slots: Vec<u32> = self.index.slots().collect();
        for slot in slots {
            let symbol = self.at_mut(slot);
            for (place, id) in [
                (&mut symbol.base, symbol.spec.base_currency),
                (&mut symbol.quote, symbol.spec.quote_currency),
            ] {
                if *place != u32::MAX {
                    *place = ledger.find_or_add(id);
                }
            }
        }
    }

    /// Takes over what another share, with the same symbols, knows of all of them.
    pub(in crate::risk) fn recall(&mut self, other: &mut Self, ledger: &mut Ledger, rules: &Rules) {
        let slots: Vec<u32> = self.index.slots().collect();
        for slot in slots {
            let (symbol, other) = (self.at_mut(slot), other.at_mut(slot));
            symbol.recall(other, rules);
            // Futures find their currency with their first order in a share.
            if symbol.quote == u32::MAX && other.quote != u32::MAX {
                symbol.quote = ledger.find_or_add(symbol.spec.quote_currency);
            }
        }
    }
}
