//! Settlement: books what a command made happen, from the command and its events alone.

use super::Risk;
use super::symbol::Symbol;
use crate::command::{Action, Command, OrderType, Place};
use crate::event::Event;
use crate::ids::UserId;
use crate::result_code::ResultCode;

/// What the command's own order did, all trades together, to be booked once.
#[derive(Default)]
struct Taken {
    lots: i128,
    /// Σ price·size.
    cost: i128,
    /// Σ hold price·size of a buying taker.
    held: i128,
    action: Option<Action>,
}

impl Risk {
    /// Books the events of a command: what its checks held is paid, or given back.
    ///
    /// `result` is what matching answered. Cost: one look-up per trade's maker, no allocation
    /// unless a user gets money in a currency for the first time.
    ///
    /// # Panics
    /// If the events are not those of this command after its check on this value.
    pub fn settle(&mut self, command: &Command, result: ResultCode, events: &[Event]) {
        if events.is_empty() || result != ResultCode::Success {
            return;
        }
        let (Some(uid), Some(symbol)) = (command.uid(), command.symbol()) else {
            return;
        };
        let Some(&symbol) = self.symbols.get(symbol).filter(|symbol| symbol.is_pair()) else {
            return;
        };
        let place = match command {
            Command::Place(place) => Some(place),
            _ => None,
        };
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
                    price,
                    size,
                    bidder_hold_price,
                } => {
                    if let Some(place) = place {
                        let hold = (price, bidder_hold_price);
                        self.give_back_rejected(&symbol, place, size, hold);
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
            }
        }
        self.settle_taker(&symbol, uid, place, &taken);
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

    fn settle_taker(&mut self, symbol: &Symbol, uid: UserId, place: Option<&Place>, taken: &Taken) {
        let Some(action) = taken.action else { return };
        let spec = &symbol.spec;
        let scale = i128::from(spec.quote_scale);
        let taker_fee = i128::from(spec.taker_fee);
        match action {
            Action::Ask => {
                self.pay(symbol, uid, taken.cost * scale - taken.lots * taker_fee, 0);
            }
            Action::Bid => {
                // The fee part of what was held is kept: it is the taker's fee.
                let held = match place {
                    Some(place) if place.order_type == OrderType::FokBudget => {
                        i128::from(place.price)
                    }
                    _ => taken.held,
                };
                let base = taken.lots * i128::from(spec.base_scale);
                self.pay(symbol, uid, (held - taken.cost) * scale, base);
            }
        }
        let fees = (taker_fee + i128::from(spec.maker_fee)) * taken.lots;
        self.ledger.get_mut(symbol.quote).add_fees(fees);
    }

    /// Gives back what was held for lots of a new order that neither matched nor rest.
    fn give_back_rejected(
        &mut self,
        symbol: &Symbol,
        place: &Place,
        size: i64,
        (price, hold): (i64, i64),
    ) {
        if place.action == Action::Bid && place.order_type == OrderType::FokBudget {
            let budget = i128::from(price) * i128::from(symbol.spec.quote_scale);
            let fees = i128::from(size) * i128::from(symbol.spec.taker_fee);
            self.pay(symbol, place.uid, budget + fees, 0);
        } else {
            // Quirk: this is too much for an IOC_BUDGET BID, which mended rules refuse.
            self.give_back(symbol, place.uid, place.action, size, hold);
        }
    }

    fn give_back(&mut self, symbol: &Symbol, uid: UserId, action: Action, size: i64, hold: i64) {
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
        let user = self.users.settled(uid);
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

impl Taken {
    fn note(&mut self, price: i64, size: i64, hold: i64, action: Action) {
        self.lots += i128::from(size);
        self.cost += i128::from(price) * i128::from(size);
        self.held += i128::from(hold) * i128::from(size);
        self.action = Some(action);
    }
}
