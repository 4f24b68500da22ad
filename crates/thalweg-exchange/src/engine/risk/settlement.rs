//! Settlement: books what a command made happen, from the command and its events alone.

use super::Risk;
use super::ledger::PositionTotals;
use super::limits::OwnOrder;
use super::positions::{Direction, Position};
use super::reference::gets_nothing_back;
use super::symbols::{LastPrices, TradingLimits};
use super::users::Owner;
use crate::command::{Action, Command, Place, SymbolSpec};
use crate::event::{Event, Events, Hints, RemovalReason, TopOfBook, UserHint};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

/// The trades of the command's own order together, to be booked once.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) lots: i128,
    /// Σ price·size.
    pub(super) cost: i128,
    /// Σ hold price·size of a buying taker, and its hold price.
    pub(super) held: i128,
    pub(super) hold: i64,
    pub(super) action: Option<Action>,
    /// Rejected lots of an order that holds a budget.
    pub(super) rejected: i128,
    /// Σ of what the makers pay, less what they get, where fees are of the value.
    pub(super) maker_fees: i128,
}

/// Quote currency that comes back, base currency that was bought, and fees.
pub(super) type Paid = (i128, i128, i128);

impl Risk {
    /// Runs the last part of [`apply`](crate::apply), for tests of it.
    ///
    /// Books the events of a command: what its checks held is paid, or given back.
    ///
    /// `result` is what matching answered. Cost: nothing for a pair's command without events, else
    /// one look at the record of each trade's maker, found by a hint; no allocation
    /// unless a user gets money in a fourth currency for the first time.
    ///
    /// # Panics
    /// If the events are not those of this command after its check on this value.
    #[doc(hidden)]
    #[inline]
    pub fn settle(&mut self, command: &Command, result: ResultCode, events: &Events) {
        match *command {
            Command::Place(ref place) => self.settle_place(place, result, events),
            Command::Move {
                uid, symbol, price, ..
            } => self.settle_move((uid, symbol), price, command, result, events),
            Command::Cancel { uid, symbol, .. } | Command::Reduce { uid, symbol, .. } => {
                self.settle_reduced((uid, symbol), command, result, events);
            }
            _ => self.settle_slow(command, result, events),
        }
    }

    #[inline(never)]
    pub(crate) fn settle_slow(&mut self, command: &Command, result: ResultCode, events: &Events) {
        if let (Command::Amend(amend), true) = (command, result.is_refusal()) {
            self.settle_refused(amend, result);
        }
        // A command that matching rejected has no success as its result, and yet has events.
        if result == ResultCode::Success || !events.is_empty() {
            self.settle_any(command, events);
        }
    }

    #[inline(never)]
    fn settle_any(&mut self, command: &Command, events: &Events) {
        let (uid, id) = match *command {
            Command::Place(ref place) => (place.uid, place.symbol),
            Command::Move { uid, symbol, .. }
            | Command::Cancel { uid, symbol, .. }
            | Command::Reduce { uid, symbol, .. } => (uid, symbol),
            _ => match (command.uid(), command.symbol()) {
                (Some(uid), Some(symbol)) => (uid, symbol),
                _ => return self.settle_removals(command, events),
            },
        };
        let Some(slot) = self.symbols.slot(id) else {
            return;
        };
        if self.symbols.at(slot).is_pair() {
            let own = OwnOrder::of(command);
            self.settle_pair(command, (slot, uid), own, (events, events.hints()));
        } else if self.symbols.at(slot).is_futures() && self.rules.margin_trading {
            self.settle_futures(command, (slot, uid), events);
        }
    }

