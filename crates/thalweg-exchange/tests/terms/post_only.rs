//! Orders that must not take.

use thalweg_exchange::{Action, OrderFlags, OrderType, ResultCode, Rules, SelfTrade};

use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, flagged, in_symbol, moved, of_type, reject, text,
};

const POST: OrderFlags = OrderFlags::NONE.with_post_only();

#[test]
fn one_that_would_take_is_rejected_whole() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        for symbol in [PAIR, FUTURES] {
            let mut world = World::new(rules);
            let rests = in_symbol(ask(1, 1, 100, 4), symbol);
            world.done(rests);
            let before = text(&world.state);
            for price in [100, 105] {
                let place = flagged(in_symbol(bid(2, 2, price, 9), symbol), POST);
                assert_eq!(world.done(place), [reject(&place, 9)]);
            }
            // Nothing is left of them, but what is remembered of a position without anything.
            assert_eq!(text(&world.state), before);
        }
    }
}

#[test]
fn one_that_would_rest_rests() {
    let mut world = World::new(Rules::default());
    world.done(ask(1, 1, 100, 4));
    let place = flagged(bid(2, 2, 99, 9), POST);
    assert_eq!(world.done(place), []);
    assert_eq!(world.side(PAIR, Action::Bid), [(99, 2, 9)]);
    let resting = world.order(PAIR, 2).expect("it rests");
    assert_eq!(resting.flags, POST);
    // It is a maker like any other.
    assert_eq!(world.done(ask(1, 3, 99, 9)).len(), 1);
    // An id that rests already is rejected as ever.
    let again = flagged(ask(1, 1, 120, 2), POST);
    assert_eq!(world.done(again), [reject(&again, 2)]);
}

#[test]
fn a_move_that_would_take_is_refused_and_the_order_keeps_its_place() {
    let mut world = World::new(Rules::default());
    world.done(ask(1, 1, 100, 4));
    let place = bid(2, 2, 90, 3).with_reserve(200);
    world.done(flagged(place, POST));
    world.done(bid(3, 3, 90, 3));
    let code = ResultCode::MatchingMoveFailedPostOnly;
    world.refused(moved(2, PAIR, 2, 100), code);
    world.refused(moved(2, PAIR, 2, 150), code);
    // Also by far, where there are no levels yet.
    world.refused(moved(2, PAIR, 2, 200), code);
    world.refused(
        moved(2, PAIR, 2, 201),
        ResultCode::MatchingMoveFailedPriceOverRiskLimit,
    );
    assert_eq!(world.side(PAIR, Action::Bid), [(90, 2, 3), (90, 3, 3)]);
    assert_eq!(world.done(moved(2, PAIR, 2, 99)), []);
    assert_eq!(world.side(PAIR, Action::Bid), [(99, 2, 3), (90, 3, 3)]);
    // It stays what it is.
    world.refused(moved(2, PAIR, 2, 100), code);
}

#[test]
fn own_orders_are_in_its_way_like_any_others() {
    let flags = POST.with_self_trade(SelfTrade::CancelMaker);
    let mut world = World::new(Rules::default());
    world.done(ask(1, 1, 100, 4));
    let place = flagged(bid(1, 2, 100, 4), flags);
    assert_eq!(world.done(place), [reject(&place, 4)]);
    assert_eq!(world.side(PAIR, Action::Ask), [(100, 1, 4)]);
}

#[test]
fn other_types_cannot_be_post_only() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let mut world = World::new(rules);
        world.done(ask(1, 1, 100, 4));
        for order_type in &OrderType::ALL[1..] {
            for place in [bid(2, 2, 90, 1), in_symbol(bid(2, 2, 90, 1), FUTURES)] {
                let command = of_type(flagged(place, POST), *order_type);
                world.refused(command, ResultCode::RiskPostOnlyOrderType);
            }
        }
    }
}
