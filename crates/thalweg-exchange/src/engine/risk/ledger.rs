//! Totals per currency, and the bound that keeps every balance inside 64 bits.
//!
//! *Rule*, with D what was deposited: max(D, 0) + [N](Currency::negative) + [R](Currency::reserved)
//! ≤ `i64::MAX`. It is checked, with the most that a command could lose added, before a deposit or
//! a command that could make an account negative is accepted. The part of R that quirks of the
//! reference took counts twice then: it is never given back, and the same amount may come to N
//! later. `tests/money/totals.rs` computes each total by its definition. Property tests compare
//! after every command, and look at the bound and at what follows from it.
//!
//! *Why that is enough*: money is conserved, Σ balances + Σ accounts of positions + fees + Σ held =
//! D, but for what a quirk of the reference made, which R has room for since the command that could
//! do it was checked. So no account, and no sum of fees, is above D + N + R or below −(N + R).
//!
//! *Why futures that are not covered keep the rule between checks*: a trade of s lots at price p
//! raises N by s·|p| at most; each side pays at most the higher fee and may open s lots. R falls by
//! s·(|p| + fee + 1), as the maker's lots leave the book, and the taker's check, or what was
//! reserved for its lots that waited, made sure of s·(fee + 1) more. Closing moves an account, or a
//! part of the same sign, into another, which never raises N. (Futures that are `cover`ed are
//! bounded by their owners' money, and are no part of N or R.)

use std::ops::{AddAssign, SubAssign};

use crate::engine::index::Index;
use crate::ids::CurrencyId;

/// The totals of one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Currency {
    /// The currency.
    pub id: CurrencyId,
    /// Fees collected.
    pub fees: i64,
    /// Minus the deposits, plus the withdrawals.
    pub adjustments: i64,
    /// As `adjustments`, for money of suspended users.
    pub suspends: i64,
    pub(super) negative: i128,
    pub(super) reserved: i128,
    /// The part of `reserved` that quirks of the reference took.
    pub(super) room: i128,
    /// Losses in covered futures that were paid in, less profit that was paid out.
    pub(super) pool: i128,
    /// A band of covered futures was moved: a user may be short. See the `cover` module.
    pub(super) must_check_cover: bool,
}

impl Currency {
    const fn new(id: CurrencyId) -> Self {
        Self {
            id,
            fees: 0,
            adjustments: 0,
            suspends: 0,
            negative: 0,
            reserved: 0,
            room: 0,
            pool: 0,
            must_check_cover: false,
        }
    }

    /// N of the bound: what is below zero, as a positive number, of balances and of the two
    /// accounts of each position in futures that are not covered: profit, and what was paid for
    /// open lots.
    #[must_use]
    pub const fn negative(&self) -> i128 {
        self.negative
    }

    /// R of the bound: what may still move beyond that. For futures that are not covered, per lot
    /// that rests or waits |price| + the higher fee + 1, per open lot 1; and the cost that quirks
    /// of the reference could cause, which is never given back.
    #[must_use]
    pub const fn reserved(&self) -> i128 {
        self.reserved
    }

    /// Losses in covered futures that were paid in, less profit that was paid out; not below zero.
    #[must_use]
    pub const fn pool(&self) -> i128 {
        self.pool
    }

    /// Returns the part of R that quirks of the reference took.
    pub(crate) const fn room(&self) -> i128 {
        self.room
    }

    /// D of the bound: below zero where more was withdrawn, as quirks make possible.
    fn deposits(&self) -> i128 {
        -(i128::from(self.adjustments) + i128::from(self.suspends))
    }

    /// Returns true where `more` can still be deposited, reserved or lost without leaving 64 bits.
    pub(super) fn has_room(&self, more: i128) -> bool {
        let used = self.deposits().max(0) + self.negative + self.reserved + self.room;
        used.saturating_add(more) <= i128::from(i64::MAX)
    }

    /// Changes a balance in this currency.
    ///
    /// # Panics
    /// If the new balance leaves 64 bits, which the module's rule excludes.
    pub(super) fn add(&mut self, balance: &mut i64, amount: i128) {
        let old = *balance;
        let new = in_64_bits(i128::from(old) + amount);
        if (old | new) < 0 {
            self.negative += i128::from(new.min(0).abs_diff(0));
            self.negative -= i128::from(old.min(0).abs_diff(0));
        }
        *balance = new;
    }

