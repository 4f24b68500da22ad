//! The fast path of settlement: an order in a pair with fees per lot trades, and all amounts fit.
//!
//! Amounts are computed in 64 bits. Each trade is booked whole or not at all: where one of them
//! does not fit, a balance is or gets below zero, or an owner or a balance is not where it is
//! expected, this trade and all that follows are left to [`settlement`](super::settlement), which
//! takes up what was booked before and comes to the same in 128 bits.

mod crossing;
#[cfg(test)]
mod ways;

#[cfg(test)]
pub(super) use self::ways::is_exact;
use super::Risk;
use super::futures::reserved_by_move;
use super::ledger::Currency;
use super::limits::OwnOrder;
use super::settlement::Taken;
use super::symbol::Symbol;
use super::user::{User, Users};
use crate::command::{Action, Command, OrderType, Place};
use crate::event::{Event, Events, Made, UserHint};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

/// The trades of a command's order, as far as they were booked with the makers, and not with its
/// owner.
#[derive(Clone, Copy, Default)]
pub(crate) struct Booked {
    trades: usize,
    lots: i64,
    /// Σ price·size.
    cost: i64,
    /// For a buying taker, the price at which all of its lots are held for.
    hold: i64,
    /// Whether the last one finished the taker.
    is_completed: bool,
}

impl Risk {
    /// [`Risk::settle`] of a new order.
    #[inline(always)]
    pub(crate) fn settle_place(
        &mut self,
        place: &Place,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        // The common case: the order only rests. One of no size may have a budget to get back.
        if events.is_empty() && place.order_type != OrderType::IocBudget {
            let Some(standing) = events.standing() else {
                return;
            };
            let reserved = |symbol: &Symbol| symbol.reserved_for_new(place, place.size);
            if self.stands_as(place.symbol, standing, reserved) {
                return;
            }
        }
        let owner = (place.uid, place.symbol);
        if !self.settle_trades(owner, Some(place), command, events) {
            self.settle_slow(command, result, events);
        }
    }

    /// Settles a move.
    #[inline(always)]
    pub(crate) fn settle_move(
        &mut self,
        owner: (UserId, SymbolId),
        price: i64,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        if events.is_empty() {
            let Some(standing) = events.standing() else {
                return;
            };
            let reserved = |_: &Symbol| reserved_by_move(price, events.moved());
            if self.stands_as(owner.1, standing, reserved) {
                return;
            }
        }
        if !self.settle_trades(owner, None, command, events) {
            self.settle_slow(command, result, events);
        }
    }

    /// Settles a cancel or a reduction.
    #[inline(always)]
    pub(crate) fn settle_reduced(
        &mut self,
        owner: (UserId, SymbolId),
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        if self.reduce_fast(owner, events).is_none() {
            self.settle_reduced_slow(owner, command, result, events);
        }
    }

    #[inline(never)]
    fn settle_reduced_slow(
        &mut self,
        owner: (UserId, SymbolId),
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        let Some(standing) = events.standing() else {
            return if !events.is_empty() {
                self.settle_slow(command, result, events);
            };
        };
        let hint = events.hints().at(0);
        if !self.reduce_in_futures(owner, standing, (events, hint)) {
            self.settle_slow(command, result, events);
        }
    }

    /// Books what a command's order did where it begins with a trade: of a new order, `place` is
    /// the command's. False, and nothing done, for other events, and where it needs the slow path.
    #[inline(always)]
    pub(super) fn settle_trades(
        &mut self,
        owner: (UserId, SymbolId),
        place: Option<&Place>,
        command: &Command,
        events: &Events,
    ) -> bool {
        #[cfg(test)]
        if is_exact() {
            return false;
        }
        match events.first() {
            Some(&Event::Trade { taker_action, .. }) => match taker_action {
                Action::Ask => self.book_trades::<false>(owner, place, command, events),
                Action::Bid => self.book_trades::<true>(owner, place, command, events),
            },
            _ => false,
        }
    }

