//! Orders that live until a time.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{
    Command, ConditionalOrder, Events, OrderType, Place, RemovalReason, ResultCode, Rules,
    WORK_MAX, apply_in_parts,
};

use crate::terms::world::{
    FUTURES, OTHER_PAIR, PAIR, World, ask, bid, cancelled, good_till, iceberg, in_symbol, moved,
    reduced, removed, stop, text, trade, with,
};

const fn clock(time: i64) -> Command {
    Command::Clock { time }
}

#[test]
fn they_go_by_symbol_then_time_then_arrival() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let mut world = World::new(rules);
        let before = world.balance(1, 2);
        let late = bid(1, 1, 90, 1);
        let early = bid(1, 2, 80, 2);
        let same = bid(2, 3, 85, 3);
        let future = in_symbol(bid(1, 4, 70, 4), FUTURES);
        let other = in_symbol(ask(1, 5, 70, 5), OTHER_PAIR);
        world.done(good_till(future, 5));
        world.done(good_till(late, 9));
        world.done(good_till(early, 8));
        world.done(good_till(same, 8));
        world.done(good_till(other, 9));
        world.done(bid(3, 6, 60, 1));
        assert_eq!(world.done(clock(4)), []);
        let events = [(early, 2), (same, 3), (late, 1), (other, 5), (future, 4)];
        let events = events.map(|(place, size)| removed(&place, size, RemovalReason::Expired));
        assert_eq!(world.done(clock(9)), events);
        assert_eq!(world.side(PAIR, Bid), [(60, 6, 1)]);
        assert_eq!(world.balance(1, 2), before);
        let position = world
            .state
            .risk
            .user(1.into())
            .expect("known")
            .position(FUTURES);
        assert_eq!(position, None);
        assert_eq!(world.done(clock(9)), []);
    }
}

/// The first to expire changes: a sooner one comes, it is cancelled, it goes, others are left.
#[test]
fn the_next_is_known_whatever_comes_and_goes() {
    let mut world = World::new(Rules::default());
    let orders = [9, 5, 7, 11].map(|time| good_till(bid(1, time, 90, 1), time));
    let in_other = |time| good_till(in_symbol(bid(2, time, 90, 1), OTHER_PAIR), time);
    for order in orders {
        world.done(order);
    }
    world.done(in_other(6));
    world.done(in_other(4));
    world.done(cancelled(2, OTHER_PAIR, 4));
    assert_eq!(world.done(clock(4)), []);
    let gone = |order: ConditionalOrder| removed(&order.place, 1, RemovalReason::Expired);
    assert_eq!(world.done(clock(5)), [gone(orders[1])]);
    assert_eq!(world.done(clock(6)), [gone(in_other(6))]);
    world.done(in_other(8));
    assert_eq!(world.done(clock(7)), [gone(orders[2])]);
    assert_eq!(world.done(clock(9)), [gone(orders[0]), gone(in_other(8))]);
    let spec = *world.state.matching.book(PAIR).expect("known").spec();
    world.done(Command::RemoveSymbol { symbol: PAIR });
    world.done(Command::AddSymbols([spec].into()));
    world.done(good_till(bid(1, 1, 90, 1), 12));
    assert_eq!(world.done(clock(11)), []);
    assert_eq!(
        world.done(clock(12)),
        [gone(good_till(bid(1, 1, 90, 1), 12))]
    );
}

#[test]
fn the_last_prices_of_futures_follow() {
    let mut world = World::new(Rules::default());
    let place = in_symbol(bid(1, 4, 70, 4), FUTURES);
    world.done(good_till(place, 5));
    assert_eq!(world.state.risk.last_prices()[0].1.bid, 70);
    world.done(clock(7));
    assert_eq!(world.state.risk.last_prices()[0].1.bid, 0);
}

#[test]
fn the_clock_does_not_go_back() {
    let mut world = World::new(Rules::default());
    world.done(clock(-7));
    world.done(clock(-7));
    world.done(clock(3));
    world.refused(clock(2), ResultCode::RiskClockWentBack);
    // Till now is over already.
    for time in [2, 3] {
        let order = good_till(bid(1, 1, 90, 1), time);
        world.refused(order, ResultCode::RiskGoodTillPassed);
    }
    world.done(good_till(bid(1, 1, 90, 1), 4));
    world.done(Command::Reset);
    world.done(clock(2));
}

/// The ends of 64 bits are times like others.
#[test]
fn orders_until_the_last_time_expire_by_it() {
    let mut world = World::new(Rules::default());
    let order = bid(1, 1, 90, 1);
    world.done(good_till(order, i64::MAX));
    world.done(good_till(in_symbol(order, OTHER_PAIR), i64::MAX));
    assert_eq!(world.done(clock(i64::MAX - 1)), []);
    let events = [PAIR, OTHER_PAIR]
        .map(|symbol| removed(&in_symbol(order, symbol), 1, RemovalReason::Expired));
    assert_eq!(world.done(clock(i64::MAX)), events);
    assert_eq!(world.state.left_over(), None);
}

/// Whether each command is executed whole or part by part, and in a state that was saved.
#[test]
fn nothing_is_left_over_once_an_order_has_taken_the_last_that_expired() {
    let mut world = World::with_money(Rules::default(), 1 << 40);
    let max = WORK_MAX as i64;
    for id in 0..=max {
        world.apply(&with(good_till(ask(1, id, 100, 1), 10)));
    }
    assert_eq!(world.done(clock(10)).len(), WORK_MAX);
    assert_eq!(world.state.left_over(), Some(clock(10)));
    let mut parted = world.state.clone();
    let taker = bid(2, 0, 100, 1);
    assert_eq!(world.done(taker).len(), 1);
    assert_eq!(world.state.left_over(), None);
    apply_in_parts(&mut parted, &taker.into(), &mut Events::new(), || {});
    assert_eq!(parted.left_over(), None);
}

