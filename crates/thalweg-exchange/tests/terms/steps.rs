//! Commands of the market's operator that go on in further commands: the end of an auction and a
//! price band of futures; and the reset, which is refused where it would be long.

use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::snapshot::decode_state;
use thalweg_exchange::{
    Action, Amend, Command, Event, Events, OrderFlags, OrderId, OrderType, RemovalReason,
    ResultCode, Rules, SymbolId, UserId, WORK_MAX,
};
use thalweg_measure::random::SplitMix;

use crate::one_state::{encoded, refusal};
use crate::terms::world::{
    FUTURES, OTHER_PAIR, PAIR, World, ask, bid, cancelled, good_till, gtc, iceberg, in_symbol,
    moved, of_type, reduced, stop, text, with,
};

const MAX: i64 = WORK_MAX as i64;
const UNBOUNDED: Rules = Rules {
    bound_work: false,
    ..Rules::MENDED
};

pub(crate) const fn start(symbol: SymbolId) -> Command {
    Command::StartAuction { symbol }
}

pub(crate) const fn uncross(symbol: SymbolId) -> Command {
    Command::Uncross {
        symbol,
        reference: None,
    }
}

fn rich(rules: Rules) -> World {
    World::with_money(rules, 1 << 50)
}

/// Writes a state and reads it again: it has the same text, and goes on alike.
#[track_caller]
fn reread(world: &mut World) {
    let read = decode_state(&encoded(&world.state)).expect("it was encoded");
    assert_eq!(text(&read), text(&world.state));
    assert_eq!(read.left_over(), world.state.left_over());
    world.state = read;
}

/// Executes a command and all that is left over, each on a state that was written and read again.
/// Returns the events of each.
#[track_caller]
fn finish(world: &mut World, command: Command) -> Vec<Vec<Event>> {
    finish_beside(world, command, 0)
}

/// As [`finish`], with users whose orders leave at the end of an auction: this many of each.
#[track_caller]
fn finish_beside(world: &mut World, command: Command, orders: usize) -> Vec<Vec<Event>> {
    let mut steps = Vec::new();
    let mut next = Some(command);
    while let Some(command) = next {
        world.done(command);
        // As many levels or orders, and as many events, and those of the last trade.
        let work = world.events.work();
        assert!(work <= (2 * WORK_MAX + 4 + orders) as u64, "{work}");
        assert!(world.events.len() <= WORK_MAX + 3 + orders);
        steps.push(world.events.to_vec());
        reread(world);
        next = world.state.left_over();
    }
    steps
}

/// All events but those that say which buyer the next trades are of, which come again in each step.
fn lasting(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let is_lasting = |event: &Event| !matches!(event, Event::Uncrossed { .. });
    events.into_iter().filter(is_lasting).collect()
}

fn prices(events: &[Event]) -> Vec<i64> {
    let price = |event: &Event| match *event {
        Event::Trade { price, .. } => Some(price),
        _ => None,
    };
    let mut prices: Vec<i64> = events.iter().filter_map(price).collect();
    prices.dedup();
    prices
}

/// An auction with 3,000 orders of a side, a tenth of them icebergs, at as many prices in a pair,
/// stop orders that its trades reach, and orders outside of a band that was moved.
fn auction_of_many_orders(rules: Rules, symbol: SymbolId) -> World {
    let mut world = rich(rules);
    world.done(start(symbol));
    let place = |id: i64, side: Action| {
        let (wide, low) = if symbol == PAIR {
            (3_000, 1_000)
        } else {
            (130, 100)
        };
        let above = if side == Bid { wide / 6 } else { 0 };
        let price = low + above + id * 7 % wide;
        let uid = id % 5 + 1;
        let lots = 1 + id % 3;
        in_symbol(
            gtc(uid, 2 * id + i64::from(side == Bid), side, price, lots),
            symbol,
        )
    };
    for id in 0..3_000 {
        for side in [Ask, Bid] {
            let order = place(id, side);
            let displayed = if id % 10 == 0 {
                iceberg(order, 1)
            } else {
                order.into()
            };
            world.apply(&with(displayed));
        }
        if id % 3 == 0 {
            let (price, trigger) = if symbol == PAIR {
                (4_000, 600)
            } else {
                (290, 140)
            };
            let order = in_symbol(bid(1, 10_000 + id, price, 1), symbol);
            world.apply(&with(stop(order, trigger)));
        }
    }
    world
}

