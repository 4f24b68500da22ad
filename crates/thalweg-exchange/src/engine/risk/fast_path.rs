//! The fast path of the risk check: an order in a pair at a plain price, of an owner with enough
//! money. Everything else takes the slow path, in the modules beside this one, which also define
//! the answer here: this one only comes to it sooner.
//!
//! A price is *plain* (in the [`PlainPrices`] range) in a pair's symbol if it is above zero, inside
//! the symbol's price band, not under the fee of an ask, where orders are
//! [remembered](Symbol::remembers) not above every price seen there before, and if the symbol has
//! nothing special: it is not halted, its maker fee is not above its taker fee, and no order of
//! negative size was ever accepted. All of that is one range, kept with the symbol.
//!
//! *A move* to a plain price passes: its exposure is nothing, nothing new is seen, and only the
//! status of its owner is left. As long as no user was ever removed, that need not be looked at:
//! the owner of every resting order had a record when the order was placed and has it still, and a
//! record becomes a suspended one only where a settlement makes it again. A user without a record
//! owns no order, so matching refuses the move whatever is answered here.
//!
//! *A new order* without a budget passes at a plain price if its size is above zero, its reserve
//! price covers a bid and, where orders are remembered, was seen too, and its owner is active and
//! has the money, beyond what must stay for covered futures (see `user::kept`): again its exposure
//! is nothing, and as no balance falls below zero no total changes. In a *simple* symbol, which
//! remembers nothing and whose fees are per lot, that is done in place.
//!
//! *In futures* a price is plain if it is above zero and inside the band of a symbol that is not
//! halted: then a move of an active user's order is up to the ledger's bound alone, and where
//! futures are covered to nothing, as in pairs; and a new order without a budget to that and the
//! margin.

use super::Risk;
use super::symbol::Symbol;
use super::user::UserStatus;
use crate::command::{Action, OrderType, Place};
use crate::ids::{SymbolId, UserId};
use crate::rules::Rules;

/// A range of plain prices; empty where none is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainPrices {
    low: i64,
    /// How many prices there are from `low` on.
    prices: u64,
}

impl PlainPrices {
    #[inline]
    pub(super) const fn holds(&self, price: i64) -> bool {
        price.wrapping_sub(self.low).cast_unsigned() < self.prices
    }

    const fn within(may_be: bool, low: i64, high: i64) -> Self {
        let prices = if may_be && low <= high {
            (high - low).unsigned_abs() + 1
        } else {
            0
        };
        Self { low, prices }
    }
}

impl Symbol {
    /// Computes the range of plain prices anew. Must be called after every change of what it
    /// depends on.
    pub(super) fn renew_plain_prices(&mut self, rules: &Rules) {
        let spec = &self.spec;
        let floor = if rules.refuse_moved_ask_under_fee {
            1
        } else {
            lowest_price(self.fee_max(), spec.quote_scale).max(1)
        };
        let low = floor.max(spec.lowest_ask()).max(self.gate.low());
        // A price times its scale fits, too.
        let mut high = self.gate.high().min(i64::MAX / spec.quote_scale);
        if self.remembers {
            high = high.min(i64::try_from(self.price_max()).unwrap_or(i64::MAX));
        }
        let may_be = !self.gate.is_auction()
            && self.is_pair()
            && !self.is_inverted()
            && spec.maker_fee <= spec.taker_fee;
        self.plain_prices = PlainPrices::within(may_be, low, high);
        let (low, high) = (self.gate.low().max(1), self.gate.high());
        let has_band = !rules.cover_futures || self.gate.has_band();
        let is_open = !self.gate.is_auction();
        let may_be = is_open && self.is_futures() && rules.margin_trading && has_band;
        self.plain_futures_prices = PlainPrices::within(may_be, low, high);
    }

    /// Returns the hold of a new order in the currency of its side, if the order takes the fast
    /// path in all that does not concern its owner. `SIMPLE`: in a simple symbol.
    #[inline(always)]
    pub(super) fn plain_hold<const SIMPLE: bool>(&self, place: &Place) -> Option<i64> {
        let Place {
            action,
            price,
            reserve_price: reserve,
            size,
            ..
        } = *place;
        // Which side it is cannot be foreseen.
        let is_paid_for = (reserve >= price) | (action == Action::Ask);
        if !(self.plain_prices.holds(price) && size > 0 && is_paid_for && is_plain(place)) {
            return None;
        }
        if SIMPLE {
            return self.plain_money(action, size, reserve);
        }
        let is_new = self.remembers && reserve.unsigned_abs() > self.price_max();
        if is_new {
            return None;
        }
        self.money(action, size, reserve)
    }
}

impl Risk {
    /// Whether a move passes, as far as it takes nothing but a look at the price, and of futures at
    /// its user.
    #[inline(always)]
    pub(crate) fn passes_move(&mut self, uid: UserId, id: SymbolId, price: i64) -> bool {
        let Some(symbol) = self.symbols.near_ref(id) else {
            return false;
        };
        if symbol.plain_prices.holds(price) && !self.users.lost_any() {
            return true;
        }
        self.passes_move_in_futures(uid, id, price).is_some()
    }

