//! Users and their balances.
//!
//! A user is one cache line: what an order in pairs needs of its owner takes one miss. Balances in
//! the first three currencies are kept in it, without an order; an entry of zero money may be given
//! to another currency. Whatever else there is, further currencies and records in futures, is
//! behind one pointer.

mod positions;
mod share;
mod terms;
mod waiting;

use std::collections::BTreeMap;

use self::positions::Positions;
use super::limits::{Retired, Terms};
use super::position::Position;
use super::settlement::Owner;
use crate::event::UserHint;
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::index::Index;
use crate::slab::Slab;

/// Whether a user may trade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum UserStatus {
    /// May trade (code 0).
    #[default]
    Active = 0,
    /// Was suspended, and got money since by a fill or a cancel (code 1).
    Suspended = 1,
}

/// Currencies whose balance is in the user's line.
const NEAR: usize = 3;

/// A user. Suspending removes the record; a later fill or cancel makes it again, suspended.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct User {
    /// The user's id.
    pub uid: UserId,
    /// Whether the user may trade.
    pub status: UserStatus,
    /// True of a record that was removed and whose slot is free.
    is_gone: bool,
    /// Open orders; see [`limits`](super::limits).
    pub(super) open: u16,
    /// The transaction id of the last balance adjustment.
    pub last_transaction_id: i64,
    /// What the balances of the same places are in. The first that fits is meant.
    currencies: [CurrencyId; NEAR],
    balances: [i64; NEAR],
    far: Option<Box<Far>>,
}

const _: () = assert!(size_of::<User>() == 64);

/// What does not fit into a user's line.
#[derive(Clone, Debug, Default)]
struct Far {
    positions: Positions,
    /// By ascending currency, none of which is near; zeros may be among them.
    accounts: Vec<(CurrencyId, i64)>,
    /// By ascending currency, none of which is zero.
    waiting: Vec<(CurrencyId, i128)>,
    terms: Terms,
}

impl PartialEq for User {
    /// Where a balance is kept makes no difference.
    fn eq(&self, other: &Self) -> bool {
        (self.uid, self.status) == (other.uid, other.status)
            && self.last_transaction_id == other.last_transaction_id
            && self.balances().eq(other.balances())
            && self.positions() == other.positions()
            && self.waiting() == other.waiting()
            && self.open_orders() == other.open_orders()
            && self.limits() == other.limits()
            && self.ids() == other.ids()
    }
}

impl Eq for User {}

impl User {
    const fn new(uid: UserId, status: UserStatus) -> Self {
        Self {
            uid,
            status,
            is_gone: false,
            open: 0,
            last_transaction_id: 0,
            currencies: [CurrencyId(0); NEAR],
            balances: [0; NEAR],
            far: None,
        }
    }

    /// The balance in a currency, in its smallest unit; zero where there was never any.
    #[must_use]
    pub fn balance(&self, currency: CurrencyId) -> i64 {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            return self.balances[place];
        }
        let accounts = self.far_accounts();
        far_place(accounts, currency).map_or(0, |place| accounts[place].1)
    }

    /// The balances that are not zero, by ascending currency. Cost: sorts them.
    pub fn balances(&self) -> impl Iterator<Item = (CurrencyId, i64)> + '_ {
        let mut balances: Vec<_> = self.accounts().collect();
        balances.sort_unstable();
        balances.into_iter()
    }

    /// The balances that are not zero, in no meaningful order.
    fn accounts(&self) -> impl Iterator<Item = (CurrencyId, i64)> + '_ {
        let near = self.currencies.iter().zip(&self.balances);
        near.map(|(&currency, &balance)| (currency, balance))
            .chain(self.far_accounts().iter().copied())
            .filter(|&(_, balance)| balance != 0)
    }

    /// Whether there is a balance that is not zero, or profit or a debt that waits.
    pub(super) fn has_money(&self) -> bool {
        self.accounts().next().is_some() || !self.waiting().is_empty()
    }

    fn far_accounts(&self) -> &[(CurrencyId, i64)] {
        self.far.as_ref().map_or(&[], |far| &far.accounts)
    }

    /// Where a currency is if it is near. Without branches: which one of its currencies a user
    /// needs next cannot be foreseen.
    #[inline]
    fn near_place(&self, currency: CurrencyId) -> usize {
        let [first, second, _] = self.currencies;
        let place = if second == currency { 1 } else { 2 };
        if first == currency { 0 } else { place }
    }

    /// The balance in a currency if it is near, to change it.
    #[inline]
    pub(super) fn near_balance_mut(&mut self, currency: CurrencyId) -> Option<&mut i64> {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            Some(&mut self.balances[place])
        } else {
            None
        }
    }

    /// The balance in a currency, to change it; made where it is missing.
    #[inline]
    pub(super) fn balance_mut(&mut self, currency: CurrencyId) -> &mut i64 {
        let place = self.near_place(currency);
        if self.currencies[place] == currency {
            &mut self.balances[place]
        } else {
            self.other_balance_mut(currency)
        }
    }

    /// The same for a currency that is not near.
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

    /// The records in futures symbols, by ascending symbol. One may be empty for a moment longer
    /// than it should, after an order of no size under the reference's rules.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        self.far
            .as_ref()
            .map_or(&[], |far| far.positions.as_slice())
    }

    /// The record in a futures symbol.
    #[must_use]
    #[inline]
    pub fn position(&self, symbol: SymbolId) -> Option<&Position> {
        self.far.as_ref()?.positions.get(symbol)
    }

    /// The record in a futures symbol, made by `new` where it is missing.
    #[inline(always)]
    pub(super) fn position_or(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        let far = self.far.get_or_insert_default();
        far.positions.get_or_insert(symbol, new)
    }

    /// Takes the record in a futures symbol out, if it is empty.
    pub(super) fn take_empty_position(&mut self, symbol: SymbolId) -> Option<Position> {
        let far = self.far.as_mut()?;
        let is_empty = far.positions.get(symbol)?.is_empty();
        if is_empty {
            far.positions.remove(symbol)
        } else {
            None
        }
    }

    #[inline]
    fn is(&self, uid: UserId) -> bool {
        self.uid == uid && !self.is_gone
    }
}

