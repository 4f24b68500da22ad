//! Futures: the check of orders against margin, and settlement into positions.

mod calm;

pub(super) use self::calm::reserved_by_move;

use super::Risk;
use super::ledger::Currency;
use super::limits::OwnOrder;
use super::position::{LastPrices, Position, Stake};
use super::settlement::Owner;
use super::symbol::{NO_CURRENCY, Symbol, Symbols};
use super::user::User;
use crate::command::{Action, Command, OrderType, Place, SymbolSpec};
use crate::event::{Event, Events, Hints, Moved, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;

impl Symbol {
    /// What is reserved for resting futures lots: see the `ledger` module.
    #[inline]
    pub(super) fn reserved(&self, price: i64, lots: i64) -> i128 {
        let more = self.fee_max().unsigned_abs() + 1;
        match price.unsigned_abs().checked_add(more) {
            Some(per_lot) => i128::from(per_lot) * i128::from(lots),
            None => (i128::from(price.unsigned_abs()) + i128::from(more)) * i128::from(lots),
        }
    }

    /// The same for lots of a new order: one that cannot rest trades at prices of others only.
    pub(super) fn reserved_for_new(&self, place: &Place, lots: i64) -> i128 {
        let price = match place.order_type {
            OrderType::Gtc => place.price,
            _ => 0,
        };
        self.reserved(price, lots)
    }

    /// What more is reserved for the command's own order, after `gone` of its lots are gone.
    fn reserved_by(&self, command: &Command, gone: i64, moved: Option<&Moved>) -> i128 {
        match *command {
            Command::Place(ref place) => self.reserved_for_new(place, place.size - gone),
            Command::PlaceWith(ref order) => {
                self.reserved(order.place.price, order.place.size - gone)
            }
            Command::Move { price, .. } => {
                let before = moved.expect("matching tells it with a move");
                self.reserved(price, before.left - gone) - self.reserved(before.price, before.left)
            }
            _ => 0,
        }
    }
}

/// What a command changes of a currency's totals, to be booked once.
#[derive(Default)]
struct Tally {
    stake: Stake,
    reserved: i128,
    fees: i128,
    /// Lots that the taker opened, and what they are worth in units of price.
    opened: (i128, i128),
}

impl Tally {
    /// What a taker pays for lots that one more trade opens: what they add to the fee of all that
    /// its command opens, which is rounded once.
    fn taker_fee(&mut self, spec: &SymbolSpec, lots: i64, price: i64) -> i128 {
        let (lots, price) = (i128::from(lots), i128::from(price));
        let (all, cost) = self.opened;
        self.opened = (all + lots, cost + lots * price);
        spec.taker_fee_of(self.opened.0, self.opened.1) - spec.taker_fee_of(all, cost)
    }

    fn fee_on_opened(&mut self, spec: &SymbolSpec, is_taker: bool, lots: i64, price: i64) -> i128 {
        if is_taker && spec.fees_are_of_value() {
            self.taker_fee(spec, lots, price)
        } else {
            spec.fee_on_opened(is_taker, lots, price)
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
    pub(super) fn check_place_futures(&mut self, place: &Place, owner: u32, slot: u32) -> Checked {
        let checked = if self.rules.cover_futures {
            self.is_covered(place, slot, self.users.at(owner))
        } else {
            self.margin_covers(place, slot, self.users.at(owner))
        };
        let user = self.users.at_mut(owner);
        if let Err(code) = checked {
            // Empty only after an order of no size; then there is no profit to book either.
            user.take_empty_position(place.symbol);
            return Err(code);
        }
        let symbol = self.symbols.at_mut(slot);
        if symbol.quote == NO_CURRENCY {
            symbol.quote = self.ledger.find_or_add(symbol.spec.quote_currency);
        }
        let new = || Position::new(&symbol.spec, slot);
        *user.position_or(place.symbol, new).pending(place.action) += place.size;
        Ok(ResultCode::ValidForMatchingEngine)
    }

    fn margin_covers(&self, place: &Place, slot: u32, user: &User) -> Result<(), ResultCode> {
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
    fn has_room(&self, symbol: &Symbol, more: i128) -> bool {
        if symbol.quote == NO_CURRENCY {
            self.ledger.has_room_in(symbol.spec.quote_currency, more)
        } else {
            self.ledger.get(symbol.quote).has_room(more)
        }
    }

    /// The check of a move in a futures symbol: no margin is asked for, but what could be moved
    /// at the new price must have room. Which order it is, matching will know.
    pub(super) fn check_move_futures(&self, uid: UserId, slot: u32, price: i64) -> Checked {
        let symbol = self.symbols.at(slot);
        match self.users.get(uid) {
            Some(user) if !self.may_move(symbol, user, price) => Err(OVERFLOW),
            _ => Ok(ResultCode::ValidForMatchingEngine),
        }
    }

    /// Books what a command did in a futures symbol. Called for every command that succeeded there,
    /// and for orders that were rejected there.
    #[inline(never)]
    pub(super) fn settle_futures(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        events: &Events,
    ) {
        // There is none where the command's order was rejected, and its book is as before.
        if let Some(standing) = events.standing() {
            let symbol = self.symbols.at_mut(slot);
            symbol.last = Some(LastPrices::of(standing));
        }
        let own = OwnOrder::of(command);
        self.settle_events(
            command,
            (slot, uid),
            own,
            (events, events.hints(), events.moved()),
        );
    }

    pub(super) fn settle_events(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        mut own: OwnOrder,
        (events, hints, moved): (&[Event], Hints<'_>, Option<&Moved>),
    ) {
        let mut tally = Tally::default();
        let mut gone = 0;
        let mut taker = (UserHint::UNKNOWN, uid);
        let mut triggered = events.len();
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    maker_completed,
                    taker_completed,
                    taker_action,
                    ..
                } => {
                    own.note_trade(taker_completed);
                    let symbol = self.symbols.at(slot);
                    tally.reserved -= symbol.reserved(price, size);
                    let lots = (size, price);
                    let side = (taker, taker_action, true, false);
                    taker.0 = self.trade(slot, side, lots, &mut tally);
                    let maker = (hints.at(at), maker_uid);
                    let side = (maker, taker_action.opposite(), false, maker_completed);
                    self.trade(slot, side, lots, &mut tally);
                    gone += size;
                }
                Event::Reject { size, .. } => {
                    if let Some(place) = command.place() {
                        self.release(slot, taker, place.action, size, false);
                    }
                    // Lots that are gone one way or the other.
                    gone += size;
                }
                Event::Reduce {
                    price,
                    size,
                    completed,
                    action,
                    ..
                } => {
                    self.release(slot, (hints.at(at), uid), action, size, completed);
                    tally.reserved -= self.symbols.at(slot).reserved(price, size);
                }
                Event::Removed { .. } => self.settle_removed_by(&mut own, uid, event),
                Event::Triggered { .. } => {
                    triggered = at;
                    break;
                }
                Event::Uncrossed { .. } | Event::Refilled { .. } => {}
            }
        }
        self.note_own_closed(&own, gone, taker);
        if !self.rules.cover_futures {
            self.note_tally(command, (slot, uid), gone, (tally, moved));
        }
        if triggered < events.len() {
            self.settle_triggered(slot, &events[triggered..]);
        }
    }

    /// Books what was tallied, where futures are bounded by the ledger.
    fn note_tally(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        gone: i64,
        (mut tally, moved): (Tally, Option<&Moved>),
    ) {
        let symbol = self.symbols.at(slot);
        if self.share.owns(uid) {
            tally.reserved += symbol.reserved_by(command, gone, moved);
        } else {
            tally.reserved = 0;
        }
        if symbol.quote != NO_CURRENCY {
            self.ledger.get_mut(symbol.quote).note(&tally);
        }
    }

    /// One side of a trade of covered futures.
    pub(super) fn trade_covered(
        &mut self,
        slot: u32,
        side: (Owner, Action, bool, bool),
        lots: (i64, i64),
    ) {
        self.trade(slot, side, lots, &mut Tally::default());
    }

    /// One side of a trade, whose order may be gone with it. The fee is due on what was opened.
    /// Says where the user is.
    fn trade(
        &mut self,
        slot: u32,
        (owner, action, is_taker, is_gone): (Owner, Action, bool, bool),
        (lots, price): (i64, i64),
        tally: &mut Tally,
    ) -> UserHint {
        if !self.share.owns(owner.1) {
            return owner.0;
        }
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let place = self.users.settled_slot(owner);
        let user = self.users.at_mut(place);
        if is_gone {
            user.note_closed();
        }
        let position = user.position_or(spec.id, || Position::new(spec, slot));
        if self.rules.cover_futures {
            let opened = position.trade(action, lots, price, true);
            let gain = std::mem::take(&mut position.profit);
            let is_empty = position.is_empty();
            self.settle_covered(
                slot,
                place,
                gain,
                tally.fee_on_opened(spec, is_taker, opened, price),
            );
            if is_empty {
                self.remove_if_empty(slot, place);
            }
            return UserHint(place);
        }
        tally.stake -= position.stake();
        let opened = position.trade(action, lots, price, self.rules.realise_partial_close);
        tally.stake += position.stake();
        let is_empty = position.is_empty();
        let fee = spec.fee_on_opened(is_taker, opened, price);
        if fee != 0 {
            tally.fees += fee;
            let balance = user.balance_mut(spec.quote_currency);
            self.ledger.pay_exactly(symbol.quote, balance, -fee);
        }
        if is_empty {
            self.remove_if_empty(slot, place);
        }
        UserHint(place)
    }
}

impl Currency {
    fn note(&mut self, tally: &Tally) {
        self.note_stake(Stake::default(), tally.stake);
        if tally.fees != 0 {
            self.add_fees(tally.fees);
        }
        self.reserved += tally.reserved;
    }
}
