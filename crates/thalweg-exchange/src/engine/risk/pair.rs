//! The fast path of a currency pair: its symbol and users are found once, and each check is made
//! once.
//!
//! Everything here either is done whole, or is left to the slow path and changes nothing.

use super::Risk;
use super::cover::locked;
use super::limits::FastPathLimits;
use super::symbol::{Symbol, Symbols};
use super::user::{User, Users};
use crate::command::Place;
use crate::event::{Event, Events, Reduced, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::rules::Rules;

/// The conditions that a symbol's new orders must meet.
#[derive(Clone, Copy)]
struct Terms<'r> {
    symbol: &'r Symbol,
    symbols: &'r Symbols,
    limits: &'r FastPathLimits,
    rules: &'r Rules,
    epoch: u64,
}

/// A symbol, which need not be a pair, and what the risk side has beside it.
pub(crate) struct Pair<'r> {
    slot: u32,
    terms: Terms<'r>,
    users: &'r mut Users,
}

impl Risk {
    /// A symbol that is found without a hash.
    #[inline(always)]
    pub(crate) fn pair(&mut self, id: SymbolId) -> Option<Pair<'_>> {
        let (slot, symbol) = self.symbols.near_with_slot(id)?;
        let terms = Terms {
            symbol,
            symbols: &self.symbols,
            limits: &self.fast_path_limits,
            rules: &self.rules,
            epoch: self.epoch,
        };
        Some(Pair {
            slot,
            terms,
            users: &mut self.users,
        })
    }

    /// Accepts a new order in any pair and holds the money for it, if it takes the fast path, and
    /// returns where its owner is.
    pub(super) fn place_fast(&mut self, place: &Place) -> Option<UserHint> {
        let slot = self.symbols.slot(place.symbol)?;
        let terms = Terms {
            symbol: self.symbols.at(slot),
            symbols: &self.symbols,
            limits: &self.fast_path_limits,
            rules: &self.rules,
            epoch: self.epoch,
        };
        let (owner, user) = self.users.active(place.uid)?;
        terms.hold::<false>(user, place)?;
        let symbol = self.symbols.at_mut(slot);
        if symbol.remembers {
            symbol.note_plain_lots(place.size);
        }
        Some(UserHint(owner))
    }

    /// Gives back what was held for lots that one order was reduced by.
    #[inline(always)]
    pub(super) fn reduce_fast(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        events: &Events,
    ) -> Option<()> {
        let [
            Event::Reduce {
                size,
                completed,
                bidder_hold_price: reserve_price,
                action,
                ..
            },
        ] = *events.as_slice()
        else {
            return None;
        };
        let reduced = Reduced {
            user: events.hints().at(0),
            action,
            size,
            reserve_price,
            completed,
        };
        let mut pair = self.pair(symbol)?;
        if !pair.is_plain() {
            return None;
        }
        pair.give_back(uid, &reduced)
    }
}

impl Pair<'_> {
    /// Where the symbol is.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> u32 {
        self.slot
    }

    /// Whether a move to this price passes: in a pair, without a look at its user.
    #[inline(always)]
    pub(crate) const fn takes_moves_to(&self, price: i64) -> bool {
        self.terms.symbol.plain_prices.holds(price) && !self.users.lost_any()
    }

    /// Where the symbol is, if it is a simple one.
    #[inline(always)]
    pub(crate) fn simple_slot(&self) -> Option<u32> {
        self.terms.symbol.is_simple.then_some(self.slot)
    }

    /// Whether it is a pair with fees per lot.
    #[inline(always)]
    pub(crate) const fn is_plain(&self) -> bool {
        self.terms.symbol.is_plain
    }

    /// Accepts a new order, holds the money for it, and says where its owner is.
    #[inline(always)]
    pub(crate) fn hold(&mut self, place: &Place) -> Option<UserHint> {
        if !self.terms.symbol.is_simple {
            return None;
        }
        let (owner, user) = self.users.near_active(place.uid)?;
        self.terms.hold::<true>(user, place)?;
        Some(UserHint(owner))
    }

    /// Gives back the hold for lots of an order of this user, where the pair [is
    /// plain](Self::is_plain), if no total changes.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, uid: UserId, reduced: &Reduced) -> Option<()> {
        let Reduced {
            action,
            size,
            reserve_price,
            ..
        } = *reduced;
        let user = self.users.hinted_mut(reduced.user, uid)?;
        let amount = self.terms.symbol.plain_money(action, size, reserve_price)?;
        let currency = self.terms.symbol.currencies[action as usize];
        user.set_near(user.near_sum(currency, amount)?);
        if reduced.completed {
            user.note_closed();
        }
        Some(())
    }
}

impl Terms<'_> {
    /// Holds the money for a new order of this user. `SIMPLE`: in a simple symbol.
    #[inline(always)]
    fn hold<const SIMPLE: bool>(self, user: &mut User, place: &Place) -> Option<()> {
        let hold = self.symbol.plain_hold::<SIMPLE>(place)?;
        if place.size > self.limits.order_size || user.open >= self.limits.open_orders {
            return None;
        }
        let currency = self.symbol.currencies[place.action as usize];
        let stays = if user.is_plain() {
            0
        } else {
            let side = (place.action as usize, currency, self.epoch);
            match user.kept_cover(side) {
                Some(stays) => stays,
                None => self.keep_cover(user, side)?,
            }
        };
        debug_assert_eq!(i128::from(stays), locked(user, self.symbols, currency));
        let balance = user.near_balance_mut(currency)?;
        let left = balance.checked_sub(hold)?;
        if left < stays {
            return None;
        }
        *balance = left;
        user.open += 1;
        Some(())
    }

    /// Finds and keeps what must stay of a balance for the owner's futures, if they are covered.
    #[inline(never)]
    fn keep_cover(self, user: &mut User, side: (usize, CurrencyId, u64)) -> Option<i64> {
        if user.has_limits() || user.has_futures() && !self.rules.cover_futures {
            return None;
        }
        let (_, currency, _) = side;
        let stays = match user.sole_position() {
            Some(only) if only.currency == currency => {
                let symbol = self.symbols.at(only.slot);
                only.asked_in_64_bits(symbol, 0, 0)?.max(0)
            }
            _ => i64::try_from(locked(user, self.symbols, currency)).ok()?,
        };
        user.keep_cover(side, stays);
        Some(stays)
    }
}
