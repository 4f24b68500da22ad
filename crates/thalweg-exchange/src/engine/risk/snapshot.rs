//! The risk state in the parts that a state snapshot writes ([`snapshot`](crate::snapshot)), and
//! made again from these.
//!
//! Values that follow from other parts are none: ranges of plain prices, which lots are pending and
//! how many orders are open, the last prices of futures (they are the best of their book), N, R and
//! pool of a currency, but for the room that quirks took.

use super::ledger::Currency;
use super::limits::FastPathLimits;
use super::positions::Position;
use super::symbols::{Gate, LastPrices, Symbol, check_spec};
use super::users::{Retired, Terms, User, UserStatus};
use super::{Direction, Ids, Risk, Seen, TradingLimits};
use crate::command::{Action, SymbolSpec, UserLimits};
use crate::event::{TopOfBook, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// A symbol without its book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedSymbol {
    pub(crate) spec: SymbolSpec,
    pub(crate) limits: TradingLimits,
    /// Futures in which a command has succeeded.
    pub(crate) has_last_prices: bool,
    pub(crate) seen: Seen,
}

/// The records of a user, removed or not, beside money.
#[derive(Clone, Debug)]
pub(crate) struct SavedUser {
    pub(crate) last_transaction_id: i64,
    pub(crate) limits: Option<UserLimits>,
    pub(crate) ids: Option<Box<Ids>>,
}

/// A user, or the record of one that was removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'r> {
    pub(crate) uid: UserId,
    /// `None` for a user that was removed.
    pub(crate) user: Option<&'r User>,
    pub(crate) last_transaction_id: i64,
    pub(crate) limits: Option<UserLimits>,
    pub(crate) ids: Option<&'r Ids>,
}

impl Risk {
    /// Returns all symbols, by ascending id.
    pub(crate) fn saved_symbols(&self) -> Vec<SavedSymbol> {
        let saved = |symbol: &Symbol| SavedSymbol {
            spec: symbol.spec,
            limits: symbol.gate.limits(),
            has_last_prices: symbol.last.is_some(),
            seen: symbol.seen,
        };
        let mut symbols: Vec<SavedSymbol> = self.symbols.iter().map(saved).collect();
        symbols.sort_unstable_by_key(|symbol| symbol.spec.id);
        symbols
    }

    /// Returns all users and removed ones, by ascending id.
    pub(crate) fn accounts(&self) -> Vec<Account<'_>> {
        let users = self.users.iter().map(|user| Account {
            uid: user.uid,
            user: Some(user),
            last_transaction_id: user.last_transaction_id,
            limits: user.limits(),
            ids: user.ids(),
        });
        let removed = self.users.retired().iter();
        let removed = removed.map(|(&uid, retired)| Account {
            uid,
            user: None,
            last_transaction_id: retired.last_transaction_id,
            limits: retired.terms.limits,
            ids: retired.terms.ids.as_deref(),
        });
        let mut accounts: Vec<Account<'_>> = users.chain(removed).collect();
        accounts.sort_unstable_by_key(|account| account.uid);
        accounts
    }

    /// Returns whether the next payment of profit in a currency looks for users who are short of
    /// cover. Under the default rules no user is short unless it does, and it makes a difference
    /// only if a user is.
    pub(crate) fn finds_short_users(&self, currency: &Currency) -> bool {
        let finds_somebody = || self.is_anybody_short(currency.id);
        currency.must_check_cover && (!self.rules.know_who_is_short() || finds_somebody())
    }

    /// Returns whether it looks and must, or need not and does not.
    pub(crate) fn looks_rightly_for_short(&self, id: CurrencyId) -> bool {
        let must_check_cover = self.ledger.look(id).must_check_cover;
        !self.rules.know_who_is_short() || must_check_cover == self.is_anybody_short(id)
    }

    /// R of lots of an order in futures that are not covered.
    pub(crate) fn reserved_for(&self, symbol: SymbolId, price: i64, lots: i64) -> i128 {
        let symbol = self.symbols.get(symbol);
        symbol.map_or(0, |symbol| symbol.reserved(price, lots))
    }
}

impl Risk {
    /// Returns a state without users, symbols and money.
    pub(crate) fn restored(rules: Rules, clock: Option<i64>, limits: UserLimits) -> Self {
        Self {
            clock,
            limits,
            fast_path_limits: FastPathLimits::of(&limits),
            ..Self::new(rules)
        }
    }

    /// Adds a currency, and says where: one after another, from 0.
    pub(crate) fn restore_currency(
        &mut self,
        id: CurrencyId,
        [fees, adjustments, suspends]: [i64; 3],
    ) -> u32 {
        let slot = self.ledger.find_or_add(id);
        let total = self.ledger.get_mut(slot);
        (total.fees, total.adjustments, total.suspends) = (fees, adjustments, suspends);
        slot
    }

    /// Returns the currency's place.
    pub(crate) fn currency_slot(&self, id: CurrencyId) -> Option<u32> {
        self.ledger.find(id)
    }

    /// Checks that an exchange of these rules takes such a symbol.
    pub(crate) fn check_saved_spec(&self, spec: &SymbolSpec) -> Result<(), ResultCode> {
        check_spec(spec, &self.rules)
    }

    /// Adds a symbol, of a pair whose currencies are here.
    pub(crate) fn restore_symbol(&mut self, saved: &SavedSymbol) {
        let spec = &saved.spec;
        self.symbols.add(spec, &mut self.ledger, &self.rules);
        let Some(slot) = self.symbols.slot(spec.id) else {
            return;
        };
        let symbol = self.symbols.at_mut(slot);
        if symbol.is_futures()
            && let Some(quote) = self.ledger.find(spec.quote_currency)
        {
            symbol.quote = quote;
        }
        symbol.gate = Gate::new(saved.limits);
        symbol.seen = saved.seen;
        symbol.renew_plain_prices(&self.rules);
    }