    /// Whether a move in futures passes, as [`passes_move`](Self::passes_move); returns the slot of
    /// the symbol.
    #[inline(always)]
    pub(crate) fn passes_move_in_futures(
        &mut self,
        uid: UserId,
        id: SymbolId,
        price: i64,
    ) -> Option<u32> {
        let (slot, symbol) = self.symbols.near_with_slot(id)?;
        if !symbol.plain_futures_prices.holds(price) {
            return None;
        }
        let passes = if self.rules.cover_futures {
            !self.users.lost_any() || self.users.near_active(uid).is_some()
        } else {
            self.has_room_for_move(uid, id, price)
        };
        passes.then_some(slot)
    }

    /// Whether a move passes on the fast path.
    #[inline]
    pub(super) fn move_takes_fast_path(&self, uid: UserId, symbol: SymbolId, price: i64) -> bool {
        let Some(symbol) = self.symbols.get(symbol) else {
            return false;
        };
        if symbol.plain_prices.holds(price) {
            return !self.users.lost_any() || self.may_trade(uid);
        }
        symbol.plain_futures_prices.holds(price)
            && self.futures_move_takes_fast_path(uid, symbol, price)
    }

    #[inline(never)]
    fn may_trade(&self, uid: UserId) -> bool {
        let is_active = |uid| {
            let user = self.users.get(uid);
            user.is_some_and(|user| user.status == UserStatus::Active)
        };
        !self.rules.refuse_suspended || is_active(uid)
    }
}

/// True of an order whose price is a limit, and whose flags fit its type whatever they are.
#[inline]
pub(super) const fn is_plain(place: &Place) -> bool {
    matches!(place.order_type, OrderType::Gtc)
        || !(place.order_type.is_budget() || place.flags.is_post_only())
}

fn lowest_price(fee: i64, scale: i64) -> i64 {
    fee / scale + i64::from(fee % scale != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::SymbolSpec;
    use crate::ids::{CurrencyId, OrderId};
    use crate::risk::gate::{Gate, TradingLimits};
    use crate::risk::ledger::Ledger;
    use crate::risk::reference::Exposure;
    use crate::risk::symbol::Symbols;
    use crate::risk::trading::hold;

    type Terms = (i64, i64, i64, bool, u8);

    fn place((price, reserve_price, size, bid, order_type): Terms) -> Place {
        Place {
            order_type: OrderType::ALL[usize::from(order_type)],
            reserve_price,
            ..Place::limit(
                (UserId(1), OrderId(1)),
                SymbolId(1),
                if bid { Action::Bid } else { Action::Ask },
                (price, size),
            )
        }
    }

    fn terms(sizes: std::ops::Range<i64>) -> impl Strategy<Value = Terms> {
        (-3_i64..60, -3_i64..60, sizes, any::<bool>(), 0_u8..5)
    }

    proptest! {
        /// At plain prices, the slow path finds nothing, and nothing new is remembered.
        #[test]
        fn at_plain_prices_the_slow_path_finds_nothing(
            (taker_fee, maker_fee, quote_scale) in (0_i64..40, 0_i64..40, 1_i64..5),
            (mended, halted) in (any::<bool>(), prop::bool::weighted(0.1)),
            (low, high) in (-3_i64..40, 20_i64..70),
            seen in prop::collection::vec(terms(0..9), 0..4),
            odd in prop::option::weighted(0.1, terms(-9..0)),
            next in terms(-1..9),
        ) {
            let spec = SymbolSpec {
                taker_fee,
                maker_fee,
                quote_scale,
                base_scale: 3,
                ..SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2))
            };
            let rules = if mended { Rules::MENDED } else { Rules::REFERENCE };
            let mut symbols = Symbols::default();
            symbols.add(&spec, &mut Ledger::default(), &rules);
            let symbol = symbols.at_mut(0);
            symbol.gate = Gate::new(TradingLimits {
                halted,
                auction: false,
                busy: false,
                low,
                high,
            });
            symbol.renew_plain_prices(&rules);
            for terms in seen.into_iter().chain(odd) {
                symbol.note_place(&place(terms), &rules);
            }
            let next = place(next);
            prop_assert_eq!(symbol.remembers, !mended);
            prop_assert_eq!(symbol.is_simple, mended);
            if symbol.plain_prices.holds(next.price) {
                prop_assert!(mended || next.price.unsigned_abs() <= symbol.price_max());
                prop_assert!(symbol.gate.check(next.price, true).is_ok());
                prop_assert_eq!(symbol.quirks_of_move(next.price, &rules), Exposure::default());
            }
            if mended {
                let in_simple = symbol.plain_hold::<true>(&next);
                prop_assert_eq!(in_simple, symbol.plain_hold::<false>(&next));
            }
            if let Some(amount) = symbol.plain_hold::<false>(&next) {
                prop_assert_eq!(symbol.quirks_of_place(&next, &rules), Exposure::default());
                prop_assert_eq!(symbol.loss_of_budget_ask(&next, &rules), 0);
                prop_assert_eq!(hold(&spec, &next), Ok(amount));
                prop_assert!(amount > 0);
                let price_max = symbol.price_max();
                symbol.note_place(&next, &rules);
                prop_assert_eq!(symbol.price_max(), price_max);
            }
        }
    }
}