#[test]
fn types_that_do_not_rest_have_no_time() {
    let mut world = World::new(Rules::default());
    for order_type in &OrderType::ALL[1..] {
        let place = bid(1, 1, 90, 1).with_type(*order_type);
        let order = good_till(place, 4);
        world.refused(order, ResultCode::RiskGoodTillOrderType);
    }
    for (place, code) in [
        (bid(1, 1, 0, 1), ResultCode::RiskPriceNotPositive),
        (bid(1, 1, 5, 0), ResultCode::RiskSizeNotPositive),
    ] {
        let mut world = World::new(Rules::REFERENCE);
        world.refused(good_till(place, 4), code);
    }
}

#[test]
fn an_order_that_is_gone_expires_no_more_and_its_id_is_free() {
    let mut world = World::new(Rules::default());
    world.done(good_till(bid(3, 7, 70, 2), 50));
    let orders = [1, 2, 3, 4].map(|id| bid(1, id, 90, 2));
    for place in orders {
        world.done(good_till(place, 5));
    }
    // Filled as a maker, cancelled, reduced to nothing, filled as a moved taker.
    world.done(ask(2, 9, 90, 2));
    world.done(cancelled(1, PAIR, 2));
    world.done(reduced(1, PAIR, 3, 1));
    world.done(reduced(1, PAIR, 3, 1));
    world.done(ask(2, 9, 91, 2));
    world.refused(
        moved(1, PAIR, 4, 91),
        ResultCode::MatchingMoveFailedPriceOverRiskLimit,
    );
    world.done(cancelled(1, PAIR, 4));
    for place in orders {
        world.done(Place { price: 80, ..place });
    }
    assert_eq!(world.done(clock(5)), []);
    assert_eq!(world.side(PAIR, Bid).len(), 5);
}

#[test]
fn a_moved_order_expires_all_the_same() {
    let mut world = World::new(Rules::default());
    let place = ask(1, 1, 90, 5);
    world.done(good_till(place, 5));
    world.done(moved(1, PAIR, 1, 95));
    world.done(bid(2, 2, 92, 2));
    // It takes, and rests again.
    let events = [trade(Ask, (92, 2), (2, 2), (true, false), 92)];
    assert_eq!(world.done(moved(1, PAIR, 1, 91)), events);
    let there = Place { price: 91, ..place };
    let events = [removed(&there, 3, RemovalReason::Expired)];
    assert_eq!(world.done(clock(i64::MAX)), events);
}

#[test]
fn a_stop_order_expires_while_it_waits_and_when_it_rests() {
    for order_type in [OrderType::Gtc, OrderType::Ioc] {
        let mut world = World::new(Rules::default());
        let place = bid(1, 1, 90, 5).with_type(order_type);
        let mut order = stop(place, 100);
        order.good_till = Some(5);
        world.done(order);
        assert_eq!(
            world.done(clock(5)),
            [removed(&place, 5, RemovalReason::Expired)]
        );
        assert!(world.waiting(PAIR).is_empty());
    }
    let mut world = World::new(Rules::default());
    let mut order = stop(bid(1, 1, 90, 5), 100);
    order.good_till = Some(5);
    world.done(order);
    world.done(ask(2, 2, 100, 1));
    world.done(bid(2, 3, 100, 1));
    assert_eq!(world.side(PAIR, Bid), [(90, 1, 5)]);
    assert_eq!(
        world.order(PAIR, 1).and_then(|order| order.good_till),
        Some(5)
    );
    assert_eq!(
        world.done(clock(5)),
        [removed(&order.place, 5, RemovalReason::Expired)]
    );
}

#[test]
fn the_canonical_text_has_who_expires_and_when() {
    let mut world = World::new(Rules::default());
    world.done(bid(1, 1, 90, 5));
    let before = text(&world.state);
    world.done(cancelled(1, PAIR, 1));
    world.done(good_till(bid(1, 1, 90, 5), 7));
    assert_eq!(text(&world.state), format!("{before}E,1,7,1,1\n"));
    world.done(clock(3));
    assert_eq!(text(&world.state), format!("{before}V,3\nE,1,7,1,1\n"));
}

/// Ids are their owners' alone, so an id does not say whose order expires, or hides lots.
#[test]
fn a_states_text_has_whose_order_expires_and_hides_lots() {
    let state = |whose: [i64; 2]| {
        let mut world = World::new(Rules::default());
        for (uid, time) in whose.into_iter().zip([10, 20]) {
            world.done(good_till(bid(uid, 5, 90, 1), time));
        }
        world
    };
    assert_ne!(text(&state([1, 2]).state), text(&state([2, 1]).state));
    let state = |whose: i64| {
        let mut world = World::new(Rules::default());
        for uid in [1, 2] {
            let order = ask(uid, 5, 90, 4);
            let display = if uid == whose { 2 } else { 4 };
            world.done(iceberg(order, display));
            if uid != whose {
                world.done(reduced(uid, PAIR, 5, 2));
            }
        }
        world
    };
    assert_ne!(text(&state(1).state), text(&state(2).state));
}
