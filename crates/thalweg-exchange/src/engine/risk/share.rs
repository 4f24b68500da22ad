//! The risk state cut up by user, so that several stages can check and settle side by side.
//!
//! # What is whose
//! - *A user*, with balances and positions, is in the share that [`share_of`] names, and nowhere
//!   else.
//! - *Symbols*, their limits and last prices are in every share: commands that change them are
//!   executed on all shares, settlements of futures note the last prices in all.
//! - *What is remembered of a symbol's orders* for the quirks (how many lots, the largest price) is
//!   noted in the share of each order's owner. Together (sum, maximum, or) it is what one
//!   state would remember. Nobody reads it but commands that could meet a quirk, and the `calm`
//!   module, whose answers are the same without it.
//! - *The totals of a currency* (fees, D, N and R of the `ledger` module) are sums, and each share
//!   has a part of each: what came of its own users. A part means nothing by itself.
//!
//! So a check in one share gives the whole state's answer, and leaves what it would, if it reads
//! neither totals nor memories: new orders in pairs without a quirk and of users without
//! positions (nothing else lets a balance fall below zero), moves, cancels and reductions in pairs.
//! [`Risk::concern`] tells these from the others. For the others, everything before
//! must be settled in all shares and nothing behind may be under way; then [`Risk::gather`] brings
//! the totals and memories that the command could read into the share of its user, whose
//! check gives the whole state's answer.
//!
//! Settlement: each share is shown every event and books what concerns its own users; what a
//! command did to a total belongs to the share of the user for whom it was done.

use super::Risk;
use super::early::Concern;
use super::ledger::Ledger;
use crate::command::{AccountSpec, Command, Place};
use crate::ids::{CurrencyId, UserId};
use crate::result_code::ResultCode;

/// Which users a [`Risk`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    number: u32,
    of: u32,
}

/// The share, from 0 to below `of`, that a user belongs to.
#[inline]
pub(crate) fn share_of(uid: UserId, of: usize) -> usize {
    // Ids in a row, and those in steps, are spread by the high bits of a product.
    let mixed = uid.0.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((mixed * of as u64) >> 32) as usize
}

impl Share {
    /// All users.
    pub(super) const WHOLE: Self = Self { number: 0, of: 1 };
    /// No user: for a copy of what all shares have.
    const NOBODY: Self = Self {
        number: u32::MAX,
        of: 2,
    };

    /// Whether all users are of this share.
    #[inline]
    pub(super) const fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Whether a user is of this share.
    #[inline(always)]
    pub(super) fn owns(self, uid: UserId) -> bool {
        self.of == 1 || self.is_among(uid)
    }

    #[inline(never)]
    fn is_among(self, uid: UserId) -> bool {
        share_of(uid, self.of as usize) == self.number as usize
    }
}

impl Risk {
    /// Cuts the state up. Cost: copies every user, and every symbol for every share.
    pub(crate) fn split(mut self, shares: usize) -> Vec<Self> {
        let users = std::mem::take(&mut self.users).deal(shares, |uid| share_of(uid, shares));
        let part = |(number, users)| Self {
            users,
            ..self.part(number, shares)
        };
        let mut parts: Vec<Self> = users.into_iter().enumerate().map(part).collect();
        parts[0].ledger = self.ledger;
        parts
    }

    /// A part without users; the first needs the whole's ledger.
    fn part(&self, number: usize, of: usize) -> Self {
        let mut ledger = Ledger::default();
        let mut symbols = self.symbols.clone();
        if number != 0 {
            symbols.forget_orders();
            symbols.rebook(&mut ledger);
            ledger.recall_bands(&self.ledger);
        }
        Self {
            rules: self.rules,
            users: super::Users::default(),
            symbols,
            ledger,
            share: Share {
                number: number as u32,
                of: of as u32,
            },
            clock: self.clock,
            is_short_elsewhere: false,
            limits: self.limits,
            calm_limits: self.calm_limits,
            epoch: self.epoch,
        }
    }

    /// Puts a state together again. `shares` must be all that [`Self::split`] gave, none under way.
    pub(crate) fn merge(shares: Vec<Self>) -> Self {
        let mut shares = shares.into_iter();
        let mut whole = shares.next().expect("a state has one share at least");
        whole.share = Share::WHOLE;
        for mut share in shares {
            whole.users.join(&share.users);
            let currencies: Vec<CurrencyId> = share.ledger.iter().map(|total| total.id).collect();
            for id in currencies {
                whole.ledger.take_over(&mut share.ledger, id);
            }
            let rules = &whole.rules;
            whole
                .symbols
                .recall(&mut share.symbols, &mut whole.ledger, rules);
        }
        whole
    }

