//! A fixed run of commands gives the results, events and last state that it gave on 30 November
//! 2026: the commands in old journals must ([why](../../../docs/durable-format.md#record)).

use std::collections::BTreeSet;

use thalweg_exchange::Action::{self, Ask, Bid};
use thalweg_exchange::OrderType::{Fok, FokBudget, Ioc, IocBudget, Market};
use thalweg_exchange::digest::Digest;
use thalweg_exchange::snapshot::state_hash;
use thalweg_exchange::{
    AccountSpec, Amend, Command, ConditionalOrder, CurrencyId, Event, Events, FeeUnit, OrderFlags,
    OrderId, Place, ResultCode, Rules, SelfTrade, State, SymbolId, SymbolSpec, SymbolType, UserId,
    UserLimits, apply,
};

use crate::properties::commands::BEFORE_LATER_RULES;

const PAIR: SymbolId = SymbolId(1);
const FUTURES: SymbolId = SymbolId(2);
/// A pair with fees by value.
const MILLIONTHS: SymbolId = SymbolId(3);

fn market() -> Vec<Command> {
    let pair = SymbolSpec::pair(PAIR, CurrencyId(1), CurrencyId(2))
        .with_scales(10, 20)
        .with_fees(7, 3);
    let futures = SymbolSpec {
        id: FUTURES,
        symbol_type: SymbolType::Futures,
        margin_buy: 50,
        margin_sell: 60,
        ..pair
    };
    let millionths = SymbolSpec {
        id: MILLIONTHS,
        ..pair.with_fees(2_000, 1_000)
    };
    let millionths = millionths.with_fee_unit(FeeUnit::Millionth);
    let balances = vec![(CurrencyId(1), 1_000_000), (CurrencyId(2), 90_000_000)];
    let accounts = (1..=4).map(|uid| AccountSpec::new(UserId(uid), balances.clone()));
    vec![
        Command::AddSymbols([pair, futures].into()),
        // The reference has no such fees.
        Command::AddSymbols([millionths].into()),
        Command::AddAccounts(accounts.collect()),
        Command::set_price_band(FUTURES, 80, 120),
        Command::Clock { time: 1 },
    ]
}

/// Returns an order of `lots`, a price and a size, with a reserve price that lets a bid be moved.
fn order(symbol: SymbolId, uid: i64, id: i64, action: Action, lots: (i64, i64)) -> Place {
    Place::limit((UserId(uid), OrderId(id)), symbol, action, lots).with_reserve(110.max(lots.0))
}

fn place(symbol: SymbolId, uid: i64, id: i64, action: Action, lots: (i64, i64)) -> Command {
    Command::Place(order(symbol, uid, id, action, lots))
}

fn with(place: Place, terms: fn(ConditionalOrder) -> ConditionalOrder) -> Command {
    Command::PlaceConditional(terms(place.into()).into())
}

/// Returns an amendment of an order in the pair to another price and size.
fn amend(
    uid: i64,
    id: i64,
    action: Action,
    size_before: i64,
    (price, size): (i64, i64),
) -> Command {
    Command::Amend(
        Amend {
            uid: UserId(uid),
            symbol: PAIR,
            order_id: OrderId(id),
            action,
            reserve_price: 110,
            size_before,
            price,
            size,
        }
        .into(),
    )
}

/// Icebergs and plain orders that are taken, refilled, moved, reduced and amended.
fn refills() -> Vec<Command> {
    let bid = |id, lots| order(PAIR, 3, id, Bid, lots);
    vec![
        with(order(PAIR, 1, 1, Ask, (100, 20)), |o| o.with_display(3)),
        place(PAIR, 2, 2, Ask, (100, 5)),
        Command::Place(bid(3, (100, 7)).with_type(Ioc)),
        amend(2, 2, Ask, 5, (100, 9)),
        Command::move_to(UserId(1), PAIR, OrderId(1), 101),
        Command::reduce(UserId(1), PAIR, OrderId(1), 2),
        Command::Place(bid(4, (101, 8)).with_type(Fok)),
        Command::Place(bid(5, (101, 1_000)).with_type(Fok)),
        amend(1, 1, Ask, 18, (102, 25)),
        Command::Place(bid(6, (700, 10)).with_type(IocBudget)),
        Command::Place(bid(7, (310, 3)).with_type(FokBudget)),
        Command::SetMarketProtection {
            symbol: PAIR,
            ticks: 1,
        },
        Command::Place(bid(8, (200, 4)).with_type(Market)),
        amend(1, 1, Ask, 25, (102, 22)),
    ]
}

