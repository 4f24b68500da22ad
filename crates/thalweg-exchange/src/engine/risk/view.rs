//! The public view of the risk state.

use super::{Currency, LastPrices, Risk, User};
use crate::ids::{CurrencyId, SymbolId, UserId};

impl Risk {
    /// A user, unless unknown or suspended without money since.
    #[must_use]
    pub fn user(&self, uid: UserId) -> Option<&User> {
        self.users.get(uid)
    }

    /// All users by ascending id. Cost: sorts them.
    #[must_use]
    pub fn users(&self) -> Vec<&User> {
        self.users.sorted()
    }

    /// The last transaction ids of removed users, where they are kept, by ascending id of the user.
    pub fn retired(&self) -> impl Iterator<Item = (UserId, i64)> + '_ {
        let retired = self.users.retired();
        let last = retired
            .iter()
            .map(|(&uid, kept)| (uid, kept.last_transaction_id));
        last.filter(|&(_, last)| last != 0)
    }

    /// A user's balance in a currency; `None` where there is no such user.
    #[must_use]
    pub fn balance(&self, uid: UserId, currency: CurrencyId) -> Option<i64> {
        self.users.get(uid).map(|user| user.balance(currency))
    }

    /// The last prices of each futures symbol where a command has succeeded, by ascending id. Cost:
    /// sorts them.
    #[must_use]
    pub fn last_prices(&self) -> Vec<(SymbolId, LastPrices)> {
        let symbols = self.symbols.iter();
        let mut prices: Vec<_> = symbols
            .filter_map(|symbol| symbol.last.map(|last| (symbol.spec.id, last)))
            .collect();
        prices.sort_unstable_by_key(|&(symbol, _)| symbol);
        prices
    }

    /// All currencies that were paid in or traded since the last reset, by ascending id. Cost:
    /// sorts them.
    #[must_use]
    pub fn currencies(&self) -> Vec<&Currency> {
        let mut currencies: Vec<&Currency> = self.ledger.iter().collect();
        currencies.sort_unstable_by_key(|currency| currency.id);
        currencies
    }
}
