//! Bounded work: what one command may visit, whatever orders, levels and users there are.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::{
    Command, Event, OrderFlags, OrderId, OrderType, REFILL_WORK, RejectReason, RemovalReason,
    ResultCode, Rules, SelfTrade, SymbolSpec, UserId, WORK_MAX,
};

use thalweg_exchange::SymbolId;
use thalweg_exchange::snapshot::{decode_state, encode_state};

use crate::one_state::{encoded, refusal};
use crate::terms::world::{
    FUTURES, PAIR, World, ask, bid, cancelled, flagged, good_till, gtc, iceberg, in_symbol, moved,
    of_type, stop, text, with,
};

const MAX: i64 = WORK_MAX as i64;
const MAKER: OrderFlags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);

/// A world in which user 1 sells `count` orders of one lot, at 100 and up, `depth` at each price.
fn asks(rules: Rules, count: i64, depth: i64) -> World {
    let mut world = World::with_money(rules, 1 << 50);
    for id in 0..count {
        world.apply(&Command::Place(ask(1, id, 100 + id / depth, 1)));
    }
    world
}

fn trades(world: &World) -> usize {
    let is_trade = |event: &&Event| matches!(event, Event::Trade { .. });
    world.events.iter().filter(is_trade).count()
}

/// How many lots were rejected, and why.
fn rejected(world: &World) -> Option<(i64, RejectReason)> {
    match world.events.first() {
        Some(&Event::Reject { size, why, .. }) => Some((size, why)),
        _ => None,
    }
}

#[test]
fn an_order_meets_as_many_orders_as_it_may_and_no_more() {
    for depth in [1, 7, 2 * MAX] {
        for order_type in [OrderType::Gtc, OrderType::Ioc, OrderType::Market] {
            let take = |size| of_type(bid(2, 1 << 40, 1 << 20, size), order_type);
            // Exactly at the bound, with orders left, and with none.
            for there in [MAX, MAX + 1] {
                let mut world = asks(Rules::default(), there, depth);
                world.done(take(MAX));
                assert_eq!((trades(&world), rejected(&world)), (WORK_MAX, None));
                assert_eq!(world.side(PAIR, Bid), []);
            }
            // One beyond it: what is left neither trades nor rests.
            let mut world = asks(Rules::default(), MAX + 1, depth);
            world.done(take(MAX + 1));
            assert_eq!(trades(&world), WORK_MAX);
            assert_eq!(rejected(&world), Some((1, RejectReason::WorkLimit)));
            assert_eq!(
                (world.side(PAIR, Ask).len(), world.side(PAIR, Bid)),
                (1, vec![])
            );
            // Where nothing else can be met, it ends as its type says.
            let mut world = asks(Rules::default(), MAX, depth);
            world.done(take(MAX + 1));
            assert_eq!(trades(&world), WORK_MAX);
            assert_ne!(rejected(&world), Some((1, RejectReason::WorkLimit)));
        }
    }
}

#[test]
fn the_reference_has_no_bound() {
    let mut world = asks(Rules::REFERENCE, MAX + 9, 7);
    world.done(bid(2, 1 << 40, 1 << 20, MAX + 9));
    assert_eq!(trades(&world), WORK_MAX + 9);
}

#[test]
fn own_orders_that_are_cancelled_count() {
    for mode in [SelfTrade::CancelMaker, SelfTrade::Decrement] {
        let flags = OrderFlags::NONE.with_self_trade(mode);
        let mut world = asks(Rules::default(), MAX + 5, 7);
        world.done(flagged(bid(1, 1 << 40, 1 << 20, 2 * MAX), flags));
        assert!(world.events.len() <= WORK_MAX + 1, "{mode:?}");
        assert_eq!(
            rejected(&world).map(|(_, why)| why),
            Some(RejectReason::WorkLimit)
        );
        assert_eq!(world.side(PAIR, Ask).len(), 5);
        assert_eq!(world.side(PAIR, Bid), []);
    }
}

