//! Users and their balances.

use super::position::Position;
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

/// A user. Suspending removes the record; a later fill or cancel makes it again, suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub uid: UserId,
    /// Whether the user may trade.
    pub status: UserStatus,
    /// The transaction id of the last balance adjustment.
    pub last_transaction_id: i64,
    /// By ascending currency; zeros may be among them.
    accounts: Vec<(CurrencyId, i64)>,
    /// By ascending symbol.
    positions: Vec<Position>,
}

impl User {
    const fn new(uid: UserId, status: UserStatus) -> Self {
        Self {
            uid,
            status,
            last_transaction_id: 0,
            accounts: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// The balance in a currency, in its smallest unit; zero where there was never any.
    #[must_use]
    pub fn balance(&self, currency: CurrencyId) -> i64 {
        self.place(currency)
            .map_or(0, |place| self.accounts[place].1)
    }

    /// The balances that are not zero, by ascending currency.
    pub fn balances(&self) -> impl Iterator<Item = (CurrencyId, i64)> + '_ {
        self.accounts
            .iter()
            .copied()
            .filter(|&(_, balance)| balance != 0)
    }

    /// The balance in a currency, to change it; made where it is missing.
    pub(super) fn balance_mut(&mut self, currency: CurrencyId) -> &mut i64 {
        let place = self.place(currency).unwrap_or_else(|place| {
            self.accounts.insert(place, (currency, 0));
            place
        });
        &mut self.accounts[place].1
    }

    /// The records in futures symbols, by ascending symbol. One may be empty for a moment longer
    /// than it should, after an order of no size under the reference's rules.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// The record in a futures symbol.
    #[must_use]
    pub fn position(&self, symbol: SymbolId) -> Option<&Position> {
        self.position_place(symbol)
            .ok()
            .map(|place| &self.positions[place])
    }

    /// The place of the record in a futures symbol, made by `new` where it is missing.
    pub(super) fn position_or(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        let place = self.position_place(symbol).unwrap_or_else(|place| {
            self.positions.insert(place, new());
            place
        });
        &mut self.positions[place]
    }

    /// Takes the record in a futures symbol out, if it is empty.
    pub(super) fn take_empty_position(&mut self, symbol: SymbolId) -> Option<Position> {
        let place = self.position_place(symbol).ok()?;
        let is_empty = self.positions[place].is_empty();
        is_empty.then(|| self.positions.remove(place))
    }

    fn position_place(&self, symbol: SymbolId) -> Result<usize, usize> {
        self.positions
            .binary_search_by_key(&symbol, |position| position.symbol)
    }

    fn place(&self, currency: CurrencyId) -> Result<usize, usize> {
        self.accounts
            .binary_search_by_key(&currency, |&(currency, _)| currency)
    }
}

/// How many users are found without the index.
const GUESSES: usize = 4096;
const NO_GUESS: u32 = u32::MAX;

/// All users.
#[derive(Clone, Debug)]
pub(super) struct Users {
    users: Slab<User>,
    index: Index,
    /// The slot of a user whose id has these low bits: the one added last. Spares the keyed hash.
    /// Ids that were chosen to meet here are found as they would be without it.
    guesses: Box<[u32]>,
}

impl Default for Users {
    fn default() -> Self {
        Self {
            users: Slab::default(),
            index: Index::default(),
            guesses: vec![NO_GUESS; GUESSES].into(),
        }
    }
}

const fn guess_of(uid: UserId) -> usize {
    uid.0.cast_unsigned() as usize % GUESSES
}

impl Users {
    #[inline]
    pub(super) fn slot(&self, uid: UserId) -> Option<u32> {
        let guess = self.guesses[guess_of(uid)];
        if guess != NO_GUESS && self.users[guess].uid == uid {
            return Some(guess);
        }
        self.index.find(uid.0, |slot| self.users[slot].uid.0)
    }

    pub(super) fn get(&self, uid: UserId) -> Option<&User> {
        self.slot(uid).map(|slot| &self.users[slot])
    }

    pub(super) fn get_mut(&mut self, uid: UserId) -> Option<&mut User> {
        self.slot(uid).map(|slot| &mut self.users[slot])
    }

    /// Adds a user who is not here yet.
    pub(super) fn add(&mut self, uid: UserId, status: UserStatus) -> &mut User {
        let slot = self.users.insert(User::new(uid, status));
        self.index.insert(uid.0, slot);
        self.guesses[guess_of(uid)] = slot;
        &mut self.users[slot]
    }

    /// The user to whom a settlement belongs: made again, suspended, where the record was removed.
    pub(super) fn settled(&mut self, uid: UserId) -> &mut User {
        match self.slot(uid) {
            Some(slot) => &mut self.users[slot],
            None => self.add(uid, UserStatus::Suspended),
        }
    }

    pub(super) fn remove(&mut self, uid: UserId) {
        let users = &self.users;
        if let Some(slot) = self.index.remove(uid.0, |slot| users[slot].uid.0) {
            self.users.free(slot);
            // The record that is left there still has the id.
            let guess = &mut self.guesses[guess_of(uid)];
            if *guess == slot {
                *guess = NO_GUESS;
            }
        }
    }

    /// Those with a record in a futures symbol, in no meaningful order. Cost: visits every user.
    pub(super) fn with_position(&self, symbol: SymbolId) -> impl Iterator<Item = &User> {
        let users = self.index.slots().map(|slot| &self.users[slot]);
        users.filter(move |user| user.position(symbol).is_some())
    }

    pub(super) fn sorted(&self) -> Vec<&User> {
        let mut users: Vec<&User> = self.index.slots().map(|slot| &self.users[slot]).collect();
        users.sort_unstable_by_key(|user| user.uid);
        users
    }
}
