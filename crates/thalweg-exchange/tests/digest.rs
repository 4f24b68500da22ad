//! Two replicas whose commands differ have different digests, be it by one field of one command
//! that makes no event.

use std::collections::BTreeMap;
use std::sync::mpsc;

use thalweg::pipeline::Placement;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, ConditionalOrder, CurrencyId, Events,
    FeeUnit, OrderFlags, OrderId, OrderType, Place, ResultCode, SelfTrade, State, SymbolId,
    SymbolSpec, SymbolType, UserId, UserLimits, apply,
};

fn spec(id: i32, symbol_type: SymbolType) -> SymbolSpec {
    SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2))
        .with_scales(10, 20)
        .with_type(symbol_type)
        .with_fees(3, 2)
        .with_margins(5, 6)
}

fn account(uid: i64, balances: &[(i32, i64)]) -> AccountSpec {
    let balances = balances.iter().map(|&(id, much)| (CurrencyId(id), much));
    AccountSpec::new(UserId(uid), balances.collect())
}

/// Returns a bid that meets no ask.
fn bid() -> Place {
    Place::limit((UserId(1), OrderId(10)), SymbolId(1), Action::Bid, (50, 7)).with_reserve(60)
}

/// Pairs 1 and 2, futures 3, pairs 4 and 5 that are halted; users 1 and 2 with money and orders
/// 1 and 2 in both pairs, 3 and 4 without, 5 and 6 suspended.
fn setup() -> State {
    let symbols = [1, 2, 4, 5].map(|id| spec(id, SymbolType::CurrencyPair));
    let rich = [1, 2].map(|uid| account(uid, &[(1, 1_000_000), (2, 1_000_000)]));
    let mut commands = vec![
        Command::AddSymbols(symbols.into()),
        Command::AddSymbols([spec(3, SymbolType::Futures)].into()),
        Command::AddAccounts(rich.into()),
    ];
    commands.extend([4, 5].map(|id| Command::Halt {
        symbol: SymbolId(id),
    }));
    commands.extend((3..=6).map(|uid| Command::AddUser { uid: UserId(uid) }));
    commands.extend([5, 6].map(|uid| Command::Suspend { uid: UserId(uid) }));
    for (uid, symbol, order) in [1, 2].into_iter().flat_map(|uid| {
        [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(symbol, order)| (uid, symbol, order))
    }) {
        commands.push(Command::Place(Place {
            uid: UserId(uid),
            symbol: SymbolId(symbol),
            order_id: OrderId(order),
            action: Action::Ask,
            price: 100,
            ..bid()
        }));
    }
    let mut state = State::default();
    for command in &commands {
        let result = apply(&mut state, command, &mut Events::new());
        assert_eq!(result, ResultCode::Success, "{command:?}");
    }
    state
}

/// The first as it is, and each of the others with one change.
fn changed<T: Clone>(first: &T, changes: &[fn(&mut T)]) -> Vec<T> {
    let change = |change: &fn(&mut T)| {
        let mut other = first.clone();
        change(&mut other);
        other
    };
    [first.clone()]
        .into_iter()
        .chain(changes.iter().map(change))
        .collect()
}

fn orders() -> Vec<Command> {
    let places = changed(
        &bid(),
        &[
            |order| order.uid = UserId(2),
            |order| order.symbol = SymbolId(2),
            |order| order.order_id = OrderId(11),
            |order| order.order_type = OrderType::Ioc,
            |order| order.order_type = OrderType::Fok,
            |order| order.action = Action::Ask,
            |order| order.price = 51,
            |order| order.reserve_price = 61,
            |order| order.size = 8,
            |order| (order.price, order.size) = (order.size, order.price),
            |order| order.flags = OrderFlags::NONE.with_post_only(),
            |order| order.flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth),
            |order| order.flags = OrderFlags::NONE.with_self_trade(SelfTrade::Decrement),
            |order| order.order_type = OrderType::Market,
        ],
    );
    let with = changed(
        &ConditionalOrder::from(bid()).with_display(2),
        &[
            |order| order.trigger = Some(90),
            |order| order.trigger = Some(91),
            |order| order.display = Some(3),
            |order| order.display = Some(4),
            |order| order.good_till = Some(3),
            |order| order.good_till = Some(4),
            |order| order.place.size = 8,
            |order| order.place.uid = UserId(2),
        ],
    );
    let places = places.into_iter().map(Command::Place);
    let with = with
        .into_iter()
        .map(|order| Command::PlaceConditional(order.into()));
    places.chain(with).collect()
}