#[test]
fn an_order_that_is_moved_and_meets_too_many_is_removed() {
    let mut world = asks(Rules::default(), MAX + 1, 7);
    let order = bid(2, 1 << 40, 1, MAX + 9).with_reserve(1 << 20);
    world.done(order);
    world.done(moved(2, PAIR, 1 << 40, 1 << 19));
    assert_eq!(trades(&world), WORK_MAX);
    assert!(matches!(
        world.events.last(),
        Some(Event::Removed {
            size: 9,
            left: 0,
            why: RemovalReason::WorkLimit,
            ..
        })
    ));
    assert_eq!(world.order(PAIR, 1 << 40), None);
    let user = world.state.risk.user(UserId(2)).expect("it was added");
    // All that was held for it is back or spent: `done` has checked the sums.
    assert!(user.positions().is_empty());
}

#[test]
fn an_iceberg_order_counts_each_time_that_it_displays_lots() {
    let mut world = World::with_money(Rules::default(), 1 << 40);
    for id in 0..3 {
        world.done(iceberg(ask(1, id, 100, 1_000), 1));
    }
    world.done(of_type(bid(2, 9, 100, 3_000), OrderType::Ioc));
    // Each of its trades but the last ones of an order is followed by a refill.
    let most = WORK_MAX.div_ceil(1 + REFILL_WORK);
    assert_eq!(world.events.len(), 2 * most + 1);
    assert_eq!(
        rejected(&world).map(|(_, why)| why),
        Some(RejectReason::WorkLimit)
    );
    assert_eq!(trades(&world), most);
    // An order that ended so is sent again.
    world.done(of_type(bid(2, 10, 100, 100), OrderType::Ioc));
    assert_eq!((trades(&world), rejected(&world)), (100, None));
}

#[test]
fn an_order_that_must_be_filled_whole_looks_at_no_more_than_it_may() {
    let fok = |uid, size, flags| {
        let place = flagged(bid(uid, 1 << 40, 1 << 20, size), flags);
        of_type(place, OrderType::Fok)
    };
    let limit = ResultCode::MatchingRejectedWorkLimit;
    let unfilled = ResultCode::MatchingRejectedFillOrKill;
    for depth in [1, 7, 4 * MAX] {
        // At the bound it is filled, beyond it refused, and changes nothing.
        for flags in [OrderFlags::NONE, MAKER] {
            let mut world = asks(Rules::default(), MAX + 1, depth);
            assert_eq!(world.apply(&fok(2, MAX + 1, flags)), limit);
            assert_eq!(rejected(&world), Some((MAX + 1, RejectReason::WorkLimit)));
            assert_eq!(world.apply(&fok(2, MAX, flags)), ResultCode::Success);
            assert_eq!(trades(&world), WORK_MAX);
        }
        // Own orders that do not count as lots count as visits.
        let mut world = asks(Rules::default(), 3 * MAX, depth);
        assert_eq!(world.apply(&fok(1, 2 * MAX, MAKER)), limit);
        assert!(world.events.work() <= 2 * WORK_MAX as u64 + 2);
    }
    // More levels than may be visited, and too few lots.
    let mut world = asks(Rules::default(), 2 * MAX, 1);
    assert_eq!(world.apply(&fok(2, 1 << 28, OrderFlags::NONE)), limit);
    assert!(world.events.work() <= WORK_MAX as u64 + 2);
    let mut world = asks(Rules::default(), MAX, 1);
    assert_eq!(world.apply(&fok(2, 1 << 28, OrderFlags::NONE)), unfilled);
    // In futures, too.
    let mut world = World::with_money(Rules::default(), 1 << 40);
    for id in 0..=MAX {
        world.apply(&Command::Place(in_symbol(ask(1, id, 100, 1), FUTURES)));
    }
    let place = in_symbol(bid(2, 1 << 40, 200, MAX + 1), FUTURES);
    assert_eq!(world.apply(&of_type(place, OrderType::Fok)), limit);
}

#[test]
fn hidden_lots_count_for_an_order_that_must_be_filled_whole_only_where_it_needs_them() {
    let fok = |size| of_type(bid(2, 1 << 40, 100, size), OrderType::Fok);
    let mut world = World::with_money(Rules::default(), 1 << 40);
    world.done(iceberg(ask(1, 1, 100, 1_000), 1));
    world.done(ask(1, 2, 100, 5_000));
    world.done(fok(5_001));
    assert_eq!(trades(&world), 2);
    // One lot would be displayed 113 times.
    world.done(ask(1, 3, 100, 1));
    for size in [602, 115] {
        let code = world.apply(&fok(size));
        assert_eq!(code, ResultCode::MatchingRejectedWorkLimit, "{size}");
    }
    assert_eq!(world.apply(&fok(114)), ResultCode::Success);
}

