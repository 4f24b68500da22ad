//! Orders that get another size, another price, or both.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{Amend, Command, OrderFlags, Place, ResultCode, Rules, SymbolId, UserId};

use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, flagged, good_till, iceberg, in_symbol, moved, reduce,
    refilled, stop, text, trade,
};

/// The order of a command, as it was placed, with another price and size.
fn amend(place: &Place, price: i64, size: i64) -> Amend {
    Amend {
        uid: place.uid,
        symbol: place.symbol,
        order_id: place.order_id,
        action: place.action,
        reserve_price: place.reserve_price,
        size_before: place.size,
        price,
        size,
    }
}

fn amended(place: &Place, price: i64, size: i64) -> Command {
    Command::Amend(amend(place, price, size).into())
}

/// Three bids at 100, of which the second is the order, with a reserve price of 120.
fn queue(symbol: SymbolId) -> (World, Place) {
    let mut world = World::new(Rules::default());
    let own = in_symbol(bid(1, 1, 100, 5), symbol).with_reserve(120);
    world.done(in_symbol(bid(2, 2, 100, 1), symbol));
    world.done(own);
    world.done(in_symbol(bid(2, 3, 100, 1), symbol));
    (world, own)
}

#[test]
fn a_smaller_order_keeps_its_place() {
    for symbol in [PAIR, FUTURES] {
        let (mut world, own) = queue(symbol);
        let before = world.balance(1, 2);
        assert_eq!(world.done(amended(&own, 100, 2)), [reduce(&own, 3, false)]);
        assert_eq!(
            world.side(symbol, Bid),
            [(100, 2, 1), (100, 1, 2), (100, 3, 1)]
        );
        if symbol == PAIR {
            assert_eq!(world.balance(1, 2), before + 3 * (120 * 2 + 3));
        }
        // An equal amendment changes nothing.
        let own = Place { size: 2, ..own };
        let before = text(&world.state);
        assert_eq!(world.done(amended(&own, 100, 2)), []);
        assert_eq!(text(&world.state), before);
    }
}

#[test]
fn a_larger_order_and_another_price_lose_it() {
    for symbol in [PAIR, FUTURES] {
        let (mut world, own) = queue(symbol);
        let before = world.balance(1, 2);
        assert_eq!(world.done(amended(&own, 100, 7)), [refilled(1, 1, 2)]);
        assert_eq!(
            world.side(symbol, Bid),
            [(100, 2, 1), (100, 3, 1), (100, 1, 7)]
        );
        if symbol == PAIR {
            assert_eq!(world.balance(1, 2), before - 2 * (120 * 2 + 3));
        }
        let own = Place { size: 7, ..own };
        assert_eq!(world.done(amended(&own, 99, 7)), []);
        assert_eq!(
            world.side(symbol, Bid),
            [(100, 2, 1), (100, 3, 1), (99, 1, 7)]
        );
        assert_eq!(
            world.done(amended(&own, 100, 4)),
            [reduce(&Place { price: 99, ..own }, 3, false)]
        );
        assert_eq!(
            world.side(symbol, Bid),
            [(100, 2, 1), (100, 3, 1), (100, 1, 4)]
        );
    }
}

#[test]
fn it_takes_with_all_its_lots() {
    for symbol in [PAIR, FUTURES] {
        let (mut world, own) = queue(symbol);
        world.done(in_symbol(ask(3, 9, 110, 6), symbol));
        let events = [
            trade(Bid, (110, 6), (3, 9), (true, false), 120),
            refilled(1, 1, 3),
        ];
        assert_eq!(world.done(amended(&own, 110, 8)), events);
        let order = world.order(symbol, 1).expect("some is left");
        assert_eq!((order.price, order.size, order.filled), (110, 8, 6));
        // Sizes count what is filled; at that or less, what is left goes.
        let own = Place {
            size: 8,
            price: 110,
            ..own
        };
        for size in [6, 5, 0] {
            let mut world = World {
                state: world.state.clone(),
                events: world.events.clone(),
            };
            assert_eq!(
                world.done(amended(&own, 105, size)),
                [reduce(&own, 2, true)]
            );
            assert!(world.order(symbol, 1).is_none());
        }
        assert_eq!(world.done(amended(&own, 110, 7)), [reduce(&own, 1, false)]);
    }
}

#[test]
fn an_order_that_differs_from_the_command_is_left_alone() {
    let mismatch = ResultCode::MatchingAmendMismatch;
    let unknown = ResultCode::MatchingUnknownOrderId;
    type Change = fn(&mut Amend);
    let wrong: [(Change, ResultCode); 6] = [
        (|amend| amend.action = Ask, mismatch),
        (|amend| amend.size_before = 4, mismatch),
        (|amend| amend.size_before = 6, mismatch),
        (|amend| amend.order_id = 7.into(), unknown),
        (|amend| amend.order_id = 8.into(), unknown),
        (|amend| amend.uid = UserId(2), unknown),
    ];
    let over = ResultCode::MatchingMoveFailedPriceOverRiskLimit;
    let of_pairs: [(Change, ResultCode); 3] = [
        (|amend| amend.reserve_price = 119, mismatch),
        (
            |amend| (amend.price, amend.reserve_price) = (121, 121),
            mismatch,
        ),
        (|amend| (amend.price, amend.size) = (121, 5), over),
    ];
    for symbol in [PAIR, FUTURES] {
        let (mut world, own) = queue(symbol);
        let waits = in_symbol(bid(1, 8, 200, 5), symbol);
        world.done(stop(waits, 150));
        let of_pairs = of_pairs.iter().filter(|_| symbol == PAIR);
        for (change, code) in wrong.iter().chain(of_pairs) {
            for size in [1, 5, 9] {
                let mut amend = amend(&own, 101, size);
                change(&mut amend);
                world.refused(Command::Amend(amend.into()), *code);
            }
        }
    }
}

