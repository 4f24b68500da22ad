//! Random streams: orders that ask for everything, mixed with plain commands.

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_exchange::{
    Action, Amend, Command, ConditionalOrder, OrderFlags, OrderId, OrderType, Place, Rules,
    SelfTrade, SymbolId, UserId,
};

use crate::terms::commands::{with_fresh_ids, with_owners};
use crate::terms::watch::Watched;
use crate::terms::world::World;

fn symbol() -> impl Strategy<Value = SymbolId> {
    prop_oneof![4 => Just(1), 1 => Just(2), 3 => Just(3)].prop_map(SymbolId)
}

fn flags() -> impl Strategy<Value = OrderFlags> {
    // Not filtered: proptest gives up after 65,536 draws that are refused.
    let all: Vec<_> = (0..32).filter_map(OrderFlags::from_code).collect();
    let any = prop::sample::select(all);
    // Seldom else do orders of one user meet of which one is larger.
    let decrement = OrderFlags::NONE.with_self_trade(SelfTrade::Decrement);
    prop_oneof![2 => Just(OrderFlags::NONE), 6 => any, 2 => Just(decrement)]
}

/// An order that may rest, meet others, and be refused for want of money or sense.
fn place(rules: Rules) -> impl Strategy<Value = Place> {
    // The rejection of an IOC_BUDGET BID makes money under the reference's rules.
    let types = if rules.fill_ioc_budget {
        OrderType::ALL.to_vec()
    } else {
        vec![
            OrderType::Ioc,
            OrderType::Fok,
            OrderType::FokBudget,
            OrderType::Market,
        ]
    };
    let types = prop_oneof![3 => Just(OrderType::Gtc), 2 => prop::sample::select(types)];
    let action = prop::sample::select(vec![Action::Ask, Action::Bid]);
    let numbers = (1..=5_i64, 0..30_i64, 4..20_i64, 0..4_i64, 1..12_i64);
    (numbers, symbol(), types, action, flags()).prop_map(
        |((uid, id, price, more, size), symbol, order_type, action, flags)| {
            let budget = order_type.is_budget();
            let price = if budget { price * size + more } else { price };
            let reserve_price = if budget { price } else { price + more };
            Place {
                uid: UserId(uid),
                symbol,
                order_id: OrderId(id),
                order_type,
                action,
                price,
                reserve_price,
                size,
                flags,
            }
        },
    )
}

/// A new order with conditions, mostly sensible ones.
fn conditional(rules: Rules) -> impl Strategy<Value = Command> {
    let trigger = prop_oneof![2 => Just(None), 3 => (4..22_i64).prop_map(Some)];
    let display = prop_oneof![2 => Just(None), 3 => (0..5_i64).prop_map(Some)];
    let good_till = prop_oneof![2 => Just(None), 1 => (0..60_i64).prop_map(Some)];
    let stop_type = prop::sample::select(vec![OrderType::Gtc, OrderType::Ioc, OrderType::Market]);
    let terms = (trigger, display, good_till, stop_type, 0..10_u8);
    (place(rules), terms).prop_map(|(place, (trigger, display, good_till, order_type, odd))| {
        let mut order = ConditionalOrder {
            trigger,
            display,
            good_till,
            ..place.into()
        };
        let is_plain = order == place.into();
        if odd > 0 && !is_plain && !place.order_type.is_budget() {
            order.place.order_type = order_type;
            if order_type != OrderType::Gtc {
                order.display = None;
                order.trigger = trigger.or(Some(place.price));
                order.place.flags = OrderFlags::NONE.with_self_trade(place.flags.self_trade());
            }
        }
        Command::PlaceConditional(order.into())
    })
}

fn order() -> impl Strategy<Value = (UserId, SymbolId, OrderId)> {
    (1..=5_i64, symbol(), 0..12_i64).prop_map(|(uid, symbol, id)| {
        // Mostly the owner: ids are shared out among the users.
        (UserId(uid), symbol, OrderId(id))
    })
}

/// Sizes and prices; what the order is before is filled in when it is executed, see `fitted`.
fn amend() -> impl Strategy<Value = Command> {
    let odd = prop_oneof![9 => Just(0), 1 => 1..3_i64];
    // At 4 it stays.
    let price = prop_oneof![1 => Just(4), 2 => 4..22_i64];
    // Now and then to more lots than an iceberg may hide.
    let size = prop_oneof![30 => 0..14_i64, 1 => 990..4_200_i64];
    (order(), price, size, odd).prop_map(|((uid, symbol, order_id), price, size, odd)| {
        Command::Amend(std::sync::Arc::new(Amend {
            uid,
            symbol,
            order_id,
            action: Action::Ask,
            reserve_price: 0,
            // By so much it is not what it is.
            size_before: odd,
            price,
            size,
        }))
    })
}

