//! What shares of the risk state remember of a symbol's orders, put together.

use super::Symbols;
use crate::risk::ledger::Ledger;
use crate::rules::Rules;

impl Symbols {
    /// Before a symbol is copied to another share: the sum belongs to one.
    pub(in crate::engine::risk) fn forget_orders(&mut self) {
        let slots: Vec<u32> = self.index.slots().collect();
        for slot in slots {
            self.at_mut(slot).seen.forget_lots();
        }
    }

    /// Finds the symbols' currencies in another ledger.
    pub(in crate::engine::risk) fn rebook(&mut self, ledger: &mut Ledger) {
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
    pub(in crate::engine::risk) fn recall(
        &mut self,
        other: &mut Self,
        ledger: &mut Ledger,
        rules: &Rules,
    ) {
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
