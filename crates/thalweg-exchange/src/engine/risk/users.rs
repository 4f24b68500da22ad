//! Users and their balances.
//!
//! A user is one cache line: what an order in pairs needs of its owner takes one miss. Balances in
//! the first three currencies are kept in it, without an order; an entry of zero money may be given
//! to another currency. Whatever else there is, further currencies and records in futures, is
//! behind one pointer.

mod balances;

use std::collections::BTreeMap;
use std::fmt;

use super::positions::{Position, Positions};
use crate::command::UserLimits;
use crate::engine::index::Index;
use crate::engine::slab::Slab;
use crate::event::UserHint;
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

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
    cover_cache: CoverCache,
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

    /// Returns the record in a futures symbol, made by `new` where it is missing.
    #[inline(always)]
    pub(super) fn position_or(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        let far = self.far.get_or_insert_default();
        far.cover_cache.forget();
        far.positions.get_or_insert(symbol, new)
    }

    /// Returns the record in futures, if there is one and nothing waits.
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
            far.cover_cache.forget();
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
    /// Returns the slot of a user.
    #[inline]
    pub(super) fn slot(&self, uid: UserId) -> Option<u32> {
        self.near(uid).or_else(|| self.find(uid))
    }

    /// Returns the slot of a user, if it is found without the index.
    #[inline]
    pub(super) fn near(&self, uid: UserId) -> Option<u32> {
        let guess = uid.0.wrapping_sub(self.offset) as usize;
        let user = self.users.get(guess)?;
        user.is(uid).then_some(guess as u32)
    }

    /// Returns the slot of a user, where it was once known to be, or found without the index.
    #[inline]
    fn near_hint(&self, hint: UserHint, uid: UserId) -> Option<u32> {
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

    /// Returns a user, if found without the index.
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

    /// Returns true where users are too many for the nearer caches, so that prefetching pays.
    pub(super) const fn is_large(&self) -> bool {
        self.index.is_large()
    }

    /// Prefetches a user's line if the slot follows from the id.
    #[inline]
    pub(super) fn prefetch(&self, uid: UserId) {
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

    /// Returns the user in a slot that [`Self::slot`] gave.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &User {
        &self.users[slot]
    }

    /// Returns the user in a slot, to change it.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut User {
        &mut self.users[slot]
    }

    /// Returns whether a user was ever removed.
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

    /// Returns the user to whom a settlement belongs: made again, suspended, where the record was
    /// removed.
    #[inline]
    pub(super) fn settled(&mut self, owner: Owner) -> &mut User {
        let slot = self.settled_slot(owner);
        &mut self.users[slot]
    }

    /// Returns the slot of the user whom [`settled`](Self::settled) returns.
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

    /// Returns all users, in no meaningful order. Cost: visits them.
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

/// A user, and where the record may be.
pub(super) type Owner = (UserHint, UserId);

// The records of the orders of a user; see `limits`.

impl User {
    /// Returns the records of the user's orders beyond their number.
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.far.as_ref().map(|far| &far.terms)
    }

    /// Returns them, to change them.
    pub(super) fn terms_mut(&mut self) -> &mut Terms {
        let far = self.far.get_or_insert_default();
        far.cover_cache.forget();
        &mut far.terms
    }

    /// Takes them from a user who goes.
    pub(super) fn take_terms(&mut self) -> Terms {
        let far = self.far.as_mut();
        far.map_or_else(Terms::default, |far| std::mem::take(&mut far.terms))
    }

    pub(super) fn ids(&self) -> Option<&Ids> {
        self.terms()?.ids.as_deref()
    }

    #[inline]
    pub(super) fn has_limits(&self) -> bool {
        self.far
            .as_ref()
            .is_some_and(|far| far.terms.limits.is_some())
    }
}

/// The record of a user who was removed, until the user comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    /// Zero where it is not kept.
    pub(super) last_transaction_id: i64,
    pub(super) terms: Terms,
}

