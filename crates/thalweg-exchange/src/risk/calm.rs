//! The usual case of the risk check: an order in a pair at a calm price, of an owner with enough
//! money. Everything else is looked at closely, in the modules beside this one, which also say what
//! the answer is here: this one only comes to it sooner.
//!
//! A price is *calm* in a pair's symbol if it is above zero, not above every price seen there
//! before, inside the symbol's price band, not under the fees where an ask may be moved under them,
//! and if nothing is the matter with the symbol: it is not halted, its maker fee is not above its
//! taker fee, and no order of negative size was ever accepted. All of that is one range, kept with
//! the symbol.
//!
//! *A move* to a calm price passes: its exposure is nothing, nothing new is seen, and only the
//! status of its owner is left. As long as no user was ever removed, that need not be looked at:
//! the owner of every resting order had a record when the order was placed and has it still, and
//! a record becomes a suspended one only where a settlement makes it again. Whoever has no record
//! owns no order, so matching refuses the move whatever is answered here.
//!
//! *A new order* without a budget passes at a calm price if its size is above zero, its reserve
//! price was seen too, and its owner is active, has no record in futures, and has the money: again
//! its exposure is nothing, and as no balance falls below zero no total has to be told.

use super::Risk;
use super::symbol::Symbol;
use super::user::UserStatus;
use crate::command::{OrderType, Place};
use crate::event::UserHint;
use crate::ids::{SymbolId, UserId};
use crate::rules::Rules;

/// A range of prices; empty where nothing is calm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calm {
    low: i64,
    /// How many prices there are from `low` on.
    prices: u64,
    /// The lowest price at which a lot brings in the taker fee.
    ask_floor: i64,
}

impl Calm {
    #[inline]
    const fn holds(&self, price: i64) -> bool {
        price.wrapping_sub(self.low).cast_unsigned() < self.prices
    }
}

impl Symbol {
    /// Finds the calm prices anew. Must be called after every change of what they depend on.
    pub(super) fn renew_calm(&mut self, rules: &Rules) {
        let spec = &self.spec;
        let floor = if rules.refuse_moved_ask_under_fee {
            1
        } else {
            lowest_price(self.fee_max(), spec.quote_scale).max(1)
        };
        let low = floor.max(self.gate.low());
        // A price times its scale fits, too.
        let seen = i64::try_from(self.price_max()).unwrap_or(i64::MAX);
        let high = seen.min(self.gate.high()).min(i64::MAX / spec.quote_scale);
        let may_be = self.is_pair() && !self.is_inverted() && spec.maker_fee <= spec.taker_fee;
        self.calm = Calm {
            low,
            prices: if may_be && low <= high {
                (high - low).unsigned_abs() + 1
            } else {
                0
            },
            ask_floor: lowest_price(spec.taker_fee, spec.quote_scale),
        };
    }

    /// What a new order holds of the currency of its side, if it is calm in all that does not
    /// concern its owner.
    #[inline]
    fn calm_hold(&self, place: &Place) -> Option<i64> {
        let is_plain = place.order_type == OrderType::Gtc
            || !(place.order_type.is_budget() || place.flags.is_post_only());
        let is_calm = self.calm.holds(place.price)
            && place.size > 0
            && place.reserve_price.unsigned_abs() <= self.price_max();
        if !(is_plain && is_calm) {
            return None;
        }
        // Both sides at once: which one it is cannot be foreseen.
        let spec = &self.spec;
        let side = place.action as usize;
        let above = [place.price, place.reserve_price][side];
        let floor = [self.calm.ask_floor, place.price][side];
        let price = [0, place.reserve_price][side];
        let per_lot = price.checked_mul(spec.quote_scale)?;
        let per_lot = per_lot.checked_add([spec.base_scale, spec.taker_fee][side])?;
        let hold = place.size.checked_mul(per_lot)?;
        (above >= floor).then_some(hold)
    }
}

impl Risk {
    /// Whether a move passes without a closer look.
    #[inline]
    pub(super) fn move_is_calm(&self, uid: UserId, symbol: SymbolId, price: i64) -> bool {
        let Some(symbol) = self.symbols.get(symbol) else {
            return false;
        };
        symbol.calm.holds(price) && (!self.users.lost_any() || self.may_trade(uid))
    }

    fn may_trade(&self, uid: UserId) -> bool {
        let is_active = |uid| {
            let user = self.users.get(uid);
            user.is_some_and(|user| user.status == UserStatus::Active)
        };
        !self.rules.refuse_suspended || is_active(uid)
    }

    /// Accepts a new order and holds the money for it, if that needs no closer look. Says where
    /// its owner is.
    #[inline]
    pub(super) fn place_calmly(&mut self, place: &Place) -> Option<UserHint> {
        let slot = self.users.slot(place.uid)?;
        let symbol_slot = self.symbols.slot(place.symbol)?;
        let symbol = self.symbols.at_mut(symbol_slot);
        let hold = symbol.calm_hold(place)?;
        let user = self.users.at_mut(slot);
        if user.status != UserStatus::Active || !user.positions().is_empty() {
            return None;
        }
        let spec = &symbol.spec;
        let currency = [spec.base_currency, spec.quote_currency][place.action as usize];
        let balance = user.near_balance_mut(currency)?;
        if *balance < hold {
            return None;
        }
        *balance -= hold;
        symbol.note_calm_lots(place.size);
        Some(UserHint(slot))
    }
}

fn lowest_price(fee: i64, scale: i64) -> i64 {
    fee / scale + i64::from(fee % scale != 0)
}