#[test]
fn an_auction_ends_in_steps_as_it_does_in_one_command() {
    for (symbol, band, least) in [(PAIR, (1_400, 3_200), 4), (FUTURES, (115, 225), 4)] {
        let [mut bounded, mut unbounded] =
            [Rules::MENDED, UNBOUNDED].map(|rules| auction_of_many_orders(rules, symbol));
        let band = Command::set_price_band(symbol, band.0, band.1);
        unbounded.done(band.clone());
        let mut expected = unbounded.events.to_vec();
        unbounded.done(uncross(symbol));
        expected.extend(unbounded.events.iter().copied());
        assert_eq!(unbounded.state.left_over(), None);
        assert_eq!(
            prices(&expected).len(),
            1,
            "stop orders find nothing to trade with"
        );

        // The uncross removes what the band has left over.
        bounded.done(band);
        let mut all = bounded.events.to_vec();
        let steps = finish(&mut bounded, uncross(symbol));
        assert!(steps.len() >= least, "{symbol:?}: {}", steps.len());
        all.extend(steps.concat());
        let (all, expected) = (lasting(all), lasting(expected));
        let differs = all.iter().zip(&expected).find(|(one, other)| one != other);
        assert_eq!((differs, all.len()), (None, expected.len()), "{symbol:?}");
        assert_eq!(text(&bounded.state), text(&unbounded.state), "{symbol:?}");
    }
}

/// An auction of which one step is done: 2,000 buyers at 200 meet sellers at 100, 150 and 190.
fn half_done(symbol: SymbolId) -> World {
    let mut world = rich(Rules::default());
    world.done(start(symbol));
    for id in 0..2_000 {
        world.apply(&Command::Place(in_symbol(bid(1, id, 200, 1), symbol)));
    }
    for (at, (count, price)) in [(1_500, 100), (1_000, 150), (100, 190)]
        .into_iter()
        .enumerate()
    {
        for id in 0..count {
            let order = ask(2 + at as i64, id, price, 1);
            world.apply(&Command::Place(in_symbol(order, symbol)));
        }
    }
    // Far from what trades, and for the end of user 5's session.
    let flags = OrderFlags::NONE.with_cancel_on_disconnect();
    let far = |id| in_symbol(ask(5, id, 290, 1), symbol).with_flags(flags);
    world.done(in_symbol(ask(5, 8_002, 291, 1), symbol));
    world.done(good_till(far(8_000), 50));
    world.done(stop(far(8_001), 1));
    world.done(uncross(symbol));
    assert_eq!(prices(&world.events), [169]);
    world
}

/// Commands by which an order of a symbol would come, change or leave, or other orders of it.
fn changes(symbol: SymbolId) -> Vec<Command> {
    let order = in_symbol(bid(5, 9_000, 250, 1), symbol);
    let amend = Amend {
        uid: UserId(4),
        symbol,
        order_id: OrderId(1),
        action: Ask,
        price: 190,
        reserve_price: 190,
        size_before: 1,
        size: 2,
    };
    let amended = |amend: Amend| Command::Amend(amend.into());
    vec![
        Command::Place(order),
        of_type(order, OrderType::Market),
        of_type(order, OrderType::Ioc),
        with(stop(order, 10)),
        moved(4, symbol, 1, 120),
        cancelled(1, symbol, 1_999),
        cancelled(5, symbol, 8_000),
        reduced(1, symbol, 1_998, 1),
        reduced(5, symbol, 8_000, 1),
        amended(amend),
        amended(Amend { size: 0, ..amend }),
        Command::set_price_band(symbol, 1, 299),
        Command::cancel_all(None, Some(symbol)),
        Command::RemoveSymbol { symbol },
        start(symbol),
        Command::RunStops { symbol },
    ]
}