fn far_place(accounts: &[(CurrencyId, i64)], currency: CurrencyId) -> Result<usize, usize> {
    accounts.binary_search_by_key(&currency, |&(currency, _)| currency)
}

/// All users.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    users: Slab<User>,
    index: Index,
    /// What most users' ids have beyond their slots, by a majority vote (Boyer and Moore), and how
    /// far ahead it is. Ids are mostly given one after another: then the slot follows from the id,
    /// and nothing is read but the user. Other ids are found through the index.
    offset: i64,
    votes: u64,
    /// Sticky: a user was removed. Until then every user ever named has a record, and every one
    /// of them is active.
    lost_any: bool,
    /// What is kept of removed users.
    retired: BTreeMap<UserId, Retired>,
}

impl Users {
    /// The slot of a user.
    #[inline]
    pub(super) fn slot(&self, uid: UserId) -> Option<u32> {
        self.near(uid).or_else(|| self.find(uid))
    }

    /// The slot of a user, if it is found without the index.
    #[inline]
    pub(super) fn near(&self, uid: UserId) -> Option<u32> {
        let guess = uid.0.wrapping_sub(self.offset) as usize;
        let user = self.users.get(guess)?;
        user.is(uid).then_some(guess as u32)
    }

    /// The slot of a user, where it was once known to be, or found without the index.
    #[inline]
    pub(super) fn near_hint(&self, hint: UserHint, uid: UserId) -> Option<u32> {
        match self.users.get(hint.0 as usize) {
            Some(user) if user.is(uid) => Some(hint.0),
            _ => self.near(uid),
        }
    }

    /// True where users are too many for the nearer caches, so that asking ahead pays.
    pub(super) const fn is_large(&self) -> bool {
        self.index.is_large()
    }

    /// Asks for a user's line, which will be needed soon, if the slot follows from the id.
    #[inline]
    pub(super) fn fetch(&self, uid: UserId) {
        if let Some(user) = self.users.get(uid.0.wrapping_sub(self.offset) as usize) {
            thalweg::ring::prefetch(user);
        }
    }

    #[inline(never)]
    fn find(&self, uid: UserId) -> Option<u32> {
        self.index.find(uid.0, |slot| self.users[slot].uid.0)
    }

    pub(super) fn get(&self, uid: UserId) -> Option<&User> {
        self.slot(uid).map(|slot| &self.users[slot])
    }

    pub(super) fn get_mut(&mut self, uid: UserId) -> Option<&mut User> {
        self.slot(uid).map(|slot| &mut self.users[slot])
    }

    /// The user in a slot that [`Self::slot`] gave.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &User {
        &self.users[slot]
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut User {
        &mut self.users[slot]
    }

    /// Whether a user was ever removed.
    #[inline]
    pub(super) const fn lost_any(&self) -> bool {
        self.lost_any
    }

