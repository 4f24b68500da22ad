//! Settlement: books what a command made happen, from the command and its events alone.

use super::Risk;
use super::symbol::Symbol;
use crate::command::{Action, Command, OrderType, Place};
use crate::event::{Event, Events, UserHint};
use crate::ids::UserId;
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// What the command's own order did, all trades together, to be booked once.
#[derive(Default)]
struct Taken {
    lots: i128,
    /// Σ price·size.
    cost: i128,
    /// Σ hold price·size of a buying taker.
    held: i128,
    action: Option<Action>,
    /// Rejected lots of an order that holds a budget.
    rejected: i128,
}

impl Risk {
    /// Books the events of a command: what its checks held is paid, or given back.
    ///
    /// `result` is what matching answered. Cost: one look-up per trade's maker, no allocation
    /// unless a user gets money in a currency for the first time.
    ///
    /// # Panics
    /// If the events are not those of this command after its check on this value.
    #[inline]
    pub fn settle(&mut self, command: &Command, result: ResultCode, events: &Events) {
        // The usual case: of an order in a pair, nothing happened but that it rests, or moved.
        if events.is_empty() && events.standing().is_none() && needs_events(command) {
            return;
        }
        self.settle_told(command, result, events);
    }

    #[inline(never)]
    fn settle_told(&mut self, command: &Command, result: ResultCode, events: &Events) {
        if result != ResultCode::Success {
            return;
        }
        let (Some(uid), Some(id)) = (command.uid(), command.symbol()) else {
            self.settle_removals(command, events);
            return;
        };
        let Some(slot) = self.symbols.slot(id) else {
            return;
        };
        if self.symbols.at(slot).is_futures() && self.rules.margin_trading {
            self.settle_futures(command, slot, events);
        } else if self.symbols.at(slot).is_pair() {
            self.settle_pair(command, slot, uid, events);
        }
    }