    /// `BUYS`: the command's order does.
    #[inline(never)]
    fn book_trades<const BUYS: bool>(
        &mut self,
        (uid, id): (UserId, SymbolId),
        place: Option<&Place>,
        command: &Command,
        events: &Events,
    ) -> bool {
        let Some(symbol) = self.symbols.near_ref(id) else {
            return false;
        };
        let [base, quote] = symbol.currencies;
        // Both balances are read before one is written.
        if !(symbol.is_plain && base != quote) {
            return false;
        }
        let users = &mut self.users;
        let mut booked = Booked::default();
        let hints = events.hints();
        for event in events {
            let event = (event, hints.at(booked.trades));
            if book_with_maker::<BUYS>(users, symbol, event, &mut booked).is_none()
                && book_with_maker_again::<BUYS>(users, symbol, event, &mut booked).is_none()
            {
                self.settle_rest((uid, id), command, &booked, events);
                return true;
            }
        }
        let total = self.ledger.get_mut(symbol.quote);
        let taker = (uid, place);
        if book_with_taker::<BUYS>((users, total, symbol), taker, &booked).is_none() {
            self.settle_rest((uid, id), command, &booked, events);
            return true;
        }
        #[cfg(test)]
        ways::note_whole(BUYS);
        true
    }

    #[cold]
    #[inline(never)]
    fn settle_rest(
        &mut self,
        (uid, id): (UserId, SymbolId),
        command: &Command,
        booked: &Booked,
        events: &Events,
    ) {
        let hints = events.hints();
        let (rejected, events, hints) = match events.as_slice() {
            [rejected @ Event::Reject { .. }, rest @ ..] => (Some(rejected), rest, hints.from(1)),
            events => (None, events, hints),
        };
        #[cfg(test)]
        let booked = &ways::note_rest(booked, events);
        let slot = self.symbols.slot(id).expect("it was found before");
        let mut own = OwnOrder::of(command);
        if let Some(&Event::Reject {
            size,
            bidder_hold_price: hold,
            ..
        }) = rejected
            && let Some(place) = command.place()
        {
            own.note_rejected(size);
            self.reject(slot, uid, place.action, (size, hold));
        }
        let mut taken = Taken::default();
        if booked.trades > 0
            && let Event::Trade { taker_action, .. } = events[0]
        {
            let lots = i128::from(booked.lots);
            taken = Taken {
                lots,
                cost: booked.cost.into(),
                // It is not used for a seller.
                held: lots * i128::from(booked.hold),
                hold: booked.hold,
                action: Some(taker_action),
                ..taken
            };
            own.note_trade(booked.is_completed);
        }
        let rest = (&events[booked.trades..], hints.from(booked.trades));
        self.settle_rest_of_pair(command, (slot, uid), (own, taken), rest);
    }
}

#[inline(always)]
fn book_with_maker<const BUYS: bool>(
    users: &mut Users,
    symbol: &Symbol,
    (event, user): (&Event, UserHint),
    booked: &mut Booked,
) -> Option<()> {
    let Event::Trade {
        price,
        size,
        maker_uid: uid,
        maker_completed: completed,
        taker_completed,
        bidder_hold_price: hold,
        ..
    } = *event
    else {
        return None;
    };
    let made = Made {
        price,
        size,
        uid,
        user,
        reserve_price: hold,
        completed,
    };
    let lots = booked.lots.checked_add(size)?;
    let cost = pay_maker::<BUYS>(users, symbol, &made, booked.cost)?;
    debug_assert!(!BUYS || booked.trades == 0 || booked.hold == hold);
    *booked = Booked {
        trades: booked.trades + 1,
        lots,
        cost,
        hold,
        is_completed: taker_completed,
    };
    Some(())
}