    /// Adds a user who is not here yet, and says where.
    pub(super) fn add(&mut self, uid: UserId, status: UserStatus) -> u32 {
        let mut user = User::new(uid, status);
        if self.lost_any
            && let Some(retired) = self.retired.remove(&uid)
        {
            user.take_up(retired);
        }
        let slot = self.users.insert(user);
        self.index.insert(uid.0, slot);
        let offset = uid.0.wrapping_sub(slot.into());
        if offset == self.offset || self.votes == 0 {
            self.offset = offset;
            self.votes += 1;
        } else {
            self.votes -= 1;
        }
        slot
    }

    /// The user to whom a settlement belongs: made again, suspended, where the record was removed.
    #[inline]
    pub(super) fn settled(&mut self, owner: Owner) -> &mut User {
        let slot = self.settled_slot(owner);
        &mut self.users[slot]
    }

    /// The slot of the same.
    #[inline]
    pub(super) fn settled_slot(&mut self, (hint, uid): Owner) -> u32 {
        self.near_hint(hint, uid)
            .or_else(|| self.find(uid))
            .unwrap_or_else(|| self.add_suspended(uid))
    }

    #[cold]
    fn add_suspended(&mut self, uid: UserId) -> u32 {
        self.add(uid, UserStatus::Suspended)
    }

    /// Removes a user; `keep` the last transaction id for the day when the user comes back, as
    /// limits and the number of open orders are.
    pub(super) fn remove(&mut self, uid: UserId, keep: bool) {
        let users = &self.users;
        if let Some(slot) = self.index.remove(uid.0, |slot| users[slot].uid.0) {
            let retired = self.users[slot].retire(keep);
            if retired != Retired::default() {
                self.retired.insert(uid, retired);
            }
            // What is left there still has the id.
            self.users[slot].is_gone = true;
            self.users.free(slot);
            self.lost_any = true;
        }
    }

    /// What is kept of removed users, by ascending id.
    pub(super) const fn retired(&self) -> &BTreeMap<UserId, Retired> {
        &self.retired
    }

    /// All users, in no meaningful order. Cost: visits them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &User> {
        self.index.slots().map(|slot| &self.users[slot])
    }

    /// Those with a record in a futures symbol, in no meaningful order. Cost: visits every user.
    pub(super) fn with_position(&self, symbol: SymbolId) -> impl Iterator<Item = &User> {
        self.iter()
            .filter(move |user| user.position(symbol).is_some())
    }

    pub(super) fn sorted(&self) -> Vec<&User> {
        let mut users: Vec<&User> = self.iter().collect();
        users.sort_unstable_by_key(|user| user.uid);
        users
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Six currencies in and out, against a map.
        #[test]
        fn balances_are_those_of_a_map(steps in prop::collection::vec((0..6, 0_i64..3), 0..200)) {
            let mut user = User::new(UserId(1), UserStatus::Active);
            let mut model = BTreeMap::new();
            for (currency, balance) in steps {
                let currency = CurrencyId(currency - 1);
                *user.balance_mut(currency) = balance;
                model.insert(currency, balance);
                for (&currency, &balance) in &model {
                    prop_assert_eq!(user.balance(currency), balance);
                }
                let expected = model.iter().map(|(&c, &b)| (c, b)).filter(|&(_, b)| b != 0);
                prop_assert!(user.balances().eq(expected));
                prop_assert_eq!(user.has_money(), user.balances().next().is_some());
            }
        }

        /// Users in line and out of it, removed and added again, with right and wrong hints.
        #[test]
        fn users_are_found(
            steps in prop::collection::vec((any::<bool>(), 0_i64..40, 0_u32..50), 0..300),
        ) {
            let mut users = Users::default();
            let mut model = BTreeMap::new();
            for (add, number, hint) in steps {
                let uid = UserId(if number < 30 { number + 7 } else { number << 40 });
                if add && !model.contains_key(&uid) {
                    model.insert(uid, users.add(uid, UserStatus::Active));
                } else if !add {
                    users.remove(uid, false);
                    model.remove(&uid);
                }
                for number in (7..37).chain((30..40).map(|n| n << 40)) {
                    let uid = UserId(number);
                    prop_assert_eq!(users.slot(uid), model.get(&uid).copied());
                    let found = users.near_hint(UserHint(hint), uid);
                    let found = found.or_else(|| users.find(uid));
                    prop_assert_eq!(found, model.get(&uid).copied());
                }
            }
        }
    }
}