#[test]
fn senseless_and_uncovered_ones_are_refused() {
    for symbol in [PAIR, FUTURES] {
        let (mut world, own) = queue(symbol);
        world.refused(amended(&own, 100, -1), ResultCode::RiskSizeNotPositive);
        world.refused(amended(&own, 0, 5), ResultCode::RiskPriceNotPositive);
        let code = if symbol == PAIR {
            ResultCode::RiskNsf
        } else {
            ResultCode::RiskTooManyLots
        };
        world.refused(amended(&own, 100, 1 << 40), code);
        world.refused(
            amended(&own, 100, i64::MAX),
            if symbol == PAIR {
                ResultCode::RiskArithmeticOverflow
            } else {
                code
            },
        );
        world.done(Command::set_price_band(symbol, 90, 110));
        world.refused(amended(&own, 111, 5), ResultCode::RiskPriceOutsideBand);
        world.done(Command::Halt { symbol });
        world.refused(amended(&own, 100, 4), ResultCode::SymbolHalted);
        let unknown = amend(&own, 100, 4);
        let symbol = SymbolId(77);
        let unknown = Amend { symbol, ..unknown };
        world.refused(
            Command::Amend(unknown.into()),
            ResultCode::MatchingInvalidOrderBookId,
        );
    }
    let mut world = World::new(Rules::REFERENCE);
    let own = in_symbol(bid(1, 1, 100, 5), FUTURES);
    world.done(own);
    world.refused(amended(&own, 100, 4), ResultCode::UnsupportedSymbolType);
}

#[test]
fn more_lots_at_a_price_that_cannot_be_are_refused_for_the_price() {
    let (mut world, own) = queue(PAIR);
    let over = ResultCode::RiskInvalidReserveBidPrice;
    world.refused(amended(&own, 121, 6), over);
    // Not for what it would cost.
    world.refused(amended(&own, 121, 1 << 40), over);
    let own = ask(2, 4, 130, 5);
    world.done(own);
    let under = ResultCode::RiskAskPriceLowerThanFee;
    world.refused(amended(&own, 1, 6), under);
}

#[test]
fn money_for_more_lots_is_asked_for_first() {
    let mut world = World::with_money(Rules::default(), 1_000);
    let own = bid(1, 1, 100, 4);
    world.done(own);
    world.refused(amended(&own, 100, 5), ResultCode::RiskNsf);
    // Fewer lots, at any price up to the reserve price, need none.
    world.done(amended(&own, 90, 4));
    world.done(amended(&own, 100, 3));
    let own = Place { size: 3, ..own };
    world.done(amended(&own, 100, 4));
    assert_eq!(world.balance(1, 2), 1_000 - 4 * 203);
}

#[test]
fn a_post_only_order_does_not_take() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let flags = OrderFlags::NONE.with_post_only();
        let own = flagged(in_symbol(bid(1, 1, 100, 5), symbol), flags).with_reserve(120);
        world.done(own);
        world.done(in_symbol(ask(2, 2, 110, 5), symbol));
        for size in [4, 5, 6] {
            world.refused(
                amended(&own, 110, size),
                ResultCode::MatchingMoveFailedPostOnly,
            );
        }
        world.done(amended(&own, 109, 6));
        assert_eq!(world.side(symbol, Bid), [(109, 1, 6)]);
    }
}

#[test]
fn an_iceberg_shows_as_many_as_before() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let own = in_symbol(ask(1, 1, 100, 9), symbol);
        world.done(iceberg(own, 2));
        world.done(in_symbol(ask(2, 2, 100, 1), symbol));
        assert_eq!(world.done(amended(&own, 100, 6)), [reduce(&own, 3, false)]);
        assert_eq!(world.side(symbol, Ask), [(100, 1, 2), (100, 2, 1)]);
        let own = Place { size: 6, ..own };
        assert_eq!(world.done(amended(&own, 100, 12)), []);
        assert_eq!(world.side(symbol, Ask), [(100, 2, 1), (100, 1, 2)]);
        assert_eq!(world.order(symbol, 1).map(|order| order.hidden), Some(10));
    }
}

#[test]
fn a_time_to_live_stays() {
    let mut world = World::new(Rules::default());
    let own = ask(1, 1, 100, 9);
    world.done(good_till(own, 5));
    world.done(amended(&own, 101, 12));
    world.done(moved(1, PAIR, 1, 102));
    assert_eq!(
        world.order(PAIR, 1).and_then(|order| order.good_till),
        Some(5)
    );
    assert_eq!(world.done(Command::Clock { time: 5 }).len(), 1);
}

/// Else one order that takes it could make any number of trades: 2 GB of events were seen.
#[test]
fn an_iceberg_shows_a_thousandth_at_least() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let own = in_symbol(ask(1, 1, 100, 900), symbol);
        world.done(iceberg(own, 1));
        let code = ResultCode::RiskIcebergDisplay;
        world.refused(amended(&own, 100, 1_001), code);
        world.refused(amended(&own, 101, 1_001), code);
        let before = text(&world.state);
        world.done(amended(&own, 100, 1_000));
        let own = Place { size: 1_000, ..own };
        world.refused(amended(&own, 100, 1_001), code);
        world.done(amended(&own, 100, 900));
        assert_eq!(text(&world.state), before);
    }
}