    /// Returns the terms of a symbol.
    pub(crate) fn spec(&self, symbol: SymbolId) -> Option<&SymbolSpec> {
        self.symbols.get(symbol).map(|symbol| &symbol.spec)
    }

    /// Notes how a futures symbol's book stands.
    pub(crate) fn restore_last_prices(&mut self, symbol: SymbolId, top_of_book: &TopOfBook) {
        if let Some(slot) = self.symbols.slot(symbol) {
            self.symbols.at_mut(slot).last = Some(LastPrices::of(top_of_book));
        }
    }

    /// Adds a user without money, and says where.
    pub(crate) fn restore_user(&mut self, uid: UserId, status: UserStatus, kept: SavedUser) -> u32 {
        let slot = self.users.add_saved(uid, status);
        let user = self.users.at_mut(slot);
        user.last_transaction_id = kept.last_transaction_id;
        if kept.limits.is_some() || kept.ids.is_some() {
            let terms = user.terms_mut();
            (terms.limits, terms.ids) = (kept.limits, kept.ids);
        }
        slot
    }

    /// Adds what is left of a user who was removed.
    pub(crate) fn restore_removed(&mut self, uid: UserId, kept: SavedUser) {
        let SavedUser {
            last_transaction_id,
            limits,
            ids,
        } = kept;
        let terms = Terms {
            limits,
            ids,
            open_orders: 0,
        };
        let retired = Retired {
            last_transaction_id,
            terms,
        };
        self.users.add_retired(uid, retired);
    }

    /// Gives a user a balance, in a currency that the user has none of.
    pub(crate) fn restore_balance(&mut self, user: u32, currency: CurrencyId, amount: i64) {
        *self.users.at_mut(user).balance_mut(currency) = amount;
    }

    /// Gives a user a record in a futures symbol, with nothing pending.
    pub(crate) fn restore_position(
        &mut self,
        user: u32,
        symbol: SymbolId,
        (direction, [open_volume, open_price_sum, profit]): (Direction, [i64; 3]),
    ) -> Option<&Position> {
        let slot = self.symbols.slot(symbol)?;
        let spec = &self.symbols.at(slot).spec;
        let record = Position {
            direction,
            open_volume,
            open_price_sum,
            profit,
            ..Position::new(spec, slot)
        };
        Some(self.users.at_mut(user).position_or(symbol, || record))
    }

    /// Notes what waits of a user.
    pub(crate) fn restore_waiting(&mut self, user: u32, currency: CurrencyId, amount: i128) {
        self.users.at_mut(user).set_waiting(currency, amount);
    }

    /// Counts an open order, and says where its owner is; `None` where there is no such user, and
    /// no record of a removed one.
    #[inline]
    pub(crate) fn restore_open_order(&mut self, uid: UserId) -> Option<UserHint> {
        if let Some(slot) = self.users.slot(uid) {
            self.users.at_mut(slot).note_opened();
            return Some(UserHint(slot));
        }
        let is_kept = self.users.note_retired_order(uid);
        is_kept.then_some(UserHint::UNKNOWN)
    }

    /// Adds pending lots to the record of an order's owner in futures; `None` where there is no
    /// such record, `false` where they would be too many.
    pub(crate) fn restore_pending(
        &mut self,
        owner: UserHint,
        symbol: SymbolId,
        (action, lots): (Action, i64),
    ) -> Option<bool> {
        if owner.0 == UserHint::UNKNOWN.0 {
            return None;
        }
        let user = self.users.at_mut(owner.0);
        user.position(symbol)?;
        let record = user.position_or(symbol, || unreachable!("it is there"));
        let pending = record.pending(action);
        let sum = pending.checked_add(lots);
        *pending = sum.unwrap_or(*pending);
        Some(sum.is_some())
    }

    /// Gives a currency its totals: N, R of futures, the room that quirks took, and the pool.
    pub(crate) fn restore_totals(
        &mut self,
        currency: u32,
        [negative, reserved, room, pool]: [i128; 4],
        must_check_cover: bool,
    ) {
        let total = self.ledger.get_mut(currency);
        (total.negative, total.reserved, total.pool) = (negative, reserved, pool);
        total.take_room(room);
        total.must_check_cover = must_check_cover;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, SymbolSpec, SymbolType};
    use crate::engine::state::{State, apply};
    use crate::event::Events;

    /// Snapshots of exchanges that are older than a rule have it as it was noted.
    #[test]
    fn who_is_short_is_noted_under_older_rules_and_looked_for_under_the_default_ones() {
        let (futures, money) = (SymbolId(1), CurrencyId(2));
        let spec = SymbolSpec::pair(futures, CurrencyId(1), money).with_type(SymbolType::Futures);
        for bound_work in [false, true] {
            let mut state = State::new(Rules {
                bound_work,
                ..Rules::default()
            });
            let bands = [2, 3].map(|high| Command::set_price_band(futures, 1, high));
            let symbols = Command::AddSymbols([spec].into());
            for command in [symbols].into_iter().chain(bands) {
                let result = apply(&mut state, &command, &mut Events::new());
                assert_eq!(result, ResultCode::Success);
            }
            let currency = state.risk.ledger.look(money);
            assert!(currency.must_check_cover, "the band has moved");
            assert_eq!(state.risk.finds_short_users(&currency), !bound_work);
            assert_eq!(state.risk.looks_rightly_for_short(money), !bound_work);
        }
    }
}
