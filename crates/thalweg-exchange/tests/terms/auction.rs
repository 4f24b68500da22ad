//! Call auctions: exact cases, and the price against one that tries all prices.

use proptest::prelude::*;
use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::book::Indicative;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderFlags, OrderType, Place, RemovalReason, ResultCode, Rules,
    SelfTrade, SymbolId, apply,
};

use crate::terms::steps::{start, uncross};
use crate::terms::watch::money_is_conserved;
use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, flagged, gtc, iceberg, in_symbol, moved, of_type, reduced,
    refilled, removed, stop, text, trade, triggered,
};

/// In an auction.
fn collecting(symbol: SymbolId) -> World {
    let mut world = World::new(Rules::default());
    world.done(start(symbol));
    world
}

fn indicative(world: &World, symbol: SymbolId, reference: Option<i64>) -> Option<Indicative> {
    let book = world.state.matching.book(symbol).expect("added");
    book.indicative(reference)
}

fn found(price: i64, volume: i64, surplus: i64) -> Option<Indicative> {
    Some(Indicative {
        price,
        volume,
        surplus,
    })
}

fn uncrossed(place: &Place, size: i64) -> Event {
    Event::Uncrossed {
        order: place.order_id,
        uid: place.uid,
        action: place.action,
        price: place.price,
        size,
        filled: 0,
        bidder_hold_price: place.reserve_price,
    }
}

#[test]
fn orders_are_collected_and_trade_at_one_price() {
    for symbol in [PAIR, FUTURES] {
        let mut world = collecting(symbol);
        let buyers = [bid(1, 1, 110, 3), bid(2, 2, 105, 4)].map(|place| in_symbol(place, symbol));
        let sellers = [ask(3, 3, 95, 2), ask(4, 4, 100, 3)].map(|place| in_symbol(place, symbol));
        for place in buyers.into_iter().chain(sellers) {
            assert_eq!(world.done(place), []);
        }
        let before: Vec<_> = (1..5).map(|uid| world.balance(uid, 2)).collect();
        assert_eq!(indicative(&world, symbol, None), found(102, 5, 2));
        assert_eq!(indicative(&world, symbol, Some(104)), found(104, 5, 2));
        assert_eq!(indicative(&world, symbol, Some(300)), found(105, 5, 2));
        let events = [
            uncrossed(&buyers[0], 3),
            trade(Bid, (102, 2), (3, 3), (true, false), 110),
            trade(Bid, (102, 1), (4, 4), (false, true), 110),
            uncrossed(&buyers[1], 4),
            trade(Bid, (102, 2), (4, 4), (true, false), 105),
        ];
        assert_eq!(world.done(uncross(symbol)), events);
        assert_eq!(world.side(symbol, Bid), [(105, 2, 2)]);
        assert_eq!(world.side(symbol, Ask), []);
        if symbol == PAIR {
            let got: Vec<_> = (1..5).map(|uid| world.balance(uid, 2)).collect();
            // Buyers get back what they held above 102; sellers pay the taker fee of 3.
            let expected = [3 * 8 * 2, 2 * 3 * 2, 2 * (102 * 2 - 3), 3 * (102 * 2 - 3)];
            for (at, change) in expected.into_iter().enumerate() {
                assert_eq!(got[at], before[at] + change, "user {}", at + 1);
            }
        }
        // Trading goes on, with the window open again.
        let taken = trade(Ask, (105, 2), (2, 2), (true, true), 105);
        let place = in_symbol(ask(5, 9, 100, 2), symbol);
        assert_eq!(world.done(place), [taken]);
    }
}

#[test]
fn surplus_and_then_the_reference_decide() {
    // Four lots trade from 100 to 104; from 102 on, nothing is left over.
    let mut world = collecting(PAIR);
    for place in [
        bid(1, 1, 104, 4),
        bid(1, 2, 101, 3),
        ask(2, 3, 100, 4),
        ask(2, 4, 110, 1),
    ] {
        world.done(place);
    }
    assert_eq!(indicative(&world, PAIR, Some(1)), found(102, 4, 0));
    assert_eq!(indicative(&world, PAIR, Some(103)), found(103, 4, 0));
    assert_eq!(indicative(&world, PAIR, None), found(103, 4, 0));
    // The last trade is the reference if there is one.
    world.done(uncross(PAIR));
    world.done(start(PAIR));
    for place in [bid(1, 5, 120, 1), ask(2, 6, 102, 1)] {
        world.done(place);
    }
    assert_eq!(indicative(&world, PAIR, None), found(103, 1, 0));
    let events = world.done(Command::Uncross {
        symbol: PAIR,
        reference: Some(119),
    });
    assert!(
        matches!(events[1], Event::Trade { price: 109, .. }),
        "{events:?}"
    );
}

