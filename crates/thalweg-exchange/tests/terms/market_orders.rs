//! Orders that take at the market, no further than their protection.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{
    Command, OrderFlags, OrderType, Place, RemovalReason, ResultCode, Rules, SelfTrade, SymbolId,
};

use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, flagged, in_symbol, of_type, reject, removed, stop, text,
    trade, triggered,
};

const GONE: (bool, bool) = (true, false);

fn market(place: Place) -> Place {
    place.with_type(OrderType::Market)
}

fn protect(symbol: SymbolId, ticks: i64) -> Command {
    Command::SetMarketProtection { symbol, ticks }
}

/// One lot each of user 2 at 100, 102 and 105, and bids at 90, 88 and 85.
fn world(rules: Rules, symbol: SymbolId) -> World {
    let mut world = World::new(rules);
    for (id, price) in [(1, 100), (2, 102), (3, 105)] {
        world.done(in_symbol(ask(2, id, price, 1), symbol));
        let price = 190 - price;
        world.done(in_symbol(bid(2, id + 10, price, 1), symbol));
    }
    world
}

#[test]
fn it_takes_up_to_its_worst_price_without_protection() {
    for (rules, symbol) in [(Rules::default(), PAIR), (Rules::REFERENCE, FUTURES)] {
        let mut world = world(rules, symbol);
        let place = market(in_symbol(bid(1, 1, 104, 5), symbol));
        let events = [
            reject(&place, 3),
            trade(Bid, (100, 1), (2, 1), GONE, 104),
            trade(Bid, (102, 1), (2, 2), GONE, 104),
        ];
        assert_eq!(world.done(place), events);
        assert!(world.order(symbol, 1).is_none());
    }
}

#[test]
fn it_takes_no_further_from_the_best_price_than_the_protection() {
    for symbol in [PAIR, FUTURES] {
        for (ticks, prices) in [
            (0, &[100][..]),
            (1, &[100]),
            (2, &[100, 102]),
            (5, &[100, 102, 105]),
            (i64::MAX, &[100, 102, 105]),
        ] {
            for flags in [
                OrderFlags::NONE,
                OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth),
            ] {
                let mut world = world(Rules::default(), symbol);
                world.done(protect(symbol, ticks));
                let before = world.balance(1, 2);
                let place = market(flagged(in_symbol(bid(1, 1, 200, 9), symbol), flags));
                let events = world.done(place);
                let taken = prices.len() as i64;
                assert_eq!(events[0], reject(&place, 9 - taken));
                assert_eq!(events.len(), 1 + prices.len());
                let asks = world.side(symbol, Ask);
                assert!(asks.iter().all(|(price, ..)| !prices.contains(price)));
                if symbol == PAIR {
                    // The hold at 200 comes back but for the amount that was paid.
                    let paid: i64 = prices.iter().map(|price| price * 2 + 3).sum();
                    assert_eq!(world.balance(1, 2), before - paid);
                }
                // To sell is the mirror image.
                let place = market(flagged(in_symbol(ask(1, 1, 2, 9), symbol), flags));
                assert_eq!(world.done(place)[0], reject(&place, 9 - taken));
                let bids = world.side(symbol, Bid);
                assert!(
                    bids.iter()
                        .all(|(price, ..)| !prices.contains(&(190 - price)))
                );
            }
        }
    }
}

#[test]
fn it_takes_at_prices_of_the_band_only() {
    for symbol in [PAIR, FUTURES] {
        let mut world = world(Rules::default(), symbol);
        let (low, high) = (89, 102);
        world.done(Command::SetPriceBand { symbol, low, high });
        for place in [bid(1, 1, 150, 9), ask(1, 2, 10, 9)] {
            let place = market(in_symbol(place, symbol));
            let events = world.done(place);
            let lots = if place.action == Bid { 2 } else { 1 };
            assert_eq!(events[0], reject(&place, 9 - lots));
        }
        // A limit there is refused.
        let limit = in_symbol(bid(1, 1, 150, 9), symbol);
        world.refused(
            of_type(limit, OrderType::Ioc),
            ResultCode::RiskPriceOutsideBand,
        );
    }
}

#[test]
fn no_one_to_trade_with_and_halts() {
    for flags in [
        OrderFlags::NONE,
        OrderFlags::NONE.with_self_trade(SelfTrade::CancelTaker),
    ] {
        let mut world = World::new(Rules::default());
        let before = text(&world.state);
        for place in [bid(1, 1, 150, 9), ask(1, 2, 10, 9)] {
            let place = flagged(market(place), flags);
            assert_eq!(world.done(place), [reject(&place, 9)]);
        }
        assert_eq!(text(&world.state), before);
        world.done(Command::Halt { symbol: PAIR });
        let place = flagged(market(bid(1, 1, 150, 9)), flags);
        world.refused(place, ResultCode::SymbolHalted);
    }
}