/// Pays a maker for a trade. Gives what the taker's lots cost with those of this trade.
#[inline(always)]
fn pay_maker<const BUYS: bool>(
    users: &mut Users,
    symbol: &Symbol,
    made: &Made,
    cost: i64,
) -> Option<i64> {
    let Made {
        price,
        size,
        uid,
        user,
        reserve_price,
        completed,
    } = *made;
    let spec = &symbol.spec;
    let [base, quote] = symbol.currencies;
    let value = price.checked_mul(size)?;
    let sum = cost.checked_add(value);
    #[cfg(test)]
    let sum = ways::sum(sum, cost, value);
    let sum = sum?;
    let user = users.hinted_mut(user, uid)?;
    if BUYS {
        let fee = spec.maker_fee.checked_mul(size)?;
        let amount = value.checked_mul(spec.quote_scale)?.checked_sub(fee)?;
        user.set_near(user.near_sum(quote, amount)?);
    } else {
        let gain = reserve_price.checked_mul(size)?.checked_sub(value)?;
        let fee = spec.taker_fee.checked_sub(spec.maker_fee)?;
        let fee = fee.checked_mul(size)?;
        let back = gain.checked_mul(spec.quote_scale)?.checked_add(fee)?;
        let goods = spec.base_scale.checked_mul(size)?;
        let (back, goods) = (user.near_sum(quote, back)?, user.near_sum(base, goods)?);
        user.set_near(back);
        user.set_near(goods);
    }
    if completed {
        user.note_closed();
    }
    Some(sum)
}

/// Books a trade with a maker whose balances were not near, and are now.
#[cold]
#[inline(never)]
fn book_with_maker_again<const BUYS: bool>(
    users: &mut Users,
    symbol: &Symbol,
    event: (&Event, UserHint),
    booked: &mut Booked,
) -> Option<()> {
    let Event::Trade { maker_uid, .. } = *event.0 else {
        return None;
    };
    let is_new = users.bring_near(maker_uid, symbol.currencies);
    let event = is_new.then_some(event)?;
    book_with_maker::<BUYS>(users, symbol, event, booked)
}

/// Books trades with a taker whose order has a limit.
#[inline(always)]
fn book_with_taker<const BUYS: bool>(
    (users, total, symbol): (&mut Users, &mut Currency, &Symbol),
    (uid, place): (UserId, Option<&Place>),
    booked: &Booked,
) -> Option<()> {
    let is_gone = match place {
        Some(place) if place.order_type.is_budget() => return None,
        Some(place) => place.size == booked.lots,
        None => booked.is_completed,
    };
    let user = users.near_mut(uid)?;
    pay_taker::<BUYS>((user, total, symbol), booked, is_gone)
}

/// Pays the taker for all its trades, and the fees.
#[inline(always)]
fn pay_taker<const BUYS: bool>(
    (user, total, symbol): (&mut User, &mut Currency, &Symbol),
    booked: &Booked,
    is_gone: bool,
) -> Option<()> {
    let Booked {
        lots, cost, hold, ..
    } = *booked;
    #[cfg(test)]
    let cost = ways::rounded(cost);
    let spec = &symbol.spec;
    let [base, quote] = symbol.currencies;
    let fee = spec.taker_fee.checked_mul(lots)?;
    let fees = spec.maker_fee.checked_mul(lots)?.checked_add(fee)?;
    let fees = total.fees.checked_add(fees)?;
    if BUYS {
        // The fee part of what was held is kept: it is the taker's fee.
        let left = hold.checked_mul(lots)?.checked_sub(cost)?;
        let back = left.checked_mul(spec.quote_scale)?;
        let goods = spec.base_scale.checked_mul(lots)?;
        let (back, goods) = (user.near_sum(quote, back)?, user.near_sum(base, goods)?);
        user.set_near(back);
        user.set_near(goods);
    } else {
        let amount = cost.checked_mul(spec.quote_scale)?.checked_sub(fee)?;
        user.set_near(user.near_sum(quote, amount)?);
    }
    total.fees = fees;
    if is_gone {
        user.note_closed();
    }
    Some(())
}