/// Stops that trigger one another, orders that expire, self-trade prevention, post-only orders.
fn conditions() -> Vec<Command> {
    let own = |mode| OrderFlags::NONE.with_self_trade(mode);
    let post_only = OrderFlags::NONE.with_post_only();
    vec![
        place(PAIR, 1, 20, Ask, (105, 6)),
        place(PAIR, 2, 21, Ask, (107, 6)),
        with(order(PAIR, 3, 22, Bid, (106, 4)), |o| o.with_trigger(105)),
        with(order(PAIR, 4, 23, Bid, (108, 7)), |o| {
            o.with_trigger(105).with_display(2)
        }),
        with(order(PAIR, 3, 24, Ask, (90, 2)), |o| o.with_trigger(95)),
        with(order(PAIR, 4, 25, Bid, (99, 9)), |o| {
            o.with_display(4).with_good_till(5)
        }),
        place(PAIR, 3, 26, Bid, (105, 30)),
        Command::Clock { time: 5 },
        Command::Place(order(PAIR, 3, 27, Bid, (109, 3)).with_flags(post_only)),
        Command::Place(order(PAIR, 3, 28, Ask, (105, 2)).with_flags(own(SelfTrade::Decrement))),
        Command::Place(order(PAIR, 3, 29, Ask, (104, 2)).with_flags(own(SelfTrade::CancelMaker))),
        place(PAIR, 4, 30, Bid, (103, 3)),
        Command::Place(order(PAIR, 4, 32, Ask, (103, 2)).with_flags(own(SelfTrade::CancelBoth))),
        place(PAIR, 1, 31, Ask, (90, 50)),
        place(PAIR, 3, 33, Bid, (90, 8)),
        Command::Disconnect { uid: UserId(3) },
    ]
}

fn auction(symbol: SymbolId) -> Vec<Command> {
    let mut commands = vec![Command::StartAuction { symbol }];
    for (id, action, lots) in [
        (40, Bid, (104, 10)),
        (41, Bid, (101, 6)),
        (42, Ask, (99, 7)),
        (43, Ask, (102, 8)),
    ] {
        commands.push(place(symbol, 1 + id % 4, id, action, lots));
    }
    let iceberg = order(symbol, 4, 44, Ask, (98, 5));
    commands.push(with(iceberg, |o| o.with_display(2)));
    commands.push(Command::Uncross {
        symbol,
        reference: Some(100),
    });
    commands.push(place(symbol, 2, 45, Ask, (95, 30)));
    commands
}

/// Positions that are opened, turned and closed in part, and their fees.
fn futures() -> Vec<Command> {
    let mut commands = Vec::new();
    for (id, (seller, buyer, price, lots)) in (50..).step_by(2).zip([
        (1, 2, 100, 30),
        (2, 1, 110, 12),
        (3, 1, 90, 40),
        (2, 3, 95, 55),
        (4, 2, 119, 9),
    ]) {
        commands.push(place(FUTURES, seller, id, Ask, (price, lots)));
        commands.push(place(FUTURES, buyer, id + 1, Bid, (price + 1, lots - 2)));
    }
    commands.push(Command::set_price_band(FUTURES, 90, 118));
    commands.push(Command::PayFees {
        uid: UserId(1),
        currency: CurrencyId(2),
        amount: 100,
        transaction_id: 1 << 40,
    });
    commands
}

fn operations() -> Vec<Command> {
    vec![
        Command::SetLimits {
            uid: Some(UserId(2)),
            limits: Some(UserLimits::NONE.with_open_orders(1)),
        },
        place(PAIR, 2, 70, Bid, (80, 1)),
        place(PAIR, 2, 71, Bid, (80, 1)),
        Command::Suspend { uid: UserId(4) },
        Command::Halt { symbol: PAIR },
        Command::deposit(UserId(3), CurrencyId(1), 5, 1 << 40),
        Command::cancel_all(Some(UserId(1)), None),
        Command::Unhalt { symbol: PAIR },
        Command::cancel_all(None, Some(MILLIONTHS)),
        Command::RemoveSymbol { symbol: MILLIONTHS },
    ]
}

/// Rules, the number of kinds of events that they make (the reference has no auctions), the digest
/// of the run, and the hash of a snapshot after it. Never to be changed, nor the commands: a change
/// of the engine that changes them is a rule. (Another version of the snapshot has other hashes.)
const EXPECTED: [(Rules, usize, &str, u64); 3] = [
    (
        Rules::REFERENCE,
        6,
        "c289044ba0c8f64d after 73",
        0x0b61_daa9_a119_3700,
    ),
    (
        BEFORE_LATER_RULES,
        7,
        "5154d1b18426066c after 73",
        0x118c_37a8_6245_6782,
    ),
    (
        Rules::MENDED,
        7,
        "c058d4b9ef5f500e after 73",
        0x658a_2877_7584_f6c4,
    ),
];

#[test]
fn a_fixed_run_has_the_events_and_the_states_that_it_had() {
    let parts = [
        market(),
        refills(),
        conditions(),
        auction(PAIR),
        auction(MILLIONTHS),
        futures(),
        operations(),
    ];
    let commands = parts.concat();
    let found = EXPECTED.map(|(rules, ..)| {
        let (mut state, mut events) = (State::new(rules), Events::new());
        let (mut folded, mut kinds) = (Digest::new(), BTreeSet::new());
        for command in &commands {
            let result = apply(&mut state, command, &mut events);
            folded.fold(command, result, &events);
            kinds.extend(events.iter().map(kind));
            assert_ne!(result, ResultCode::RiskNsf, "{command:?}");
        }
        (kinds.len(), folded.to_string(), state_hash(&state))
    });
    let expected = EXPECTED.map(|(_, kinds, digest, hash)| (kinds, digest.to_owned(), hash));
    assert_eq!(found, expected, "{found:#x?}");
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Trade { .. } => "trade",
        Event::Reject { .. } => "reject",
        Event::Reduce { .. } => "reduce",
        Event::Removed { .. } => "removed",
        Event::Triggered { .. } => "triggered",
        Event::Uncrossed { .. } => "uncrossed",
        Event::Refilled { .. } => "refilled",
    }
}
