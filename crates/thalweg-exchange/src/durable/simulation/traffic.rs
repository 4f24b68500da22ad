//! The traffic of the simulated clients.

use thalweg_measure::random::SplitMix;

use crate::command::{AccountSpec, Action, Command, OrderFlags, OrderType, Place, SymbolSpec};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::session::{Role, SessionKey};

pub(in crate::durable) const USERS: u64 = 4;
pub(in crate::durable) const ADMIN: SessionKey = SessionKey::new(Role::Admin, 1, 0);
/// A user with money who is not in the traffic.
pub(in crate::durable) const REGISTER_USER: i64 = 6;

/// Two trade sessions of each user, and one of an administrator.
pub(in crate::durable) fn sessions() -> Vec<SessionKey> {
    let trade = |at: u64| SessionKey::new(Role::Trade, 1 + (at / 2) as i64, (at % 2) as u32);
    (0..USERS * 2).map(trade).chain([ADMIN]).collect()
}

fn account(uid: i64) -> AccountSpec {
    AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 1 << 40), (CurrencyId(2), 1 << 40)],
    }
}

/// Users with money, and a pair to trade.
pub(in crate::durable) fn beginning() -> [Command; 2] {
    let pair = SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2));
    let users = (1..=USERS as i64).chain([REGISTER_USER]);
    [
        Command::AddAccounts(users.map(account).collect()),
        Command::AddSymbols([pair].into()),
    ]
}

/// An auction in a second pair, of a user without sessions, with more orders than one command may
/// let trade or take out.
pub(in crate::durable) fn many_orders() -> Vec<Command> {
    let symbol = SymbolId(2);
    let pair = SymbolSpec::pair(symbol, CurrencyId(1), CurrencyId(2));
    let order = |id: i64| {
        let (action, price) = match id % 2 {
            0 => (Action::Ask, 90 + id % 7),
            _ => (Action::Bid, 100 + id % 7),
        };
        let whose = (UserId(100), OrderId(id));
        Command::Place(Place::limit(whose, symbol, action, (price, 1)))
    };
    let start = [
        Command::AddAccounts([account(100)].into()),
        Command::AddSymbols([pair].into()),
        Command::StartAuction { symbol },
    ];
    start.into_iter().chain((0..2_600).map(order)).collect()
}

/// A command for all orders of that auction.
pub(in crate::durable) fn operation(random: &mut SplitMix) -> Command {
    let symbol = SymbolId(2);
    match random.below(3) {
        0 => Command::cancel_all(None, Some(symbol)),
        1 => Command::cancel_all(None, None),
        _ => Command::Uncross {
            symbol,
            reference: None,
        },
    }
}

pub(in crate::durable) fn command(random: &mut SplitMix, key: SessionKey) -> Command {
    match key.role {
        Role::Admin => administration(random),
        _ => trading(random, UserId(key.holder)),
    }
}

fn administration(random: &mut SplitMix) -> Command {
    let uid = UserId(1 + random.below(USERS + 1) as i64);
    match random.below(3) {
        0 => Command::AddUser { uid },
        1 => Command::Suspend { uid },
        _ => Command::deposit(
            uid,
            CurrencyId(1),
            1 + random.below(1000) as i64,
            random.below(1 << 20) as i64,
        ),
    }
}

fn trading(random: &mut SplitMix, uid: UserId) -> Command {
    let symbol = SymbolId(1);
    let order_id = OrderId(random.below(40) as i64);
    let price = 95 + random.below(10) as i64;
    match random.below(10) {
        0..=5 => Command::Place(Place {
            uid,
            symbol,
            order_id,
            order_type: match random.below(5) {
                0 => OrderType::Ioc,
                _ => OrderType::Gtc,
            },
            action: match random.below(2) {
                0 => Action::Ask,
                _ => Action::Bid,
            },
            price,
            reserve_price: price,
            size: 1 + random.below(9) as i64,
            flags: OrderFlags::NONE,
        }),
        6 | 7 => Command::cancel(uid, symbol, order_id),
        8 => Command::move_to(uid, symbol, order_id, price),
        _ => Command::cancel_all(Some(uid), None),
    }
}
