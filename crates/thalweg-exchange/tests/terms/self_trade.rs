//! Orders that meet one of their owner's.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{OrderFlags, OrderType, Place, RemovalReason, Rules, SelfTrade};

use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, flagged, iceberg, in_symbol, moved, reject, removed, text,
    trade,
};

const TAKER: OrderFlags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelTaker);
const MAKER: OrderFlags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
const BOTH: OrderFlags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth);

const DECREMENT: OrderFlags = OrderFlags::NONE.with_self_trade(SelfTrade::Decrement);

const GONE: (bool, bool) = (true, false);

/// Asks of users 1, 2 and 1 at 100, 101 and 102, two lots each.
fn three_asks(rules: Rules, symbol: thalweg_exchange::SymbolId) -> (World, [Place; 3]) {
    let mut world = World::new(rules);
    let asks = [ask(1, 1, 100, 2), ask(2, 2, 101, 2), ask(1, 3, 102, 2)];
    let asks = asks.map(|place| in_symbol(place, symbol));
    for place in asks {
        world.done(place);
    }
    (world, asks)
}

#[test]
fn allowed_unless_asked_for() {
    let (mut world, _) = three_asks(Rules::default(), PAIR);
    let place = bid(1, 9, 102, 5);
    let events = [
        trade(Bid, (100, 2), (1, 1), GONE, 102),
        trade(Bid, (101, 2), (2, 2), GONE, 102),
        trade(Bid, (102, 1), (1, 3), (false, true), 102),
    ];
    assert_eq!(world.done(place), events);
}

#[test]
fn the_taker_is_cancelled() {
    for (rules, symbol) in [(Rules::default(), PAIR), (Rules::REFERENCE, FUTURES)] {
        for order_type in [OrderType::Gtc, OrderType::Ioc] {
            let (mut world, _) = three_asks(rules, symbol);
            let place = flagged(in_symbol(bid(2, 9, 102, 5), symbol), TAKER).with_type(order_type);
            // Trades with others stand, and the reject comes first.
            let events = [reject(&place, 3), trade(Bid, (100, 2), (1, 1), GONE, 102)];
            assert_eq!(world.done(place), events);
            assert_eq!(world.side(symbol, Ask), [(101, 2, 2), (102, 3, 2)]);
            assert_eq!(world.side(symbol, Bid), []);
            // Met at once: nothing happens at all.
            let place = Place {
                uid: thalweg_exchange::UserId(2),
                ..place
            };
            assert_eq!(world.done(place), [reject(&place, 5)]);
        }
    }
}

#[test]
fn the_maker_is_cancelled_and_the_taker_goes_on() {
    for (rules, symbol) in [(Rules::REFERENCE, PAIR), (Rules::default(), FUTURES)] {
        let (mut world, asks) = three_asks(rules, symbol);
        let place = flagged(in_symbol(bid(1, 9, 103, 5), symbol), MAKER);
        let events = [
            removed(&asks[0], 2, RemovalReason::SelfTrade),
            trade(Bid, (101, 2), (2, 2), GONE, 103),
            removed(&asks[2], 2, RemovalReason::SelfTrade),
        ];
        assert_eq!(world.done(place), events);
        assert_eq!(world.side(symbol, Ask), []);
        assert_eq!(world.side(symbol, Bid), [(103, 9, 3)]);
    }
}

#[test]
fn both_are_cancelled() {
    for symbol in [PAIR, FUTURES] {
        let (mut world, asks) = three_asks(Rules::default(), symbol);
        let place = flagged(in_symbol(bid(2, 9, 103, 5), symbol), BOTH);
        let events = [
            reject(&place, 3),
            trade(Bid, (100, 2), (1, 1), GONE, 103),
            removed(&asks[1], 2, RemovalReason::SelfTrade),
        ];
        assert_eq!(world.done(place), events);
        assert_eq!(world.side(symbol, Ask), [(102, 3, 2)]);
        assert_eq!(world.side(symbol, Bid), []);
    }
}

#[test]
fn an_own_order_behind_the_last_lot_is_not_looked_at() {
    for flags in [TAKER, MAKER, BOTH, DECREMENT] {
        let (mut world, _) = three_asks(Rules::default(), PAIR);
        let place = flagged(bid(2, 9, 102, 2), flags);
        let events = [trade(Bid, (100, 2), (1, 1), (true, true), 102)];
        assert_eq!(world.done(place), events);
        assert_eq!(world.side(PAIR, Ask), [(101, 2, 2), (102, 3, 2)]);
    }
}

#[test]
fn money_of_a_cancelled_maker_comes_back() {
    let mut world = World::new(Rules::default());
    let before = (world.balance(1, 1), world.balance(1, 2));
    let place = bid(1, 1, 100, 7).with_reserve(120);
    world.done(place);
    assert_eq!(world.balance(1, 2), before.1 - 7 * (120 * 2 + 3));
    let events = world.done(flagged(ask(1, 2, 90, 7), BOTH));
    assert_eq!(events.len(), 2);
    assert_eq!((world.balance(1, 1), world.balance(1, 2)), before);
}

