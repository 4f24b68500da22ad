//! Orders that wait for a price.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::report::orders_of;
use thalweg_exchange::snapshot::{decode_state, encode_state};
use thalweg_exchange::{
    Command, OrderFlags, OrderType, Place, RemovalReason, ResultCode, Rules, SelfTrade, UserId,
};

use crate::terms::world::{
    FUTURES, OTHER_PAIR, PAIR, World, ask, bid, cancelled, flagged, iceberg, in_symbol, moved,
    reduced, reject, removed, stop, text, trade, triggered, with,
};

const WHOLE: (bool, bool) = (true, true);

fn ioc(place: Place) -> Place {
    place.with_type(OrderType::Ioc)
}

/// Users 4 and 5 trade a lot at a price.
fn trade_at(world: &mut World, symbol: thalweg_exchange::SymbolId, price: i64) {
    world.done(in_symbol(ask(4, 90, price, 1), symbol));
    world.done(in_symbol(bid(5, 91, price, 1), symbol));
}

#[test]
fn a_stop_limit_waits_then_rests() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        for symbol in [PAIR, FUTURES] {
            let mut world = World::new(rules);
            let place = in_symbol(bid(1, 1, 105, 3), symbol);
            assert_eq!(world.done(stop(place, 100)), []);
            assert_eq!(world.waiting(symbol), [1]);
            assert_eq!(world.side(symbol, Bid), []);
            trade_at(&mut world, symbol, 99);
            assert_eq!(world.waiting(symbol), [1]);
            world.done(in_symbol(ask(2, 2, 100, 1), symbol));
            let taker = in_symbol(bid(3, 3, 100, 1), symbol);
            let events = [trade(Bid, (100, 1), (2, 2), WHOLE, 100), triggered(&place)];
            assert_eq!(world.done(taker), events);
            assert!(world.waiting(symbol).is_empty());
            assert_eq!(world.side(symbol, Bid), [(105, 1, 3)]);
        }
    }
}

#[test]
fn a_stop_takes_up_to_its_limit_and_gives_the_rest_back() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        for symbol in [PAIR, FUTURES] {
            let mut world = World::new(rules);
            for (id, price) in [(1, 100), (2, 95), (3, 90)] {
                world.done(in_symbol(bid(2, id, price, 2), symbol));
            }
            // Sells at 95 or better, once a trade was at 100.
            let place = ioc(in_symbol(ask(1, 9, 95, 5), symbol));
            world.done(stop(place, 100));
            let taker = in_symbol(ask(3, 8, 100, 1), symbol);
            let events = [
                trade(Ask, (100, 1), (2, 1), (false, true), 100),
                triggered(&place),
                reject(&place, 2),
                trade(Ask, (100, 1), (2, 1), (true, false), 100),
                trade(Ask, (95, 2), (2, 2), (true, false), 95),
            ];
            assert_eq!(world.done(taker), events);
            let user = world.state.risk.user(UserId(1)).expect("known");
            match user.position(symbol) {
                Some(position) => assert_eq!((position.open_volume, position.pending_sell), (3, 0)),
                None => assert_eq!(user.balance(1.into()), 1_000_000 - 3 * 3),
            }
        }
    }
}

#[test]
fn a_trigger_that_is_passed_acts_at_once() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        trade_at(&mut world, symbol, 100);
        // Not reached yet, from either side.
        world.done(stop(in_symbol(bid(1, 1, 105, 3), symbol), 101));
        world.done(stop(in_symbol(ask(1, 2, 40, 3), symbol), 99));
        assert_eq!(world.waiting(symbol), [2, 1]);
        for (id, trigger) in [(3, 100), (4, 50)] {
            let place = in_symbol(bid(1, id, 90, 3), symbol);
            assert_eq!(world.done(stop(place, trigger)), [triggered(&place)]);
        }
        assert_eq!(world.side(symbol, Bid), [(90, 3, 3), (90, 4, 3)]);
        // It takes, what is left of it goes, and its trade reaches another.
        let sale = ioc(in_symbol(ask(2, 5, 90, 8), symbol));
        let next = in_symbol(ask(1, 2, 40, 3), symbol);
        let events = [
            triggered(&sale),
            reject(&sale, 2),
            trade(Ask, (90, 3), (1, 3), (true, false), 90),
            trade(Ask, (90, 3), (1, 4), (true, false), 90),
            triggered(&next),
        ];
        assert_eq!(world.done(stop(sale, 100)), events);
        assert_eq!(world.waiting(symbol), [1]);
        assert_eq!(world.side(symbol, Ask), [(40, 2, 3)]);
        assert!(text(&world.state).contains(&format!("\nK,{symbol},90\n")));
    }
}

