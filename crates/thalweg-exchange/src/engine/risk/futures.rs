//! Futures: the check of orders against margin, and settlement into positions.

use super::Risk;
use super::ledger::PositionTotals;
use super::limits::OwnOrder;
use super::positions::Position;
use super::symbols::{LastPrices, NO_CURRENCY, Symbol, Symbols, is_plain};
use super::users::{Owner, User, UserStatus};
use crate::command::{Action, Command, OrderType, Place, SymbolSpec};
use crate::event::{Event, Events, Hints, MovedOrder, TopOfBook, UserHint};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;

/// The sums of a command's trades.
#[derive(Default)]
struct Tally {
    /// Lots that the taker opened, and what they are worth in units of price.
    opened: (i128, i128),
    uncovered: Totals,
}

impl Tally {
    /// Returns the taker's fee for lots that one more trade opens: their part of the fee for all
    /// lots that the command opens, which is rounded once.
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

impl Risk {
    /// Checks a new order in a futures symbol, after the checks that do not depend on the symbol's
    /// type.
    pub(super) fn check_place_futures(&mut self, place: &Place, owner: u32, slot: u32) -> Checked {
        // The checks below, and those of a bid in a pair, visit each record of the user.
        let user = self.users.at(owner);
        let are_most = user.positions().len() >= self.rules.work_max();
        if are_most && user.position(place.symbol).is_none() {
            return Err(ResultCode::RiskTooManyPositions);
        }
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

    /// Checks a move in a futures symbol: no margin is asked for, but what could be moved at the
    /// new price must have room. Which order it is, matching will know.
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
        if let Some(top_of_book) = events.top_of_book() {
            let symbol = self.symbols.at_mut(slot);
            symbol.last = Some(LastPrices::of(top_of_book));
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
        (events, hints, moved): (&[Event], Hints<'_>, Option<&MovedOrder>),
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
                    size,
                    completed,
                    action,
                    ..
                } => self.release(slot, (hints.at(at), uid), action, size, completed),
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
            let events = &events[..triggered];
            self.note_uncovered(command, slot, (gone, moved), (tally.uncovered, events));
        }
        if triggered < events.len() {
            self.settle_triggered(slot, &events[triggered..]);
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
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let place = self.users.settled_slot(owner);
        let user = self.users.at_mut(place);
        if is_gone {
            user.note_closed();
        }
        let is_empty = if self.rules.cover_futures {
            let position = user.position_or(spec.id, || Position::new(spec, slot));
            let opened = position.trade(action, lots, price, true);
            let gain = std::mem::take(&mut position.profit);
            let is_empty = position.is_empty();
            let fee = tally.fee_on_opened(spec, is_taker, opened, price);
            self.settle_covered(slot, place, gain, fee);
            is_empty
        } else {
            let side = (action, is_taker);
            self.trade_uncovered((slot, place), side, (lots, price), &mut tally.uncovered)
        };
        if is_empty {
            self.remove_if_empty(slot, place);
        }
        UserHint(place)
    }
}

// The fast path of futures: orders at plain prices (see `PlainPrices`) of owners with one record at
// most, orders that rest, and cancels. The slow path would come to the same.

impl Risk {
    /// Accepts a new order in futures of an owner who has no record in another symbol, if it takes
    /// the fast path, and returns where the owner is.
    #[inline(always)]
    pub(super) fn place_in_futures_fast(&mut self, place: &Place) -> Option<u32> {
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
            let holds_fees = self.rules.hold_futures_fees;
            position.is_covered_with(place, symbol, (balance, waiting), holds_fees)
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
    fn may_move(&self, symbol: &Symbol, user: &User, price: i64) -> bool {
        self.rules.cover_futures
            || user.position(symbol.spec.id).is_none_or(|position| {
                let lots = position.pending_buy.max(position.pending_sell);
                self.has_room(symbol, symbol.reserved(price, lots))
            })
    }

    /// Returns whether a move to a plain price of a futures symbol passes without the slow path;
    /// see the module's text.
    #[inline]
    pub(super) fn futures_move_takes_fast_path(
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
    pub(super) fn stands_as(
        &mut self,
        symbol: SymbolId,
        top_of_book: &TopOfBook,
        reserved: impl FnOnce(&Symbol) -> i128,
    ) -> bool {
        let Some((slot, symbol)) = self.symbols.near_with_slot(symbol) else {
            return false;
        };
        symbol.is_futures()
            && self.rules.margin_trading
            && self.stands_at(slot, top_of_book, reserved)
    }

    /// Settles a command without events in a symbol of futures that are traded.
    #[inline(always)]
    fn stands_at(
        &mut self,
        slot: u32,
        top_of_book: &TopOfBook,
        reserved: impl FnOnce(&Symbol) -> i128,
    ) -> bool {
        let symbol = self.symbols.at_mut(slot);
        if !self.rules.cover_futures {
            if symbol.quote == NO_CURRENCY {
                return false;
            }
            self.ledger.get_mut(symbol.quote).reserved += reserved(symbol);
        }
        symbol.last = Some(LastPrices::of(top_of_book));
        true
    }

    /// Settles a move that [passed](Self::passes_move_in_futures).
    #[inline(always)]
    pub(crate) fn settle_move_fast(
        &mut self,
        slot: u32,
        (price, moved): (i64, &MovedOrder),
        top_of_book: &TopOfBook,
    ) -> bool {
        let reserved = |_: &Symbol| reserved_by_move(price, Some(moved));
        self.stands_at(slot, top_of_book, reserved)
    }

    /// Books that one order in futures was reduced or cancelled, if its owner is where the hint
    /// says.
    #[inline(always)]
    pub(crate) fn reduce_in_futures(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        top_of_book: &TopOfBook,
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
        symbol.last = Some(LastPrices::of(top_of_book));
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

// Futures that are not covered, as the reference has them: margin against the best prices, and a
// bound on the ledger in place of a cover. Under the default rules nothing of this is called.

/// The change of a currency's totals by a command's trades, to be booked once.
#[derive(Default)]
pub(super) struct Totals {
    stake: PositionTotals,
    fees: i128,
}

impl Symbol {
    /// Returns the amount reserved for resting futures lots: see the `ledger` module.
    #[inline]
    pub(super) fn reserved(&self, price: i64, lots: i64) -> i128 {
        let more = self.fee_max().unsigned_abs() + 1;
        match price.unsigned_abs().checked_add(more) {
            Some(per_lot) => i128::from(per_lot) * i128::from(lots),
            None => (i128::from(price.unsigned_abs()) + i128::from(more)) * i128::from(lots),
        }
    }

    /// Returns the amount reserved for lots of a new order: one that cannot rest trades at prices
    /// of others only.
    pub(super) fn reserved_for_new(&self, place: &Place, lots: i64) -> i128 {
        let price = match place.order_type {
            OrderType::Gtc => place.price,
            _ => 0,
        };
        self.reserved(price, lots)
    }

    /// Returns the further amount reserved for the command's own order, after `gone` of its lots
    /// are gone.
    fn reserved_by(&self, command: &Command, gone: i64, moved: Option<&MovedOrder>) -> i128 {
        match *command {
            Command::Place(ref place) => self.reserved_for_new(place, place.size - gone),
            Command::PlaceConditional(ref order) => {
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
pub(super) fn reserved_by_move(price: i64, moved: Option<&MovedOrder>) -> i128 {
    let before = moved.expect("matching gives it with a move");
    let [from, to] = [before.price, price].map(|price| i128::from(price.unsigned_abs()));
    (to - from) * i128::from(before.left)
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

    /// Returns whether so much more may be reserved in the quote currency of a futures symbol.
    #[inline]
    pub(super) fn has_room(&self, symbol: &Symbol, more: i128) -> bool {
        if symbol.quote == NO_CURRENCY {
            self.ledger.has_room_in(symbol.spec.quote_currency, more)
        } else {
            self.ledger.get(symbol.quote).has_room(more)
        }
    }

    /// Returns whether there is room for the amount that a move to a plain price could reserve, if
    /// its owner is found without the index and may trade.
    #[inline(never)]
    pub(super) fn has_room_for_move(&mut self, uid: UserId, symbol: SymbolId, price: i64) -> bool {
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
    fn trade_uncovered(
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
        totals.stake -= position.totals();
        let opened = position.trade(action, lots, price, self.rules.realise_partial_close);
        totals.stake += position.totals();
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
    fn note_uncovered(
        &mut self,
        command: &Command,
        slot: u32,
        (gone, moved): (i64, Option<&MovedOrder>),
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
        total.note_position(PositionTotals::default(), totals.stake);
        if totals.fees != 0 {
            total.add_fees(totals.fees);
        }
        total.reserved += reserved;
    }
}