/// The records of a user's orders beyond their number, where it has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) limits: Option<UserLimits>,
    pub(super) ids: Option<Box<Ids>>,
    /// Open orders, where they are many, or their owner was removed.
    pub(super) open_orders: u64,
}

// The part of a user's balance that must stay for futures, kept from one order to the next.
//
// It depends on the user's records, on waiting profit or loss, and on the bands and terms of the
// records' symbols. Code that may change a record or a waiting amount forgets it; a band that
// moves starts a new *epoch*, and what was kept in another one does not count. Users with limits
// of their own have nothing kept, since each of their orders takes the slow path.

/// The kept amounts: for each side of an order, of the currency that it pays with.
#[derive(Clone, Copy, Default)]
pub(super) struct CoverCache {
    /// When it was found; zero is before all epochs.
    epochs: [u64; 2],
    currencies: [CurrencyId; 2],
    locked: [i64; 2],
}

impl fmt::Debug for CoverCache {
    /// It says nothing that the rest of the user does not, and is there or not.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CoverCache")
    }
}

impl CoverCache {
    #[inline(always)]
    pub(super) const fn forget(&mut self) {
        self.epochs = [0; 2];
    }
}

impl User {
    /// Returns true where there is nothing of the user but the near balances, no futures and no
    /// limits.
    #[inline(always)]
    pub(super) const fn is_plain(&self) -> bool {
        self.far.is_none()
    }

    /// Returns how much of the balance in the currency of a side must stay for futures, if that is
    /// kept.
    #[inline(always)]
    pub(super) fn cached_cover(
        &self,
        (side, currency, epoch): (usize, CurrencyId, u64),
    ) -> Option<i64> {
        let CoverCache {
            epochs,
            currencies,
            locked,
        } = &self.far.as_ref()?.cover_cache;
        (epochs[side] == epoch && currencies[side] == currency).then_some(locked[side])
    }

    /// Keeps it. The user has no limits of his own.
    pub(super) fn cache_cover(
        &mut self,
        (side, currency, epoch): (usize, CurrencyId, u64),
        locked: i64,
    ) {
        if let Some(far) = &mut self.far {
            far.cover_cache.epochs[side] = epoch;
            far.cover_cache.currencies[side] = currency;
            far.cover_cache.locked[side] = locked;
        }
    }
}

impl fmt::Debug for User {
    /// Everything but where a balance is kept, as with `==`. Settlement from events finds makers in
    /// another way than settlement while trading, and so may keep other balances near.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let far = self.far.as_deref().cloned().unwrap_or_default();
        f.debug_struct("User")
            .field("uid", &self.uid)
            .field("status", &self.status)
            .field("is_gone", &self.is_gone)
            .field("open", &self.open)
            .field("last_transaction_id", &self.last_transaction_id)
            .field("balances", &self.balances().collect::<Vec<_>>())
            .field("positions", &far.positions)
            .field("waiting", &far.waiting)
            .field("terms", &far.terms)
            .field("kept", &far.cover_cache)
            .finish()
    }
}

// Users made again from what a state snapshot has of them; see `snapshot`.

impl Users {
    /// Adds a user who is not here yet, and was not removed either.
    pub(super) fn add_saved(&mut self, uid: UserId, status: UserStatus) -> u32 {
        // A user is suspended only if it was removed once.
        self.lost_any |= status == UserStatus::Suspended;
        self.add(uid, status)
    }

    /// Notes what is kept of a user who was removed.
    pub(super) fn add_retired(&mut self, uid: UserId, retired: Retired) {
        self.lost_any = true;
        self.retired.insert(uid, retired);
    }

    /// Counts an open order of a removed user; false where nothing is kept of such a user.
    pub(super) fn note_retired_order(&mut self, uid: UserId) -> bool {
        let retired = self.retired.get_mut(&uid);
        retired.is_some_and(|retired| {
            retired.terms.open_orders += 1;
            true
        })
    }
}