#[test]
fn one_that_acts_at_once_has_an_id_of_its_own() {
    let mut world = World::new(Rules::default());
    trade_at(&mut world, PAIR, 100);
    world.done(bid(1, 1, 90, 3));
    world.done(stop(bid(1, 2, 120, 3), 110));
    let before = text(&world.state);
    for id in [1, 2] {
        let place = bid(1, id, 95, 3);
        assert_eq!(world.done(stop(place, 100)), [reject(&place, 3)]);
        assert_eq!(text(&world.state), before);
    }
}

#[test]
fn one_that_is_rejected_as_it_acts_at_once_is_refused() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        trade_at(&mut world, symbol, 100);
        let rests = in_symbol(ask(1, 1, 100, 2), symbol);
        world.done(rests);
        let before = text(&world.state);
        let post = OrderFlags::NONE.with_post_only();
        let post = in_symbol(flagged(bid(2, 2, 100, 3), post), symbol);
        // As one without a trigger, and not reported as triggered: nothing was.
        for command in [Command::Place(post), with(stop(post, 90))] {
            let result = world.apply(&command);
            assert_eq!(result, ResultCode::MatchingRejectedPostOnly);
            assert_eq!(world.plain(), [reject(&post, 3)]);
            assert_eq!(text(&world.state), before);
        }
        // Its self-trade prevention applies all the same.
        let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth);
        let own = in_symbol(flagged(bid(1, 3, 100, 3), flags), symbol);
        let result = world.apply(&with(stop(own, 90)));
        assert_eq!(result, ResultCode::MatchingRejectedSelfTrade);
        let gone = removed(&rests, 2, RemovalReason::SelfTrade);
        assert_eq!(world.plain(), [reject(&own, 3), gone]);
        assert!(world.waiting(symbol).is_empty());
    }
}

#[test]
fn what_is_triggered_outside_the_band_is_removed() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        for symbol in [PAIR, FUTURES] {
            let mut world = World::new(rules);
            let before = (world.balance(1, 1), world.balance(1, 2));
            let (buys, sells) = (bid(1, 1, 120, 3), ioc(ask(1, 2, 80, 3)));
            let [buys, sells] = [buys, sells].map(|place| in_symbol(place, symbol));
            world.done(stop(buys, 100));
            world.done(stop(sells, 101));
            for (id, price) in [(11, 121), (12, 101), (13, 110)] {
                world.done(in_symbol(ask(2, id, price, 1), symbol));
            }
            let (low, high) = (90, 110);
            let gone = world.done(Command::SetPriceBand { symbol, low, high });
            let removed = [sells, buys].map(|place| removed(&place, 3, RemovalReason::OutsideBand));
            let taker = in_symbol(bid(3, 9, 101, 1), symbol);
            let events = world.done(taker);
            // In covered futures, no order waits outside the band.
            if symbol == FUTURES && rules == Rules::default() {
                assert_eq!((&gone[1..], events.len()), (&removed[..], 1));
            } else {
                assert_eq!((gone.len(), &events[1..]), (0, &removed[..]));
            }
            assert_eq!((world.balance(1, 1), world.balance(1, 2)), before);
            assert!(world.waiting(symbol).is_empty());
        }
    }
}

#[test]
fn trades_of_other_symbols_and_by_the_reference_those_of_before_do_not_count() {
    let mut world = World::new(Rules {
        trigger_passed_stops: false,
        ..Rules::default()
    });
    trade_at(&mut world, PAIR, 100);
    world.done(stop(bid(1, 1, 105, 3), 100));
    trade_at(&mut world, OTHER_PAIR, 100);
    assert_eq!(world.waiting(PAIR), [1]);
    // The other way round for a sale: at or below.
    world.done(stop(ask(1, 2, 40, 3), 50));
    trade_at(&mut world, PAIR, 51);
    assert_eq!(world.waiting(PAIR), [2, 1]);
    trade_at(&mut world, PAIR, 49);
    assert_eq!(world.waiting(PAIR), [1]);
    assert_eq!(world.side(PAIR, Ask), [(40, 2, 3)]);
}

#[test]
fn they_go_by_trade_then_side_then_trigger_then_arrival() {
    let mut world = World::new(Rules::default());
    let places = [
        (stop(bid(1, 1, 10, 1), 102), 5),
        (stop(bid(1, 2, 10, 1), 101), 3),
        (stop(bid(1, 3, 10, 1), 101), 4),
        (stop(ask(1, 4, 500, 1), 101), 1),
        (stop(ask(1, 5, 500, 1), 100), 2),
        (stop(bid(1, 6, 10, 1), 103), 9),
    ];
    for (order, _) in places {
        world.done(order);
    }
    assert_eq!(world.waiting(PAIR), [4, 5, 2, 3, 1, 6]);
    for (id, price) in [(91, 100), (92, 101), (93, 102)] {
        world.done(ask(2, id, price, 1));
    }
    let events = world.done(bid(3, 9, 102, 3));
    let mut expected = places.to_vec();
    expected.retain(|&(_, at)| at < 9);
    expected.sort_by_key(|&(_, at)| at);
    let expected: Vec<_> = expected
        .iter()
        .map(|(order, _)| triggered(&order.place))
        .collect();
    assert_eq!(events[3..], expected);
    assert_eq!(world.waiting(PAIR), [6]);
}

