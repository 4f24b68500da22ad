//! The orders that a session sends: orders around a price, of which it keeps a few resting.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_client::TradeCommand;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_measure::random::SplitMix;

use crate::arguments::connect::Load;

/// The number of orders that a session leaves in the book.
const RESTING: usize = 16;
/// The maximum distance of orders from the middle, in ticks.
const TICKS: u64 = 50;
const LOTS: i64 = 5;
const BASE: CurrencyId = CurrencyId(1_000_001);
const QUOTE: CurrencyId = CurrencyId(1_000_002);
/// The amount of each currency that each user gets.
const MONEY: i64 = 1 << 50;

/// The orders of one session.
#[derive(Debug)]
pub(super) struct Orders {
    user: UserId,
    symbol: SymbolId,
    price: i64,
    next_id: i64,
    resting: VecDeque<OrderId>,
    random: SplitMix,
}

impl Orders {
    /// Creates the orders of a session. Order ids begin where no earlier load has used any: each
    /// load starts from the number of the exchange's next command. Each session uses a residue
    /// class of its own, as several sessions may belong to one user.
    pub(super) fn new(asked: &Load, holder: i64, next_command: u64, session: u32) -> Self {
        Self {
            user: UserId(holder),
            symbol: SymbolId(asked.symbol),
            price: asked.price,
            next_id: (next_command as i64) << 11 | i64::from(session),
            resting: VecDeque::with_capacity(RESTING + 1),
            random: SplitMix::new(session.into()),
        }
    }

    /// Cancels the oldest order once there are enough; otherwise places another one, one in eight
    /// of them priced to trade.
    pub(super) fn next(&mut self) -> TradeCommand {
        if self.resting.len() >= RESTING
            && let Some(oldest) = self.resting.pop_front()
        {
            return TradeCommand::cancel(self.user, self.symbol, oldest);
        }
        self.next_id += 1 << 11;
        let order_id = OrderId(self.next_id);
        let random = self.random.next_u64();
        let takes = random.is_multiple_of(8);
        let distance = 1 + (random >> 8) as i64 % TICKS as i64;
        let action = if random >> 40 & 1 == 0 {
            Action::Ask
        } else {
            Action::Bid
        };
        let sign = if (action == Action::Bid) == takes {
            1
        } else {
            -1
        };
        let price = self.price + sign * distance;
        if !takes {
            self.resting.push_back(order_id);
        }
        TradeCommand::from(Place {
            order_type: if takes {
                OrderType::Ioc
            } else {
                OrderType::Gtc
            },
            ..Place::limit((self.user, order_id), self.symbol, action, (price, LOTS))
        })
    }
}

/// Returns the commands that create a pair without fees, and users with money in both currencies.
/// Existing ones remain.
pub(super) fn set_up(asked: &Load, users: impl Iterator<Item = i64>) -> Vec<Command> {
    let symbol = SymbolSpec::pair(SymbolId(asked.symbol), BASE, QUOTE);
    let account = |uid| AccountSpec::new(UserId(uid), vec![(BASE, MONEY), (QUOTE, MONEY)]);
    let mut accounts: Vec<AccountSpec> = users.map(account).collect();
    accounts.dedup_by_key(|account| account.uid);
    vec![
        Command::AddSymbols(Arc::new([symbol])),
        Command::AddAccounts(accounts.into()),
    ]
}