#[test]
fn while_an_auction_ends_no_order_comes_changes_or_leaves() {
    for symbol in [PAIR, FUTURES] {
        let mut world = half_done(symbol);
        assert_eq!(world.state.left_over(), Some(uncross(symbol)));
        for command in changes(symbol) {
            let is_held = symbol == FUTURES && matches!(command, Command::RemoveSymbol { .. });
            let expected = match is_held {
                true => ResultCode::SymbolHasOpenPositions,
                false => ResultCode::SymbolInAuction,
            };
            world.refused(command, expected);
        }
        world.refused(
            cancelled(1, symbol, 12_345),
            ResultCode::MatchingUnknownOrderId,
        );
        // In a halt it does not go on.
        world.done(Command::Halt { symbol });
        assert_eq!(world.state.left_over(), None);
        world.refused(uncross(symbol), ResultCode::SymbolHalted);
        for command in changes(symbol) {
            let result = world.apply(&command);
            assert_ne!(result, ResultCode::Success, "{command:?}");
        }
        reread(&mut world);
        world.done(Command::Unhalt { symbol });
        let steps = finish(&mut world, uncross(symbol));
        assert_eq!(prices(&steps.concat()), [169]);
        // The market goes on as ever.
        assert_eq!(world.side(symbol, Bid), []);
        assert_eq!(world.side(symbol, Ask).len(), 602);
        let taken = world.done(in_symbol(bid(5, 9_001, 200, 1), symbol));
        assert!(
            matches!(taken[..], [Event::Trade { price: 150, .. }]),
            "{taken:?}"
        );
    }
}

fn is_gone(world: &World, symbol: SymbolId, uid: i64) -> bool {
    let book = world.state.matching.book(symbol).expect("added");
    book.orders_of(UserId(uid)).is_empty()
}

/// User 5 has a resting order, a stop order, and one that does not go with the session.
#[test]
fn mass_cancels_wait_for_the_end_of_an_auction_and_take_out_what_is_left_then() {
    for symbol in [PAIR, FUTURES] {
        for is_all in [true, false] {
            let mut world = half_done(symbol);
            // In other symbols nothing waits.
            let order = in_symbol(bid(4, 50, 10, 1), OTHER_PAIR);
            world.done(order);
            let first = match is_all {
                true => Command::cancel_all(Some(UserId(4)), None),
                false => Command::cancel_all(Some(UserId(4)), Some(symbol)),
            };
            let removed = world.done(first).len();
            assert_eq!(removed, usize::from(is_all));
            assert_eq!(world.done(Command::Disconnect { uid: UserId(5) }), []);
            world.done(Command::cancel_all(Some(UserId(1)), Some(symbol)));
            reread(&mut world);
            let events = finish_beside(&mut world, uncross(symbol), 100).concat();
            assert_eq!(prices(&events), [169]);
            let is_removed = |event: &&Event| matches!(event, Event::Removed { .. });
            let mut whys: Vec<(i64, RemovalReason)> = Vec::new();
            for event in events.iter().filter(is_removed) {
                if let Event::Removed { uid, why, .. } = *event {
                    whys.push((uid.0, why));
                }
            }
            // All of user 4, whose orders did not trade, and of user 5 those that go.
            let expected = [
                (RemovalReason::CancelAll, 4, 100),
                (RemovalReason::Disconnected, 5, 2),
            ];
            for (why, uid, count) in expected {
                let found = whys.iter().filter(|found| **found == (uid, why));
                assert_eq!(found.count(), count, "{why:?}");
            }
            assert_eq!(whys.len(), 102);
            assert!(is_gone(&world, symbol, 4) && !is_gone(&world, symbol, 5));
        }
    }
}

#[test]
fn a_mass_cancel_of_all_and_what_expires_wait_for_the_end_of_an_auction() {
    let mut world = half_done(PAIR);
    world.done(Command::Clock { time: 90 });
    assert_eq!(world.events.len(), 0);
    assert_eq!(world.state.left_over(), Some(uncross(PAIR)));
    reread(&mut world);
    world.done(Command::cancel_all(None, None));
    assert_eq!(world.state.left_over(), Some(uncross(PAIR)));
    reread(&mut world);
    world.done(Command::Halt { symbol: PAIR });
    assert_eq!(world.state.left_over(), None);
    reread(&mut world);
    world.done(Command::Unhalt { symbol: PAIR });
    let events = finish(&mut world, uncross(PAIR)).concat();
    assert_eq!(prices(&events), [169]);
    assert_eq!(world.side(PAIR, Ask), []);
    assert!(is_gone(&world, PAIR, 5));
    // A mass cancel that came first waits as well.
    let mut world = World::with_money(Rules::default(), 1 << 50);
    world.done(start(PAIR));
    for id in 0..3 * MAX {
        for order in [ask(1, id, 100, 1), bid(2, id, 100, 1)] {
            world.apply(&Command::Place(order));
        }
    }
    world.done(Command::cancel_all(None, Some(PAIR)));
    let cancel_all = Some(Command::cancel_all(None, Some(PAIR)));
    assert_eq!(world.state.left_over(), cancel_all);
    world.done(uncross(PAIR));
    assert_eq!(world.state.left_over(), Some(uncross(PAIR)));
    let events = finish(&mut world, uncross(PAIR)).concat();
    assert_eq!(prices(&events), [100]);
    assert_eq!(
        (world.side(PAIR, Ask), world.side(PAIR, Bid)),
        (vec![], vec![])
    );
}