#[test]
fn money_is_held_at_the_worst_price() {
    let mut world = World::with_money(Rules::default(), 1_000);
    world.done(ask(2, 1, 100, 1));
    // 5 · (100 · 2 + 3) is more than there is.
    world.refused(market(bid(1, 1, 100, 5)), ResultCode::RiskNsf);
    world.refused(market(ask(1, 1, 1, 1)), ResultCode::RiskNsf);
    let place = market(bid(1, 1, 100, 4));
    let taken = trade(Bid, (100, 1), (2, 1), GONE, 100);
    assert_eq!(world.done(place), [reject(&place, 3), taken]);
    assert_eq!(world.balance(1, 2), 1_000 - 203);
}

#[test]
fn it_may_wait_as_a_stop_order() {
    for symbol in [PAIR, FUTURES] {
        let mut world = world(Rules::default(), symbol);
        world.done(protect(symbol, 3));
        let place = market(in_symbol(bid(1, 9, 200, 4), symbol));
        world.done(stop(place, 100));
        let taker = in_symbol(bid(3, 8, 100, 1), symbol);
        let events = [
            trade(Bid, (100, 1), (2, 1), (true, true), 100),
            triggered(&place),
            reject(&place, 2),
            trade(Bid, (102, 1), (2, 2), GONE, 200),
            trade(Bid, (105, 1), (2, 3), GONE, 200),
        ];
        assert_eq!(world.done(taker), events);
    }
    let resting = [Some(1), None].map(|display| thalweg_exchange::ConditionalOrder {
        display,
        good_till: display.is_none().then_some(5),
        ..market(bid(1, 1, 100, 4)).into()
    });
    let codes = [
        ResultCode::RiskIcebergOrderType,
        ResultCode::RiskGoodTillOrderType,
    ];
    for (order, code) in resting.into_iter().zip(codes) {
        World::new(Rules::default()).refused(order, code);
    }
    let post_only = flagged(market(bid(1, 1, 100, 4)), OrderFlags::NONE.with_post_only());
    let code = ResultCode::RiskPostOnlyOrderType;
    World::new(Rules::default()).refused(post_only, code);
}

#[test]
fn an_own_order_may_be_the_best() {
    let mut world = World::new(Rules::default());
    world.done(protect(PAIR, 2));
    let own = ask(1, 1, 100, 1);
    for place in [own, ask(2, 2, 102, 1), ask(2, 3, 103, 1)] {
        world.done(place);
    }
    let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
    let place = flagged(market(bid(1, 9, 200, 3)), flags);
    let events = [
        reject(&place, 2),
        removed(&own, 1, RemovalReason::SelfTrade),
        trade(Bid, (102, 1), (2, 2), GONE, 200),
    ];
    assert_eq!(world.done(place), events);
}

#[test]
fn a_protection_must_make_sense() {
    let mut world = World::new(Rules::default());
    world.refused(protect(PAIR, -1), ResultCode::SymbolInvalidSpec);
    world.refused(protect(SymbolId(9), 1), ResultCode::InvalidSymbol);
    world.done(protect(PAIR, 7));
    assert!(text(&world.state).contains("\nM,1,7\n"));
    world.done(protect(PAIR, i64::MAX));
    assert!(!text(&world.state).contains("\nM,"));
}

/// The band is the bound then, whether they wait or not, and when it moves.
#[test]
fn the_worst_price_may_be_outside_the_band() {
    for symbol in [PAIR, FUTURES] {
        let mut world = world(Rules::default(), symbol);
        let band = |high| Command::set_price_band(symbol, 80, high);
        world.done(band(110));
        let place = market(in_symbol(bid(1, 1, 120, 1), symbol));
        world.done(stop(place, 101));
        world.done(band(104));
        assert_eq!(world.waiting(symbol), [1]);
        let taker = market(in_symbol(bid(1, 2, 120, 2), symbol));
        let events = [
            trade(Bid, (100, 1), (2, 1), GONE, 120),
            trade(Bid, (102, 1), (2, 2), (true, true), 120),
            triggered(&place),
            reject(&place, 1),
        ];
        assert_eq!(world.done(taker), events);
    }
}
