//! The fast path of futures: orders at plain prices (see
//! [`PlainPrices`](super::super::fast_path::PlainPrices)) of owners with one record at most, orders
//! that rest, and cancels. The slow path would come to the same.

use super::super::Risk;
use super::super::fast_path::is_plain;
use super::super::position::{LastPrices, Position};
use super::super::symbol::{NO_CURRENCY, Symbol};
use super::super::user::{User, UserStatus};
use super::reserved_by_move;
use crate::command::Place;
use crate::event::{Event, Moved, Standing, UserHint};
use crate::ids::{SymbolId, UserId};

impl Risk {
    /// Accepts a new order in futures of an owner who has no record in another symbol, if it takes
    /// the fast path, and returns where the owner is.
    #[inline(always)]
    pub(in crate::engine::risk) fn place_in_futures_fast(&mut self, place: &Place) -> Option<u32> {
        let slot = self.symbols.near(place.symbol)?;
        let symbol = self.symbols.at(slot);
        let is_plain_place =
            symbol.plain_futures_prices.holds(place.price) && place.size > 0 && is_plain(place);
        if !is_plain_place || symbol.quote == NO_CURRENCY {
            return None;
        }
        let (owner, user) = self.users.active(place.uid)?;
        if place.size > self.fast_path_limits.order_size
            || user.open >= self.fast_path_limits.open_orders
            || user.has_limits()
        {
            return None;
        }
        let balance = user.near_balance(symbol.spec.quote_currency)?;
        let new;
        let position = match user.positions() {
            [] => {
                new = Position::new(&symbol.spec, slot);
                &new
            }
            [only] if only.symbol == place.symbol => only,
            _ => return None,
        };
        let is_enough = if self.rules.cover_futures {
            let waiting = user.waiting_in(symbol.spec.quote_currency);
            let waiting = i64::try_from(waiting).ok()?;
            position.is_covered_with(place, symbol, balance.checked_add(waiting)?)
        } else {
            let reserved = symbol.reserved_for_new(place, place.size);
            let has_room = self.ledger.get(symbol.quote).has_room(reserved);
            has_room && position.has_margin_for(place, symbol, balance)
        };
        if !is_enough {
            return None;
        }
        let position = user.position_or(place.symbol, || Position::new(&symbol.spec, slot));
        *position.pending(place.action) += place.size;
        user.open += 1;
        Some(owner)
    }

    #[inline]
    pub(super) fn may_move(&self, symbol: &Symbol, user: &User, price: i64) -> bool {
        self.rules.cover_futures
            || user.position(symbol.spec.id).is_none_or(|position| {
                let lots = position.pending_buy.max(position.pending_sell);
                self.has_room(symbol, symbol.reserved(price, lots))
            })
    }

    /// Whether a move to a plain price of a futures symbol passes without the slow path; see the
    /// module's text.
    #[inline]
    pub(in crate::engine::risk) fn futures_move_takes_fast_path(
        &self,
        uid: UserId,
        symbol: &Symbol,
        price: i64,
    ) -> bool {
        let user = self.users.get(uid);
        let is_active = |user: &User| user.status == UserStatus::Active;
        user.is_some_and(|user| is_active(user) && self.may_move(symbol, user, price))
    }

    /// Books that a command in futures changed how the book stands and how much is reserved, and
    /// nothing else, if the symbol is found without a hash.
    #[inline(always)]
    pub(in crate::engine::risk) fn stands_as(
        &mut self,
        symbol: SymbolId,
        standing: &Standing,
        reserved: impl FnOnce(&Symbol) -> i128,
    ) -> bool {
        let Some((slot, symbol)) = self.symbols.near_with_slot(symbol) else {
            return false;
        };
        symbol.is_futures() && self.rules.margin_trading && self.stands_at(slot, standing, reserved)
    }

    /// Settles a command without events in a symbol of futures that are traded.
    #[inline(always)]
    fn stands_at(
        &mut self,
        slot: u32,
        standing: &Standing,
        reserved: impl FnOnce(&Symbol) -> i128,
    ) -> bool {
        let symbol = self.symbols.at_mut(slot);
        if !self.rules.cover_futures {
            if symbol.quote == NO_CURRENCY {
                return false;
            }
            self.ledger.get_mut(symbol.quote).reserved += reserved(symbol);
        }
        symbol.last = Some(LastPrices::of(standing));
        true
    }

    /// Settles a move that [passed](Self::passes_move_in_futures).
    #[inline(always)]
    pub(crate) fn settle_move_fast(
        &mut self,
        slot: u32,
        (price, moved): (i64, &Moved),
        standing: &Standing,
    ) -> bool {
        let reserved = |_: &Symbol| reserved_by_move(price, Some(moved));
        self.stands_at(slot, standing, reserved)
    }

    /// Books that one order in futures was reduced or cancelled, if its owner is where the hint
    /// says.
    #[inline(always)]
    pub(crate) fn reduce_in_futures(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        standing: &Standing,
        (events, hint): (&[Event], UserHint),
    ) -> bool {
        let [
            Event::Reduce {
                price,
                size,
                completed,
                action,
                ..
            },
        ] = *events
        else {
            return false;
        };
        let Some(slot) = self.symbols.near(symbol) else {
            return false;
        };
        let symbol = self.symbols.at_mut(slot);
        let is_traded = symbol.is_futures() && self.rules.margin_trading;
        if !is_traded || symbol.quote == NO_CURRENCY {
            return false;
        }
        let Some(user) = self.users.hinted_mut(hint, uid) else {
            return false;
        };
        symbol.last = Some(LastPrices::of(standing));
        let position = user.position_or(symbol.spec.id, || Position::new(&symbol.spec, slot));
        *position.pending(action) -= size;
        let is_empty = position.is_empty();
        if completed {
            user.note_closed();
        }
        if !self.rules.cover_futures {
            self.ledger.get_mut(symbol.quote).reserved -= symbol.reserved(price, size);
        }
        if is_empty {
            self.remove_if_empty(slot, hint.0);
        }
        true
    }
}
