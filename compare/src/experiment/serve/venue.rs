//! The market that sessions trade on, and what a session sends.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_measure::random::SplitMix;

pub(super) const SYMBOL: SymbolId = SymbolId(1);
const BASE: CurrencyId = CurrencyId(1);
pub(super) const QUOTE: CurrencyId = CurrencyId(2);
/// Of each currency, for each user.
const MONEY: i64 = 1 << 50;
pub(super) const PRICE: i64 = 10_000;
/// Orders that a session leaves in the book.
const RESTING: usize = 16;
/// How far from the middle orders are, in ticks.
const TICKS: u64 = 50;
const LOTS: i64 = 5;

/// A pair without fees, and users with money in both currencies.
pub(super) fn set_up(users: impl Iterator<Item = i64>) -> [Command; 2] {
    let symbol = SymbolSpec::pair(SYMBOL, BASE, QUOTE);
    let account = |uid| AccountSpec::new(UserId(uid), vec![(BASE, MONEY), (QUOTE, MONEY)]);
    let accounts: Vec<AccountSpec> = users.map(account).collect();
    [
        Command::AddSymbols(Arc::new([symbol])),
        Command::AddAccounts(accounts.into()),
    ]
}

/// A limit order on the symbol that rests.
pub(super) fn order(user: UserId, order_id: OrderId, price: i64, size: i64) -> Place {
    Place::limit((user, order_id), SYMBOL, Action::Bid, (price, size))
}

/// The orders of one session, around a price: one in sixteen or so trades, the others come and go.
#[derive(Debug)]
pub(super) struct Orders {
    user: UserId,
    next_id: i64,
    resting: VecDeque<OrderId>,
    random: SplitMix,
}

impl Orders {
    pub(super) fn of(user: i64) -> Self {
        Self {
            user: UserId(user),
            next_id: 0,
            resting: VecDeque::with_capacity(RESTING + 1),
            random: SplitMix::new(user as u64),
        }
    }

    /// Cancels the oldest, if there is one.
    pub(super) fn cancel(&mut self) -> Option<Command> {
        let order_id = self.resting.pop_front()?;
        Some(Command::cancel(self.user, SYMBOL, order_id))
    }

    /// Cancels the oldest once there are enough; else places another one, one in eight to trade.
    pub(super) fn next(&mut self) -> Command {
        if self.resting.len() >= RESTING
            && let Some(cancel) = self.cancel()
        {
            return cancel;
        }
        self.next_id += 1;
        let order_id = OrderId(self.next_id);
        let random = self.random.next_u64();
        let takes = random.is_multiple_of(8);
        let distance = 1 + (random >> 8) as i64 % TICKS as i64;
        let is_bid = random >> 40 & 1 != 0;
        let sign = if is_bid == takes { 1 } else { -1 };
        let mut place = order(self.user, order_id, PRICE + sign * distance, LOTS);
        if !is_bid {
            place.action = Action::Ask;
        }
        if takes {
            place.order_type = OrderType::Ioc;
        } else {
            self.resting.push_back(order_id);
        }
        Command::Place(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::{Events, ResultCode, Rules, State, apply};

    #[test]
    fn orders_rest_trade_and_are_cancelled() {
        let mut state = State::new(Rules::default());
        let mut events = Events::new();
        for command in set_up([1, 2].into_iter()) {
            assert_eq!(
                apply(&mut state, &command, &mut events),
                ResultCode::Success
            );
        }
        let mut sessions = [1, 2].map(Orders::of);
        let (mut cancelled, mut traded) = (0, 0);
        for at in 0..2_000 {
            let command = sessions[at % 2].next();
            events.clear();
            let result = apply(&mut state, &command, &mut events);
            match command {
                Command::Place(place) => {
                    assert_eq!(result, ResultCode::Success);
                    traded += u32::from(place.order_type == OrderType::Ioc && !events.is_empty());
                }
                _ => cancelled += u32::from(result == ResultCode::Success),
            }
        }
        assert!(cancelled > 500 && traded > 20, "{cancelled} {traded}");
    }
}
