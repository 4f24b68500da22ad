//! Users and their balances.
//!
//! A user is one cache line: what an order in pairs needs of its owner takes one miss. Balances in
//! the first three currencies are kept in it, without an order; an entry of zero money may be given
//! to another currency. Whatever else there is, further currencies and records in futures, is
//! behind one pointer.

mod balances;
mod debug;
mod kept;
mod positions;
mod saved;
mod terms;
mod waiting;

use std::collections::BTreeMap;

use self::kept::Kept;
use self::positions::Positions;
use super::limits::{Retired, Terms};
use super::position::Position;
use super::settlement::Owner;
use crate::engine::index::Index;
use crate::engine::slab::Slab;
use crate::event::UserHint;
use crate::ids::{CurrencyId, SymbolId, UserId};

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
#[derive(Clone)]
#[repr(align(64))]
pub struct User {
    /// The user's id.
    pub uid: UserId,
    /// Whether the user may trade.
    pub status: UserStatus,
    /// True of a record that was removed and whose slot is free; it is not active either.
    is_gone: bool,
    /// Open orders; see [`limits`](super::limits).
    pub(super) open: u16,
    /// The transaction id of the last balance adjustment.
    pub last_transaction_id: i64,
    /// The currencies of the balances at the same places. The first that fits is meant.
    currencies: [CurrencyId; NEAR],
    balances: [i64; NEAR],
    far: Option<Box<Far>>,
}

const _: () = assert!(size_of::<User>() == 64);

/// The parts of a user that do not fit into its cache line.
#[derive(Clone, Debug, Default)]
struct Far {
    positions: Positions,
    /// By ascending currency, none of which is near; zeros may be among them.
    accounts: Vec<(CurrencyId, i64)>,
    /// By ascending currency, none of which is zero.
    waiting: Vec<(CurrencyId, i128)>,
    terms: Terms,
    kept: Kept,
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

    /// Returns the records in futures symbols, by ascending symbol. One may be empty for a moment
    /// longer than it should, after an order of no size under the reference's rules.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        self.far
            .as_ref()
            .map_or(&[], |far| far.positions.as_slice())
    }

    /// Returns the record in a futures symbol.
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
        far.kept.forget();
        far.positions.get_or_insert(symbol, new)
    }

    /// The record in futures, if there is one and nothing waits.
    pub(super) fn sole_position(&self) -> Option<&Position> {
        match self.positions() {
            [position] if self.waiting().is_empty() => Some(position),
            _ => None,
        }
    }

    /// Takes the record in a futures symbol out, if it is empty.
    pub(super) fn take_empty_position(&mut self, symbol: SymbolId) -> Option<Position> {
        let far = self.far.as_mut()?;
        let is_empty = far.positions.get(symbol)?.is_empty();
        if is_empty {
            far.kept.forget();
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

/// All users.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    users: Slab<User>,
    index: Index,
    /// The most frequent difference between users' ids and their slots, by a majority vote (Boyer
    /// and Moore), and how far ahead it is. Ids are mostly given one after another: then the slot
    /// follows from the id, and nothing is read but the user. Other ids are found through the
    /// index.
    offset: i64,
    votes: u64,
    /// Sticky: a user was removed. Until then every user ever named has a record, and every one
    /// of them is active.
    lost_any: bool,
    /// The records of removed users.
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

    /// Brings a user's balances in these currencies near, if there is such a user, and says whether
    /// they were not.
    #[cold]
    #[inline(never)]
    pub(super) fn bring_near(&mut self, uid: UserId, currencies: [CurrencyId; 2]) -> bool {
        let Some(user) = self.get_mut(uid) else {
            return false;
        };
        let is_near = |currency| user.near_balance(currency).is_some();
        if currencies.into_iter().all(is_near) {
            return false;
        }
        currencies
            .into_iter()
            .for_each(|currency| user.bring_near(currency));
        true
    }

    /// A user, if found without the index.
    #[inline(always)]
    pub(super) fn near_mut(&mut self, uid: UserId) -> Option<&mut User> {
        let guess = uid.0.wrapping_sub(self.offset) as usize;
        self.users.at_mut(guess).filter(|user| user.is(uid))
    }

    /// A user who may trade, and the slot, if found without the index.
    #[inline(always)]
    pub(super) fn near_active(&mut self, uid: UserId) -> Option<(u32, &mut User)> {
        let guess = uid.0.wrapping_sub(self.offset) as usize;
        let user = self.users.at_mut(guess)?;
        // A user who is gone is not active.
        let is_it = user.uid == uid && user.status == UserStatus::Active;
        is_it.then_some((guess as u32, user))
    }

    /// A user who may trade, and the slot.
    pub(super) fn active(&mut self, uid: UserId) -> Option<(u32, &mut User)> {
        let slot = self.slot(uid)?;
        let user = &mut self.users[slot];
        (user.status == UserStatus::Active).then_some((slot, user))
    }

    /// Returns the user in the slot of a hint.
    #[inline(always)]
    pub(super) fn hinted_mut(&mut self, hint: UserHint, uid: UserId) -> Option<&mut User> {
        let user = self.users.at_mut(hint.0 as usize)?;
        user.is(uid).then_some(user)
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

    /// Returns the user in a slot, to change it.
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
            // The record that is left there still has the id.
            self.users[slot].is_gone = true;
            self.users[slot].status = UserStatus::Suspended;
            self.users.free(slot);
            self.lost_any = true;
        }
    }

    /// Returns the records of removed users, by ascending id.
    pub(super) const fn retired(&self) -> &BTreeMap<UserId, Retired> {
        &self.retired
    }

    /// Forgets the order ids of all users without limits of their own. Cost: visits all users.
    pub(super) fn forget_ids(&mut self) {
        let forget = |terms: &mut Terms| {
            if terms.limits.is_none() {
                terms.ids = None;
            }
        };
        for slot in self.index.slots() {
            if let Some(far) = &mut self.users[slot].far {
                forget(&mut far.terms);
            }
        }
        self.retired.retain(|_, retired| {
            forget(&mut retired.terms);
            *retired != Retired::default()
        });
    }

    /// All users, in no meaningful order. Cost: visits them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &User> {
        self.index.slots().map(|slot| &self.users[slot])
    }

    /// Returns whether there are more than `most` users and removed ones.
    pub(super) fn has_more_than(&self, most: usize) -> bool {
        self.index.len() + self.retired.len() > most
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