// Which order ids a user has used, as far as a window reaches: the anti-replay window of IPsec
// (RFC 4303, 3.4.3), kept as a ring of bits (RFC 6479), so that nothing is ever moved.

/// How many ids up to the highest one that was used are known one by one.
pub const ID_WINDOW: u64 = 1024;

const BITS: u64 = u64::BITS as u64;
const WORDS: usize = (ID_WINDOW / BITS) as usize;

/// The ids of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    highest: i64,
    /// By the lowest bits of the id; of ids outside the window none is set.
    used: [u64; WORDS],
}

/// Returns where the bit of an id is.
const fn place(id: i64) -> (usize, u64) {
    let low = id.cast_unsigned() % ID_WINDOW;
    ((low / BITS) as usize, 1 << (low % BITS))
}

impl Ids {
    pub(super) const fn new(OrderId(first): OrderId) -> Self {
        let mut used = [0; WORDS];
        let (word, bit) = place(first);
        used[word] |= bit;
        let highest = first;
        Self { highest, used }
    }

    /// Returns the ids as [`Self::parts`] gave them; `None` where they were none: the highest one
    /// is used, and no bit stands for an id below all numbers.
    pub(crate) fn from_parts(highest: i64, used: [u64; WORDS]) -> Option<Self> {
        let ids = Self { highest, used };
        let steps_down = highest.abs_diff(i64::MIN);
        let mut below = steps_down.saturating_add(1)..ID_WINDOW;
        let is_none = below.all(|back| !ids.has(highest.wrapping_sub_unsigned(back)));
        (ids.has(highest) && is_none).then_some(ids)
    }

    /// Returns the highest id, and the bits of the window: that of an id is at its lowest ten bits.
    pub(crate) const fn parts(&self) -> (i64, &[u64; WORDS]) {
        (self.highest, &self.used)
    }

    const fn has(&self, id: i64) -> bool {
        let (word, bit) = place(id);
        self.used[word] & bit != 0
    }

    /// Refuses an id that was used, or that is too old to know.
    pub(super) const fn check(&self, OrderId(id): OrderId) -> Result<(), ResultCode> {
        if id > self.highest {
            return Ok(());
        }
        if self.highest.abs_diff(id) >= ID_WINDOW {
            return Err(ResultCode::RiskOrderIdTooOld);
        }
        if self.has(id) {
            Err(ResultCode::RiskOrderIdUsed)
        } else {
            Ok(())
        }
    }

    /// Notes an id that passed the check. Cost: a step for each id that is left out, up to the
    /// width of the window.
    pub(super) fn note(&mut self, OrderId(id): OrderId) {
        if id > self.highest {
            if id.abs_diff(self.highest) >= ID_WINDOW {
                self.used = [0; WORDS];
            } else {
                for skipped in self.highest + 1..id {
                    let (word, bit) = place(skipped);
                    self.used[word] &= !bit;
                }
            }
            self.highest = id;
        }
        let (word, bit) = place(id);
        self.used[word] |= bit;
    }

    /// Returns the highest id, and which of those below are used: bit 0 is the highest itself.
    pub(super) fn highest_and_used(&self) -> (i64, String) {
        let is_used = |back: u64| self.has(self.highest.wrapping_sub_unsigned(back));
        let digit =
            |at: u64| (0..4).fold(0, |sum, bit| sum | u32::from(is_used(at * 4 + bit)) << bit);
        let digits = (0..ID_WINDOW / 4).map(digit);
        let text: String = digits
            .filter_map(|digit| char::from_digit(digit, 16))
            .collect();
        (self.highest, text.trim_end_matches('0').to_owned())
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

#[cfg(test)]
mod kept_tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::command::{
        AccountSpec, Action, Command, OrderType, Place, SymbolSpec, SymbolType, UserLimits,
    };
    use crate::ids::{OrderId, SymbolId, UserId};
    use crate::risk::Risk;
    use crate::risk::cover::locked;
    use crate::{Events, State, apply};

    const PAIR: i32 = 1;
    const USERS: i64 = 3;

    /// A fault after each command.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        None,
        /// The amounts that were kept of a user stay, whatever the command did.
        Remembers,
        /// A band that moves starts no epoch.
        SameEpoch,
    }

