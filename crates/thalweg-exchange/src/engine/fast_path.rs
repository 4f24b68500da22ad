//! The fast path of common commands: check, execution and settlement in one go.
//!
//! A command that is done here is done whole, and comes to what the three parts come to one after
//! another. A command that needs the slow path is left alone, nothing of it done, and goes through
//! the three parts; an order that trades does so from the first maker on that needs it. A symbol is
//! found once, and the risk side and the book are asked for nothing that such a command does not
//! need.

use super::state::State;
use crate::command::{Action, Command};
use crate::event::{Events, Made, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

impl State {
    #[inline(always)]
    pub(super) fn apply(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        // Most commands are moves.
        if matches!(command, Command::Move { .. }) {
            return self.move_order(command, events);
        }
        self.apply_but_moves(command, events)
    }

    #[inline(always)]
    fn move_order(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_pair(command, events) {
            Some(()) => ResultCode::Success,
            None => self.move_slow(command, events),
        }
    }

    #[inline(always)]
    fn move_in_pair(&mut self, command: &Command, events: &mut Events) -> Option<()> {
        let Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } = *command
        else {
            return None;
        };
        let pair = self.risk.pair(symbol)?;
        if !pair.takes_moves_to(price) {
            return None;
        }
        let (book, _) = self.matching.book_near(pair.slot(), symbol)?;
        let moved = book.shift::<true>((uid, order_id), price)?;
        events.begin();
        events.set_moved(moved);
        Some(())
    }

    #[inline(never)]
    fn move_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_futures(command, events) {
            Some(()) => ResultCode::Success,
            None => self.apply_slow(command, events),
        }
    }

    #[inline(always)]
    fn move_in_futures(&mut self, command: &Command, events: &mut Events) -> Option<()> {
        let Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } = *command
        else {
            return None;
        };
        let slot = self.risk.passes_move_in_futures(uid, symbol, price)?;
        let (book, _) = self.matching.book_near(slot, symbol)?;
        let moved = book.shift::<false>((uid, order_id), price)?;
        let standing = book.standing();
        events.begin();
        events.set_moved(moved);
        events.set_standing(standing);
        if !self.risk.settle_move_fast(slot, (price, &moved), &standing) {
            self.risk.settle_slow(command, ResultCode::Success, events);
        }
        Some(())
    }

    /// Executes every command but a move.
    #[inline(never)]
    fn apply_but_moves(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match command {
            Command::Place(_) => self.place(command, events),
            Command::Cancel { .. } => self.cancel(command, events),
            Command::Reduce { .. } => self.reduce(command, events),
            _ => self.apply_slow(command, events),
        }
    }

    #[inline(never)]
    fn place(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_slow(command, events);
        };
        let Some(mut pair) = self.risk.pair(place.symbol) else {
            return self.apply_slow(command, events);
        };
        let slot = pair.slot();
        let Some(user) = pair.hold(place) else {
            return self.place_slow(command, events);
        };
        self.place_accepted(command, (slot, user), events)
    }

    #[inline(always)]
    fn place_accepted(
        &mut self,
        command: &Command,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_slow(command, events);
        };
        events.begin();
        let Some((book, _)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        if book.rest_at_once(place, user) {
            return ResultCode::Success;
        }
        self.place_on(command, (slot, user), events)
    }

    /// Executes an order that was accepted, and does not rest at once.
    #[inline(never)]
    fn place_on(
        &mut self,
        command: &Command,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        match command {
            Command::Place(place) if place.takes_plainly() => match place.action {
                Action::Ask => self.cross::<false>(command, (slot, user), events),
                Action::Bid => self.cross::<true>(command, (slot, user), events),
            },
            _ => self.place_in_parts(command, (slot, user), events),
        }
    }

    #[inline(never)]
    fn place_in_parts(
        &mut self,
        command: &Command,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_slow(command, events);
        };
        let Some((book, rules)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let result = book.place_slow(place, user, rules, events);
        if book.has_left_over() {
            self.matching.note_left_over(place.symbol);
        }
        self.risk.settle_place(place, command, result, events);
        result
    }

    /// An order without conditions that takes up to its price: trades are booked as they happen.
    #[inline(never)]
    fn cross<const BUYS: bool>(
        &mut self,
        command: &Command,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_slow(command, events);
        };
        let mut crossing = self.risk.crossing(slot);
        let Some((book, rules)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let pays = |made: Made| crossing.pays::<BUYS>(made);
        let Some(crossed) = book.cross::<BUYS>(place, rules, events, pays) else {
            return self.place_in_parts(command, (slot, user), events);
        };
        let booked = crossing.booked(place, crossed.left, events);
        let (result, is_left_over) = if crossed.left == 0 {
            let is_left_over = book.run_stops(0, rules, events);
            (ResultCode::Success, is_left_over)
        } else {
            let result = book.end_crossing((place, user), crossed, rules, events);
            (result, book.has_left_over())
        };
        if is_left_over {
            self.matching.note_left_over(place.symbol);
        }
        let is_done = crossing.end::<BUYS>((place, user), &booked, events);
        if is_done.is_none() {
            self.risk.settle_crossed(command, (result, events), &booked);
        }
        result
    }

    #[inline(never)]
    fn place_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_slow(command, events);
        };
        let (checked, user) = self.risk.check_other(command);
        if checked == ResultCode::ValidForMatchingEngine
            && let Some(slot) = self
                .risk
                .pair(place.symbol)
                .and_then(|pair| pair.simple_slot())
        {
            return self.place_accepted(command, (slot, user), events);
        }
        events.begin();
        let result = self.matching.place(place, checked, user, events);
        self.risk.settle_place(place, command, result, events);
        result
    }

    #[inline(never)]
    fn cancel(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        if let Command::Cancel {
            uid,
            symbol,
            order_id,
        } = *command
            && let Some(()) = self.take_off((uid, symbol), (order_id, i64::MAX), events)
        {
            return ResultCode::Success;
        }
        self.reduce_slow(command, events)
    }

    #[inline(never)]
    fn reduce(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        if let Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } = *command
            && by > 0
            && let Some(()) = self.take_off((uid, symbol), (order_id, by), events)
        {
            return ResultCode::Success;
        }
        self.reduce_slow(command, events)
    }

    #[inline(never)]
    fn reduce_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let (owner, (order_id, by)) = match *command {
            Command::Cancel {
                uid,
                symbol,
                order_id,
            } => ((uid, symbol), (order_id, i64::MAX)),
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by,
            } if by > 0 => ((uid, symbol), (order_id, by)),
            _ => return self.apply_slow(command, events),
        };
        match self.take_off_in_futures(owner, (order_id, by), command, events) {
            Some(()) => ResultCode::Success,
            None => self.apply_slow(command, events),
        }
    }

    /// Such a command passes every check.
    #[inline(always)]
    fn take_off_in_futures(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        (order_id, lots): (OrderId, i64),
        command: &Command,
        events: &mut Events,
    ) -> Option<()> {
        let slot = self.risk.pair(symbol)?.slot();
        let (book, _) = self.matching.book_near(slot, symbol)?;
        // In an auction there may be more to note.
        if !book.is_futures() || book.is_auction() {
            return None;
        }
        let (found, reduced) = book.reducible((uid, order_id), lots)?;
        events.begin();
        book.take_off(found, &reduced, events);
        let standing = book.standing();
        events.set_standing(standing);
        if !self
            .risk
            .reduce_in_futures((uid, symbol), &standing, (events, reduced.user))
        {
            self.risk.settle_slow(command, ResultCode::Success, events);
        }
        Some(())
    }

    #[inline(always)]
    fn take_off(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        (order_id, lots): (OrderId, i64),
        events: &mut Events,
    ) -> Option<()> {
        let mut pair = self.risk.pair(symbol)?;
        if !pair.gives_back() {
            return None;
        }
        let (book, _) = self.matching.book_near(pair.slot(), symbol)?;
        let (found, reduced) = book.reducible((uid, order_id), lots)?;
        pair.give_back(uid, &reduced)?;
        events.begin();
        book.take_off(found, &reduced, events);
        Some(())
    }

    /// Executes a command part by part.
    #[inline(never)]
    fn apply_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        self.apply_in_parts(command, events, || {})
    }

    /// Checks a command, matches it and settles it, and calls `end_of_part` after each.
    #[inline(always)]
    pub(super) fn apply_in_parts(
        &mut self,
        command: &Command,
        events: &mut Events,
        mut end_of_part: impl FnMut(),
    ) -> ResultCode {
        let (checked, user) = self.risk.check_hinted(command);
        end_of_part();
        let result = self.matching.execute_for(command, checked, user, events);
        end_of_part();
        self.risk.settle(command, result, events);
        end_of_part();
        result
    }
}

#[cfg(test)]
mod tests;
