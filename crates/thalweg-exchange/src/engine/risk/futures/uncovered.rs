//! Futures that are not covered, as the reference has them: margin against the best prices, and a
//! bound on the ledger in place of a cover. Under the default rules nothing of this is called.

use super::super::Risk;
use super::super::position::{Position, Stake};
use super::super::symbol::{NO_CURRENCY, Symbol, Symbols};
use super::super::user::User;
use super::OVERFLOW;
use crate::command::{Action, Command, OrderType, Place};
use crate::event::{Event, Moved};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// The change of a currency's totals by a command's trades, to be booked once.
#[derive(Default)]
pub(super) struct Totals {
    stake: Stake,
    fees: i128,
}

impl Symbol {
    /// Returns the amount reserved for resting futures lots: see the `ledger` module.
    #[inline]
    pub(in crate::engine::risk) fn reserved(&self, price: i64, lots: i64) -> i128 {
        let more = self.fee_max().unsigned_abs() + 1;
        match price.unsigned_abs().checked_add(more) {
            Some(per_lot) => i128::from(per_lot) * i128::from(lots),
            None => (i128::from(price.unsigned_abs()) + i128::from(more)) * i128::from(lots),
        }
    }

    /// Returns the amount reserved for lots of a new order: one that cannot rest trades at prices
    /// of others only.
    pub(in crate::engine::risk) fn reserved_for_new(&self, place: &Place, lots: i64) -> i128 {
        let price = match place.order_type {
            OrderType::Gtc => place.price,
            _ => 0,
        };
        self.reserved(price, lots)
    }

    /// Returns the further amount reserved for the command's own order, after `gone` of its lots
    /// are gone.
    fn reserved_by(&self, command: &Command, gone: i64, moved: Option<&Moved>) -> i128 {
        match *command {
            Command::Place(ref place) => self.reserved_for_new(place, place.size - gone),
            Command::PlaceWith(ref order) => {
                self.reserved(order.place.price, order.place.size - gone)
            }
            Command::Move { price, .. } => {
                let before = moved.expect("matching gives it with a move");
                self.reserved(price, before.left - gone) - self.reserved(before.price, before.left)
            }
            _ => 0,
        }
    }
}

/// Returns the further amount reserved for an order that rests elsewhere with as many lots as
/// before.
#[inline(always)]
pub(in crate::engine::risk) fn reserved_by_move(price: i64, moved: Option<&Moved>) -> i128 {
    let before = moved.expect("matching gives it with a move");
    let [from, to] = [before.price, price].map(|price| i128::from(price.unsigned_abs()));
    (to - from) * i128::from(before.left)
}

/// Σ over a user's positions in a currency of estimated profit − required margin, without one
/// symbol; refused where one of them leaves 64 bits.
pub(in crate::engine::risk) fn free_margin(
    user: &User,
    symbols: &Symbols,
    currency: CurrencyId,
    except: Option<SymbolId>,
) -> Result<i128, ResultCode> {
    let mut free = 0;
    for position in user.positions() {
        if position.currency == currency && Some(position.symbol) != except {
            let symbol = symbols.at(position.slot);
            free += position.free_margin(&symbol.spec, symbol.last_prices())?;
        }
    }
    Ok(free)
}

impl Risk {
    pub(super) fn margin_covers(
        &self,
        place: &Place,
        slot: u32,
        user: &User,
    ) -> Result<(), ResultCode> {
        if place.size < 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let new = Position::new(spec, slot);
        let position = user.position(place.symbol).unwrap_or(&new);
        if let Some(margin) = position.margin_with(spec, place.action, place.size)? {
            let currency = spec.quote_currency;
            let others = free_margin(user, &self.symbols, currency, Some(place.symbol))?;
            let own = position.estimated_profit(spec, symbol.last_prices());
            let own = i64::try_from(own).map_err(|_| OVERFLOW)?;
            if margin > i128::from(user.balance(currency)) + others + i128::from(own) {
                return Err(ResultCode::RiskNsf);
            }
        }
        if self.has_room(symbol, symbol.reserved_for_new(place, place.size)) {
            Ok(())
        } else {
            Err(OVERFLOW)
        }
    }

    /// Whether so much more may be reserved in the quote currency of a futures symbol.
    #[inline]
    pub(super) fn has_room(&self, symbol: &Symbol, more: i128) -> bool {
        if symbol.quote == NO_CURRENCY {
            self.ledger.has_room_in(symbol.spec.quote_currency, more)
        } else {
            self.ledger.get(symbol.quote).has_room(more)
        }
    }

    /// Whether there is room for the amount that a move to a plain price could reserve, if its
    /// owner is found without the index and may trade.
    #[inline(never)]
    pub(in crate::engine::risk) fn has_room_for_move(
        &mut self,
        uid: UserId,
        symbol: SymbolId,
        price: i64,
    ) -> bool {
        let (Some(symbol), Some((_, user))) =
            (self.symbols.near_ref(symbol), self.users.near_active(uid))
        else {
            return false;
        };
        let Some(position) = user.position(symbol.spec.id) else {
            return true;
        };
        let lots = position.pending_buy.max(position.pending_sell);
        let reserved = symbol.reserved(price, lots);
        symbol.quote != NO_CURRENCY && self.ledger.get(symbol.quote).has_room(reserved)
    }

    /// One side of a trade of a user, whose place is given. Says whether the record is empty.
    pub(super) fn trade_uncovered(
        &mut self,
        (slot, place): (u32, u32),
        (action, is_taker): (Action, bool),
        (lots, price): (i64, i64),
        totals: &mut Totals,
    ) -> bool {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let user = self.users.at_mut(place);
        let position = user.position_or(spec.id, || Position::new(spec, slot));
        totals.stake -= position.stake();
        let opened = position.trade(action, lots, price, self.rules.realise_partial_close);
        totals.stake += position.stake();
        let is_empty = position.is_empty();
        let fee = spec.fee_on_opened(is_taker, opened, price);
        if fee != 0 {
            totals.fees += fee;
            let balance = user.balance_mut(spec.quote_currency);
            self.ledger.pay_exactly(symbol.quote, balance, -fee);
        }
        is_empty
    }

    /// Books what a command's trades came to, and what these events and its own order reserve.
    pub(super) fn note_uncovered(
        &mut self,
        command: &Command,
        slot: u32,
        (gone, moved): (i64, Option<&Moved>),
        (totals, events): (Totals, &[Event]),
    ) {
        let symbol = self.symbols.at(slot);
        if symbol.quote == NO_CURRENCY {
            return;
        }
        let mut reserved = symbol.reserved_by(command, gone, moved);
        for event in events {
            if let Event::Trade { price, size, .. } | Event::Reduce { price, size, .. } = *event {
                reserved -= symbol.reserved(price, size);
            }
        }
        let total = self.ledger.get_mut(symbol.quote);
        total.note_stake(Stake::default(), totals.stake);
        if totals.fees != 0 {
            total.add_fees(totals.fees);
        }
        total.reserved += reserved;
    }
}
