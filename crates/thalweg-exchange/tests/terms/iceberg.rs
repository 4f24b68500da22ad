//! Orders that display a part of their lots.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{OrderFlags, OrderType, Place, RemovalReason, ResultCode, Rules, SelfTrade};

use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, cancelled, flagged, iceberg, in_symbol, moved, reduce, reduced,
    refilled, reject, removed, text, trade,
};

const PART: (bool, bool) = (false, false);
const LAST: (bool, bool) = (false, true);

#[test]
fn it_shows_so_many_and_hides_the_rest() {
    let mut world = World::new(Rules::default());
    let place = ask(1, 1, 100, 10);
    assert_eq!(world.done(iceberg(place, 3)), []);
    assert_eq!(world.side(PAIR, Ask), [(100, 1, 3)]);
    let order = world.order(PAIR, 1).expect("it rests");
    assert_eq!((order.size, order.filled, order.hidden), (10, 0, 7));
    assert_eq!(order.display, Some(3));
    let book = world.state.matching.book(PAIR).expect("it was added");
    assert_eq!(book.best(Ask).map(|level| level.volume), Some(3));
    assert!(text(&world.state).ends_with("Q,1,A,100,3,1\nY,1,1,0,3,7,1\n"));
    // One that is small enough is a plain order.
    assert_eq!(world.done(iceberg(ask(1, 2, 101, 3), 3)), []);
    let order = world.order(PAIR, 2).expect("it rests");
    assert_eq!((order.hidden, order.display), (0, None));
}

#[test]
fn filled_lots_are_shown_again_at_the_end_of_the_queue() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let places = [ask(1, 1, 100, 7), ask(2, 2, 100, 2)].map(|place| in_symbol(place, symbol));
        world.done(iceberg(places[0], 3));
        world.done(places[1]);
        let taker = in_symbol(bid(3, 9, 100, 4), symbol);
        let events = [
            trade(Bid, (100, 3), (1, 1), PART, 100),
            refilled(1, 1, 3),
            trade(Bid, (100, 1), (2, 2), LAST, 100),
        ];
        assert_eq!(world.done(taker), events);
        assert_eq!(world.side(symbol, Ask), [(100, 2, 1), (100, 1, 3)]);
        // Everybody else at this price comes before it is met again, and again.
        let taker = Place { size: 6, ..taker };
        let events = [
            reject(&taker, 1),
            trade(Bid, (100, 1), (2, 2), (true, false), 100),
            trade(Bid, (100, 3), (1, 1), PART, 100),
            refilled(1, 1, 1),
            trade(Bid, (100, 1), (1, 1), (true, false), 100),
        ];
        let taker = taker.with_type(OrderType::Ioc);
        assert_eq!(world.done(taker), events);
        assert_eq!(world.side(symbol, Ask), []);
        assert_eq!(world.order(symbol, 1), None);
    }
}

#[test]
fn it_takes_with_all_its_lots() {
    let mut world = World::new(Rules::default());
    world.done(ask(2, 2, 100, 5));
    let events = [trade(Bid, (100, 5), (2, 2), (true, false), 110)];
    assert_eq!(world.done(iceberg(bid(1, 1, 110, 9), 2)), events);
    let order = world.order(PAIR, 1).expect("it rests");
    assert_eq!((order.size, order.filled, order.hidden), (9, 5, 2));
}

#[test]
fn a_reduction_takes_hidden_lots_first_and_a_cancel_takes_all() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let before = world.balance(1, 1);
        let place = in_symbol(ask(1, 1, 100, 10), symbol);
        world.done(iceberg(place, 3));
        world.done(in_symbol(ask(2, 2, 100, 1), symbol));
        let events = [reduce(&place, 5, false)];
        assert_eq!(world.done(reduced(1, symbol, 1, 5)), events);
        assert_eq!(world.side(symbol, Ask), [(100, 1, 3), (100, 2, 1)]);
        world.done(reduced(1, symbol, 1, 3));
        assert_eq!(world.side(symbol, Ask), [(100, 1, 2), (100, 2, 1)]);
        assert_eq!(world.order(symbol, 1).map(|order| order.hidden), Some(0));
        world.done(cancelled(1, symbol, 1));
        world.done(iceberg(place, 3));
        let events = [reduce(&place, 10, true)];
        assert_eq!(world.done(cancelled(1, symbol, 1)), events);
        assert_eq!(world.balance(1, 1), before);
        world.done(iceberg(place, 3));
        let by = [reduce(&place, 10, true)];
        assert_eq!(world.done(reduced(1, symbol, 1, 11)), by);
    }
}

