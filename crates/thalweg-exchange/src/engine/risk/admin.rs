//! Commands about users, their money, and symbols.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::Risk;
use super::cover::Purse;
use super::futures::free_margin;
use super::ledger::Currency;
use super::symbol::check_spec;
use super::user::{User, UserStatus};
use crate::command::{AccountSpec, AdjustmentKind, SymbolSpec};
use crate::ids::{CurrencyId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<(), ResultCode>;

/// A first balance has this transaction id plus its currency.
const FIRST_TRANSACTION_ID: i64 = 1_000_000_000;

impl Currency {
    /// Books a deposit against a total; `None` where that, or the ledger's bound, would not hold.
    fn booked(mut self, amount: i64, kind: AdjustmentKind) -> Option<Self> {
        let total = match kind {
            AdjustmentKind::Adjustment => &mut self.adjustments,
            AdjustmentKind::Suspend => &mut self.suspends,
        };
        *total = total.checked_sub(amount)?;
        // A withdrawal needs no room.
        (amount <= 0 || self.has_room(0)).then_some(self)
    }
}

impl Risk {
    /// Checks that no more would have to be forgotten than one command may visit.
    pub(super) fn check_reset(&self) -> Result<ResultCode, ResultCode> {
        match self.users.has_more_than(self.rules.work_max()) {
            true => Err(ResultCode::MatchingRejectedWorkLimit),
            false => Ok(ResultCode::ValidForMatchingEngine),
        }
    }

    pub(super) fn add_user(&mut self, uid: UserId) -> Checked {
        if self.users.get(uid).is_some() {
            return Err(ResultCode::UserMgmtUserAlreadyExists);
        }
        self.users.add(uid, UserStatus::Active);
        Ok(())
    }

    pub(super) fn adjust(
        &mut self,
        uid: UserId,
        currency: CurrencyId,
        amount: i64,
        transaction_id: i64,
        kind: AdjustmentKind,
    ) -> Checked {
        let user = self.check_transaction(uid, transaction_id)?;
        let mut profit = 0;
        if amount < 0 || self.rules.cover_futures {
            let purse = self.most(user, currency)?;
            if amount < 0 && -i128::from(amount) > purse.most {
                return Err(ResultCode::UserMgmtAccountBalanceAdjustmentNsf);
            }
            profit = purse.profit;
        }
        let booked = self.ledger.look(currency).booked(amount, kind);
        let booked = booked.ok_or(ResultCode::RiskArithmeticOverflow)?;

        let slot = self.ledger.find_or_add(currency);
        let total = self.ledger.get_mut(slot);
        *total = booked;
        let user = self.users.get_mut(uid).expect("looked up before");
        user.last_transaction_id = transaction_id;
        total.add(user.balance_mut(currency), i128::from(amount) + profit);
        if user.waiting_in(currency) != 0 {
            self.settle_waiting(uid, currency, profit);
        }
        Ok(())
    }

    /// The user, if the id is of a transaction that was not applied yet.
    pub(super) fn check_transaction(&self, uid: UserId, id: i64) -> Result<&User, ResultCode> {
        let user = self.users.get(uid).ok_or(ResultCode::AuthInvalidUser)?;
        match id.cmp(&user.last_transaction_id) {
            Ordering::Greater => Ok(user),
            Ordering::Equal => Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame),
            Ordering::Less => Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany),
        }
    }

    /// Returns how much a user can withdraw of a currency.
    pub(super) fn most(&self, user: &User, currency: CurrencyId) -> Result<Purse, ResultCode> {
        if self.rules.cover_futures {
            return Ok(self.purse(user, currency));
        }
        let mut needed = 0;
        if self.rules.withdrawal_keeps_margin && !user.positions().is_empty() {
            needed = -free_margin(user, &self.symbols, currency, None)?;
        }
        // Profit in futures is no money yet: it covers margin, and is not paid out.
        Ok(Purse {
            most: i128::from(user.balance(currency)) - needed.max(0),
            profit: 0,
        })
    }

    pub(super) fn suspend(&mut self, uid: UserId) -> Checked {
        let user = self
            .users
            .get(uid)
            .ok_or(ResultCode::UserMgmtUserNotFound)?;
        if user.status == UserStatus::Suspended {
            return Err(ResultCode::UserMgmtUserAlreadySuspended);
        }
        if user.positions().iter().any(|position| !position.is_empty()) {
            return Err(ResultCode::UserMgmtUserNotSuspendableHasPositions);
        }
        if user.has_money() {
            return Err(ResultCode::UserMgmtUserNotSuspendableNonEmptyAccounts);
        }
        self.users.remove(uid, self.rules.keep_transaction_ids);
        Ok(())
    }

    pub(super) fn resume(&mut self, uid: UserId) -> Checked {
        match self.users.get_mut(uid) {
            None => {
                self.users.add(uid, UserStatus::Active);
            }
            Some(user) if user.status == UserStatus::Suspended => user.status = UserStatus::Active,
            Some(_) => return Err(ResultCode::UserMgmtUserNotSuspended),
        }
        Ok(())
    }

    pub(super) fn add_symbols(&mut self, specs: &[SymbolSpec]) -> Checked {
        for spec in specs {
            if self.symbols.get(spec.id).is_none() {
                check_spec(spec, &self.rules)?;
            }
        }
        for spec in specs {
            self.symbols.add(spec, &mut self.ledger, &self.rules);
        }
        Ok(())
    }

    pub(super) fn add_accounts(&mut self, accounts: &[AccountSpec]) -> Checked {
        self.check_accounts(accounts)?;
        for account in accounts {
            if self.add_user(account.uid).is_err() {
                continue;
            }
            for (currency, amount) in ascending(account) {
                let id = FIRST_TRANSACTION_ID + i64::from(currency.0);
                // A balance that is refused (negative, or the second in a currency) is skipped.
                let _ = self.adjust(
                    account.uid,
                    currency,
                    amount,
                    id,
                    AdjustmentKind::Adjustment,
                );
            }
        }
        Ok(())
    }

    /// Refuses the batch if any of its balances would overflow, so that it is booked whole or not
    /// at all. Counts no less than will be booked: what is skipped for its transaction id counts.
    pub(super) fn check_accounts(&self, accounts: &[AccountSpec]) -> Checked {
        let mut totals: BTreeMap<CurrencyId, Currency> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for account in accounts {
            if self.users.get(account.uid).is_some() || !seen.insert(account.uid) {
                continue;
            }
            for (currency, amount) in ascending(account).into_iter().filter(|&(_, a)| a > 0) {
                let total = totals
                    .entry(currency)
                    .or_insert_with(|| self.ledger.look(currency));
                let booked = total.booked(amount, AdjustmentKind::Adjustment);
                *total = booked.ok_or(ResultCode::RiskArithmeticOverflow)?;
            }
        }
        Ok(())
    }
}

/// The balances of an account by ascending currency, the first of those of one currency first.
fn ascending(account: &AccountSpec) -> Vec<(CurrencyId, i64)> {
    let mut balances = account.balances.clone();
    balances.sort_by_key(|&(currency, _)| currency);
    balances
}