    /// A state without users, which knows symbols as the shares do as long as it is shown the
    /// commands that are executed on all of them, and [told](Self::learn) of quirks.
    pub(crate) fn deserted(&self) -> Self {
        let mut part = self.part(1, 2);
        part.share = Share::NOBODY;
        part
    }

    /// Brings from another share what this share's check of `command` may read.
    pub(crate) fn gather(&mut self, other: &mut Self, command: &Command) {
        match command {
            Command::PayFees { currency, .. } => {
                self.ledger.take_over(&mut other.ledger, *currency);
            }
            Command::Balance { uid, currency, .. } => {
                self.ask_who_is_short(other, *uid, *currency);
                self.ledger.take_over(&mut other.ledger, *currency);
            }
            _ => {
                let Some(id) = command.symbol() else { return };
                let (Some(slot), Some(from)) = (self.symbols.slot(id), other.symbols.slot(id))
                else {
                    return;
                };
                let symbol = self.symbols.at_mut(slot);
                symbol.recall(other.symbols.at_mut(from), &self.rules);
                let spec = symbol.spec;
                self.ledger.take_over(&mut other.ledger, spec.base_currency);
                self.ledger
                    .take_over(&mut other.ledger, spec.quote_currency);
            }
        }
    }

    /// The same for a batch of accounts.
    pub(crate) fn gather_all(&mut self, other: &mut Self) {
        let currencies: Vec<CurrencyId> = other.ledger.iter().map(|total| total.id).collect();
        for id in currencies {
            self.ledger.take_over(&mut other.ledger, id);
        }
    }

    /// Whether a batch of users of any shares, none of whom is known, can be added, as far as this
    /// share knows the totals.
    pub(crate) fn has_room_for(&self, accounts: &[AccountSpec]) -> Result<(), ResultCode> {
        self.check_accounts(accounts)
    }

    /// Learns from a share what the last command marked its symbol with.
    pub(crate) fn learn(&mut self, command: &Command, share: &Self) {
        let Some(id) = command.symbol() else { return };
        if let (Some(slot), Some(from)) = (self.symbols.slot(id), share.symbols.get(id)) {
            let mut copy = *from;
            self.symbols.at_mut(slot).recall(&mut copy, &self.rules);
        }
    }

    /// Why a command must see all shares, if it must; `has_position` says whether a user has
    /// records in futures.
    pub(crate) fn concern(
        &self,
        command: &Command,
        has_position: impl Fn(UserId) -> bool,
    ) -> Option<Concern> {
        let id = match command {
            Command::Nop => return None,
            Command::Place(Place { symbol, .. })
            | Command::Move { symbol, .. }
            | Command::Cancel { symbol, .. }
            | Command::Reduce { symbol, .. } => *symbol,
            _ => return Some(Concern::Administration),
        };
        // An unknown symbol is refused whatever the shares hold.
        let symbol = self.symbols.get(id)?;
        if symbol.is_futures() {
            return self.rules.margin_trading.then_some(Concern::Futures);
        }
        if symbol.is_odd() || self.may_be_odd(symbol, command) {
            return Some(Concern::Quirk);
        }
        match command {
            Command::Place(place) if has_position(place.uid) => Some(Concern::Futures),
            _ => None,
        }
    }
}

impl Ledger {
    /// Takes note of the currencies where another share knows of a band that was moved.
    fn recall_bands(&mut self, other: &Self) {
        for total in other.iter().filter(|total| total.is_shaky) {
            let slot = self.find_or_add(total.id);
            self.get_mut(slot).is_shaky = true;
        }
    }

    /// Takes over another share's part of a currency's totals.
    fn take_over(&mut self, other: &mut Self, id: CurrencyId) {
        let Some(from) = other.find(id) else { return };
        let to = self.find_or_add(id);
        let (from, to) = (other.get_mut(from), self.get_mut(to));
        // The whole sum is inside 64 bits, whatever its parts are.
        let move_to = |to: &mut i64, from: &mut i64| *to = to.wrapping_add(std::mem::take(from));
        move_to(&mut to.fees, &mut from.fees);
        move_to(&mut to.adjustments, &mut from.adjustments);
        move_to(&mut to.suspends, &mut from.suspends);
        to.negative += std::mem::take(&mut from.negative);
        to.reserved += std::mem::take(&mut from.reserved);
        to.room += std::mem::take(&mut from.room);
        to.pool += std::mem::take(&mut from.pool);
        to.is_shaky |= from.is_shaky;
    }
}