    fn setup() -> State {
        let (base, quote) = (CurrencyId(1), CurrencyId(2));
        let pair = SymbolSpec {
            taker_fee: 1,
            margin_buy: 20,
            margin_sell: 30,
            ..SymbolSpec::pair(SymbolId(PAIR), base, quote)
        };
        let futures = |id, quote_currency| SymbolSpec {
            id: SymbolId(id),
            symbol_type: SymbolType::Futures,
            quote_currency,
            ..pair
        };
        let account = |uid| AccountSpec::new(UserId(uid), vec![(base, 2_000), (quote, 2_000)]);
        let accounts: Vec<_> = (1..=USERS).map(account).collect();
        let band = |symbol| Command::set_price_band(SymbolId(symbol), 10, 30);
        let mut state = State::default();
        for command in [
            Command::AddSymbols([pair, futures(2, quote), futures(3, base)].into()),
            Command::AddAccounts(accounts.into()),
            band(2),
            band(3),
        ] {
            apply(&mut state, &command, &mut Events::new());
        }
        state
    }

    fn place() -> impl Strategy<Value = Command> {
        let terms = (1..=USERS, PAIR..=3, 0_i64..12, any::<bool>());
        (terms, 10_i64..30, 1_i64..6, any::<bool>()).prop_map(
            |((uid, symbol, id, bid), price, size, rests)| {
                Command::Place(
                    Place::limit(
                        (UserId(uid), OrderId(id)),
                        SymbolId(symbol),
                        if bid { Action::Bid } else { Action::Ask },
                        (price, size),
                    )
                    .with_type(if rests {
                        OrderType::Gtc
                    } else {
                        OrderType::Ioc
                    }),
                )
            },
        )
    }