    fn settle_pair(&mut self, command: &Command, slot: u32, uid: UserId, events: &[Event]) {
        let symbol = *self.symbols.at(slot);
        let place = match command {
            Command::Place(place) => Some(place),
            _ => None,
        };
        let budget = place.filter(|place| self.rules.holds_budget(place));
        // Quirk: a FOK_BUDGET of no size that could be filled gets nothing back.
        let is_fok = |place: &Place| place.order_type == OrderType::FokBudget;
        if events.is_empty() && budget.is_none_or(is_fok) {
            return;
        }
        let mut taken = Taken::default();
        for event in events {
            match *event {
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    bidder_hold_price: hold,
                    taker_action,
                    ..
                } => {
                    taken.note(price, size, hold, taker_action);
                    self.settle_maker(&symbol, maker_uid, taker_action, (price, size, hold));
                }
                Event::Reject {
                    size,
                    bidder_hold_price,
                    ..
                } => {
                    if budget.is_some() {
                        taken.rejected += i128::from(size);
                    } else if let Some(place) = place {
                        // Quirk: this is too much for an IOC_BUDGET BID that is not filled.
                        self.give_back(&symbol, uid, place.action, size, bidder_hold_price);
                    }
                }
                Event::Reduce {
                    size,
                    bidder_hold_price,
                    action,
                    ..
                } => {
                    self.give_back(&symbol, uid, action, size, bidder_hold_price);
                }
                Event::Removed { .. } => self.settle_removed(event),
                Event::Triggered { .. } | Event::Refilled { .. } => {}
            }
        }
        self.settle_taker(&symbol, uid, budget, &taken);
    }

    fn settle_maker(
        &mut self,
        symbol: &Symbol,
        maker: UserId,
        taker_action: Action,
        (price, size, hold): (i64, i64, i64),
    ) {
        let spec = &symbol.spec;
        let lots = i128::from(size);
        let scale = i128::from(spec.quote_scale);
        let maker_fee = i128::from(spec.maker_fee);
        match taker_action {
            Action::Ask => {
                let gain = i128::from(hold) - i128::from(price);
                let fees = i128::from(spec.taker_fee) - maker_fee;
                let quote = lots * (gain * scale + fees);
                self.pay(symbol, maker, quote, lots * i128::from(spec.base_scale));
            }
            Action::Bid => {
                let value = lots * i128::from(price) * scale;
                self.pay(symbol, maker, value - lots * maker_fee, 0);
            }
        }
    }

    /// `budget`: a buyer's new order for whose whole size a budget is held.
    fn settle_taker(
        &mut self,
        symbol: &Symbol,
        uid: UserId,
        budget: Option<&Place>,
        taken: &Taken,
    ) {
        let spec = &symbol.spec;
        let scale = i128::from(spec.quote_scale);
        let taker_fee = i128::from(spec.taker_fee);
        let goods = taken.lots * i128::from(spec.base_scale);
        if let Some(place) = budget {
            // The budget, and the fees of what was rejected, less what was paid.
            let left = (i128::from(place.price) - taken.cost) * scale;
            self.pay(symbol, uid, left + taken.rejected * taker_fee, goods);
        } else {
            match taken.action {
                None => return,
                Some(Action::Ask) => {
                    self.pay(symbol, uid, taken.cost * scale - taken.lots * taker_fee, 0);
                }
                // The fee part of what was held is kept: it is the taker's fee.
                Some(Action::Bid) => {
                    self.pay(symbol, uid, (taken.held - taken.cost) * scale, goods);
                }
            }
        }
        let fees = (taker_fee + i128::from(spec.maker_fee)) * taken.lots;
        self.ledger.get_mut(symbol.quote).add_fees(fees);
    }

    pub(super) fn give_back(
        &mut self,
        symbol: &Symbol,
        uid: UserId,
        action: Action,
        size: i64,
        hold: i64,
    ) {
        let spec = &symbol.spec;
        let lots = i128::from(size);
        match action {
            Action::Ask => self.pay(symbol, uid, 0, lots * i128::from(spec.base_scale)),
            Action::Bid => {
                let value = i128::from(hold) * i128::from(spec.quote_scale);
                self.pay(symbol, uid, lots * (value + i128::from(spec.taker_fee)), 0);
            }
        }
    }

    /// Whoever is paid has a record afterwards, even where nothing is booked.
    fn pay(&mut self, symbol: &Symbol, uid: UserId, quote: i128, base: i128) {
        let user = self.users.settled(UserHint::UNKNOWN, uid);
        if quote != 0 {
            let balance = user.balance_mut(symbol.spec.quote_currency);
            self.ledger.get_mut(symbol.quote).add(balance, quote);
        }
        if base != 0 {
            let balance = user.balance_mut(symbol.spec.base_currency);
            self.ledger.get_mut(symbol.base).add(balance, base);
        }
    }
}

/// True where a command without events and without a standing leaves nothing to book.
#[inline]
const fn needs_events(command: &Command) -> bool {
    match command {
        Command::Move { .. } | Command::Cancel { .. } | Command::Reduce { .. } => true,
        // One of no size may have a budget to get back.
        Command::Place(place) => !matches!(place.order_type, OrderType::IocBudget),
        _ => false,
    }
}

impl Rules {
    /// True for a buyer's order that holds its price as a budget for its whole size, and gets
    /// back exactly what is left of it.
    const fn holds_budget(&self, place: &Place) -> bool {
        match (place.action, place.order_type) {
            (Action::Bid, OrderType::FokBudget) => true,
            (Action::Bid, OrderType::IocBudget) => self.fill_ioc_budget,
            _ => false,
        }
    }
}

impl Taken {
    fn note(&mut self, price: i64, size: i64, hold: i64, action: Action) {
        self.lots += i128::from(size);
        self.cost += i128::from(price) * i128::from(size);
        self.held += i128::from(hold) * i128::from(size);
        self.action = Some(action);
    }
}