/// Three lots trade from 95 to 105. Up to 99 buyers are left over, from 100 on sellers.
#[test]
fn somebody_is_left_over_at_every_price() {
    for (bought, sold, cases) in [
        (2, 2, [(96, 98, 2), (99, 99, 2), (104, 103, -2)]),
        (1, 2, [(96, 98, 1), (99, 99, 1), (104, 99, 1)]),
        (2, 1, [(96, 100, -1), (101, 101, -1), (104, 103, -1)]),
    ] {
        let mut world = collecting(PAIR);
        let bids = [bid(1, 1, 105, 3), bid(1, 2, 99, bought), bid(1, 3, 97, 9)];
        let asks = [ask(2, 4, 95, 3), ask(2, 5, 100, sold), ask(2, 6, 104, 9)];
        for place in bids.into_iter().chain(asks) {
            world.done(place);
        }
        for (reference, price, surplus) in cases {
            let price_found = indicative(&world, PAIR, Some(reference));
            assert_eq!(price_found, found(price, 3, surplus), "at {reference}");
        }
    }
}

#[test]
fn nothing_to_trade() {
    let mut world = collecting(PAIR);
    assert_eq!(indicative(&world, PAIR, None), None);
    world.done(bid(1, 1, 99, 4));
    assert_eq!(indicative(&world, PAIR, None), None);
    world.done(ask(2, 2, 100, 4));
    assert_eq!(indicative(&world, PAIR, None), None);
    assert_eq!(world.done(uncross(PAIR)), []);
    assert_eq!(world.side(PAIR, Bid), [(99, 1, 4)]);
}

#[test]
fn who_may_come_and_go() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        let code = ResultCode::SymbolInAuction;
        world.refused(uncross(symbol), ResultCode::SymbolNotInAuction);
        world.done(in_symbol(ask(1, 1, 100, 5), symbol));
        world.done(Command::Halt { symbol });
        world.done(start(symbol));
        world.refused(start(symbol), code);
        for order_type in OrderType::ALL
            .into_iter()
            .filter(|&it| it != OrderType::Gtc)
        {
            let place = in_symbol(bid(2, 2, 120, 1), symbol);
            world.refused(of_type(place, order_type), code);
        }
        let post_only = flagged(bid(2, 2, 90, 1), OrderFlags::NONE.with_post_only());
        world.refused(in_symbol(post_only, symbol), code);
        world.done(in_symbol(bid(2, 2, 120, 1), symbol));
        // An id that rests is in use, a cancel and a reduction as ever, and a move does not trade.
        let twice = in_symbol(bid(2, 2, 121, 1), symbol);
        assert_eq!(world.done(twice).len(), 1);
        world.done(reduced(1, symbol, 1, 2));
        assert_eq!(world.done(moved(1, symbol, 1, 90)), []);
        assert_eq!(world.side(symbol, Ask), [(90, 1, 3)]);
        assert_eq!(world.side(symbol, Bid), [(120, 2, 1)]);
        assert!(text(&world.state).contains(&format!("\nC,{symbol}\n")));
        world.done(Command::Halt { symbol });
        world.refused(uncross(symbol), ResultCode::SymbolHalted);
        world.done(Command::Unhalt { symbol });
        let zero = Command::Uncross {
            symbol,
            reference: Some(0),
        };
        world.refused(zero, ResultCode::RiskPriceNotPositive);
        assert_eq!(world.done(uncross(symbol)).len(), 2);
        world.refused(start(SymbolId(9)), ResultCode::InvalidSymbol);
        world.refused(uncross(SymbolId(9)), ResultCode::InvalidSymbol);
    }
    let mut world = World::new(Rules::REFERENCE);
    for symbol in [PAIR, FUTURES] {
        world.refused(start(symbol), ResultCode::UnsupportedSymbolType);
    }
}

#[test]
fn hidden_lots_count_and_wait_for_their_turn() {
    let mut world = collecting(PAIR);
    let buyer = bid(3, 9, 105, 6);
    world.done(iceberg(ask(1, 1, 100, 5), 2));
    world.done(ask(2, 2, 100, 2));
    world.done(buyer);
    assert_eq!(
        indicative(&world, PAIR, None),
        found(105, 6, 0).map(|it| Indicative {
            price: 102,
            surplus: -1,
            ..it
        })
    );
    let events = [
        uncrossed(&buyer, 6),
        trade(Bid, (102, 2), (1, 1), (false, false), 105),
        refilled(1, 1, 2),
        trade(Bid, (102, 2), (2, 2), (true, false), 105),
        trade(Bid, (102, 2), (1, 1), (false, true), 105),
        refilled(1, 1, 1),
    ];
    assert_eq!(world.done(uncross(PAIR)), events);
    assert_eq!(world.side(PAIR, Ask), [(100, 1, 1)]);
    // A buyer likewise.
    world.done(start(PAIR));
    let buyer = bid(1, 1, 110, 3);
    world.done(iceberg(
        Place {
            uid: 4.into(),
            ..buyer
        },
        2,
    ));
    world.done(ask(2, 2, 100, 2));
    let buyer = Place {
        uid: 4.into(),
        ..buyer
    };
    let events = [
        uncrossed(&buyer, 3),
        trade(Bid, (102, 1), (1, 1), (true, false), 110),
        trade(Bid, (102, 1), (2, 2), (false, false), 110),
        refilled(4, 1, 1),
        uncrossed(&buyer, 1),
        trade(Bid, (102, 1), (2, 2), (true, true), 110),
    ];
    assert_eq!(world.done(uncross(PAIR)), events);
}