#[test]
fn one_triggers_the_next_at_the_end_of_the_line() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        for (id, price) in [(1, 100), (2, 99), (3, 98), (4, 97)] {
            world.done(in_symbol(bid(2, id, price, 1), symbol));
        }
        let [first, second, third] = [(11, 100), (12, 100), (13, 99)]
            .map(|(id, trigger)| (in_symbol(ask(1, id, 2, 1), symbol), trigger));
        for (place, trigger) in [third, first, second] {
            world.done(stop(place, trigger));
        }
        let events = [
            trade(Ask, (100, 1), (2, 1), WHOLE, 100),
            triggered(&first.0),
            trade(Ask, (99, 1), (2, 2), WHOLE, 99),
            triggered(&second.0),
            trade(Ask, (98, 1), (2, 3), WHOLE, 98),
            triggered(&third.0),
            trade(Ask, (97, 1), (2, 4), WHOLE, 97),
        ];
        let taker = in_symbol(ask(3, 9, 100, 1), symbol);
        assert_eq!(world.done(taker), events);
        assert!(world.waiting(symbol).is_empty());
    }
}

#[test]
fn a_moved_order_triggers_too() {
    let mut world = World::new(Rules::default());
    world.done(ask(2, 1, 100, 1));
    world.done(ask(3, 2, 120, 1));
    world.done(bid(2, 3, 90, 1));
    let place = bid(1, 9, 80, 2);
    world.done(stop(place, 80));
    let events = [trade(Ask, (90, 1), (2, 3), WHOLE, 90), triggered(&place)];
    assert_eq!(world.done(moved(3, PAIR, 2, 90)), events);
}

#[test]
fn the_owner_cancels_and_reduces_it() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        for symbol in [PAIR, FUTURES] {
            let mut world = World::new(rules);
            let before = text(&world.state);
            let place = in_symbol(bid(1, 1, 105, 7), symbol);
            world.done(stop(place, 100));
            let held = text(&world.state);
            let unknown = ResultCode::MatchingUnknownOrderId;
            world.refused(cancelled(2, symbol, 1), unknown);
            world.refused(moved(1, symbol, 1, 50), unknown);
            world.refused(cancelled(1, OTHER_PAIR, 1), unknown);
            let wrong = ResultCode::MatchingReduceFailedWrongSize;
            world.refused(reduced(1, symbol, 1, 0), wrong);
            let events = world.done(reduced(1, symbol, 1, 3));
            assert_eq!(events, [removed(&place, 3, RemovalReason::Reduced)]);
            assert_ne!(text(&world.state), held);
            assert_eq!(world.waiting(symbol), [1]);
            let events = world.done(cancelled(1, symbol, 1));
            assert_eq!(events, [removed(&place, 4, RemovalReason::Cancelled)]);
            world.done(stop(place, 100));
            let events = world.done(reduced(1, symbol, 1, 7));
            assert_eq!(events, [removed(&place, 7, RemovalReason::Cancelled)]);
            let after = text(&world.state);
            let after: Vec<&str> = after
                .lines()
                .filter(|line| !line.starts_with('L'))
                .collect();
            assert_eq!(after, before.lines().collect::<Vec<_>>());
        }
    }
}

#[test]
fn its_money_is_held_and_the_reports_agree() {
    let mut world = World::new(Rules::default());
    let order = stop(bid(1, 1, 105, 7).with_reserve(110), 100);
    world.done(order);
    assert_eq!(world.balance(1, 2), 1_000_000 - 7 * (110 * 2 + 3));
    assert_eq!(orders_of(&world.state, UserId(1)).waiting, [order]);
    assert!(orders_of(&world.state, UserId(2)).is_empty());
    let poor = stop(ask(1, 2, 105, 400_000), 100);
    world.refused(poor, ResultCode::RiskNsf);
    // Margin is asked for lots that wait, as well.
    let poor = stop(in_symbol(ask(1, 2, 105, 400_000), FUTURES), 100);
    world.refused(poor, ResultCode::RiskNsf);
    assert!(text(&world.state).ends_with("N,1,B,100,1,1,0,105,110,7,0,0\n"));
}

