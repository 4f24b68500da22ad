//! Futures: the check of orders against margin, and settlement into positions.

mod fast_path;
mod uncovered;

use self::uncovered::Totals;
pub(super) use self::uncovered::{free_margin, reserved_by_move};

use super::Risk;
use super::limits::OwnOrder;
use super::position::{LastPrices, Position};
use super::settlement::Owner;
use super::symbol::NO_CURRENCY;
use crate::command::{Action, Command, Place, SymbolSpec};
use crate::event::{Event, Events, Hints, Moved, UserHint};
use crate::ids::UserId;
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