#[test]
fn a_symbol_whose_auction_has_ended_can_be_removed() {
    let mut world = half_done(PAIR);
    let remove = Command::RemoveSymbol { symbol: PAIR };
    world.refused(remove.clone(), ResultCode::SymbolInAuction);
    finish(&mut world, uncross(PAIR));
    world.done(remove);
    assert_eq!(world.state.left_over(), None);
}

/// A random auction of more orders than one command may trade, some of which expire and some of
/// which go with a session.
fn random_auction(rules: Rules, symbol: SymbolId, random: &mut SplitMix) -> World {
    let mut world = rich(rules);
    world.done(start(symbol));
    let wide = 1 + random.below(120) as i64;
    for id in 0..1_500 + random.below(1_500) as i64 {
        let side = if random.below(2) == 0 { Bid } else { Ask };
        let (price, size) = (90 + random.below(wide as u64 + 9), 1 + random.below(5));
        let uid = 1 + random.below(5) as i64;
        let mut order = in_symbol(gtc(uid, id, side, price as i64, size as i64), symbol);
        if random.below(4) == 0 {
            order.flags = OrderFlags::NONE.with_cancel_on_disconnect();
        }
        match random.below(12) {
            0 => world.apply(&with(good_till(order, 1 + random.below(9) as i64))),
            1 => world.apply(&with(iceberg(order, 1))),
            _ => world.apply(&Command::Place(order)),
        };
    }
    world
}

/// A random command between two steps; mostly one that would change the outcome.
fn random_command(symbol: SymbolId, random: &mut SplitMix) -> Command {
    let (uid, id) = (1 + random.below(5) as i64, random.below(3_000) as i64);
    match random.below(14) {
        0..3 => cancelled(uid, symbol, id),
        3 => reduced(uid, symbol, id, 1),
        4 => moved(uid, symbol, id, 1 + random.below(250) as i64),
        5 => Command::Place(in_symbol(bid(uid, 5_000, 200, 9_000), symbol)),
        6 => with(stop(in_symbol(ask(uid, 5_001, 50, 9_000), symbol), 1)),
        7 => Command::cancel_all(Some(UserId(uid)), None),
        8 => Command::cancel_all(Some(UserId(uid)), Some(symbol)),
        9 => Command::Disconnect { uid: UserId(uid) },
        10 => Command::Clock {
            time: 1 + random.below(9) as i64,
        },
        11 => Command::cancel_all(None, (random.below(3) > 0).then_some(symbol)),
        12 => Command::set_price_band(symbol, 100, 110),
        _ => Command::RemoveSymbol { symbol },
    }
}

/// The result of an auction that ends in steps, with whatever commands between them, is that of one
/// that ends at once, and is followed by those that were taken.
#[test]
fn no_command_between_its_steps_changes_the_result_of_an_auction() {
    let (mut stepped, mut taken_most) = (0, 0);
    for seed in 0..16 {
        let symbol = if seed % 2 == 0 { PAIR } else { FUTURES };
        let [mut world, mut unbounded] = [Rules::MENDED, UNBOUNDED]
            .map(|rules| random_auction(rules, symbol, &mut SplitMix::new(seed)));
        unbounded.done(uncross(symbol));
        let expected = unbounded.events.to_vec();
        let mut random = SplitMix::new(1_000 + seed);
        let (mut events, mut taken) = (Vec::new(), 0);
        let mut next = uncross(symbol);
        loop {
            world.done(next);
            events.extend(world.events.iter().copied());
            let Some(command) = world.state.left_over() else {
                break;
            };
            next = command;
            let is_uncross = matches!(next, Command::Uncross { .. });
            stepped += usize::from(is_uncross);
            for _ in 0..if is_uncross { 6 } else { 0 } {
                let command = random_command(symbol, &mut random);
                if world.apply(&command) == ResultCode::Success {
                    assert!(world.events.is_empty(), "{command:?}");
                    unbounded.done(command);
                    taken += 1;
                }
            }
            reread(&mut world);
        }
        taken_most = taken_most.max(taken);
        let is_trade = |event: &&Event| matches!(event, Event::Trade { .. });
        let trades = |events: &[Event]| events.iter().filter(is_trade).copied().collect::<Vec<_>>();
        assert_eq!(trades(&events), trades(&expected), "seed {seed}");
        assert_eq!(text(&world.state), text(&unbounded.state), "seed {seed}");
    }
    assert!(stepped >= 16 && taken_most >= 3, "{stepped}, {taken_most}");
}