fn command(rules: Rules) -> impl Strategy<Value = Command> {
    prop_oneof![
        12 => place(rules).prop_map(Command::Place),
        8 => conditional(rules),
        1 => (0..60_i64).prop_map(|time| Command::Clock { time }),
        1 => symbol().prop_map(|symbol| Command::StartAuction { symbol }),
        1 => symbol().prop_map(|symbol| Command::RunStops { symbol }),
        4 => (symbol(), prop::option::of(4..22_i64))
            .prop_map(|(symbol, reference)| Command::Uncross { symbol, reference }),
        1 => (symbol(), 0..6_i64)
            .prop_map(|(symbol, ticks)| Command::SetMarketProtection { symbol, ticks }),
        4 => (order(), 4..22_i64).prop_map(|((uid, symbol, order_id), price)| {
            Command::Move { uid, symbol, order_id, price }
        }),
        7 => amend(),
        1 => order().prop_map(|(uid, symbol, order_id)| {
            Command::Cancel { uid, symbol, order_id }
        }),
        2 => (order(), 1..9_i64).prop_map(|((uid, symbol, order_id), by)| {
            Command::Reduce { uid, symbol, order_id, by }
        }),
    ]
}

pub(crate) fn stream(rules: Rules, length: usize) -> impl Strategy<Value = Vec<Command>> {
    let command = (command(rules), 0..10_u8);
    prop::collection::vec(command, 1..length).prop_map(|drawn| {
        let (mut commands, odd): (Vec<Command>, Vec<u8>) = drawn.into_iter().unzip();
        with_fresh_ids(&mut commands);
        for ((now, command), odd) in (0_i64..).zip(&mut commands).zip(odd) {
            if odd > 0 || command.place().is_some() {
                *command = with_owners(std::mem::take(command));
            }
            as_time_goes_by(now, command);
        }
        commands
    })
}

/// Turns times into ones around now: mostly the clock goes on, and orders are good for a while.
fn as_time_goes_by(now: i64, command: &mut Command) {
    match command {
        Command::Clock { time } => *time = now + *time / 10 - 3,
        Command::PlaceConditional(order) => {
            let good_till = order.good_till.map(|time| now + time);
            *order = ConditionalOrder {
                good_till,
                ..**order
            }
            .into();
        }
        _ => {}
    }
}

/// Little money, so that some is refused, or much.
pub(crate) fn money() -> impl Strategy<Value = i64> {
    prop_oneof![Just(300), Just(3_000), Just(1_000_000)]
}

fn holds(rules: Rules, money: i64, commands: &[Command]) -> Result<Watched, TestCaseError> {
    let mut watched = Watched::new(World::with_money(rules, money));
    for command in commands {
        watched.execute(command)?;
    }
    Ok(watched)
}

proptest! {
    #[test]
    fn everything_holds_after_every_command(
        mended in stream(Rules::MENDED, 150),
        reference in stream(Rules::REFERENCE, 150),
        money in money(),
    ) {
        holds(Rules::MENDED, money, &mended)?;
        holds(Rules::REFERENCE, money, &reference)?;
    }
}

/// The properties mean something only if these things happen.
#[test]
fn the_random_streams_reach_what_they_are_for() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    for rules in [Rules::MENDED, Rules::REFERENCE] {
        let (mut seen, mut all) = (BTreeMap::new(), 0);
        // One stream says little: it may be short.
        while all < 16_000 {
            let tree = stream(rules, 8_000).new_tree(&mut runner);
            let commands = tree.expect("a stream").current();
            let watched = holds(rules, 1_000_000, &commands).expect("it holds");
            for (what, times) in watched.seen {
                *seen.entry(what).or_insert(0) += times;
            }
            all += commands.len();
        }
        for (what, least) in [
            ("trade", 1_000),
            ("amended", 100),
            ("self-trade", 100),
            ("post-only reject", 150),
            ("SelfTrade", 60),
            ("Decremented", 20),
            ("uncrossed", 80),
            ("Expired", 120),
            ("Cancelled", 20),
            ("Reduced", 15),
            ("refilled", 150),
            ("met again", 80),
            ("triggered", 500),
            ("triggered by a triggered one", 60),
        ] {
            if what == "uncrossed" && rules == Rules::REFERENCE {
                // It has no auctions.
                continue;
            }
            let times = seen.get(what).copied().unwrap_or(0);
            assert!(
                times * 8_000 > least * all,
                "{what}: {times} in {all} commands"
            );
        }
    }
}
