//! A user's balances: three are in the user's line, the others behind it.

use super::{NEAR, User};
use crate::ids::CurrencyId;

impl User {
    /// Returns the balance in a currency, in its smallest unit; zero where there was never any.
    #[must_use]
    pub fn balance(&self, currency: CurrencyId) -> i64 {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            return self.balances[place];
        }
        let accounts = self.far_accounts();
        far_place(accounts, currency).map_or(0, |place| accounts[place].1)
    }

    /// Returns the balances that are not zero, by ascending currency. Cost: sorts them.
    pub fn balances(&self) -> impl Iterator<Item = (CurrencyId, i64)> + '_ {
        let mut balances: Vec<_> = self.accounts().collect();
        balances.sort_unstable();
        balances.into_iter()
    }

    /// Returns the balances that are not zero, in no meaningful order.
    fn accounts(&self) -> impl Iterator<Item = (CurrencyId, i64)> + '_ {
        let near = self.currencies.iter().zip(&self.balances);
        near.map(|(&currency, &balance)| (currency, balance))
            .chain(self.far_accounts().iter().copied())
            .filter(|&(_, balance)| balance != 0)
    }

    /// Returns whether there is a balance that is not zero, or profit or a debt that waits.
    pub(in crate::engine::risk) fn has_money(&self) -> bool {
        self.accounts().next().is_some() || !self.waiting().is_empty()
    }

    fn far_accounts(&self) -> &[(CurrencyId, i64)] {
        self.far.as_ref().map_or(&[], |far| &far.accounts)
    }

    /// Returns where a currency is if it is near. Without branches: which one of its currencies a
    /// user needs next cannot be foreseen.
    #[inline]
    fn near_place(&self, currency: CurrencyId) -> usize {
        let [first, second, _] = self.currencies;
        let place = if second == currency { 1 } else { 2 };
        if first == currency { 0 } else { place }
    }

    /// Returns the balance in a currency if it is near.
    #[inline]
    pub(in crate::engine::risk) fn near_balance(&self, currency: CurrencyId) -> Option<i64> {
        let place = self.near_place(currency);
        (self.currencies[place] == currency).then_some(self.balances[place])
    }

    /// Returns the balance in a currency if it is near, to change it.
    #[inline]
    pub(in crate::engine::risk) fn near_balance_mut(
        &mut self,
        currency: CurrencyId,
    ) -> Option<&mut i64> {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            Some(&mut self.balances[place])
        } else {
            None
        }
    }

    /// Returns a balance that is near and not below zero, and what it would be with so much more,
    /// where that is not below zero either.
    #[inline(always)]
    pub(in crate::engine::risk) fn near_sum(
        &self,
        currency: CurrencyId,
        more: i64,
    ) -> Option<(usize, i64)> {
        let place = self.near_place(currency);
        if self.currencies[place] != currency {
            return None;
        }
        let old = self.balances[place];
        let sum = old.checked_add(more)?;
        ((old | sum) >= 0).then_some((place, sum))
    }

    /// Sets a balance to the sum that [`Self::near_sum`] returned.
    #[inline(always)]
    pub(in crate::engine::risk) const fn set_near(&mut self, (place, sum): (usize, i64)) {
        self.balances[place] = sum;
    }

    /// Returns the balance in a currency, to change it; made where it is missing.
    #[inline]
    pub(in crate::engine::risk) fn balance_mut(&mut self, currency: CurrencyId) -> &mut i64 {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            &mut self.balances[place]
        } else {
            self.other_balance_mut(currency)
        }
    }

    /// Returns the balance in a currency that is not near, to change it.
    #[cold]
    fn other_balance_mut(&mut self, currency: CurrencyId) -> &mut i64 {
        let found = far_place(self.far_accounts(), currency);
        if found.is_err()
            && let Some(vacant) = self.balances.iter().position(|&balance| balance == 0)
        {
            self.currencies[vacant] = currency;
            return &mut self.balances[vacant];
        }
        let accounts = &mut self.far.get_or_insert_default().accounts;
        let place = found.unwrap_or_else(|place| {
            accounts.insert(place, (currency, 0));
            place
        });
        &mut accounts[place].1
    }

    /// Brings the balance in a currency into the user's line, before all others there, the last of
    /// which goes where it was.
    pub(in crate::engine::risk) fn bring_near(&mut self, currency: CurrencyId) {
        let place = self.near_place(currency);
        if self.currencies[place] != currency {
            let found = far_place(self.far_accounts(), currency);
            let amount = match (&mut self.far, found) {
                (Some(far), Ok(place)) => far.accounts.remove(place).1,
                _ => 0,
            };
            let gone = (self.currencies[NEAR - 1], self.balances[NEAR - 1]);
            self.currencies[NEAR - 1] = currency;
            self.balances[NEAR - 1] = amount;
            if gone.1 != 0 {
                let accounts = &mut self.far.get_or_insert_default().accounts;
                let place = accounts.partition_point(|&(other, _)| other < gone.0);
                accounts.insert(place, gone);
            }
        }
        let place = self.near_place(currency);
        self.currencies[..=place].rotate_right(1);
        self.balances[..=place].rotate_right(1);
    }
}