/// 2,600 orders of a side and 1,300 stop orders in futures, and some open positions.
fn futures_of_many_orders(rules: Rules) -> World {
    let mut world = rich(rules);
    for id in 0..2_600 {
        for order in [
            ask(id % 3 + 1, id, 200 + id / 40, 1),
            bid(id % 2 + 4, id, 190 - id / 40, 1),
        ] {
            world.apply(&Command::Place(in_symbol(order, FUTURES)));
        }
        if id % 2 == 0 {
            let order = in_symbol(bid(1, 10_000 + id, 100 + id / 20, 1), FUTURES);
            world.apply(&with(stop(order, 290)));
        }
    }
    world.done(of_type(
        in_symbol(bid(5, 20_000, 300, 50), FUTURES),
        OrderType::Ioc,
    ));
    world
}

#[test]
fn a_price_band_of_futures_goes_on_in_further_commands_to_the_same_end() {
    // All bids and many asks are outside; then asks that are worse.
    for (low, high) in [(240, 290), (150, 201)] {
        let band = Command::set_price_band(FUTURES, low, high);
        let [mut bounded, mut unbounded] = [Rules::MENDED, UNBOUNDED].map(futures_of_many_orders);
        unbounded.done(band.clone());
        assert_eq!(unbounded.state.left_over(), None);
        bounded.done(band.clone());
        // Nothing trades meanwhile: no trade is at a price outside the band.
        assert_eq!(bounded.state.left_over(), Some(band.clone()));
        let order = in_symbol(bid(5, 30_000, low, 1), FUTURES);
        for command in [
            Command::Place(order),
            of_type(order, OrderType::Market),
            with(stop(order, 299)),
            moved(1, FUTURES, 2_598, low),
            Command::RunStops { symbol: FUTURES },
        ] {
            bounded.refused(command, ResultCode::SymbolHalted);
        }
        let mut steps = vec![bounded.events.to_vec()];
        reread(&mut bounded);
        steps.extend(finish(&mut bounded, band.clone()));
        assert!(steps.len() >= 3, "{}", steps.len());
        let why = |event: &Event| match event {
            Event::Removed { why, .. } => *why == RemovalReason::OutsideBand,
            _ => false,
        };
        assert!(steps.concat().iter().all(why));
        assert_eq!(text(&bounded.state), text(&unbounded.state));
        bounded.done(order);
    }
}

#[test]
fn in_an_auction_a_price_band_goes_on_beside_new_orders_or_with_the_uncross() {
    let band = Command::set_price_band(FUTURES, 240, 290);
    let order = Command::Place(in_symbol(bid(5, 30_000, 260, 9), FUTURES));
    let mut unbounded = futures_of_many_orders(UNBOUNDED);
    for command in [
        start(FUTURES),
        band.clone(),
        order.clone(),
        uncross(FUTURES),
    ] {
        unbounded.done(command);
    }
    for is_finished in [true, false] {
        let mut world = futures_of_many_orders(Rules::MENDED);
        world.done(start(FUTURES));
        world.done(band.clone());
        assert_eq!(world.state.left_over(), Some(band.clone()));
        world.done(order.clone());
        reread(&mut world);
        if is_finished {
            finish(&mut world, band.clone());
        }
        finish(&mut world, uncross(FUTURES));
        assert_eq!(text(&world.state), text(&unbounded.state));
    }
    // An auction that starts while a band goes on takes orders at once.
    let mut world = futures_of_many_orders(Rules::MENDED);
    world.done(band.clone());
    world.refused(order.clone(), ResultCode::SymbolHalted);
    world.done(start(FUTURES));
    world.done(order);
    finish(&mut world, band);
    finish(&mut world, uncross(FUTURES));
    assert_eq!(text(&world.state), text(&unbounded.state));
}

