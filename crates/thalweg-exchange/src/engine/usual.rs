//! The usual commands: check, execution and settlement in one go.
//!
//! A command that is done here is done whole, as the stages of a pipeline would do it. One that
//! takes a closer look is left alone, nothing of it done, and goes through the stages. A symbol is
//! found once, and the risk side and the book are asked for nothing that a usual command does not
//! need.

use super::state::State;
use crate::command::Command;
use crate::event::Events;
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

impl State {
    #[inline(always)]
    pub(super) fn move_order(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_pair(command, events) {
            Some(()) => ResultCode::Success,
            None => self.move_otherwise(command, events),
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
        events.clear();
        events.set_moved(moved);
        Some(())
    }

    #[inline(never)]
    fn move_otherwise(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_futures(command, events) {
            Some(()) => ResultCode::Success,
            None => self.apply_closely(command, events),
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
        if !self.risk.passes_move_in_futures(uid, symbol, price) {
            return None;
        }
        let slot = self.risk.pair(symbol)?.slot();
        let (book, _) = self.matching.book_near(slot, symbol)?;
        let moved = book.shift::<false>((uid, order_id), price)?;
        events.clear();
        events.set_moved(moved);
        events.set_standing(book.standing());
        let success = ResultCode::Success;
        self.risk
            .settle_move((uid, symbol), price, command, success, events);
        Some(())
    }

    /// Of every command but a move.
    #[inline(never)]
    pub(super) fn apply_but_moves(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match command {
            Command::Place(_) => self.place(command, events),
            Command::Cancel { .. } => self.cancel(command, events),
            Command::Reduce { .. } => self.reduce(command, events),
            _ => self.apply_closely(command, events),
        }
    }

    #[inline(never)]
    fn place(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_closely(command, events);
        };
        let Some(mut pair) = self.risk.pair(place.symbol) else {
            return self.apply_closely(command, events);
        };
        let slot = pair.slot();
        let Some(user) = pair.hold(place) else {
            return self.place_otherwise(command, events);
        };
        events.clear();
        let Some((book, rules)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        if book.rest_at_once(place, user) {
            return ResultCode::Success;
        }
        let result = book.place_closely(place, user, rules, events);
        self.risk.settle_place(place, command, result, events);
        result
    }

    #[inline(never)]
    fn place_otherwise(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let Command::Place(place) = command else {
            return self.apply_closely(command, events);
        };
        let (checked, user) = self.risk.check_other(command);
        events.clear();
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
        self.apply_closely(command, events)
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
        self.apply_closely(command, events)
    }

    #[inline(always)]
    fn take_off(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        (order_id, lots): (OrderId, i64),
        events: &mut Events,
    ) -> Option<()> {
        let mut pair = self.risk.pair(symbol)?;
        if !pair.is_plain() {
            return None;
        }
        let (book, _) = self.matching.book_near(pair.slot(), symbol)?;
        let (found, reduced) = book.reducible((uid, order_id), lots)?;
        pair.give_back(uid, &reduced)?;
        events.clear();
        book.take_off(found, &reduced, events);
        Some(())
    }

    /// As the stages do it.
    #[inline(never)]
    fn apply_closely(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let (checked, user) = self.risk.check_hinted(command);
        let result = self.matching.execute_for(command, checked, user, events);
        self.risk.settle(command, result, events);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{AccountSpec, Action, Place, SymbolSpec};
    use crate::engine::state::apply;
    use crate::ids::CurrencyId;
    use crate::report::state_text::state_hash;

    const SYMBOLS: [SymbolId; 2] = [SymbolId(1), SymbolId(2)];

    fn of(symbols: impl IntoIterator<Item = SymbolId>) -> State {
        let (mut state, mut events) = (State::default(), Events::new());
        let pair = |symbol| SymbolSpec::pair(symbol, CurrencyId(1), CurrencyId(2));
        let account = |uid| AccountSpec {
            uid: UserId(uid),
            balances: vec![(CurrencyId(1), 1_000), (CurrencyId(2), 1_000_000)],
        };
        for command in [
            Command::AddSymbols(symbols.into_iter().map(pair).collect()),
            Command::AddAccounts([1, 2].map(account).into()),
        ] {
            assert_eq!(
                apply(&mut state, &command, &mut events),
                ResultCode::Success
            );
        }
        state
    }

    /// Books may lie in other slots than their symbols do where a state was put together of parts.
    #[test]
    fn a_book_in_another_slot_than_its_symbol_is_found() {
        let risk = of(SYMBOLS).risk;
        let matching = of([SYMBOLS[1], SYMBOLS[0]]).matching;
        let mut at_once = State { risk, matching };
        let mut in_stages = at_once.clone();
        let ids = |uid: i64, order: i64| (UserId(uid), OrderId(order));
        let (mut some, mut same) = (Events::new(), Events::new());
        for (order, symbol) in (0..40).map(|order| (order, SYMBOLS[order as usize % 2])) {
            let (uid, order_id) = ids(1 + order % 2, order);
            let action = if order % 3 == 0 {
                Action::Bid
            } else {
                Action::Ask
            };
            let terms = (100 + order % 5 - 2 * i64::from(order % 3 == 0), 3);
            for command in [
                Command::Place(Place::limit((uid, order_id), symbol, action, terms)),
                Command::Move {
                    uid,
                    symbol,
                    order_id,
                    price: 104,
                },
                Command::Reduce {
                    uid,
                    symbol,
                    order_id,
                    by: 1,
                },
                Command::Cancel {
                    uid,
                    symbol,
                    order_id: OrderId(order - 6),
                },
            ] {
                let result = apply(&mut at_once, &command, &mut some);
                let expected = in_stages.apply_closely(&command, &mut same);
                assert_eq!((result, &some), (expected, &same), "{command:?}");
                assert_eq!(state_hash(&at_once), state_hash(&in_stages), "{command:?}");
            }
        }
    }
}
