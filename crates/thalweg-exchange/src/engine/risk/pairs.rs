//! The fast path of a currency pair: its symbol and users are found once, and each check is made
//! once.
//!
//! Everything here either is done whole, or is left to the slow path and changes nothing.

#[cfg(test)]
mod paths;

#[cfg(test)]
pub(super) use self::paths::is_exact;
use super::Risk;
use super::cover::locked;
use super::futures::reserved_by_move;
use super::ledger::{Currency, Ledger};
use super::limits::{FastPathLimits, OwnOrder};
use super::settlement::Taken;
use super::symbols::{Symbol, Symbols};
use super::users::{User, Users};
use crate::command::{Action, Command, OrderType, Place};
use crate::event::{Event, Events, Made, Reduced, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;
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
    /// Returns a symbol that is found without a hash.
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
    fn reduce_fast(&mut self, (uid, symbol): (UserId, SymbolId), events: &Events) -> Option<()> {
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
        if !pair.gives_back() {
            return None;
        }
        pair.give_back(uid, &reduced)
    }
}

impl Pair<'_> {
    /// Returns where the symbol is.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns whether a move to this price passes: in a pair, without a look at its user.
    #[inline(always)]
    pub(crate) const fn takes_moves_to(&self, price: i64) -> bool {
        self.terms.symbol.plain_prices.holds(price) && !self.users.lost_any()
    }

    /// Returns where the symbol is, if it is a simple one.
    #[inline(always)]
    pub(crate) fn simple_slot(&self) -> Option<u32> {
        self.terms.symbol.is_simple.then_some(self.slot)
    }

    /// Returns whether it is a pair with fees per lot, in no auction.
    #[inline(always)]
    pub(crate) const fn gives_back(&self) -> bool {
        self.terms.symbol.gives_back
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

    /// Gives back the hold for lots of an order of this user, where the pair [gives
    /// it back](Self::gives_back), if no total changes.
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
            match user.cached_cover(side) {
                Some(stays) => stays,
                None => self.cache_cover(user, side)?,
            }
        };
        debug_assert_eq!(
            i128::from(stays),
            locked(user, (self.symbols, self.rules), currency)
        );
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
    fn cache_cover(self, user: &mut User, side: (usize, CurrencyId, u64)) -> Option<i64> {
        if user.has_limits() || user.has_futures() && !self.rules.cover_futures {
            return None;
        }
        let (_, currency, _) = side;
        let stays = match user.sole_position() {
            Some(only) if only.currency == currency => {
                let symbol = self.symbols.at(only.slot);
                only.asked_in_64_bits(symbol, 0, 0)?.0
            }
            _ => i64::try_from(locked(user, (self.symbols, self.rules), currency)).ok()?,
        };
        user.cache_cover(side, stays);
        Some(stays)
    }
}

