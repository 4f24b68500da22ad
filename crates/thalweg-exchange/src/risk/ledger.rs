//! Totals per currency, and the bound that keeps every balance inside 64 bits.
//!
//! *Words*, per currency: **D** = what was deposited, −(adjustments + suspends); **N** = the sum of
//! all that is negative, as a positive number: balances, and the two accounts of each position in
//! futures, its profit and what was paid for its open lots (see [`Stake`]); **R** = what may still
//! move beyond that: reserved by quirks of the reference when the command that could do it is
//! checked, and never given back; and while futures orders rest or wait and lots are open, per lot
//! that rests or waits |price| + the higher fee + 1, per open lot 1.
//!
//! Futures that are covered (see `cover`) are no part of N or R: their owners' money bounds them.
//!
//! *Rule*: max(D, 0) + N + R ≤ `i64::MAX` after every accepted deposit, and before every accepted
//! command that could make an account negative, with the most it could lose added.
//!
//! *Why that is enough*: money is conserved, Σ balances + Σ accounts of positions + fees + Σ held
//! = D (+ what a quirk made, which is part of R). What is held is not negative (else it is part of
//! R), so no single account, and no sum of fees, can be above D + N + R, and none can be below
//! −(N + R). Lots of futures, pending and open, are at most R.
//!
//! *Why futures keep the rule between checks*: a trade of s lots at the maker's price p moves s·p
//! from the buyer's accounts to the seller's, which raises N by s·|p| at most; each side's fee is
//! at most the higher fee, and each may open s lots. The maker's lots leave the book, which lowers
//! R by s·(|p| + fee + 1), and the check of the taker made sure of s·(fee + 1) more; of a stop
//! order that was triggered, at least as much was reserved for lots that wait. Moving the whole of
//! one account into another, as closing a position does, or a part of the same sign, never raises
//! N.

use super::position::Stake;
use crate::ids::CurrencyId;
use crate::index::Index;

/// What is known of one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Currency {
    /// The currency.
    pub id: CurrencyId,
    /// Fees collected.
    pub fees: i64,
    /// Minus the deposits, plus the withdrawals.
    pub adjustments: i64,
    /// The same for money of suspended users.
    pub suspends: i64,
    /// N of the module's comment.
    pub(super) negative: i128,
    /// R of the module's comment.
    pub(super) reserved: i128,
    /// Losses in covered futures that were paid in, less profit that was paid out.
    pub(super) pool: i128,
    /// A band of covered futures was moved: somebody may be short. See the `cover` module.
    pub(super) is_shaky: bool,
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
            pool: 0,
            is_shaky: false,
        }
    }

    /// N of the bound: the sum of all that is below zero, as a positive number; no part of covered
    /// futures.
    #[must_use]
    pub const fn negative(&self) -> i128 {
        self.negative
    }

    /// R of the bound: what may still move beyond that; nothing of covered futures.
    #[must_use]
    pub const fn reserved(&self) -> i128 {
        self.reserved
    }

    /// Losses in covered futures that were paid in, less profit that was paid out; not below zero.
    #[must_use]
    pub const fn pool(&self) -> i128 {
        self.pool
    }

    /// D of the module's comment.
    fn deposits(&self) -> i128 {
        -(i128::from(self.adjustments) + i128::from(self.suspends))
    }

    /// True where `more` can still be deposited, reserved or lost without leaving 64 bits.
    pub(super) fn has_room(&self, more: i128) -> bool {
        let used = self.deposits().max(0) + self.negative + self.reserved;
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
    pub(super) const fn note_stake(&mut self, before: Stake, after: Stake) {
        self.negative += after.debt - before.debt;
        self.reserved += after.lots - before.lots;
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

    /// A currency that may be new, as it would be.
    pub(super) fn look(&self, id: CurrencyId) -> Currency {
        self.find(id)
            .map_or(Currency::new(id), |slot| *self.get(slot))
    }

    /// Whether so much more has room in a currency that may be new.
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
        let old = *balance;
        match amount.and_then(|amount| old.checked_add(amount)) {
            Some(new) if (old | new) >= 0 => *balance = new,
            _ => self.pay_closely(slot, balance, exact()),
        }
    }

    /// The same for an amount in 128 bits.
    #[inline]
    pub(super) fn pay_exactly(&mut self, slot: u32, balance: &mut i64, amount: i128) {
        self.pay(slot, balance, i64::try_from(amount).ok(), || amount);
    }

    #[cold]
    fn pay_closely(&mut self, slot: u32, balance: &mut i64, amount: i128) {
        self.get_mut(slot).add(balance, amount);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Currency> {
        self.currencies.iter()
    }
}