/// Cancels, moves, reductions and amendments.
fn of_orders() -> Vec<Command> {
    let amend = Amend {
        uid: UserId(1),
        symbol: SymbolId(1),
        order_id: OrderId(1),
        action: Action::Bid,
        reserve_price: 60,
        size_before: 4,
        price: 50,
        size: 5,
    };
    let amends = changed(
        &amend,
        &[
            |amend| amend.uid = UserId(2),
            |amend| amend.symbol = SymbolId(2),
            |amend| amend.order_id = OrderId(2),
            |amend| amend.action = Action::Ask,
            |amend| amend.reserve_price = 61,
            |amend| amend.size_before = 3,
            |amend| amend.price = 51,
            |amend| amend.size = 6,
        ],
    );
    let amends = amends.into_iter().map(|amend| Command::Amend(amend.into()));
    let mut commands: Vec<Command> = amends.collect();
    for (uid, symbol, order_id) in [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)] {
        let (uid, symbol, order_id) = (UserId(uid), SymbolId(symbol), OrderId(order_id));
        commands.push(Command::cancel(uid, symbol, order_id));
        for price in [110, 111] {
            commands.push(Command::move_to(uid, symbol, order_id, price));
        }
        for by in [1, 2] {
            commands.push(Command::reduce(uid, symbol, order_id, by));
        }
    }
    // No user has any there: no events.
    for uid in [None, Some(0), Some(3), Some(4)].map(|uid| uid.map(UserId)) {
        for symbol in [None, Some(4), Some(5)].map(|symbol| symbol.map(SymbolId)) {
            commands.push(Command::CancelAll { uid, symbol });
        }
    }
    commands.extend([3, 4].map(|uid| Command::Disconnect { uid: UserId(uid) }));
    commands
}

fn of_users() -> Vec<Command> {
    let balance = |uid, currency, amount, transaction_id, kind| Command::Balance {
        uid: UserId(uid),
        currency: CurrencyId(currency),
        amount,
        transaction_id,
        kind,
    };
    let kind = AdjustmentKind::Adjustment;
    let mut commands = vec![
        balance(3, 1, 100, 1, kind),
        balance(3, 1, 1_000_000, 1, kind),
        balance(4, 1, 100, 1, kind),
        balance(3, 2, 100, 1, kind),
        balance(3, 1, 100, 2, kind),
        balance(3, 1, 100, 1, AdjustmentKind::Suspend),
    ];
    commands.extend([20, 21].map(|uid| Command::AddUser { uid: UserId(uid) }));
    commands.extend([3, 4].map(|uid| Command::Suspend { uid: UserId(uid) }));
    commands.extend([5, 6].map(|uid| Command::Resume { uid: UserId(uid) }));
    let batches: [&[AccountSpec]; 9] = [
        &[],
        &[account(30, &[])],
        &[account(31, &[])],
        &[account(30, &[]), account(31, &[])],
        &[account(30, &[(1, 5)])],
        &[account(30, &[(2, 5)])],
        &[account(30, &[(1, 6)])],
        &[account(30, &[(1, 5), (2, 6)]), account(31, &[])],
        &[account(30, &[(1, 5)]), account(31, &[(2, 6)])],
    ];
    commands.extend(batches.map(|batch| Command::AddAccounts(batch.into())));
    commands
}