    #[inline(never)]
    pub(super) fn settle_pair(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        own: OwnOrder,
        (events, hints): (&[Event], Hints<'_>),
    ) {
        let place = command.place();
        let budget = place.filter(|place| self.rules.holds_budget(place));
        if events.is_empty() && budget.is_none_or(gets_nothing_back) {
            return;
        }
        self.settle_rest_of_pair(
            command,
            (slot, uid),
            (own, Taken::default()),
            (events, hints),
        );
    }

    /// Settles the rest of a command in a pair, after what was taken already.
    #[inline(never)]
    pub(super) fn settle_rest_of_pair(
        &mut self,
        command: &Command,
        (slot, uid): (u32, UserId),
        (mut own, mut taken): (OwnOrder, Taken),
        (events, hints): (&[Event], Hints<'_>),
    ) {
        let place = command.place();
        let budget = place.filter(|place| self.rules.holds_budget(place));
        let mut triggered = events.len();
        let by_value = self.symbols.at(slot).spec.fees_are_of_value();
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    maker_completed,
                    taker_completed,
                    bidder_hold_price: hold,
                    taker_action,
                    ..
                } => {
                    taken.note(price, size, hold, taker_action);
                    own.note_trade(taker_completed);
                    let maker = (hints.at(at), maker_uid);
                    let trade = (price, size, hold, maker_completed);
                    self.settle_a_maker((slot, by_value), maker, taker_action, trade, &mut taken);
                }
                Event::Reject {
                    size,
                    bidder_hold_price: hold,
                    ..
                } => {
                    own.note_rejected(size);
                    match (budget, place) {
                        (Some(_), _) => taken.rejected += i128::from(size),
                        // Quirk: this is too much for an IOC_BUDGET BID that is not filled.
                        (_, Some(place)) => self.reject(slot, uid, place.action, (size, hold)),
                        _ => {}
                    }
                }
                Event::Reduce {
                    size,
                    completed,
                    bidder_hold_price,
                    action,
                    ..
                } => {
                    let lots = (size, bidder_hold_price);
                    self.give_back(slot, (hints.at(at), uid), action, lots, completed);
                }
                Event::Removed { .. } => self.settle_removed_by(&mut own, uid, event),
                Event::Triggered { .. } => {
                    triggered = at;
                    break;
                }
                Event::Uncrossed { .. } | Event::Refilled { .. } => {}
            }
        }
        self.settle_taker((slot, uid), budget, &taken, own.is_gone(taken.lots));
        self.settle_triggered(slot, &events[triggered..]);
    }

    pub(super) fn reject(&mut self, slot: u32, uid: UserId, action: Action, lots: (i64, i64)) {
        self.give_back(slot, (UserHint::UNKNOWN, uid), action, lots, false);
    }

    /// Adds the maker's fee where fees are of the value.
    #[inline(always)]
    fn settle_a_maker(
        &mut self,
        (slot, by_value): (u32, bool),
        maker: Owner,
        taker_action: Action,
        trade: (i64, i64, i64, bool),
        taken: &mut Taken,
    ) {
        if by_value {
            taken.maker_fees += self.settle_maker_by_value(slot, maker, taker_action, trade);
        } else {
            self.settle_maker(slot, maker, taker_action, trade);
        }
    }

    /// Amounts are computed in 64 bits. Where that fails, or a balance is below zero, it is done
    /// again in 128, which is what counts.
    #[inline]
    fn settle_maker(
        &mut self,
        slot: u32,
        maker: Owner,
        taker_action: Action,
        (price, size, hold, is_gone): (i64, i64, i64, bool),
    ) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let user = self.users.settled(maker);
        if is_gone {
            user.note_closed();
        }
        let quote = user.balance_mut(spec.quote_currency);
        let [lots, scale, maker_fee, taker_fee] =
            [size, spec.quote_scale, spec.maker_fee, spec.taker_fee];
        match taker_action {
            Action::Ask => {
                let fees = taker_fee - maker_fee;
                let amount = (hold.checked_sub(price)).and_then(|gain| {
                    gain.checked_mul(scale)?
                        .checked_add(fees)?
                        .checked_mul(lots)
                });
                self.ledger.pay(symbol.quote, quote, amount, || {
                    let gain = i128::from(hold) - i128::from(price);
                    i128::from(lots) * (gain * i128::from(scale) + i128::from(fees))
                });
                let base = user.balance_mut(spec.base_currency);
                let amount = lots.checked_mul(spec.base_scale);
                self.ledger.pay(symbol.base, base, amount, || {
                    i128::from(lots) * i128::from(spec.base_scale)
                });
            }
            Action::Bid => {
                let amount = (price.checked_mul(scale))
                    .and_then(|value| value.checked_sub(maker_fee)?.checked_mul(lots));
                self.ledger.pay(symbol.quote, quote, amount, || {
                    let value = i128::from(price) * i128::from(scale);
                    i128::from(lots) * (value - i128::from(maker_fee))
                });
            }
        }
    }

    /// Settles with a maker where fees are a part of the value; returns the maker's fee, also of a
    /// maker without a record.
    #[inline(never)]
    fn settle_maker_by_value(
        &mut self,
        slot: u32,
        maker: Owner,
        taker_action: Action,
        (price, size, hold, is_gone): (i64, i64, i64, bool),
    ) -> i128 {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let lots = i128::from(size);
        let value = lots * i128::from(price) * i128::from(spec.quote_scale);
        let fee = spec.maker_fee_of(size, price);
        let paid = value + fee;
        let (quote, base) = match taker_action {
            Action::Ask => (
                lots * spec.held_per_lot(hold) - paid,
                lots * i128::from(spec.base_scale),
            ),
            Action::Bid => (value + value - paid, 0),
        };
        let user = self.users.settled(maker);
        if is_gone {
            user.note_closed();
        }
        let balance = user.balance_mut(spec.quote_currency);
        self.ledger.pay_exactly(symbol.quote, balance, quote);
        if base != 0 {
            let balance = user.balance_mut(spec.base_currency);
            self.ledger.pay_exactly(symbol.base, balance, base);
        }
        fee
    }

    /// `budget`: a buyer's new order for whose whole size a budget is held.
    fn settle_taker(
        &mut self,
        (slot, uid): (u32, UserId),
        budget: Option<&Place>,
        taken: &Taken,
        is_gone: bool,
    ) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let paid = if spec.fees_are_of_value() {
            taken.paid_by_value(spec, budget)
        } else {
            taken.paid_per_lot(spec, budget)
        };
        if paid.is_none() && !is_gone {
            return;
        }
        let user = self.users.settled((UserHint::UNKNOWN, uid));
        if is_gone {
            user.note_closed();
        }
        let Some((quote, base, fees)) = paid else {
            return;
        };
        self.ledger.get_mut(symbol.quote).add_fees(fees);
        let balance = user.balance_mut(spec.quote_currency);
        self.ledger.pay_exactly(symbol.quote, balance, quote);
        if base != 0 {
            let balance = user.balance_mut(spec.base_currency);
            self.ledger.pay_exactly(symbol.base, balance, base);
        }
    }

    /// Gives back what was held for lots of an order in a pair, which may be gone with them.
    pub(super) fn give_back(
        &mut self,
        slot: u32,
        owner: Owner,
        action: Action,
        (lots, hold): (i64, i64),
        is_gone: bool,
    ) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let side = action as usize;
        let currency = [spec.base_currency, spec.quote_currency][side];
        let amount = symbol.money(action, lots, hold);
        // The user who is paid has a record afterwards, even where nothing is booked.
        let user = self.users.settled(owner);
        if is_gone {
            user.note_closed();
        }
        let total = [symbol.base, symbol.quote][side];
        let balance = user.balance_mut(currency);
        self.ledger.pay(total, balance, amount, || match action {
            Action::Ask => i128::from(lots) * i128::from(spec.base_scale),
            Action::Bid => i128::from(lots) * spec.held_per_lot(hold),
        });
    }
}

