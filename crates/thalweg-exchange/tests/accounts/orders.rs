//! Orders as their reports describe them.

use std::collections::BTreeMap;

use thalweg_exchange::{
    Action, Command, CurrencyId, OrderType, Place, ResultCode, State, SymbolId, SymbolSpec,
    SymbolType,
};

use crate::accounts::auditor::{Auditor, Bill, Key, fee};

/// An order that rests, waits or trades.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) side: Action,
    pub(crate) price: i64,
    /// As its owner said when it was placed.
    pub(crate) reserve: i64,
    pub(crate) left: i64,
    pub(crate) filled: i64,
}

impl Order {
    pub(crate) const fn of(place: &Place) -> Self {
        Self {
            side: place.action,
            price: place.price,
            reserve: place.reserve_price,
            left: place.size,
            filled: 0,
        }
    }

    /// Returns the hold for it; nothing in futures.
    pub(crate) fn held(&self, spec: &SymbolSpec) -> Option<(CurrencyId, i128)> {
        let lots = i128::from(self.left);
        match self.side {
            _ if spec.symbol_type != SymbolType::CurrencyPair => None,
            Action::Ask => Some((spec.base_currency, lots * i128::from(spec.base_scale))),
            Action::Bid => {
                let lot = worth(spec, self.reserve);
                let held = lot.value + fee(spec, spec.taker_fee, lot);
                Some((spec.quote_currency, lots * held))
            }
        }
    }
}

/// One lot at a price.
fn worth(spec: &SymbolSpec, price: i64) -> Bill {
    Bill {
        lots: 1,
        value: i128::from(price) * i128::from(spec.quote_scale),
    }
}

/// Checks that every reported order is there, as it was reported, and no other.
pub(crate) fn agree(
    orders: &BTreeMap<Key, Order>,
    specs: &BTreeMap<SymbolId, SymbolSpec>,
    state: &State,
) -> Result<(), String> {
    let mut found = 0;
    for &symbol in specs.keys() {
        let book = state.matching.book(symbol).ok_or("no book")?;
        for order in [Action::Ask, Action::Bid].map(|side| book.orders(side)) {
            for order in order {
                let own = orders.get(&(order.uid, symbol, order.order_id));
                let own = own.ok_or_else(|| format!("{order:?} was not reported"))?;
                let is = (order.action, order.price, order.size - order.filled);
                if (own.side, own.price, own.left) != is || own.filled != order.filled {
                    return Err(format!("{order:?} was reported as {own:?}"));
                }
                found += 1;
            }
        }
        found += book.waiting().count();
    }
    let mut open: BTreeMap<_, u64> = BTreeMap::new();
    for key in orders.keys() {
        *open.entry(key.0).or_default() += 1;
    }
    for (uid, open) in open {
        let counted = state.risk.open_orders(uid);
        if counted != open {
            return Err(format!("{counted} orders of {uid} are counted, not {open}"));
        }
    }
    let reported = orders.len();
    (found == reported)
        .then_some(())
        .ok_or_else(|| format!("{found} orders are there, {reported} were reported"))
}

impl Auditor {
    /// Whether an order in a pair can be paid for, if that hangs on nothing but its owner's pairs.
    /// To be asked before it is placed.
    pub(crate) fn can_pay(&self, command: &Command) -> Option<bool> {
        let place = match command {
            Command::Amend(amend) => Place::limit(
                (amend.uid, amend.order_id),
                amend.symbol,
                amend.action,
                (amend.price, amend.size.checked_sub(amend.size_before)?),
            )
            .with_reserve(amend.reserve_price),
            _ => *command.place()?,
        };
        let spec = self.specs.get(&place.symbol)?;
        let (order, lot) = (Order::of(&place), worth(spec, place.price));
        // These are refused for other reasons, with the reference's code for no money or their own.
        let most = 1 << 40;
        let is_other = match place.action {
            Action::Bid => place.reserve_price < place.price || place.reserve_price > most,
            Action::Ask => lot.value < fee(spec, spec.taker_fee, lot),
        };
        if is_other || !(1..=most).contains(&order.left) {
            return None;
        }
        let (currency, mut need) = order.held(spec)?;
        if place.action == Action::Bid
            && matches!(
                place.order_type,
                OrderType::IocBudget | OrderType::FokBudget
            )
        {
            let lots = order.left.into();
            need = lot.value + fee(spec, spec.taker_fee, Bill { lots, ..lot });
        }
        Some(need <= self.free(place.uid, currency)?)
    }
}

/// Whether an order that can, or cannot, be paid for may end like this.
pub(crate) fn may_end(can_pay: Option<bool>, result: ResultCode) -> bool {
    match can_pay {
        Some(true) => result != ResultCode::RiskNsf,
        Some(false) => result.is_refusal(),
        None => true,
    }
}