#[test]
fn the_band_is_obeyed() {
    let mut world = collecting(PAIR);
    let (buyer, seller) = (bid(1, 1, 60, 2), ask(2, 2, 50, 2));
    for place in [buyer, seller, bid(3, 3, 104, 1), ask(4, 4, 101, 1)] {
        world.done(place);
    }
    let (symbol, low, high) = (PAIR, 100, 102);
    world.done(Command::SetPriceBand { symbol, low, high });
    // They cross at prices outside of it only; the buyer at 104 is outside, too.
    let why = RemovalReason::OutsideBand;
    let events = [
        removed(&seller, 2, why),
        removed(&bid(3, 3, 104, 1), 1, why),
        removed(&buyer, 2, why),
    ];
    assert_eq!(world.done(uncross(PAIR)), events);
    assert_eq!(world.side(PAIR, Ask), [(101, 4, 1)]);
}

#[test]
fn self_trade_prevention_does_nothing() {
    let mut world = collecting(PAIR);
    let flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth);
    let before = [world.balance(1, 1), world.balance(1, 2)];
    for place in [bid(1, 1, 105, 2), ask(1, 2, 100, 2)] {
        world.done(flagged(place, flags));
    }
    assert_eq!(world.done(uncross(PAIR)).len(), 2);
    let fees = 2 * 2 * 3;
    assert_eq!(
        [world.balance(1, 1), world.balance(1, 2)],
        [before[0], before[1] - fees]
    );
}

#[test]
fn stop_orders_wait_for_the_end() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        world.done(in_symbol(ask(4, 90, 100, 1), symbol));
        world.done(in_symbol(bid(5, 91, 100, 1), symbol));
        world.done(start(symbol));
        // The last trade has passed this one; the auction's passes both.
        let stops = [ask(1, 1, 90, 1), ask(1, 2, 80, 1)].map(|place| in_symbol(place, symbol));
        for (place, trigger) in stops.iter().zip([100, 95]) {
            assert_eq!(world.done(stop(*place, trigger)), []);
        }
        let buyer = in_symbol(bid(2, 3, 95, 3), symbol);
        world.done(buyer);
        world.done(in_symbol(ask(3, 4, 94, 1), symbol));
        let events = [
            uncrossed(&buyer, 3),
            trade(Bid, (95, 1), (3, 4), (true, false), 95),
            triggered(&stops[0]),
            trade(Ask, (95, 1), (2, 3), (false, true), 95),
            triggered(&stops[1]),
            trade(Ask, (95, 1), (2, 3), (true, true), 95),
        ];
        assert_eq!(world.done(uncross(symbol)), events);
    }
}

/// Lots of one side that would trade at a price.
fn lots(orders: &[(Action, i64, i64)], side: Action, price: i64) -> i64 {
    let trades = |own: i64| match side {
        Ask => own <= price,
        Bid => own >= price,
    };
    let own = orders
        .iter()
        .filter(|order| order.0 == side && trades(order.1));
    own.map(|order| order.2).sum()
}

/// All prices are tried.
fn naive(orders: &[(Action, i64, i64)], reference: Option<i64>) -> Option<Indicative> {
    let all: Vec<Indicative> = (1..=40)
        .map(|price| {
            let (bought, sold) = (lots(orders, Bid, price), lots(orders, Ask, price));
            Indicative {
                price,
                volume: bought.min(sold),
                surplus: bought - sold,
            }
        })
        .collect();
    let most = all
        .iter()
        .map(|at| at.volume)
        .max()
        .filter(|&most| most > 0)?;
    let full: Vec<_> = all.into_iter().filter(|at| at.volume == most).collect();
    let least = full.iter().map(|at| at.surplus.abs()).min()?;
    let best: Vec<_> = full
        .into_iter()
        .filter(|at| at.surplus.abs() == least)
        .collect();
    let (low, high) = (best[0].price, best[best.len() - 1].price);
    let reference = reference.unwrap_or(low + (high - low) / 2);
    best.into_iter()
        .min_by_key(|at| (at.price - reference).abs())
}