    fn command() -> impl Strategy<Value = Command> {
        let order = (1..=USERS, PAIR..=3, 0_i64..12);
        let order = order.prop_map(|(u, s, id)| (UserId(u), SymbolId(s), OrderId(id)));
        let limits = UserLimits::NONE.with_order_size(3);
        prop_oneof![
            12 => place(),
            1 => (order.clone(), 10_i64..30).prop_map(|((uid, symbol, order_id), price)| {
                Command::Move { uid, symbol, order_id, price }
            }),
            1 => (order.clone(), 1_i64..4).prop_map(|((uid, symbol, order_id), by)| {
                Command::Reduce { uid, symbol, order_id, by }
            }),
            1 => (2..=3, 5_i64..15, 20_i64..40).prop_map(|(symbol, low, high)| {
                Command::SetPriceBand { symbol: SymbolId(symbol), low, high }
            }),
            1 => (order.clone(), 1..=2, -200_i64..400, any::<i64>()).prop_map(
                |((uid, ..), currency, amount, transaction_id)| {
                    Command::deposit(uid, CurrencyId(currency), amount, transaction_id)
                }
            ),
            1 => (order, prop::option::of(Just(limits)), any::<bool>()).prop_map(
                |((uid, symbol, _), limits, cancels)| if cancels {
                    Command::CancelAll { uid: Some(uid), symbol: Some(symbol) }
                } else {
                    Command::SetLimits { uid: Some(uid), limits }
                }
            ),
        ]
    }

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        prop::collection::vec(command(), 0..80)
    }

    /// Returns how much is kept, and how much of that is wrong.
    fn compare(risk: &Risk) -> [usize; 2] {
        let mut found = [0; 2];
        for user in risk.users.iter() {
            for side in 0..2 {
                let currency = user
                    .far
                    .as_ref()
                    .map(|far| far.cover_cache.currencies[side]);
                let key = (side, currency.unwrap_or_default(), risk.epoch);
                if let Some(kept) = user.cached_cover(key) {
                    let is_right =
                        i128::from(kept) == locked(user, (&risk.symbols, &risk.rules), key.1);
                    found[0] += usize::from(kept > 0);
                    found[1] += usize::from(!is_right || user.has_limits());
                }
            }
        }
        found
    }

    /// Checks the kept amounts after each command, all together, as long as nothing is wrong.
    fn run(commands: &[Command], fault: Fault) -> [usize; 2] {
        let mut state = setup();
        let mut sum = [0; 2];
        for command in commands {
            let epoch = state.risk.epoch;
            let kept = |uid| {
                state
                    .risk
                    .users
                    .get(UserId(uid))?
                    .far
                    .as_ref()
                    .map(|far| far.cover_cache)
            };
            let before: Vec<_> = (1..=USERS).map(kept).collect();
            apply(&mut state, command, &mut Events::new());
            for (uid, kept) in (1..).zip(before) {
                let user = state.risk.users.get_mut(UserId(uid));
                let now = user.and_then(|user| Some(&mut user.far.as_mut()?.cover_cache));
                if let (Some(kept), Some(now), Fault::Remembers) = (kept, now, fault)
                    && now.epochs == [0; 2]
                {
                    *now = kept;
                }
            }
            if fault == Fault::SameEpoch {
                state.risk.epoch = epoch;
            }
            let found = compare(&state.risk);
            sum = [sum[0] + found[0], sum[1] + found[1]];
            if found[1] > 0 {
                break;
            }
        }
        sum
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_must_stay(commands in commands()) {
            prop_assert_eq!(run(&commands, Fault::None)[1], 0);
        }
    }

    /// The property above is one that can fail, of the faults that it is there for.
    #[test]
    fn what_is_kept_too_long_is_found() {
        let mut runner = TestRunner::deterministic();
        let mut cases = Vec::new();
        for _ in 0..300 {
            cases.push(commands().new_tree(&mut runner).unwrap().current());
        }
        let all = |fault| {
            let sums = cases.iter().map(|commands| run(commands, fault));
            sums.fold([0; 2], |sum, found| [sum[0] + found[0], sum[1] + found[1]])
        };
        let [kept, wrong] = all(Fault::None);
        assert!(kept > 1_000 && wrong == 0, "{kept} kept, {wrong} wrong");
        for fault in [Fault::Remembers, Fault::SameEpoch] {
            let [_, wrong] = all(fault);
            assert!(wrong > 0, "{fault:?}: {wrong} found");
        }
    }
}

#[cfg(test)]
mod ids_tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_counts_once_and_old_ones_never(
            start in prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX - 5_000), any::<i64>()],
            steps in prop::collection::vec(
                prop_oneof![4 => -40..60_i64, 1 => -1_100..-900_i64, 1 => 900..1_100_i64,
                    1 => 2_000..9_000_i64],
                1..200,
            ),
        ) {
            let mut ids = Ids::new(OrderId(start));
            let mut used = BTreeSet::from([start]);
            let mut highest = start;
            for step in steps {
                let id = highest.saturating_add(step);
                let expected = if id <= highest && highest.abs_diff(id) >= ID_WINDOW {
                    Err(ResultCode::RiskOrderIdTooOld)
                } else if used.contains(&id) {
                    Err(ResultCode::RiskOrderIdUsed)
                } else {
                    Ok(())
                };
                prop_assert_eq!(ids.check(OrderId(id)), expected, "{} after {}", id, highest);
                if expected.is_ok() {
                    ids.note(OrderId(id));
                    used.insert(id);
                    highest = highest.max(id);
                }
            }
        }
    }

    #[test]
    fn used_ids_are_listed_from_the_highest_on() {
        let mut ids = Ids::new(OrderId(70));
        ids.note(OrderId(68));
        ids.note(OrderId(66));
        assert_eq!(ids.highest_and_used(), (70, "51".to_owned()));
        ids.note(OrderId(5_000));
        assert_eq!(ids.highest_and_used(), (5_000, "1".to_owned()));
    }
}