/// Whether accepted or not.
fn fees_and_limits() -> Vec<Command> {
    let mut commands = Vec::new();
    for (uid, currency, amount, transaction_id) in [
        (3, 1, 100, 1),
        (4, 1, 100, 1),
        (3, 2, 100, 1),
        (3, 1, 101, 1),
        (3, 1, 100, 2),
    ] {
        commands.push(Command::PayFees {
            uid: UserId(uid),
            currency: CurrencyId(currency),
            amount,
            transaction_id,
        });
    }
    let limits = |open_orders, order_size, ids_once| UserLimits {
        open_orders,
        order_size,
        ids_once,
    };
    let limits = [
        limits(3, 4, false),
        limits(4, 4, false),
        limits(3, 5, false),
        limits(3, 4, true),
    ];
    for limits in limits.into_iter().map(Some).chain([None]) {
        for uid in [None, Some(0), Some(3), Some(4)].map(|uid| uid.map(UserId)) {
            commands.push(Command::SetLimits { uid, limits });
        }
    }
    commands
}

fn of_the_market() -> Vec<Command> {
    let mut commands = vec![Command::Nop, Command::Reset];
    commands.extend([1, 2].map(|time| Command::Clock { time }));
    for id in [1, 2] {
        let symbol = SymbolId(id);
        commands.push(Command::Halt { symbol });
        commands.push(Command::StartAuction { symbol });
        commands.push(Command::RunStops { symbol });
        for reference in [None, Some(0), Some(1)] {
            commands.push(Command::Uncross { symbol, reference });
        }
        for ticks in [0, 1] {
            commands.push(Command::SetMarketProtection { symbol, ticks });
        }
        commands.push(Command::RemoveSymbol { symbol });
        for (low, high) in [(1, 1_000), (2, 1_000), (1, 1_001), (i64::MIN, i64::MAX)] {
            commands.push(Command::SetPriceBand { symbol, low, high });
        }
    }
    commands.extend([4, 5].map(|id| Command::Unhalt {
        symbol: SymbolId(id),
    }));
    let specs = changed(
        &spec(10, SymbolType::Futures),
        &[
            |spec| spec.id = SymbolId(11),
            |spec| spec.symbol_type = SymbolType::CurrencyPair,
            |spec| spec.base_currency = CurrencyId(3),
            |spec| spec.quote_currency = CurrencyId(3),
            |spec| spec.base_scale = 11,
            |spec| spec.quote_scale = 21,
            |spec| spec.taker_fee = 4,
            |spec| spec.maker_fee = 1,
            |spec| spec.margin_buy = 4,
            |spec| spec.margin_sell = 4,
            |spec| spec.fee_unit = FeeUnit::Millionth,
        ],
    );
    let two = [specs[0], specs[1]];
    commands.extend(
        specs
            .into_iter()
            .map(|spec| Command::AddSymbols([spec].into())),
    );
    commands.push(Command::AddSymbols(two.into()));
    commands.push(Command::AddSymbols([two[1], two[0]].into()));
    commands.push(Command::AddSymbols([].into()));
    commands
}

fn all() -> Vec<Command> {
    [orders(), of_orders(), of_users(), of_the_market()].concat()
}

/// The result of one command, and the digest of what the service publishes.
fn outcome(state: &State, command: &Command) -> (ResultCode, Digest) {
    let options = ServiceOptions {
        placement: Placement::inline(),
        ..ServiceOptions::default()
    };
    let (sender, results) = mpsc::channel();
    let publish = move |outcome: thalweg_exchange::service::Outcome<'_>| {
        let mut digest = Digest::new();
        digest.fold(outcome.command, outcome.result, outcome.events);
        let outcome = (outcome.result, digest);
        sender.send(outcome).expect("somebody listens");
    };
    let mut service = Service::start(state.clone(), options, publish).expect("good options");
    service.submit(command, 0).expect("no panic");
    service.join().expect("no panic");
    results.recv().expect("one result")
}

