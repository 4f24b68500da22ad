//! A new order's trades, booked with their makers as they happen.
//!
//! A trade that does not fit, and all that follow, are settled after the book.

use super::{Booked, pay_maker, pay_taker};
use crate::command::{Command, Place};
use crate::event::{Events, Made, UserHint};
use crate::result_code::ResultCode;
use crate::risk::Risk;
use crate::risk::ledger::Ledger;
use crate::risk::symbol::Symbol;
use crate::risk::user::Users;

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
        command: &Command,
        (result, events): (ResultCode, &Events),
        booked: &Booked,
    ) {
        let Command::Place(place) = command else {
            return;
        };
        if booked.trades == 0 {
            self.settle_place(place, command, result, events);
        } else {
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
        let trades = super::ways::booked(trades);
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
        let is_all = super::ways::note_at_once(BUYS, booked.trades, is_all);
        if !is_all {
            return None;
        }
        let user = self.users.hinted_mut(user, place.uid)?;
        let total = self.ledger.get_mut(self.symbol.quote);
        pay_taker::<BUYS>((user, total, self.symbol), booked, booked.is_completed)
    }
}