type Orders = Vec<(bool, i64, i64, Option<i64>)>;

fn orders() -> impl Strategy<Value = Orders> {
    let display = prop_oneof![3 => Just(None), 1 => (1..4_i64).prop_map(Some)];
    prop::collection::vec((any::<bool>(), 2..=40_i64, 1..9_i64, display), 0..30)
}

/// Checks that as many lots as possible traded, none worse than its limit, and that every order
/// with a better price is filled.
fn best_first(
    all: &[(Action, i64, i64)],
    filled: &[i64],
    expected: Option<Indicative>,
) -> Result<(), TestCaseError> {
    let volume: i64 = filled.iter().sum::<i64>() / 2;
    prop_assert_eq!(volume, expected.map_or(0, |at| at.volume));
    for (&(side, price, size), &lots) in all.iter().zip(filled) {
        prop_assert!(lots <= size);
        let Some(found) = expected.filter(|_| lots > 0) else {
            continue;
        };
        let is_good = if side == Bid {
            price >= found.price
        } else {
            price <= found.price
        };
        prop_assert!(is_good, "worse than its limit");
        // Every order with a better price is filled.
        for (&(other, better, size), &lots) in all.iter().zip(filled) {
            let is_better = if side == Bid {
                better > price
            } else {
                better < price
            };
            prop_assert!(other != side || !is_better || lots == size);
        }
    }
    Ok(())
}

proptest! {
    /// No order trades worse than its limit, all at one price, as many as can, the best and oldest
    /// first, and no money is made or lost.
    #[test]
    fn it_agrees_with_all_prices_tried(
        before in orders(),
        orders in orders(),
        reference in prop::option::of(1..45_i64),
        is_pair: bool,
    ) {
        let symbol = if is_pair { PAIR } else { FUTURES };
        let mut world = World::new(Rules::default());
        let mut all = Vec::new();
        // Some rest before, uncrossed; the others come while orders are collected.
        for (at, (is_bid, price, size, display)) in (0..).zip(before.into_iter().chain(orders)) {
            let action = if is_bid { Bid } else { Ask };
            let price = match (at < 10, is_bid) {
                (true, true) => price.min(20),
                (true, false) => price.max(21),
                _ => price,
            };
            if at == 10 {
                world.done(start(symbol));
            }
            let place = in_symbol(gtc(at % 5 + 1, at, action, price, size), symbol);
            let events = match display {
                None => world.done(place),
                Some(display) => world.done(iceberg(place, display)),
            };
            prop_assert_eq!(events, []);
            all.push((action, price, size));
        }
        apply(&mut world.state, &start(symbol), &mut Events::new());
        let expected = naive(&all, reference);
        prop_assert_eq!(indicative(&world, symbol, reference), expected);
        let events = world.done(Command::Uncross { symbol, reference });
        money_is_conserved(&world.state)?;
        let book = world.state.matching.book(symbol).expect("added");
        if let (Some(ask), Some(bid)) = (book.best(Ask), book.best(Bid)) {
            prop_assert!(bid.price < ask.price, "crossed");
        }
        let mut filled = vec![0; all.len()];
        let mut buyer = 0;
        for event in &events {
            match *event {
                Event::Uncrossed { order, .. } => buyer = order.0 as usize,
                Event::Trade { price, size, maker_order, .. } => {
                    prop_assert_eq!(Some(price), expected.map(|at| at.price));
                    for (side, order) in [(Bid, buyer), (Ask, maker_order.0 as usize)] {
                        prop_assert_eq!(all[order].0, side);
                        filled[order] += size;
                    }
                }
                _ => {}
            }
        }
        best_first(&all, &filled, expected)?;
        for (at, &(_, _, size)) in all.iter().enumerate() {
            let left = world.order(symbol, at as i64).map_or(0, |order| order.size - order.filled);
            prop_assert_eq!(left, size - filled[at]);
        }
    }
}

/// The uncross takes them out first.
#[test]
fn orders_outside_the_band_are_no_part_of_the_indicative_price() {
    let mut world = collecting(PAIR);
    for (id, price) in [(1, 120), (2, 180)] {
        world.done(ask(1, id, price, 5));
        world.done(bid(2, id, 420 - price, 5));
    }
    assert_eq!(indicative(&world, PAIR, None), found(210, 10, 0));
    let (low, high) = (150, 250);
    world.done(Command::set_price_band(PAIR, low, high));
    let price_found = indicative(&world, PAIR, None);
    assert_eq!(price_found, found(210, 5, 0));
    let prices = world.done(uncross(PAIR)).into_iter();
    let prices = prices.filter_map(|event| match event {
        Event::Trade { price, size, .. } => Some((price, size)),
        _ => None,
    });
    assert_eq!(prices.collect::<Vec<_>>(), [(210, 5)]);
}