#[test]
fn a_moved_one_shows_its_full_display_again() {
    let mut world = World::new(Rules::default());
    world.done(iceberg(ask(1, 1, 100, 10), 4));
    world.done(bid(2, 2, 100, 3));
    assert_eq!(world.side(PAIR, Ask), [(100, 1, 1)]);
    assert_eq!(world.done(moved(1, PAIR, 1, 105)), [refilled(1, 1, 3)]);
    assert_eq!(world.side(PAIR, Ask), [(105, 1, 4)]);
    // Nothing more is displayed.
    assert_eq!(world.done(moved(1, PAIR, 1, 106)), []);
    // Far away, where there is no window.
    assert_eq!(world.done(moved(1, PAIR, 1, 1_000_000)), []);
    assert_eq!(world.done(moved(1, PAIR, 1, 106)), []);
    // It takes with all it has, five lots, of which four were displayed.
    world.done(bid(2, 3, 50, 5));
    let events = [
        trade(Ask, (50, 5), (2, 3), (true, false), 50),
        refilled(1, 1, 3),
    ];
    assert_eq!(world.done(moved(1, PAIR, 1, 50)), events);
    assert_eq!(world.side(PAIR, Ask), [(50, 1, 2)]);
    let order = world.order(PAIR, 1).expect("it rests");
    assert_eq!((order.size, order.filled, order.hidden), (10, 8, 0));
}

#[test]
fn hidden_lots_count_for_those_who_must_be_filled_whole() {
    for (order_type, price) in [(OrderType::Fok, 101), (OrderType::FokBudget, 901)] {
        for (size, fills) in [(9, true), (10, false)] {
            let mut world = World::new(Rules::default());
            world.done(iceberg(ask(1, 1, 100, 8), 3));
            world.done(ask(2, 2, 101, 1));
            let place = bid(3, 9, price, size).with_type(order_type);
            let events = world.done(place);
            if fills {
                let lots = events.iter().map(|event| match event {
                    thalweg_exchange::Event::Trade { size, .. } => *size,
                    _ => 0,
                });
                assert_eq!(lots.sum::<i64>(), 9);
            } else {
                assert_eq!(events, [reject(&place, size)]);
            }
        }
    }
}

#[test]
fn an_own_order_before_hidden_lots_is_met_before_them() {
    // Lots of user 2's iceberg order that are hidden stand behind user 3's order.
    let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelTaker);
    for (size, fills) in [(3, true), (4, false)] {
        let mut world = World::new(Rules::default());
        world.done(iceberg(ask(2, 1, 100, 8), 3));
        world.done(ask(3, 2, 100, 1));
        let place = flagged(bid(3, 9, 100, size), flags).with_type(OrderType::Fok);
        let events = world.done(place);
        assert_eq!(events == [reject(&place, size)], !fills);
    }
}

#[test]
fn one_that_meets_its_owner_goes_with_all_its_lots() {
    let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let place = in_symbol(ask(1, 1, 100, 8), symbol);
        world.done(iceberg(place, 3));
        let taker = in_symbol(flagged(bid(1, 9, 100, 2), flags), symbol);
        let events = [removed(&place, 8, RemovalReason::SelfTrade)];
        assert_eq!(world.done(taker), events);
        assert_eq!(world.side(symbol, Bid), [(100, 9, 2)]);
    }
}

#[test]
fn senseless_displays_are_refused() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let mut world = World::new(rules);
        for (display, size) in [(0, 5), (-1, 5), (1, 1_001), (i64::MIN, 5)] {
            let order = iceberg(ask(1, 1, 100, size), display);
            world.refused(order, ResultCode::RiskIcebergDisplay);
        }
        world.done(iceberg(ask(1, 1, 100, 1_000), 1));
        world.done(iceberg(ask(1, 2, 100, 1_000), i64::MAX));
        for order_type in &OrderType::ALL[1..] {
            let place = ask(1, 3, 100, 5).with_type(*order_type);
            world.refused(iceberg(place, 2), ResultCode::RiskIcebergOrderType);
        }
        let none = iceberg(ask(1, 3, 100, 0), 2);
        world.refused(none, ResultCode::RiskSizeNotPositive);
    }
}