#[test]
fn orders_that_expire_together_go_with_as_many_clocks_as_it_takes() {
    let mut world = World::with_money(Rules::default(), 1 << 40);
    let count = 2 * MAX + 3;
    for id in 0..count {
        let symbol = if id % 2 == 0 { PAIR } else { FUTURES };
        world.apply(&with(good_till(in_symbol(bid(1, id, 50, 1), symbol), 10)));
    }
    let clock = Command::Clock { time: 10 };
    let mut expired = Vec::new();
    for _ in 0..3 {
        world.done(clock.clone());
        expired.push(world.events.len());
    }
    assert_eq!(expired, [WORK_MAX, WORK_MAX, 3]);
    for symbol in [PAIR, FUTURES] {
        assert_eq!(world.side(symbol, Bid), []);
    }
}

/// The first clock visits each symbol in which something expires; those that go on visit none but
/// those from which they take orders.
#[test]
fn what_is_left_over_in_many_symbols_is_found_without_a_visit_to_the_others() {
    let works = [3_000, 10_000].map(|count| {
        let mut world = World::with_money(Rules::default(), 1 << 40);
        let spec = *world.state.matching.book(PAIR).expect("added").spec();
        let ids = (1_000..1_000 + count).map(SymbolId);
        let specs = ids.clone().map(|id| SymbolSpec { id, ..spec });
        world.done(Command::AddSymbols(specs.collect()));
        for id in ids.clone() {
            world.apply(&with(good_till(in_symbol(bid(1, 7, 50, 1), id), 10)));
            world.apply(&Command::Halt { symbol: id });
        }
        let clock = Command::Clock { time: 10 };
        world.apply(&clock);
        let (mut clocks, mut gone, mut works) = (1, world.events.len(), Vec::new());
        while let Some(command) = world.state.left_over() {
            assert_eq!(command, clock);
            world.apply(&command);
            clocks += 1;
            gone += world.events.len();
            works.push(world.events.work());
        }
        assert_eq!(
            (gone, clocks),
            (count as usize, (count as usize).div_ceil(WORK_MAX))
        );
        works
    });
    assert_eq!(works[0][0], 1 + 2 * WORK_MAX as u64);
    assert_eq!(works[0][0], works[1][0]);
}

/// Stop orders that are left over, while others wait that no trade has reached.
#[test]
fn stop_orders_that_are_left_over_go_without_a_visit_to_the_others() {
    let works = [100, 10_000].map(|others| {
        let mut world = World::with_money(Rules::default(), 1 << 50);
        for id in 0..others {
            world.apply(&with(stop(bid(1, 10_000 + id, 50, 1), 5_000 + id)));
        }
        for id in 0..2 * MAX {
            world.apply(&with(stop(bid(1, id, 50, 1), 100)));
        }
        world.done(ask(2, 1, 100, 1));
        world.done(bid(3, 1, 100, 1));
        assert!(world.events.work() <= WORK_MAX as u64 + 2);
        let mut works = Vec::new();
        while let Some(command) = world.state.left_over() {
            world.done(command);
            works.push(world.events.work());
        }
        assert_eq!(world.waiting(PAIR).len() as i64, others);
        works
    });
    assert_eq!(works[0].len(), 2);
    assert_eq!(works[0], works[1]);
}

#[test]
fn the_end_of_a_session_visits_no_order_that_stays() {
    let mut world = World::with_money(Rules::default(), 1 << 40);
    let goes = OrderFlags::NONE.with_cancel_on_disconnect();
    let disconnect = Command::Disconnect { uid: UserId(1) };
    // The lists of owners are made by the first one.
    world.done(disconnect.clone());
    for id in 0..100 {
        let flags = if id % 25 == 3 { goes } else { OrderFlags::NONE };
        world.done(flagged(gtc(1, id, Bid, 50 + id % 3, 1), flags));
    }
    // One that stays is moved, and one that goes is filled in part.
    world.done(moved(1, PAIR, 4, 51));
    world.done(disconnect.clone());
    let gone = |event: &Event| match event {
        Event::Removed {
            order: OrderId(id), ..
        } => *id,
        other => panic!("{other:?}"),
    };
    let gone: Vec<i64> = world.events.iter().map(gone).collect();
    assert_eq!(gone, [53, 28, 3, 78]);
    let books = world.state.matching.books().len() as u64;
    assert_eq!(world.events.work(), 1 + 4 + books);
    assert_eq!(world.side(PAIR, Bid).len(), 96);
    world.done(disconnect);
    assert_eq!(world.events.work(), 1 + books);
}