// The fast path of settlement: an order in a pair with fees per lot trades, and all amounts fit.
//
// Amounts are computed in 64 bits. Each trade is booked whole or not at all: where one of them
// does not fit, a balance is or gets below zero, or an owner or a balance is not where it is
// expected, this trade and all that follows are left to the slow path of `settlement`, which
// takes up what was booked before and comes to the same in 128 bits.

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
    pub(crate) fn settle_place(&mut self, place: &Place, result: ResultCode, events: &Events) {
        // The common case: the order only rests. One of no size may have a budget to get back.
        if events.is_empty() && place.order_type != OrderType::IocBudget {
            let Some(top_of_book) = events.top_of_book() else {
                return;
            };
            let reserved = |symbol: &Symbol| symbol.reserved_for_new(place, place.size);
            if self.stands_as(place.symbol, top_of_book, reserved) {
                return;
            }
        }
        let (owner, command) = ((place.uid, place.symbol), &Command::Place(*place));
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
            let Some(top_of_book) = events.top_of_book() else {
                return;
            };
            let reserved = |_: &Symbol| reserved_by_move(price, events.moved());
            if self.stands_as(owner.1, top_of_book, reserved) {
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
        let Some(top_of_book) = events.top_of_book() else {
            return if !events.is_empty() {
                self.settle_slow(command, result, events);
            };
        };
        let hint = events.hints().at(0);
        if !self.reduce_in_futures(owner, top_of_book, (events, hint)) {
            self.settle_slow(command, result, events);
        }
    }

    /// Books what a command's order did where it begins with a trade: of a new order, `place` is
    /// the command's. False, and nothing done, for other events, and where it needs the slow path.
    #[inline(always)]
    fn settle_trades(
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
        paths::note_whole(BUYS);
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
        let booked = &paths::note_rest(booked, events);
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
    let sum = paths::sum(sum, cost, value);
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
        let bought = spec.base_scale.checked_mul(size)?;
        let (back, bought) = (user.near_sum(quote, back)?, user.near_sum(base, bought)?);
        user.set_near(back);
        user.set_near(bought);
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
    let cost = paths::rounded(cost);
    let spec = &symbol.spec;
    let [base, quote] = symbol.currencies;
    let fee = spec.taker_fee.checked_mul(lots)?;
    let fees = spec.maker_fee.checked_mul(lots)?.checked_add(fee)?;
    let fees = total.fees.checked_add(fees)?;
    if BUYS {
        // The fee part of what was held is kept: it is the taker's fee.
        let left = hold.checked_mul(lots)?.checked_sub(cost)?;
        let back = left.checked_mul(spec.quote_scale)?;
        let bought = spec.base_scale.checked_mul(lots)?;
        let (back, bought) = (user.near_sum(quote, back)?, user.near_sum(base, bought)?);
        user.set_near(back);
        user.set_near(bought);
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

// A new order's trades, booked with their makers as they happen.
//
// A trade that does not fit, and all that follow, are settled after the book.

/// The trades of a new order in a simple symbol, as far as they were booked.
pub(crate) struct Crossing<'r> {
    users: &'r mut Users,
    ledger: &'r mut Ledger,
    symbol: &'r Symbol,
    /// Σ price·size.
    cost: i64,
}

impl Risk {
    /// Returns what books the trades of an order as they happen. The slot must be that of a simple
    /// symbol (`Pair::simple_slot`).
    #[inline(always)]
    pub(crate) fn crossing(&mut self, slot: u32) -> Crossing<'_> {
        Crossing {
            users: &mut self.users,
            ledger: &mut self.ledger,
            symbol: self.symbols.at(slot),
            cost: 0,
        }
    }

    /// Settles a new order, `booked` of whose trades were booked with their makers.
    #[inline(never)]
    pub(crate) fn settle_crossed(
        &mut self,
        place: &Place,
        (result, events): (ResultCode, &Events),
        booked: &Booked,
    ) {
        if booked.trades == 0 {
            self.settle_place(place, result, events);
        } else {
            let command = &Command::Place(*place);
            self.settle_rest((place.uid, place.symbol), command, booked, events);
        }
    }
}

impl Crossing<'_> {
    /// Books a trade with its maker. False, and nothing done, where that cannot be done here.
    #[inline(always)]
    pub(crate) fn pays<const BUYS: bool>(&mut self, made: Made) -> bool {
        loop {
            if let Some(cost) = pay_maker::<BUYS>(self.users, self.symbol, &made, self.cost) {
                self.cost = cost;
                return true;
            }
            if !self.users.bring_near(made.uid, self.symbol.currencies) {
                return false;
            }
        }
    }

    /// Returns the sums that were booked of these events, all of them trades, of an order with
    /// `left` lots left.
    #[inline(always)]
    pub(crate) fn booked(&self, place: &Place, left: i64, events: &Events) -> Booked {
        let trades = events.len();
        #[cfg(test)]
        let trades = paths::booked(trades);
        Booked {
            trades,
            lots: place.size - left,
            cost: self.cost,
            hold: place.reserve_price,
            is_completed: left == 0,
        }
    }

    /// Pays the taker for all its trades, if they are all that happened.
    #[inline(always)]
    pub(crate) fn end<const BUYS: bool>(
        &mut self,
        (place, user): (&Place, UserHint),
        booked: &Booked,
        events: &Events,
    ) -> Option<()> {
        let is_all = events.len() == booked.trades;
        #[cfg(test)]
        let is_all = paths::note_at_once(BUYS, booked.trades, is_all);
        if !is_all {
            return None;
        }
        let user = self.users.hinted_mut(user, place.uid)?;
        let total = self.ledger.get_mut(self.symbol.quote);
        pay_taker::<BUYS>((user, total, self.symbol), booked, booked.is_completed)
    }
}