#[test]
fn a_moved_order_keeps_its_flags() {
    for symbol in [PAIR, FUTURES] {
        for flags in [TAKER, MAKER, BOTH] {
            let (mut world, asks) = three_asks(Rules::default(), symbol);
            let place = flagged(in_symbol(bid(2, 9, 90, 5), symbol), flags).with_reserve(200);
            world.done(place);
            assert_eq!(world.order(symbol, 9).map(|order| order.flags), Some(flags));
            let there = Place {
                price: 101,
                ..place
            };
            let first = trade(Bid, (100, 2), (1, 1), GONE, 200);
            let maker = removed(&asks[1], 2, RemovalReason::SelfTrade);
            // There is no new order to reject: what is left of the old one is removed, last.
            let taker = removed(&there, 3, RemovalReason::SelfTrade);
            let events = world.done(moved(2, symbol, 9, 101));
            let (expected, asks, bids) = match flags {
                TAKER => (vec![first, taker], vec![(101, 2, 2), (102, 3, 2)], vec![]),
                MAKER => (vec![first, maker], vec![(102, 3, 2)], vec![(101, 9, 3)]),
                _ => (vec![first, maker, taker], vec![(102, 3, 2)], vec![]),
            };
            assert_eq!(events, expected);
            assert_eq!(world.side(symbol, Ask), asks);
            assert_eq!(world.side(symbol, Bid), bids);
            if let Some(order) = world.order(symbol, 9) {
                assert_eq!(order.flags, flags);
            }
        }
    }
}

fn fok(place: Place, flags: OrderFlags, order_type: OrderType) -> Place {
    place.with_type(order_type).with_flags(flags)
}

#[test]
fn a_fok_counts_only_lots_that_it_would_get() {
    // There are five lots up to 102: two own ones are first, two of user 2 follow, then own again.
    let whole = [(4, MAKER, false), (2, MAKER, true), (3, MAKER, false)];
    let first = [(1, TAKER, false), (1, BOTH, false), (2, BOTH, false)];
    for (size, flags, fills) in whole.into_iter().chain(first) {
        let (mut world, asks) = three_asks(Rules::default(), PAIR);
        let before = text(&world.state);
        let place = fok(bid(1, 9, 102, size), flags, OrderType::Fok);
        let events = world.done(place);
        if fills {
            let taken = trade(Bid, (101, 2), (2, 2), (true, true), 102);
            assert_eq!(
                events,
                [removed(&asks[0], 2, RemovalReason::SelfTrade), taken]
            );
        } else {
            assert_eq!(events, [reject(&place, size)]);
            assert_eq!(text(&world.state), before);
        }
    }
    // Before the first own order everything counts.
    for flags in [TAKER, MAKER, BOTH] {
        let (mut world, _) = three_asks(Rules::default(), PAIR);
        let place = fok(bid(2, 9, 102, 2), flags, OrderType::Fok);
        let taken = trade(Bid, (100, 2), (1, 1), (true, true), 102);
        assert_eq!(world.done(place), [taken]);
    }
}

#[test]
fn a_budget_is_asked_for_lots_of_others_only() {
    // Two lots of user 2 cost 202; the own ones before them would cost 200.
    for (budget, fills) in [(201, false), (202, true)] {
        let (mut world, asks) = three_asks(Rules::default(), PAIR);
        let place = fok(bid(1, 9, budget, 2), MAKER, OrderType::FokBudget);
        let events = world.done(place);
        if fills {
            let taken = trade(Bid, (101, 2), (2, 2), (true, true), budget);
            assert_eq!(
                events,
                [removed(&asks[0], 2, RemovalReason::SelfTrade), taken]
            );
        } else {
            assert_eq!(events, [reject(&place, 2)]);
        }
    }
}

#[test]
fn a_budget_that_is_used_up_meets_no_order() {
    // 100 for one lot, and then too little for one more of the own order at 101.
    for (budget, gone) in [(300, false), (301, true)] {
        let (mut world, asks) = three_asks(Rules::default(), PAIR);
        let place = fok(bid(2, 9, budget, 5), MAKER, OrderType::IocBudget);
        let events = world.done(place);
        let taken = trade(Bid, (100, 2), (1, 1), GONE, budget);
        let mut expected = vec![reject(&place, 3), taken];
        if gone {
            expected.push(removed(&asks[1], 2, RemovalReason::SelfTrade));
        }
        assert_eq!(events, expected);
    }
}