    /// Notes that a position changed.
    pub(super) const fn note_position(&mut self, before: PositionTotals, after: PositionTotals) {
        self.negative += after.debt - before.debt;
        self.reserved += after.lots - before.lots;
    }

    /// Reserves what a quirk of the reference could cost, for good.
    pub(super) const fn take_room(&mut self, amount: i128) {
        self.reserved += amount;
        self.room += amount;
    }

    /// Adds to the fees.
    ///
    /// # Panics
    /// As [`Self::add`].
    pub(super) fn add_fees(&mut self, amount: i128) {
        self.fees = in_64_bits(i128::from(self.fees) + amount);
    }
}

fn in_64_bits(amount: i128) -> i64 {
    i64::try_from(amount).expect("the ledger's rule keeps every sum inside 64 bits")
}

/// All currencies that were ever paid in or traded since the last reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    currencies: Vec<Currency>,
    index: Index,
}

impl Ledger {
    pub(super) fn find(&self, id: CurrencyId) -> Option<u32> {
        let key_of = |slot: u32| i64::from(self.currencies[slot as usize].id.0);
        self.index.find(i64::from(id.0), key_of)
    }

    pub(super) fn find_or_add(&mut self, id: CurrencyId) -> u32 {
        if let Some(slot) = self.find(id) {
            return slot;
        }
        let slot = u32::try_from(self.currencies.len()).expect("an i32 has fewer values");
        self.currencies.push(Currency::new(id));
        self.index.insert(i64::from(id.0), slot);
        slot
    }

    /// Returns a currency that may be new, as it would be.
    pub(super) fn look(&self, id: CurrencyId) -> Currency {
        self.find(id)
            .map_or(Currency::new(id), |slot| *self.get(slot))
    }

    /// Returns whether so much more has room in a currency that may be new.
    #[cold]
    pub(super) fn has_room_in(&self, id: CurrencyId, more: i128) -> bool {
        self.look(id).has_room(more)
    }

    pub(super) fn get(&self, slot: u32) -> &Currency {
        &self.currencies[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Currency {
        &mut self.currencies[slot as usize]
    }

    /// Adds to a balance in the currency of a slot. `amount` is `exact()` where 64 bits are enough
    /// for it, and may be `None` anyhow. As long as the balance is above zero before and after, the
    /// total need not be touched.
    #[inline]
    pub(super) fn pay(
        &mut self,
        slot: u32,
        balance: &mut i64,
        amount: Option<i64>,
        exact: impl FnOnce() -> i128,
    ) {
        #[cfg(test)]
        let amount = amount.filter(|_| !super::is_exact());
        let old = *balance;
        match amount.and_then(|amount| old.checked_add(amount)) {
            Some(new) if (old | new) >= 0 => *balance = new,
            _ => self.pay_slow(slot, balance, exact()),
        }
    }

    /// Pays an amount in 128 bits as [`pay`](Self::pay) does.
    #[inline]
    pub(super) fn pay_exactly(&mut self, slot: u32, balance: &mut i64, amount: i128) {
        self.pay(slot, balance, i64::try_from(amount).ok(), || amount);
    }

    #[cold]
    fn pay_slow(&mut self, slot: u32, balance: &mut i64, amount: i128) {
        self.get_mut(slot).add(balance, amount);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Currency> {
        self.currencies.iter()
    }
}

/// A position's part in the ledger's bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PositionTotals {
    /// The sum of the position's accounts that are below zero, as a positive number.
    pub(super) debt: i128,
    /// Open lots: what bounds sums of lots.
    pub(super) lots: i128,
}

impl AddAssign for PositionTotals {
    fn add_assign(&mut self, other: Self) {
        self.debt += other.debt;
        self.lots += other.lots;
    }
}

impl SubAssign for PositionTotals {
    fn sub_assign(&mut self, other: Self) {
        self.debt -= other.debt;
        self.lots -= other.lots;
    }
}