/// Refused or not: its owner's records in futures are looked at for the money.
#[test]
fn an_order_counts_the_futures_of_its_owner() {
    let mut world = World::with_money(Rules::default(), 1 << 40);
    let futures = 100..110;
    for id in futures.clone() {
        let spec = SymbolSpec {
            id: SymbolId(id),
            ..*world.state.matching.book(FUTURES).expect("known").spec()
        };
        let (symbol, low, high) = (spec.id, 1, 1_000);
        world.done(Command::AddSymbols([spec].into()));
        world.done(Command::SetPriceBand { symbol, low, high });
    }
    for (count, id) in futures.enumerate() {
        world.done(in_symbol(bid(1, 1, 90, 1), SymbolId(id)));
        if count > 1 {
            assert_eq!(world.events.work(), 2 + count as u64);
        }
    }
    world.refused(bid(1, 2, 90, 1 << 39), ResultCode::RiskNsf);
    assert_eq!(world.events.work(), 1 + 10);
}

#[test]
fn the_end_of_a_session_visits_no_stop_order_that_stays() {
    let flags = OrderFlags::NONE.with_cancel_on_disconnect();
    let works = [100, 10_000].map(|count| {
        let mut world = World::with_money(Rules::default(), 1 << 50);
        for id in 0..count {
            world.apply(&with(stop(bid(1, id, 50, 1), 200 + id % 50)));
        }
        for id in count..count + 3 {
            world.done(stop(flagged(bid(1, id, 50, 1), flags), 300));
            world.done(stop(flagged(bid(2, id, 50, 1), flags), 300));
        }
        world.done(Command::Disconnect { uid: UserId(1) });
        assert_eq!(world.events.len(), 3);
        world.events.work()
    });
    assert_eq!(works[0], works[1]);
}

#[test]
fn an_order_that_must_be_filled_whole_is_filled_whole_by_icebergs_or_not_at_all() {
    for order_type in [OrderType::Fok, OrderType::FokBudget] {
        let most = MAX / (1 + REFILL_WORK as i64);
        for count in [most - 1, most, most + 1, MAX] {
            let mut world = World::with_money(Rules::default(), 1 << 50);
            for id in 0..count {
                world.apply(&with(iceberg(ask(1, id, 100, 2), 1)));
            }
            // Each is met once, and displays its second lot then.
            let is_budget = order_type == OrderType::FokBudget;
            let price = if is_budget { 100 * count } else { 100 };
            let result = world.apply(&of_type(bid(2, 1 << 40, price, count), order_type));
            let expected = match count <= most {
                true => (ResultCode::Success, count as usize),
                false => (ResultCode::MatchingRejectedWorkLimit, 0),
            };
            assert_eq!((result, trades(&world)), expected, "{order_type:?} {count}");
        }
    }
}

/// Returns the ids of the stop orders that the last command has executed.
fn triggered(world: &World) -> Vec<i64> {
    let id = |event: &Event| match *event {
        Event::Triggered { order, .. } => Some(order.0),
        _ => None,
    };
    world.events.iter().filter_map(id).collect()
}

/// A world in which `count` stop orders to buy wait for a trade at 100, by their ids from 0 on, and
/// will rest; and an order that offers a lot at 100.
fn stops(symbol: SymbolId, count: i64) -> World {
    let mut world = World::with_money(Rules::default(), 1 << 50);
    for id in 0..count {
        world.apply(&with(stop(in_symbol(bid(1, id, 40, 1), symbol), 100)));
    }
    world.done(in_symbol(ask(4, 1 << 40, 100, 1), symbol));
    world
}

