//! Checks of sums: the money of each currency, and the lots of each futures symbol; and the totals
//! of the ledger, which are found from the rest.
//!
//! Money is neither made nor lost: balances, positions, what waits, holds and fees are together
//! what was paid in. Quirks of the reference make some or lose it, but no more than the room that
//! they took for that.

use std::collections::BTreeMap;

use super::SnapshotError;
use super::reader::within;
use crate::ids::{CurrencyId, SymbolId};
use crate::risk::{Direction, Position, Risk};
use crate::rules::Rules;

/// More than can ever wait of one user: so no sum over users leaves 128 bits.
pub(super) const WAITING_MAX: i128 = 1 << 94;

/// The most that the ledger's bound may use.
const MOST: i128 = i64::MAX as i128;

/// A currency, as far as it was added up.
#[derive(Clone, Copy, Debug)]
struct Sum {
    id: CurrencyId,
    at: usize,
    deposits: i128,
    fees: i128,
    /// The amount that quirks took.
    room: i128,
    must_check_cover: bool,
    /// A user has a position in it, or profit or loss waits.
    has_futures: bool,
    /// Balances, positions, what waits, and holds.
    owned: i128,
    /// The largest account.
    account_max: i128,
    negative: i128,
    /// R of futures that are not covered.
    reserved: i128,
    /// Waiting profit and loss, and covered positions.
    pool: i128,
    /// Holds that are below zero, as a positive number.
    holds_below: i128,
}

/// All of them, by their slots in the ledger.
#[derive(Debug, Default)]
pub(super) struct Money {
    sums: Vec<Sum>,
    /// Lots bought beyond those sold, and where the first are.
    open: BTreeMap<SymbolId, (i128, usize)>,
}

impl Money {
    pub(super) fn add_currency(
        &mut self,
        id: CurrencyId,
        at: usize,
        ([fees, adjustments, suspends], room): ([i64; 3], i64),
        must_check_cover: bool,
    ) {
        self.sums.push(Sum {
            id,
            at,
            deposits: -(i128::from(adjustments) + i128::from(suspends)),
            fees: fees.into(),
            room: room.into(),
            must_check_cover,
            has_futures: false,
            owned: 0,
            account_max: 0,
            negative: 0,
            reserved: 0,
            pool: 0,
            holds_below: 0,
        });
    }

    fn of(&mut self, currency: u32) -> &mut Sum {
        &mut self.sums[currency as usize]
    }

    pub(super) fn note_balance(&mut self, currency: u32, amount: i64) {
        self.of(currency).note_account(amount.into());
    }

    /// `is_covered`: futures are.
    pub(super) fn note_position(
        &mut self,
        currency: u32,
        position: &Position,
        is_covered: bool,
        at: usize,
    ) {
        let sum = self.of(currency);
        sum.has_futures = true;
        let cash = position.cash();
        if is_covered {
            sum.owned += cash;
            sum.pool += cash;
        } else {
            let profit = i128::from(position.profit);
            sum.note_account(profit);
            sum.note_account(cash - profit);
            sum.reserved += i128::from(position.open_volume);
        }
        let lots = i128::from(position.open_volume);
        let (open, _) = self.open.entry(position.symbol).or_insert((0, at));
        *open += match position.direction {
            Direction::Short => -lots,
            Direction::Empty => 0,
            Direction::Long => lots,
        };
    }

    pub(super) fn note_waiting(&mut self, currency: u32, amount: i128) {
        let sum = self.of(currency);
        sum.has_futures = true;
        sum.owned += amount;
        sum.pool += amount;
    }

    /// Notes the hold for an order in a pair.
    #[inline]
    pub(super) fn note_hold(&mut self, currency: u32, amount: i64) {
        let sum = self.of(currency);
        sum.owned += i128::from(amount);
        if amount < 0 {
            sum.holds_below += i128::from(amount.unsigned_abs());
        }
    }

    pub(super) fn note_reserved(&mut self, currency: u32, amount: i128) {
        self.of(currency).reserved += amount;
    }

    /// When all was noted: checks the sums, and gives the ledger its totals.
    pub(super) fn close(self, risk: &mut Risk) -> Result<(), SnapshotError> {
        for (open, at) in self.open.into_values() {
            within("lots bought beyond those sold", at, open, 0, 0)?;
        }
        let rules = *risk.rules();
        for (slot, sum) in (0..).zip(&self.sums) {
            sum.check(&rules)?;
            let totals = [sum.negative, sum.reserved, sum.room, sum.pool];
            risk.restore_totals(slot, totals, sum.must_check_cover);
        }
        let may_be_short = rules.margin_trading && rules.cover_futures;
        for sum in &self.sums {
            let (must_check_cover, at) = (sum.must_check_cover, sum.at + 4);
            let what = "whether somebody may be short";
            within(
                what,
                at,
                u8::from(must_check_cover),
                0,
                u8::from(may_be_short),
            )?;
            if (must_check_cover || sum.has_futures) && !risk.looks_rightly_for_short(sum.id) {
                let must = u8::from(!must_check_cover);
                within(what, at, u8::from(must_check_cover), must, must)?;
            }
        }
        Ok(())
    }
}

impl Sum {
    fn note_account(&mut self, amount: i128) {
        self.owned += amount;
        self.negative -= amount.min(0);
        self.account_max = self.account_max.max(amount);
    }

    fn check(&self, rules: &Rules) -> Result<(), SnapshotError> {
        let at = self.at;
        let made = self.owned + self.fees - self.deposits;
        let what = "money beyond what was paid in";
        within(what, at, made, -self.room, self.room)?;
        let what = "holds below zero";
        within(what, at, self.holds_below, 0, self.room)?;
        within("losses paid in", at, self.pool, 0, MOST)?;
        let taken = self.deposits.max(0) + 2 * self.room;
        let what = "deposits and twice the room that quirks took";
        within(what, at, taken, 0, MOST)?;
        let below = self.negative + self.reserved + self.room;
        let most = self.deposits.max(0) + below;
        within("deposits, debts and reserves", at, most, 0, MOST)?;
        within("the largest account", at, self.account_max, 0, most)?;
        let fees_min = if rules.keep_balances_sound() {
            0
        } else {
            -most
        };
        within("collected fees", at, self.fees, fees_min, most)
    }
}
