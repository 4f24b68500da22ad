//! Orders of any owner that a command took out of their books; and symbols that go with all of
//! theirs.

use super::Risk;
use super::limits::OwnOrder;
use super::position::{Direction, LastPrices, Position, Stake};
use super::settlement::Owner;
use crate::command::{Action, Command};
use crate::event::{Event, Events, Removal, Standing, UserHint};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

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
    pub(super) fn settle_removals(&mut self, command: &Command, events: &Events) {
        if let Command::RunStops { symbol } | Command::Uncross { symbol, .. } = *command {
            self.settle_uncross(symbol, events);
        } else {
            for event in events {
                self.settle_removed(event);
            }
        }
        for (symbol, standing) in events.standings() {
            self.note_last_prices(*symbol, standing);
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
    pub(super) fn settle_removed(&mut self, event: &Event) {
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
        let is_gone = !matches!(why, Removal::Reduced | Removal::Decremented);
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
    pub(super) fn note_last_prices(&mut self, symbol: SymbolId, standing: &Standing) {
        if let Some(slot) = self.symbols.slot(symbol) {
            self.symbols.at_mut(slot).last = Some(LastPrices::of(standing));
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
            total.note_stake(position.stake(), Stake::default());
            if position.profit != 0 {
                let balance = user.balance_mut(symbol.spec.quote_currency);
                total.add(balance, position.profit.into());
            }
        }
    }
}

impl LastPrices {
    pub(super) fn of(standing: &Standing) -> Self {
        Self {
            ask: standing.ask.unwrap_or(Self::EMPTY.ask),
            bid: standing.bid.unwrap_or(Self::EMPTY.bid),
        }
    }
}