#[test]
fn both_lose_what_the_smaller_one_has() {
    for (rules, symbol) in [
        (Rules::default(), PAIR),
        (Rules::default(), FUTURES),
        (Rules::REFERENCE, PAIR),
    ] {
        // The maker is larger, as large, smaller; of the rest, some rests.
        for (size, own, expected) in [
            (3, 1, (vec![(101, 2, 1), (102, 3, 2)], vec![])),
            (4, 2, (vec![(102, 3, 2)], vec![])),
            (6, 2, (vec![(102, 3, 2)], vec![(101, 9, 2)])),
        ] {
            let (mut world, asks) = three_asks(rules, symbol);
            let place = flagged(in_symbol(bid(2, 9, 101, size), symbol), DECREMENT);
            let why = if own == 2 {
                RemovalReason::SelfTrade
            } else {
                RemovalReason::Decremented
            };
            let events = [
                reject(&place, own),
                trade(Bid, (100, 2), (1, 1), GONE, 101),
                removed(&asks[1], own, why),
            ];
            assert_eq!(world.done(place), events);
            assert_eq!((world.side(symbol, Ask), world.side(symbol, Bid)), expected);
            let rests = world
                .order(symbol, 9)
                .map(|order| (order.size, order.filled));
            assert_eq!(rests, (size == 6).then_some((4, 2)));
        }
    }
}

#[test]
fn money_of_decremented_lots_comes_back() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let before = text(&world.state);
        let place = in_symbol(bid(1, 1, 100, 7), symbol).with_reserve(120);
        world.done(place);
        world.done(flagged(in_symbol(ask(1, 2, 90, 3), symbol), DECREMENT));
        assert_eq!(world.side(symbol, Bid), [(100, 1, 4)]);
        world.done(flagged(in_symbol(ask(1, 2, 90, 4), symbol), DECREMENT));
        assert_eq!(
            text(&world.state)
                .lines()
                .filter(|line| !line.starts_with('L'))
                .collect::<Vec<_>>(),
            before.lines().collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_iceberg_loses_hidden_lots_first_and_keeps_its_place() {
    let mut world = World::new(Rules::default());
    let ice = ask(1, 1, 100, 9);
    world.done(iceberg(ice, 2));
    world.done(ask(2, 2, 100, 1));
    let place = flagged(bid(1, 9, 100, 8), DECREMENT);
    let events = [
        reject(&place, 8),
        removed(&ice, 8, RemovalReason::Decremented),
    ];
    assert_eq!(world.done(place), events);
    assert_eq!(world.side(PAIR, Ask), [(100, 1, 1), (100, 2, 1)]);
    assert_eq!(
        world.order(PAIR, 1).map(|order| (order.size, order.hidden)),
        Some((1, 0))
    );
}

#[test]
fn a_moved_order_loses_lots_too() {
    for symbol in [PAIR, FUTURES] {
        for (size, left) in [(5, 1), (4, 0), (3, 0)] {
            let (mut world, asks) = three_asks(Rules::default(), symbol);
            let place =
                flagged(in_symbol(bid(2, 9, 90, size), symbol), DECREMENT).with_reserve(200);
            world.done(place);
            let there = Place {
                price: 101,
                ..place
            };
            let lost = 2.min(size - 2);
            let gone = |all| {
                if all {
                    RemovalReason::SelfTrade
                } else {
                    RemovalReason::Decremented
                }
            };
            let events = [
                trade(Bid, (100, 2), (1, 1), GONE, 200),
                removed(&asks[1], lost, gone(lost == 2)),
                removed(&there, lost, gone(left == 0)),
            ];
            assert_eq!(world.done(moved(2, symbol, 9, 101)), events);
            let rests = world
                .order(symbol, 9)
                .map(|order| (order.size, order.filled));
            assert_eq!(rests, (left > 0).then_some((left + 2, 2)));
        }
    }
}

#[test]
fn what_must_be_filled_whole_is_not_decremented() {
    for (uid, size, fills) in [(1, 1, false), (2, 2, true), (2, 3, false)] {
        let (mut world, _) = three_asks(Rules::default(), PAIR);
        let before = text(&world.state);
        let place = fok(bid(uid, 9, 102, size), DECREMENT, OrderType::Fok);
        let events = world.done(place);
        if fills {
            assert_eq!(events, [trade(Bid, (100, 2), (1, 1), (true, true), 102)]);
        } else {
            assert_eq!(events, [reject(&place, size)]);
            assert_eq!(text(&world.state), before);
        }
    }
}

#[test]
fn a_budget_is_not_spent_on_lots_that_are_lost() {
    // Lots that are lost cost nothing: 100 for one, one lost, and 102 are left for one at 102.
    let mut world = World::new(Rules::default());
    let before = world.balance(2, 2);
    for place in [ask(1, 1, 100, 1), ask(2, 2, 101, 1), ask(1, 3, 102, 5)] {
        world.done(place);
    }
    let place = fok(bid(2, 9, 202, 4), DECREMENT, OrderType::IocBudget);
    let events = [
        reject(&place, 2),
        trade(Bid, (100, 1), (1, 1), GONE, 202),
        removed(&ask(2, 2, 101, 1), 1, RemovalReason::SelfTrade),
        trade(Bid, (102, 1), (1, 3), (false, false), 202),
    ];
    assert_eq!(world.done(place), events);
    assert_eq!(world.balance(2, 2), before - 202 * 2 - 2 * 3);
}