impl Taken {
    fn note(&mut self, price: i64, size: i64, hold: i64, action: Action) {
        self.lots += i128::from(size);
        self.cost += i128::from(price) * i128::from(size);
        self.held += i128::from(hold) * i128::from(size);
        self.hold = hold;
        self.action = Some(action);
    }

    /// Returns the quote currency that the taker gets back, the base currency that it bought, and
    /// the fees of both sides; `None` where it traded nothing.
    #[inline]
    fn paid_per_lot(&self, spec: &SymbolSpec, budget: Option<&Place>) -> Option<Paid> {
        let scale = i128::from(spec.quote_scale);
        let taker_fee = i128::from(spec.taker_fee);
        let bought = self.lots * i128::from(spec.base_scale);
        let fees = (taker_fee + i128::from(spec.maker_fee)) * self.lots;
        if let Some(place) = budget {
            // The budget, and the fees of what was rejected, less what was paid.
            let left = (i128::from(place.price) - self.cost) * scale;
            return Some((left + self.rejected * taker_fee, bought, fees));
        }
        Some(match self.action? {
            Action::Ask => (self.cost * scale - self.lots * taker_fee, 0, fees),
            // The fee part of what was held is kept: it is the taker's fee.
            Action::Bid => ((self.held - self.cost) * scale, bought, fees),
        })
    }
}

// Orders of any owner that a command took out of their books; and symbols that go with all of
// theirs.