#[test]
fn stop_orders_that_one_trade_triggers_go_with_as_many_commands_as_it_takes() {
    for symbol in [PAIR, FUTURES] {
        let count = 2 * MAX + 7;
        let mut world = stops(symbol, count);
        assert_eq!(world.state.left_over(), None);
        world.done(in_symbol(bid(5, 1 << 41, 100, 1), symbol));
        let mut all = triggered(&world);
        assert_eq!(all.len(), WORK_MAX - 1);
        let more = Command::RunStops { symbol };
        assert_eq!(world.state.left_over(), Some(more.clone()));
        // They wait on, and belong to their owner.
        world.done(cancelled(1, symbol, count - 2));
        assert_eq!(world.waiting(symbol).len(), MAX as usize + 7);
        // A trade that would have triggered them triggers none before them.
        world.done(in_symbol(ask(4, 1 << 42, 110, 1), symbol));
        world.done(in_symbol(bid(5, 1 << 43, 110, 1), symbol));
        assert_eq!((triggered(&world), world.events.len()), (vec![], 1));
        // Nothing trades in a halt.
        world.done(Command::Halt { symbol });
        world.refused(more.clone(), ResultCode::SymbolHalted);
        assert_eq!(world.state.left_over(), None);
        world.done(Command::Unhalt { symbol });
        while let Some(command) = world.state.left_over() {
            world.done(command);
            assert!(world.events.work() <= WORK_MAX as u64 + 2);
            all.extend(triggered(&world));
        }
        let wanted: Vec<i64> = (0..count).filter(|id| *id != count - 2).collect();
        assert_eq!(all, wanted);
        assert_eq!(world.side(symbol, Bid).len(), wanted.len());
        world.done(more);
        assert!(world.events.is_empty());
    }
    let mut world = World::new(Rules::default());
    world.done(Command::StartAuction { symbol: PAIR });
    for (symbol, why) in [
        (PAIR, ResultCode::SymbolInAuction),
        (SymbolId(99), ResultCode::InvalidSymbol),
    ] {
        world.refused(Command::RunStops { symbol }, why);
    }
}

/// User 2 buys a lot at each price down from 3,000. Stop orders of user 1 sell a lot each, when the
/// one before has traded.
fn cascade(rules: Rules) -> World {
    let mut world = World::with_money(rules, 1 << 50);
    for id in 0..2 * MAX {
        world.done(bid(2, id, 3_000 - id, 1));
        let place = ask(1, id, 3_000 - id - 1, 1);
        world.done(stop(place, 3_000 - id));
    }
    world.done(ask(3, 1 << 40, 3_000, 1));
    world
}

#[test]
fn what_is_left_over_comes_to_what_it_comes_to_without_a_bound() {
    let mut bounded = cascade(Rules::default());
    let unbounded = cascade(Rules {
        bound_work: false,
        ..Rules::default()
    });
    assert_eq!(unbounded.state.left_over(), None);
    let mut commands = 1;
    while let Some(command) = bounded.state.left_over() {
        // A state that is written and read goes on alike.
        let mut bytes = Vec::new();
        encode_state(&bounded.state, &mut bytes);
        let read = decode_state(&bytes).expect("it was encoded");
        assert_eq!(text(&read), text(&bounded.state));
        assert_eq!(read.left_over(), Some(command.clone()));
        bounded.state = read;
        bounded.done(command);
        assert!(bounded.events.len() <= WORK_MAX + 2);
        commands += 1;
    }
    assert_eq!(commands, 4, "two events of each stop order");
    assert_eq!(text(&bounded.state), text(&unbounded.state));
}

#[test]
fn stop_orders_that_are_left_over_and_cancelled_leave_nothing_behind() {
    let mut world = stops(PAIR, MAX + 5);
    world.done(bid(5, 1 << 41, 100, 1));
    for id in world.waiting(PAIR) {
        world.done(cancelled(1, PAIR, id));
    }
    // One that begins to wait now waits for a trade, as if none had been left over.
    world.done(ask(4, 1 << 42, 90, 1));
    world.done(bid(5, 1 << 43, 90, 1));
    world.done(stop(bid(1, 1 << 20, 40, 1), 95));
    while let Some(command) = world.state.left_over() {
        world.done(command);
        assert!(world.events.is_empty());
    }
    assert_eq!(world.waiting(PAIR), [1 << 20]);
    world.done(ask(4, 1 << 44, 95, 1));
    world.done(bid(5, 1 << 45, 95, 1));
    assert_eq!(triggered(&world), [1 << 20]);
}