#[test]
fn a_reset_of_more_than_a_command_may_visit_is_refused() {
    let limit = ResultCode::MatchingRejectedWorkLimit;
    let mut world = World::new(Rules::default());
    for id in 0..=MAX {
        world.apply(&Command::Place(ask(1, id, 100, 1)));
    }
    world.refused(Command::Reset, limit);
    world.done(cancelled(1, PAIR, 0));
    world.done(Command::Reset);
    assert_eq!(text(&world.state), "");
    for id in 0..=MAX {
        world.done(Command::AddUser { uid: UserId(id) });
    }
    world.refused(Command::Reset, limit);
    let mut world = rich(UNBOUNDED);
    for id in 0..=MAX {
        world.apply(&Command::Place(ask(1, id, 100, 1)));
    }
    world.done(Command::Reset);
    assert_eq!(text(&world.state), "");
}

#[test]
fn a_snapshot_with_a_wrong_end_of_an_auction_is_refused() {
    // The search ends the last book: best ask, lots, best bid, lots, worst ask, worst bid, volume.
    let mut world = rich(Rules::default());
    world.done(start(FUTURES));
    for id in 0..2_000 {
        for side in [Ask, Bid] {
            let (price, flags) = (100 + id % 100, OrderFlags::NONE);
            let order = gtc(1, 2 * id + i64::from(side == Bid), side, price, 1).with_flags(flags);
            world.apply(&Command::Place(in_symbol(order, FUTURES)));
        }
    }
    world.done(uncross(FUTURES));
    let found = encoded(&world.state);
    let price = found.len() - 8;
    let why = refusal(&[&found[..price], &301_i64.to_le_bytes()].concat());
    assert!(why.contains("the price of an uncross"), "{why}");
    let mut bytes = found[..price].to_vec();
    let search = [150_i64, 1, 160, 1, 140, 170, 9];
    bytes[price - 1] = 4;
    let with = |change: Option<(usize, i64)>| {
        let mut fields = search;
        if let Some((at, value)) = change {
            fields[at] = value;
        }
        [bytes.clone(), fields.map(i64::to_le_bytes).concat()].concat()
    };
    decode_state(&with(None)).expect("such a search could go on");
    for (at, value, what) in [
        (0, 161, "the best ask that is left"),
        (1, 0, "the lots of a search"),
        (3, -1, "the lots of a search"),
        (4, 151, "the worst ask that traded"),
        (5, 159, "the worst bid that traded"),
        (5, 301, "the worst bid that traded"),
        (6, 0, "the lots of a search"),
    ] {
        let why = refusal(&with(Some((at, value))));
        assert!(why.contains(what), "{why}");
    }
    bytes[price - 1] = 6;
    let why = refusal(&bytes);
    assert!(why.contains("a search for a price"), "{why}");
}

#[test]
fn a_snapshot_may_hold_expired_orders_that_are_left_over() {
    for is_stop in [false, true] {
        let mut world = rich(Rules::default());
        for id in 0..=MAX {
            let mut order = good_till(bid(1, id, 50, 1), 10);
            order.trigger = is_stop.then_some(100);
            world.done(order);
        }
        world.done(Command::Clock { time: 10 });
        assert_eq!(world.state.left_over(), Some(Command::Clock { time: 10 }));
        reread(&mut world);
        world.done(Command::Clock { time: 10 });
        assert_eq!((world.events.len(), world.state.left_over()), (1, None));
    }
}

#[test]
fn a_new_stop_order_goes_with_those_that_are_left_over() {
    let mut world = rich(Rules::default());
    for id in 0..MAX + 5 {
        world.done(stop(bid(1, id, 140, 1), 100));
    }
    world.done(ask(4, 1, 100, 1));
    world.done(bid(5, 1, 100, 1));
    assert!(world.state.left_over().is_some());
    world.done(stop(bid(3, 7, 140, 1), 100));
    let has_triggered = |events: &Events, user| {
        let is_its =
            |event: &Event| matches!(*event, Event::Triggered { uid, .. } if uid == UserId(user));
        events.iter().any(is_its)
    };
    assert!(!has_triggered(&world.events, 3));
    reread(&mut world);
    let mut is_triggered = false;
    while let Some(command) = world.state.left_over() {
        world.done(command);
        is_triggered |= has_triggered(&world.events, 3);
        reread(&mut world);
    }
    assert!(is_triggered);
}