impl Risk {
    /// Checks that a symbol may go: only when no user has an open position there. Pending lots go
    /// with their orders.
    pub(super) fn check_removal(&self, symbol: SymbolId) -> Result<ResultCode, ResultCode> {
        if self.symbols.slot(symbol).is_none() {
            return Err(ResultCode::InvalidSymbol);
        }
        let mut positions = self.users.with_position(symbol);
        let is_open = |direction| direction != Direction::Empty;
        if positions.any(|user| user.position(symbol).is_some_and(|p| is_open(p.direction))) {
            return Err(ResultCode::SymbolHasOpenPositions);
        }
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// Books the events of a command that concerns no single order: orders that are gone, and how
    /// the books of their futures symbols stand then.
    #[cold]
    fn settle_removals(&mut self, command: &Command, events: &Events) {
        if let Command::RunStops { symbol } | Command::Uncross { symbol, .. } = *command {
            self.settle_uncross(symbol, events);
        } else {
            for event in events {
                self.settle_removed(event);
            }
        }
        for (symbol, top_of_book) in events.tops_of_book() {
            self.note_last_prices(*symbol, top_of_book);
        }
        self.note_step(command, events.is_unfinished());
        match *command {
            Command::RemoveSymbol { symbol } => self.forget_symbol(symbol),
            Command::Reset => *self = Self::new(self.rules),
            _ => {}
        }
    }

    /// Its orders are gone already, and with them all records but those that an order of no size
    /// left: no record may outlive its symbol, whose slot it knows.
    fn forget_symbol(&mut self, symbol: SymbolId) {
        let Some(slot) = self.symbols.slot(symbol) else {
            return;
        };
        let owners: Vec<UserId> = self.users.with_position(symbol).map(|u| u.uid).collect();
        for uid in owners {
            if let Some(place) = self.users.slot(uid) {
                self.remove_if_empty(slot, place);
            }
        }
        self.symbols.remove(symbol);
    }

    /// Gives back what is held for the lots of an [`Event::Removed`]; other events are none of this
    /// function's. In futures, a lot must have been reserved for at the price of the event.
    ///
    /// Cost: a look-up of the symbol and one of the owner.
    #[cold]
    fn settle_removed(&mut self, event: &Event) {
        let Event::Removed {
            symbol,
            uid,
            action,
            price,
            size,
            bidder_hold_price,
            why,
            ..
        } = *event
        else {
            return;
        };
        let Some(slot) = self.symbols.slot(symbol) else {
            return;
        };
        let owner = (UserHint::UNKNOWN, uid);
        let is_gone = !matches!(why, RemovalReason::Reduced | RemovalReason::Decremented);
        let symbol = self.symbols.at(slot);
        if symbol.is_pair() {
            self.give_back(slot, owner, action, (size, bidder_hold_price), is_gone);
        } else if symbol.is_futures() && self.rules.margin_trading {
            if !self.rules.cover_futures {
                let reserved = symbol.reserved(price, size);
                self.ledger.get_mut(symbol.quote).reserved -= reserved;
            }
            self.release(slot, owner, action, size, is_gone);
        }
    }

    /// Remembers the best prices of a futures symbol after a command that succeeded there.
    fn note_last_prices(&mut self, symbol: SymbolId, top_of_book: &TopOfBook) {
        if let Some(slot) = self.symbols.slot(symbol) {
            self.symbols.at_mut(slot).last = Some(LastPrices::of(top_of_book));
        }
    }

    /// Settles an event of a command with an order of its own, which may be the removed one.
    pub(super) fn settle_removed_by(&mut self, own: &mut OwnOrder, uid: UserId, event: &Event) {
        own.note_removed(uid, event);
        self.settle_removed(event);
    }

    /// Lots that left the book without a trade, and the order with them where it `is_gone`.
    pub(super) fn release(
        &mut self,
        slot: u32,
        owner: Owner,
        action: Action,
        lots: i64,
        is_gone: bool,
    ) {
        let spec = &self.symbols.at(slot).spec;
        let place = self.users.settled_slot(owner);
        let user = self.users.at_mut(place);
        if is_gone {
            user.note_closed();
        }
        let position = user.position_or(spec.id, || Position::new(spec, slot));
        *position.pending(action) -= lots;
        if position.is_empty() {
            self.remove_if_empty(slot, place);
        }
    }

    /// A record of a user, whose place is given, goes if it is empty, and its profit becomes money.
    pub(super) fn remove_if_empty(&mut self, slot: u32, place: u32) {
        let symbol = self.symbols.at(slot);
        let user = self.users.at_mut(place);
        if let Some(position) = user.take_empty_position(symbol.spec.id) {
            let total = self.ledger.get_mut(symbol.quote);
            total.note_position(position.totals(), PositionTotals::default());
            if position.profit != 0 {
                let balance = user.balance_mut(symbol.spec.quote_currency);
                total.add(balance, position.profit.into());
            }
        }
    }
}

// Call auctions: the phase of a symbol, and the settlement of an uncross.
//
// Every order that trades in one was accepted and held for like any other, at its own limit,
// and trades at a price that is as good for it or better. Both sides pay the taker fee, of the
// value of each trade where it is of the value: it is what a buyer's hold has, what a seller's
// limit must bring in, and what futures are covered for.

impl Risk {
    pub(super) fn start_auction(&mut self, symbol: SymbolId) -> Result<(), ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        if !self.has_auctions(symbol) {
            return Err(ResultCode::UnsupportedSymbolType);
        }
        if limits.auction {
            return Err(ResultCode::SymbolInAuction);
        }
        self.set_limits(
            symbol,
            TradingLimits {
                halted: false,
                auction: true,
                busy: false,
                ..limits
            },
        )
    }