fn far_place(accounts: &[(CurrencyId, i64)], currency: CurrencyId) -> Result<usize, usize> {
    accounts.binary_search_by_key(&currency, |&(currency, _)| currency)
}

// Profit and loss realised in covered futures and not paid yet; see `cover`.

impl User {
    /// Returns profit and loss that was realised in covered futures and is neither paid out nor in
    /// yet, by ascending currency. Above zero it is profit, below a debt; none is zero.
    #[must_use]
    pub fn waiting(&self) -> &[(CurrencyId, i128)] {
        self.far.as_ref().map_or(&[], |far| &far.waiting)
    }

    /// Returns the waiting amount in one currency; zero where nothing waits.
    #[must_use]
    pub fn waiting_in(&self, currency: CurrencyId) -> i128 {
        let waiting = self.waiting().iter();
        let mut found = waiting.filter(|(other, _)| *other == currency);
        found.next().map_or(0, |&(_, amount)| amount)
    }

    /// Changes what waits in a currency.
    pub(in crate::engine::risk) fn set_waiting(&mut self, currency: CurrencyId, amount: i128) {
        let far = self.far.get_or_insert_default();
        far.cover_cache.forget();
        let waiting = &mut far.waiting;
        match waiting.binary_search_by_key(&currency, |&(other, _)| other) {
            Ok(place) if amount == 0 => drop(waiting.remove(place)),
            Ok(place) => waiting[place].1 = amount,
            Err(_) if amount == 0 => {}
            Err(place) => waiting.insert(place, (currency, amount)),
        }
    }

    /// Returns whether futures have a claim on the user's money: a record there, or what waits.
    #[inline]
    pub(in crate::engine::risk) fn has_futures(&self) -> bool {
        let far = self.far.as_ref();
        far.is_some_and(|far| !far.positions.as_slice().is_empty() || !far.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::UserId;
    use crate::risk::users::UserStatus;

    proptest! {
        /// Six currencies in and out, and brought near, against a map.
        #[test]
        fn balances_are_those_of_a_map(steps in prop::collection::vec((0..6, 0_i64..3), 0..200)) {
            let mut user = User::new(UserId(1), UserStatus::Active);
            let mut model = BTreeMap::new();
            for (currency, balance) in steps {
                let currency = CurrencyId(currency - 1);
                if balance == 2 {
                    user.bring_near(currency);
                    prop_assert!(user.near_balance_mut(currency).is_some());
                    prop_assert_eq!(user.currencies[0], currency);
                } else {
                    *user.balance_mut(currency) = balance;
                    model.insert(currency, balance);
                }
                for (&currency, &balance) in &model {
                    prop_assert_eq!(user.balance(currency), balance);
                }
                let expected = model.iter().map(|(&c, &b)| (c, b)).filter(|&(_, b)| b != 0);
                prop_assert!(user.balances().eq(expected));
                prop_assert_eq!(user.has_money(), user.balances().next().is_some());
            }
        }
    }
}