#[test]
fn what_was_asked_differs_and_so_does_the_digest() {
    let state = setup();
    let mut seen: BTreeMap<u64, Command> = BTreeMap::new();
    let mut same = Vec::new();
    for command in all() {
        let (result, digest) = outcome(&state, &command);
        // A command that matching rejects got there, too; there is one order that is as said, and
        // no auction.
        let may_fail = matches!(command, Command::Amend(_) | Command::Uncross { .. })
            || result == ResultCode::MatchingRejectedFillOrKill;
        assert!(may_fail || !result.is_refusal(), "{command:?}: {result}");
        if let Some(other) = seen.insert(digest.value(), command.clone()) {
            same.push((other, command));
        }
    }
    assert!(same.is_empty(), "{} are the same: {same:#?}", same.len());
}

#[test]
fn refused_commands_count_too() {
    let state = setup();
    let [one, other] = [1_000, 1_001].map(|uid| {
        let command = Command::Suspend { uid: UserId(uid) };
        let (result, digest) = outcome(&state, &command);
        assert_eq!(result, ResultCode::UserMgmtUserNotFound);
        digest
    });
    assert_ne!(one, other);
}

/// Differences in several fields do not make up for each other, not even extreme ones.
#[test]
fn whatever_the_fields_are_no_two_commands_are_alike() {
    const LONGS: [i64; 8] = [i64::MIN, -1, 0, 1, 2, 256, 1 << 32, i64::MAX];
    let symbols = [i32::MIN, -1, 0, 1, 256].map(SymbolId);
    let triples = |[a, b]: [i64; 2]| LONGS.map(|c| [a, b, c]);
    let pairs: Vec<[i64; 2]> = LONGS.iter().flat_map(|&a| LONGS.map(|b| [a, b])).collect();
    let mut commands = Vec::new();
    for [uid, order, field] in pairs.iter().copied().flat_map(triples) {
        let (uid, order_id) = (UserId(uid), OrderId(order));
        for symbol in symbols {
            commands.push(Command::move_to(uid, symbol, order_id, field));
            commands.push(Command::reduce(uid, symbol, order_id, field));
        }
        for kind in [AdjustmentKind::Adjustment, AdjustmentKind::Suspend] {
            commands.push(Command::Balance {
                uid,
                currency: CurrencyId(0),
                amount: order,
                transaction_id: field,
                kind,
            });
        }
        commands.extend(pairs.iter().map(|&[price, size]| {
            Command::Place(Place {
                uid,
                order_id,
                price,
                reserve_price: field,
                size,
                ..bid()
            })
        }));
    }
    assert_all_differ(
        commands
            .iter()
            .map(|command| (command, ResultCode::Success)),
    );
}

#[test]
fn every_result_counts() {
    assert_all_differ(
        ResultCode::ALL
            .iter()
            .map(|&result| (&Command::Nop, result)),
    );
}

fn assert_all_differ<'c>(outcomes: impl Iterator<Item = (&'c Command, ResultCode)>) {
    let mut values: Vec<u64> = outcomes
        .map(|(command, result)| {
            let mut digest = Digest::new();
            digest.fold(command, result, &Events::new());
            digest.value()
        })
        .collect();
    let all = values.len();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), all);
}

#[test]
fn fees_and_limits_are_in_it() {
    let commands = fees_and_limits();
    let done = |command| (command, ResultCode::Success);
    assert_all_differ(commands.iter().map(done));
}

/// The digest has the same value on every machine and in every later version.
#[test]
fn the_value_is_fixed() {
    let mut digest = Digest::new();
    for command in all().iter().chain(&fees_and_limits()) {
        digest.fold(command, ResultCode::Success, &Events::new());
    }
    assert_eq!(digest.to_string(), "fe50a0fc66a8b0e7 after 160");
}
