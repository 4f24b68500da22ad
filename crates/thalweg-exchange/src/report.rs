//! Reports over a whole state.

use std::collections::BTreeMap;

use crate::command::{Action, SymbolType};
use crate::ids::CurrencyId;
use crate::state::State;

/// Where the money of one currency is. In 128 bits: sums over users need not fit 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrencyTotal {
    /// The currency.
    pub currency: CurrencyId,
    /// Σ of all balances.
    pub accounts: i128,
    /// Fees collected.
    pub fees: i128,
    /// Minus the deposits, plus the withdrawals.
    pub adjustments: i128,
    /// The same for suspended users.
    pub suspends: i128,
    /// Held for resting orders.
    pub order_holds: i128,
}

impl CurrencyTotal {
    /// The sum of all parts: zero, always, unless a quirk of the reference made money.
    #[must_use]
    pub const fn sum(&self) -> i128 {
        self.accounts + self.fees + self.adjustments + self.suspends + self.order_holds
    }
}

/// The total currency balance report, by ascending currency: every currency that was paid in or
/// is traded in a pair. Cost: visits every user and every resting order.
#[must_use]
pub fn currency_totals(state: &State) -> Vec<CurrencyTotal> {
    let mut totals: BTreeMap<CurrencyId, CurrencyTotal> = BTreeMap::new();
    for currency in state.risk.currencies() {
        let total = CurrencyTotal {
            currency: currency.id,
            fees: currency.fees.into(),
            adjustments: currency.adjustments.into(),
            suspends: currency.suspends.into(),
            ..CurrencyTotal::default()
        };
        totals.insert(currency.id, total);
    }
    let mut add = |currency, amount, part: fn(&mut CurrencyTotal) -> &mut i128| {
        let total = totals
            .get_mut(&currency)
            .expect("every currency in use is listed");
        *part(total) += amount;
    };
    for user in state.risk.users() {
        for (currency, balance) in user.balances() {
            add(currency, i128::from(balance), |total| &mut total.accounts);
        }
    }
    for book in state.matching.books() {
        let spec = book.spec();
        if spec.symbol_type != SymbolType::CurrencyPair {
            continue;
        }
        for order in book.orders(Action::Ask) {
            let lots = i128::from(order.size - order.filled);
            let hold = lots * i128::from(spec.base_scale);
            add(spec.base_currency, hold, |total| &mut total.order_holds);
        }
        for order in book.orders(Action::Bid) {
            let lots = i128::from(order.size - order.filled);
            let value = i128::from(order.reserve_price) * i128::from(spec.quote_scale);
            let per_lot = value + i128::from(spec.taker_fee);
            add(spec.quote_currency, lots * per_lot, |total| {
                &mut total.order_holds
            });
        }
    }
    totals.into_values().collect()
}