/// 2,560 orders of users 1 and 2 in each of a pair and futures, a fifth of them stop orders.
fn world_of_many_orders(rules: Rules) -> World {
    let mut world = World::with_money(rules, 1 << 50);
    for id in 0..MAX {
        for symbol in [PAIR, FUTURES] {
            world.done(in_symbol(ask(1, id, 200 + id / 50, 1), symbol));
            world.done(in_symbol(bid(2, MAX + id, 190 - id / 50, 1), symbol));
            if id % 2 == 0 {
                let place = in_symbol(bid(2, 2 * MAX + id, 230, 1), symbol);
                world.done(stop(place, 225 + id / 100));
            }
        }
    }
    world
}

/// Orders that left, in order.
fn gone(world: &World) -> Vec<(SymbolId, OrderId, RemovalReason)> {
    let events = world.events.iter();
    let gone = events.filter_map(|event| match event {
        Event::Removed {
            symbol, order, why, ..
        } => Some((*symbol, *order, *why)),
        _ => None,
    });
    gone.collect()
}

#[test]
fn a_mass_cancel_of_all_users_goes_on_in_further_commands_to_the_same_end() {
    for symbol in [None, Some(PAIR)] {
        let cancel = Command::cancel_all(None, symbol);
        let mut unbounded = world_of_many_orders(Rules {
            bound_work: false,
            ..Rules::default()
        });
        unbounded.done(cancel.clone());
        assert_eq!(unbounded.state.left_over(), None);
        let mut bounded = world_of_many_orders(Rules::default());
        let mut all = Vec::new();
        let mut next = Some(cancel);
        while let Some(command) = next {
            bounded.done(command);
            assert!(bounded.events.len() <= WORK_MAX);
            all.extend(gone(&bounded));
            let read = decode_state(&encoded(&bounded.state)).expect("it was encoded");
            assert_eq!(text(&read), text(&bounded.state));
            next = bounded.state.left_over();
            assert_eq!(read.left_over(), next);
        }
        assert_eq!(all, gone(&unbounded));
        assert_eq!(text(&bounded.state), text(&unbounded.state));
    }
}

#[test]
fn a_symbol_with_many_orders_is_removed_once_they_are_cancelled() {
    let mut world = asks(Rules::default(), MAX + 1, 7);
    let remove = Command::RemoveSymbol { symbol: PAIR };
    world.refused(remove.clone(), ResultCode::MatchingRejectedWorkLimit);
    world.done(Command::cancel_all(None, Some(PAIR)));
    assert_eq!(world.side(PAIR, Ask).len(), 1);
    // Exactly as many as it may have.
    for id in 1..MAX {
        world.done(ask(1, MAX + id, 100, 1));
    }
    world.done(remove);
    assert_eq!(gone(&world).len(), WORK_MAX);
    assert_eq!(world.state.left_over(), None);
}

/// Encodes a state.
#[test]
fn a_snapshot_with_a_mass_cancel_that_the_rules_do_not_bound_is_refused() {
    for bound_work in [true, false] {
        let mut world = World::new(Rules {
            bound_work,
            ..Rules::default()
        });
        let mut bytes = encoded(&world.state);
        world.done(Command::Halt { symbol: PAIR });
        let halted = encoded(&world.state);
        // The byte with the bit of a halt has that of a mass cancel, too.
        let at = (0..bytes.len()).find(|&at| bytes[at] != halted[at]);
        let at = at.expect("a halt is a bit");
        bytes[at] |= 64;
        if bound_work {
            let read = decode_state(&bytes).expect("it may go on");
            let next = Command::cancel_all(None, Some(PAIR));
            assert_eq!(read.left_over(), Some(next));
        } else {
            let why = refusal(&bytes);
            assert!(why.contains("a mass cancel that goes on"), "{why}");
            assert!(why.contains(&at.to_string()), "{why}: {at}");
        }
    }
}

#[test]
fn a_snapshot_with_wrong_prices_of_stop_orders_that_are_left_over_is_refused() {
    let mut world = stops(FUTURES, 2 * MAX);
    world.done(in_symbol(bid(5, 1 << 41, 100, 1), FUTURES));
    let bytes = encoded(&world.state);
    decode_state(&bytes).expect("it was encoded");
    // The last book ends with the lowest and the highest price that reached them.
    let end = bytes.len() - 16;
    for (low, high, what) in [
        (101_i64, 100_i64, "the highest price that reached them"),
        (1, 1, "a price by which orders are left over"),
    ] {
        let prices = [low.to_le_bytes(), high.to_le_bytes()].concat();
        let why = refusal(&[&bytes[..end], &prices].concat());
        assert!(why.contains(what), "{why}");
    }
}