#[test]
fn ids_are_of_one_order_that_rests_or_waits() {
    let mut world = World::new(Rules::default());
    world.done(bid(1, 1, 50, 1));
    let place = bid(1, 1, 60, 2);
    assert_eq!(world.done(stop(place, 100)), [reject(&place, 2)]);
    let place = ask(2, 7, 60, 2);
    world.done(stop(place, 40));
    assert_eq!(world.done(stop(place, 40)), [reject(&place, 2)]);
    // Nor may a new order take by it.
    let taker = ask(2, 7, 50, 3);
    assert_eq!(world.done(taker), [reject(&taker, 3)]);
    assert_eq!(world.waiting(PAIR), [7]);
}

#[test]
fn what_it_asks_for_counts_when_it_is_triggered() {
    let mut world = World::new(Rules::default());
    let post = flagged(bid(1, 1, 105, 3), OrderFlags::NONE.with_post_only());
    let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
    let own = flagged(bid(2, 2, 104, 3), flags);
    world.done(stop(post, 100));
    world.done(stop(own, 100));
    let mut ice = iceberg(bid(1, 3, 99, 5), 2);
    ice.trigger = Some(100);
    world.done(ice);
    let rests = ask(2, 8, 104, 2);
    world.done(ask(3, 7, 100, 1));
    world.done(rests);
    let events = [
        trade(Bid, (100, 1), (3, 7), WHOLE, 100),
        triggered(&post),
        reject(&post, 3),
        triggered(&own),
        removed(&rests, 2, RemovalReason::SelfTrade),
        triggered(&ice.place),
    ];
    assert_eq!(world.done(bid(4, 9, 100, 1)), events);
    assert_eq!(world.side(PAIR, Bid), [(104, 2, 3), (99, 3, 2)]);
}

#[test]
fn all_that_waits_is_cancelled_with_all_that_rests() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let rests = in_symbol(ask(1, 1, 100, 2), symbol);
        let places = [bid(1, 3, 50, 1), ask(1, 2, 60, 1), bid(2, 4, 50, 1)];
        let [buys, sells, other] = places.map(|place| in_symbol(place, symbol));
        world.done(rests);
        for place in [buys, sells, other] {
            world.done(stop(place, 70));
        }
        let events = [(rests, 2), (sells, 1), (buys, 1)]
            .map(|(place, size)| removed(&place, size, RemovalReason::CancelAll));
        let all = Command::cancel_all(Some(UserId(1)), Some(symbol));
        assert_eq!(world.done(all), events);
        let events = [removed(&other, 1, RemovalReason::SymbolRemoved)];
        assert_eq!(world.done(Command::RemoveSymbol { symbol }), events);
    }
}

#[test]
fn other_types_and_senseless_triggers_are_refused() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let mut world = World::new(rules);
        for order_type in &OrderType::ALL[2..5] {
            let place = bid(1, 1, 90, 1).with_type(*order_type);
            world.refused(stop(place, 80), ResultCode::RiskStopOrderType);
        }
        for (size, price, trigger, code) in [
            (0, 5, 5, ResultCode::RiskSizeNotPositive),
            (-1, 5, 5, ResultCode::RiskSizeNotPositive),
            (1, 0, 5, ResultCode::RiskPriceNotPositive),
            (1, 5, 0, ResultCode::RiskPriceNotPositive),
        ] {
            world.refused(stop(bid(1, 1, price, size), trigger), code);
        }
        let overflow = ResultCode::RiskArithmeticOverflow;
        let large = stop(bid(1, 1, i64::MAX, 1), 5);
        world.refused(large, overflow);
        let large = Place {
            symbol: FUTURES,
            ..ioc(bid(1, 1, i64::MAX - 1_000_000, 1))
        };
        world.refused(stop(large, 5), ResultCode::RiskPriceOutsideBand);
        if rules == Rules::REFERENCE {
            let (low, high) = (i64::MIN, i64::MAX);
            let symbol = FUTURES;
            world.done(Command::SetPriceBand { symbol, low, high });
            world.refused(stop(large, 5), overflow);
        }
    }
}

/// A snapshot that ended with more than a few of them was refused: each was taken for a byte longer
/// than it is.
#[test]
fn orders_that_wait_in_an_empty_book_come_back_from_a_snapshot() {
    for count in [1, 50, 1_000] {
        let mut world = World::new(Rules::default());
        for id in 0..count {
            world.done(stop(bid(1, id, 90, 1), 80));
        }
        let mut bytes = Vec::new();
        encode_state(&world.state, &mut bytes);
        let read = decode_state(&bytes).expect("it was encoded");
        assert_eq!(text(&read), text(&world.state));
    }
}
