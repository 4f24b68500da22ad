//! Fees of trades and the holds for them: per lot, or a part of the value.
//!
//! *Of the value*, a taker pays its part of what all trades of one command together are worth, and
//! a maker of each trade, rounded up to a unit of the currency; a rebate is rounded down. A sum of
//! parts that are rounded up is never below the whole rounded up, so no user gains by splitting
//! orders; and as the taker's rate plus the maker's is not below zero, no trade brings in less than
//! nothing: a rebate is paid out of the taker fee of the same trade.
//!
//! *What is held* for a lot is its value and its own fee rounded up, at the reserve price: with
//! `v ≤ w` for the value of a trade's lots and what is held for them, and a rate not above the
//! taker's, fee(v) ≤ Σ over its lots of the fee of each at the reserve price. So what is held pays
//! for the fee of any trades of it, and something comes back. An ask pays out of what it brings in,
//! which is more than its fee, as no rate is above the whole.

use super::Risk;
use super::settlement::{Paid, Taken};
use super::symbols::Symbol;
use crate::command::{Action, FeeUnit, Place, SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// A rate of this takes all.
const WHOLE: i64 = 1_000_000;

/// Returns a part of an amount, rounded up; a rebate, below zero, towards nothing.
fn part(amount: i128, rate: i64) -> i128 {
    let narrow = i64::try_from(amount)
        .ok()
        .and_then(|amount| part_in_64_bits(amount, rate));
    narrow.map_or_else(|| wide_part(amount, rate), i128::from)
}

/// Returns a part of an amount as [`part`]; `None` where 64 bits are not enough to compute it.
fn part_in_64_bits(amount: i64, rate: i64) -> Option<i64> {
    let product = amount.checked_mul(rate)?;
    Some(product.div_euclid(WHOLE) + i64::from(product.rem_euclid(WHOLE) != 0))
}

#[cold]
fn wide_part(amount: i128, rate: i64) -> i128 {
    let product = amount.saturating_mul(rate.into());
    product.div_euclid(WHOLE.into()) + i128::from(product.rem_euclid(WHOLE.into()) != 0)
}

impl SymbolSpec {
    pub(crate) const fn fees_are_of_value(&self) -> bool {
        matches!(self.fee_unit, FeeUnit::Millionth)
    }

    /// Returns the fee of lots that are worth `cost` units of price, by a rate of this symbol.
    fn fee(&self, rate: i64, lots: i128, cost: i128) -> i128 {
        match self.fee_unit {
            FeeUnit::PerLot => lots.saturating_mul(rate.into()),
            FeeUnit::Millionth => part(cost.saturating_mul(self.scale()), rate),
        }
    }

    /// Units of the quote currency in one unit of price.
    fn scale(&self) -> i128 {
        match self.symbol_type {
            SymbolType::Futures => 1,
            _ => self.quote_scale.into(),
        }
    }

    /// Returns the taker's fee for lots that are worth `cost` units of price.
    pub(crate) fn taker_fee_of(&self, lots: i128, cost: i128) -> i128 {
        self.fee(self.taker_fee, lots, cost)
    }

    /// Returns the maker's fee for lots at a price; below zero, a rebate.
    pub(crate) fn maker_fee_of(&self, lots: i64, price: i64) -> i128 {
        let lots = i128::from(lots);
        self.fee(self.maker_fee, lots, lots * i128::from(price))
    }

    /// Returns the fee of one side of a trade in futures for lots that it opens.
    pub(super) fn fee_on_opened(&self, is_taker: bool, lots: i64, price: i64) -> i128 {
        if is_taker {
            self.taker_fee_of(lots.into(), i128::from(lots) * i128::from(price))
        } else {
            self.maker_fee_of(lots, price)
        }
    }

    /// Returns the hold for the fee of each lot of a pair, at a reserve price.
    pub(crate) fn fee_held(&self, price: i64) -> i128 {
        self.taker_fee_of(1, price.into())
    }

    /// Returns the hold for a lot of a bid.
    pub(crate) fn held_per_lot(&self, reserve_price: i64) -> i128 {
        i128::from(reserve_price) * i128::from(self.quote_scale) + self.fee_held(reserve_price)
    }

    /// Returns the lowest price at which a lot brings in the taker fee.
    pub(crate) fn lowest_ask(&self) -> i64 {
        if self.fees_are_of_value() {
            return 0;
        }
        let (fee, scale) = (i128::from(self.taker_fee), self.quote_scale.max(1).into());
        (fee.div_euclid(scale) + i128::from(fee.rem_euclid(scale) != 0)) as i64
    }

    /// Refuses fees that have no meaning, or that the rules forbid.
    pub(super) fn check_fees(&self, rules: &Rules) -> Result<(), ResultCode> {
        let (taker, maker) = (self.taker_fee, self.maker_fee);
        let is_pair = self.symbol_type == SymbolType::CurrencyPair;
        let has_rebate = maker < 0;
        let is_own = has_rebate || self.fees_are_of_value();
        // In futures, the fee is due on opened lots: a trade may have none that pays a rebate.
        let is_paid_for = is_pair && taker.checked_add(maker).is_some_and(|sum| sum >= 0);
        let is_too_much = self.fees_are_of_value() && taker.max(maker) > WHOLE;
        if taker < 0
            || is_own && !rules.keep_balances_sound()
            || has_rebate && !is_paid_for
            || is_too_much
        {
            return Err(ResultCode::SymbolInvalidSpec);
        }
        if is_pair && rules.refuse_maker_fee_over_taker && maker > taker {
            return Err(ResultCode::SymbolMakerFeeOverTakerFee);
        }
        Ok(())
    }
}

impl Taken {
    /// Returns the quote currency that the taker gets back, the base currency that it bought, and
    /// the fees of both sides, where fees are of the value; `None` where it traded nothing.
    #[inline(never)]
    pub(super) fn paid_by_value(&self, spec: &SymbolSpec, budget: Option<&Place>) -> Option<Paid> {
        let scale = i128::from(spec.quote_scale);
        let fee = spec.taker_fee_of(self.lots, self.cost);
        let bought = self.lots * i128::from(spec.base_scale);
        let fees = fee + self.maker_fees;
        if let Some(place) = budget {
            let budget = i128::from(place.price);
            let held = spec.taker_fee_of(0, budget);
            return Some(((budget - self.cost) * scale + held - fee, bought, fees));
        }
        Some(match self.action? {
            Action::Ask => (self.cost * scale - fee, 0, fees),
            Action::Bid => {
                // All lots of an order are held for at one price.
                let held = spec.fee_held(self.hold) * self.lots;
                ((self.held - self.cost) * scale + held - fee, bought, fees)
            }
        })
    }
}

impl Symbol {
    /// Returns the most that a lot of futures can cost in fees inside the band.
    #[inline]
    pub(super) fn fee_in_band(&self) -> i64 {
        if self.spec.fees_are_of_value() {
            self.part_in_band()
        } else {
            self.fee_max()
        }
    }

    /// The highest price is below 2³⁷, and a part at most all of it.
    #[inline(never)]
    fn part_in_band(&self) -> i64 {
        part(self.gate.band().1.into(), self.fee_max()) as i64
    }
}

impl Risk {
    /// Pays collected fees out to a user.
    pub(super) fn pay_fees(
        &mut self,
        (uid, currency): (UserId, CurrencyId),
        amount: i64,
        transaction_id: i64,
    ) -> Result<(), ResultCode> {
        self.check_transaction(uid, transaction_id)?;
        if amount <= 0 {
            return Err(ResultCode::FeesAmountNotPositive);
        }
        if amount > self.ledger.look(currency).fees {
            return Err(ResultCode::FeesNsf);
        }
        let slot = self.ledger.find_or_add(currency);
        let total = self.ledger.get_mut(slot);
        let user = self.users.get_mut(uid).expect("looked up before");
        user.last_transaction_id = transaction_id;
        total.add_fees(-i128::from(amount));
        total.add(user.balance_mut(currency), amount.into());
        self.settle_waiting(uid, currency, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_value(taker_fee: i64, maker_fee: i64) -> SymbolSpec {
        SymbolSpec {
            fee_unit: FeeUnit::Millionth,
            base_scale: 1,
            quote_scale: 7,
            taker_fee,
            maker_fee,
            ..SymbolSpec::default()
        }
    }

    #[test]
    fn fees_are_rounded_up_and_rebates_down() {
        for (amount, rate, expected) in [
            (10_000, 100, 1),
            (10_001, 100, 2),
            (1, 1, 1),
            (0, 5, 0),
            (10_000, -100, -1),
            (19_999, -100, -1),
            (9_999, -100, 0),
            (5, WHOLE, 5),
        ] {
            assert_eq!(part(amount, rate), expected, "{amount} at {rate}");
        }
    }

    proptest! {
        #[test]
        fn splitting_gains_nothing_and_what_is_held_is_enough(
            (taker, share) in (0..=WHOLE, -1.0..=1.0_f64),
            trades in prop::collection::vec((1..50_i64, 1..5_000_i64), 1..6),
            above in 0..90_i64,
        ) {
            let maker = (taker as f64 * share) as i64;
            let spec = of_value(taker, maker);
            let lots: i64 = trades.iter().map(|&(lots, _)| lots).sum();
            let cost: i64 = trades.iter().map(|&(lots, price)| lots * price).sum();
            let reserve = trades.iter().map(|&(_, price)| price).max().unwrap_or(1) + above;
            let whole = spec.taker_fee_of(lots.into(), cost.into());
            let parts = trades.iter();
            let parts: i128 = parts
                .map(|&(lots, price)| spec.taker_fee_of(lots.into(), (lots * price).into()))
                .sum();
            prop_assert!(parts >= whole);
            let makers: i128 = trades.iter().map(|&(l, p)| spec.maker_fee_of(l, p)).sum();
            let alone: i128 = trades
                .iter()
                .map(|&(lots, price)| i128::from(lots) * spec.maker_fee_of(1, price))
                .sum();
            prop_assert!(alone >= makers);
            prop_assert!(whole + makers >= 0, "{whole} and {makers}");
            let held = spec.held_per_lot(reserve) * i128::from(lots);
            let value = i128::from(cost) * 7;
            prop_assert!(held >= value + whole.max(parts));
            prop_assert!(held >= value + makers);
            prop_assert!(value >= parts);
        }
    }
}