    fn has_auctions(&self, symbol: SymbolId) -> bool {
        let is_covered = self.rules.cover_futures && self.rules.margin_trading;
        let symbol = self.symbols.get(symbol);
        let is_traded =
            symbol.is_some_and(|symbol| symbol.is_pair() || symbol.is_futures() && is_covered);
        is_traded && self.rules.refuse_not_positive
    }

    pub(super) fn check_uncross(
        &self,
        symbol: SymbolId,
        reference: Option<i64>,
    ) -> Result<ResultCode, ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        if !limits.auction {
            return Err(ResultCode::SymbolNotInAuction);
        }
        if limits.halted {
            return Err(ResultCode::SymbolHalted);
        }
        if reference.is_some_and(|price| price <= 0) {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// Checks that orders of a symbol trade now.
    pub(crate) fn check_run_stops(&self, symbol: SymbolId) -> Result<ResultCode, ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        match limits {
            TradingLimits { halted: true, .. } => Err(ResultCode::SymbolHalted),
            TradingLimits { auction: true, .. } => Err(ResultCode::SymbolInAuction),
            TradingLimits { busy: true, .. } => Err(ResultCode::SymbolHalted),
            _ => Ok(ResultCode::ValidForMatchingEngine),
        }
    }

    /// Books an uncross: orders outside the band, the trades, and the stop orders that they
    /// triggered; or stop orders that were left over.
    fn settle_uncross(&mut self, symbol: SymbolId, events: &Events) {
        let Some(slot) = self.symbols.slot(symbol) else {
            return;
        };
        let (mut buyer, hints) = (None, events.hints());
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Uncrossed {
                    uid,
                    bidder_hold_price,
                    ..
                } => buyer = Some(((UserHint::UNKNOWN, uid), bidder_hold_price)),
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    maker_completed,
                    taker_completed,
                    ..
                } => {
                    let (buyer, hold) = buyer.expect("a buyer comes before his trades");
                    let seller = (hints.at(at), maker_uid);
                    if self.symbols.at(slot).is_pair() {
                        self.sell_in_auction(slot, seller, (price, size), maker_completed);
                        self.buy_in_auction(slot, buyer, (price, size, hold), taker_completed);
                    } else {
                        let lots = (size, price);
                        let seller = (seller, Action::Ask, true, maker_completed);
                        self.trade_covered(slot, (buyer, Action::Bid, true, taker_completed), lots);
                        self.trade_covered(slot, seller, lots);
                    }
                }
                Event::Triggered { .. } => return self.settle_triggered(slot, &events[at..]),
                Event::Removed { .. } => self.settle_removed(event),
                Event::Reject { .. } | Event::Reduce { .. } | Event::Refilled { .. } => {}
            }
        }
    }

    fn sell_in_auction(&mut self, slot: u32, seller: Owner, lots: (i64, i64), is_gone: bool) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let [price, size] = [lots.0, lots.1].map(i128::from);
        let fee = spec.taker_fee_of(size, price * size);
        self.ledger.get_mut(symbol.quote).add_fees(fee);
        let user = self.users.settled(seller);
        if is_gone {
            user.note_closed();
        }
        let balance = user.balance_mut(spec.quote_currency);
        let amount = price * i128::from(spec.quote_scale) * size - fee;
        self.ledger.pay_exactly(symbol.quote, balance, amount);
    }

    fn buy_in_auction(
        &mut self,
        slot: u32,
        buyer: Owner,
        (price, size, hold): (i64, i64, i64),
        is_gone: bool,
    ) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let [price, size] = [price, size].map(i128::from);
        let fee = spec.taker_fee_of(size, price * size);
        self.ledger.get_mut(symbol.quote).add_fees(fee);
        let user = self.users.settled(buyer);
        if is_gone {
            user.note_closed();
        }
        let balance = user.balance_mut(spec.quote_currency);
        let paid = price * i128::from(spec.quote_scale) * size + fee;
        let amount = spec.held_per_lot(hold) * size - paid;
        self.ledger.pay_exactly(symbol.quote, balance, amount);
        let balance = user.balance_mut(spec.base_currency);
        let bought = size * i128::from(spec.base_scale);
        self.ledger.pay_exactly(symbol.base, balance, bought);
    }
}
