//! Futures: the check of orders against margin, and settlement into positions.

use super::Risk;
use super::position::{LastPrices, Position, Stake};
use super::symbol::{Symbol, Symbols};
use super::user::User;
use crate::command::{Action, Command, OrderType, Place};
use crate::event::{Event, Events, Standing, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;

impl Symbol {
    /// What is reserved for a resting futures lot: see the `ledger` module.
    pub(super) fn reserved_per_lot(&self, price: i64) -> i128 {
        i128::from(price.unsigned_abs()) + i128::from(self.fee_max()) + 1
    }

    /// The same for a lot of a new order: one that cannot rest trades at prices of others only.
    pub(super) fn reserved_per_new_lot(&self, place: &Place) -> i128 {
        let price = match place.order_type {
            OrderType::Gtc => place.price,
            _ => 0,
        };
        self.reserved_per_lot(price)
    }

    /// What more is reserved for the command's own order, after `gone` of its lots are gone.
    fn reserved_by(&self, command: &Command, gone: i128, standing: &Standing) -> i128 {
        match *command {
            Command::Place(ref place) => {
                let rest = i128::from(place.size) - gone;
                self.reserved_per_new_lot(place) * rest
            }
            Command::PlaceWith(ref order) => {
                let rest = i128::from(order.place.size) - gone;
                self.reserved_per_lot(order.place.price) * rest
            }
            Command::Move { price, .. } => {
                let (before, left) = standing.moved.expect("matching tells it with a move");
                let left = i128::from(left);
                let before = self.reserved_per_lot(before) * left;
                self.reserved_per_lot(price) * (left - gone) - before
            }
            _ => 0,
        }
    }
}

/// Σ over a user's positions in a currency of estimated profit − required margin, without one
/// symbol; refused where one of them leaves 64 bits.
pub(super) fn free_margin(
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
    /// The check of a new order in a futures symbol, after the checks that do not depend on the
    /// symbol's type.
    pub(super) fn check_place_futures(&mut self, place: &Place, slot: u32) -> Checked {
        let checked = self.margin_covers(place, slot);
        let user = self.users.get_mut(place.uid).expect("looked up before");
        if let Err(code) = checked {
            // Empty only after an order of no size; then there is no profit to book either.
            user.take_empty_position(place.symbol);
            return Err(code);
        }
        let symbol = self.symbols.at_mut(slot);
        symbol.quote = self.ledger.find_or_add(symbol.spec.quote_currency);
        let new = || Position::new(&symbol.spec, slot);
        *user.position_or(place.symbol, new).pending(place.action) += place.size;
        Ok(ResultCode::ValidForMatchingEngine)
    }

    fn margin_covers(&self, place: &Place, slot: u32) -> Result<(), ResultCode> {
        if place.size < 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let user = self.users.get(place.uid).expect("looked up before");
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
        let worst = symbol.reserved_per_new_lot(place) * i128::from(place.size);
        self.room_in(spec.quote_currency, worst)
    }

    fn room_in(&self, currency: CurrencyId, more: i128) -> Result<(), ResultCode> {
        let fits = self.ledger.look(currency).has_room(more);
        if fits { Ok(()) } else { Err(OVERFLOW) }
    }

    /// The check of a move in a futures symbol: no margin is asked for, but what could be moved
    /// at the new price must have room. Which order it is, matching will know.
    pub(super) fn check_move_futures(&self, uid: UserId, slot: u32, price: i64) -> Checked {
        let symbol = self.symbols.at(slot);
        let position = self
            .users
            .get(uid)
            .and_then(|user| user.position(symbol.spec.id));
        if let Some(position) = position {
            let lots = position.pending_buy.max(position.pending_sell);
            let worst = symbol.reserved_per_lot(price) * i128::from(lots);
            self.room_in(symbol.spec.quote_currency, worst)?;
        }
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// Books what a command did in a futures symbol. Called for every command that succeeded there.
    pub(super) fn settle_futures(&mut self, command: &Command, slot: u32, events: &Events) {
        let standing = *events.standing().expect("matching tells it with a success");
        let uid = command.uid().expect("the command concerns an order");
        self.settle_events(command, (slot, uid), events, &standing);
        self.symbols.at_mut(slot).last = Some(LastPrices::of(&standing));
    }

    pub(super) fn settle_events(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        events: &[Event],
        standing: &Standing,
    ) {
        let symbol = *self.symbols.at(slot);
        let mut gone = 0;
        let mut reserved = 0;
        let mut triggered = events.len();
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    taker_action,
                    ..
                } => {
                    let (taker_fee, maker_fee) = (symbol.spec.taker_fee, symbol.spec.maker_fee);
                    self.trade(&symbol, slot, (uid, taker_action, taker_fee), (size, price));
                    let maker = (maker_uid, taker_action.opposite(), maker_fee);
                    self.trade(&symbol, slot, maker, (size, price));
                    reserved -= symbol.reserved_per_lot(price) * i128::from(size);
                    gone += i128::from(size);
                }
                Event::Reject { size, .. } => {
                    if let Some(place) = command.place() {
                        self.release(&symbol, slot, (uid, place.action), size);
                    }
                    gone += i128::from(size);
                }
                Event::Reduce {
                    price,
                    size,
                    action,
                    ..
                } => {
                    self.release(&symbol, slot, (uid, action), size);
                    reserved -= symbol.reserved_per_lot(price) * i128::from(size);
                }
                Event::Removed { .. } => self.settle_removed(event),
                Event::Triggered { .. } => {
                    triggered = at;
                    break;
                }
                Event::Refilled { .. } => {}
            }
        }
        reserved += symbol.reserved_by(command, gone, standing);
        if reserved != 0 && self.share.owns(uid) {
            self.ledger.get_mut(symbol.quote).reserved += reserved;
        }
        if triggered < events.len() {
            self.settle_triggered(slot, &events[triggered..]);
        }
    }

    /// One side of a trade. The fee is due on what was opened.
    fn trade(
        &mut self,
        symbol: &Symbol,
        slot: u32,
        (uid, action, fee): (UserId, Action, i64),
        (lots, price): (i64, i64),
    ) {
        if !self.share.owns(uid) {
            return;
        }
        let realise = self.rules.realise_partial_close;
        let total = self.ledger.get_mut(symbol.quote);
        let user = self.users.settled(UserHint::UNKNOWN, uid);
        let position = user.position_or(symbol.spec.id, || Position::new(&symbol.spec, slot));
        let before = position.stake();
        let opened = position.trade(action, lots, price, realise);
        total.note_stake(before, position.stake());
        let fee = i128::from(fee) * i128::from(opened);
        if fee != 0 {
            total.add(user.balance_mut(symbol.spec.quote_currency), -fee);
            total.add_fees(fee);
        }
        self.remove_if_empty(symbol, uid);
    }

    /// Lots that left the book without a trade.
    pub(super) fn release(
        &mut self,
        symbol: &Symbol,
        slot: u32,
        (uid, action): (UserId, Action),
        lots: i64,
    ) {
        if !self.share.owns(uid) {
            return;
        }
        let user = self.users.settled(UserHint::UNKNOWN, uid);
        let position = user.position_or(symbol.spec.id, || Position::new(&symbol.spec, slot));
        *position.pending(action) -= lots;
        self.remove_if_empty(symbol, uid);
    }

    /// A record that is empty goes, and its profit becomes money.
    pub(super) fn remove_if_empty(&mut self, symbol: &Symbol, uid: UserId) {
        let user = self.users.settled(UserHint::UNKNOWN, uid);
        if let Some(position) = user.take_empty_position(symbol.spec.id) {
            let total = self.ledger.get_mut(symbol.quote);
            total.note_stake(position.stake(), Stake::default());
            if position.profit != 0 {
                let balance = user.balance_mut(symbol.spec.quote_currency);
                total.add(balance, position.profit.into());
            }
        }
    }
}
