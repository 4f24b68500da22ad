//! Execution reports over random streams: the life of every order, followed by its reports alone.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use thalweg_exchange::execution::{
    CancelReason, Execution, ExecutionReport, ExecutionReports, TradeId,
};
use thalweg_exchange::{
    Action, Command, Event, OrderFlags, OrderId, OrderType, Place, RejectReason, RemovalReason,
    ResultCode, Rules, SelfTrade, SymbolId, UserId,
};

use crate::terms::random::{money, stream};
use crate::terms::world::{
    FUTURES, OTHER_PAIR, PAIR, SYMBOLS, World, ask, bid, cancelled, flagged, good_till, iceberg,
    in_symbol, moved, of_type, reduced, stop, with,
};

type Key = (UserId, SymbolId, OrderId);

/// An order as its reports describe it.
#[derive(Clone, Copy, Debug)]
struct Life {
    side: Action,
    size: i64,
    price: i64,
    filled: i64,
    left: i64,
    cancelled: i64,
    /// Its price is a limit.
    is_limited: bool,
}

/// A fault of a run, which must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A maker's report is lost.
    MakerLost,
    /// A taker's running quantity is not kept.
    TakerStands,
    /// The cancelled lots of an order are not reported.
    RestForgotten,
    /// Trades of all commands have the same number.
    SameTrades,
}

/// Follows the reports.
#[derive(Default)]
struct Follower {
    orders: BTreeMap<Key, Life>,
    trades: BTreeMap<TradeId, Vec<ExecutionReport>>,
    seen: BTreeMap<String, usize>,
}

impl Follower {
    fn take_in(&mut self, report: &ExecutionReport, place: Option<&Place>) -> Result<(), String> {
        let key = (report.owner, report.symbol, report.order);
        let name = format!("{:?}", report.kind);
        let word = name.split([' ', '(']).next().unwrap_or_default();
        *self.seen.entry(word.into()).or_default() += 1;
        match report.kind {
            Execution::New => {
                let life = Life {
                    side: report.side.ok_or("a new order has a side")?,
                    size: report.left,
                    price: report.price,
                    filled: 0,
                    left: report.left,
                    cancelled: 0,
                    is_limited: place.is_some_and(|place| {
                        let of = place.order_type;
                        matches!(of, OrderType::Gtc | OrderType::Ioc | OrderType::Fok)
                    }),
                };
                if place.map(|place| place.size) != Some(report.left) {
                    return Err("another size".into());
                }
                if self.orders.insert(key, life).is_some() {
                    return Err("it is there already".into());
                }
            }
            Execution::Rejected(code) | Execution::RequestRejected(code) => {
                let is_right = code.is_refusal() && report.left == 0 && report.filled == 0;
                return is_right.then_some(()).ok_or_else(|| format!("{code}"));
            }
            _ => {}
        }
        self.follow(report, key)
    }

    /// A report of an order that lives.
    fn follow(&mut self, report: &ExecutionReport, key: Key) -> Result<(), String> {
        let life = self
            .orders
            .get_mut(&key)
            .ok_or("it never began, or has ended")?;
        if report.side != Some(life.side) {
            return Err("another side".into());
        }
        match report.kind {
            Execution::Trade {
                id, size, price, ..
            } => {
                if size <= 0 || id.command != report.command {
                    return Err("no trade".into());
                }
                let is_better = match life.side {
                    Action::Ask => price >= life.price,
                    Action::Bid => price <= life.price,
                };
                if life.is_limited && !is_better {
                    return Err(format!("worse than {life:?}"));
                }
                life.filled += size;
                life.left -= size;
                self.trades.entry(id).or_default().push(*report);
            }
            Execution::Replaced { reduced_by } => {
                life.price = report.price;
                life.left -= reduced_by;
                life.cancelled += reduced_by;
            }
            Execution::Cancelled { size, .. } | Execution::Expired { size } => {
                life.left -= size;
                life.cancelled += size;
            }
            _ => {}
        }
        let reported = (report.left, report.filled);
        if reported != (life.left, life.filled) {
            return Err(format!("left and filled should be {life:?}"));
        }
        if life.left < 0 || life.filled + life.left + life.cancelled != life.size {
            return Err(format!("{life:?} does not add up"));
        }
        if report.is_final() != (life.left == 0) {
            return Err(format!("{life:?} should end here, or not"));
        }
        if report.is_final() {
            self.orders.remove(&key);
        }
        Ok(())
    }

    /// Each trade has a taker's and a maker's report, and nothing is reported twice.
    fn trades_are_paired(&self, command: u64, events: &[Event]) -> Result<(), String> {
        let new = self.trades.iter().filter(|(id, _)| id.command == command);
        let mut lots = 0;
        for (id, sides) in new {
            let [taker, maker] = &sides[..] else {
                return Err(format!("trade {id} has {} sides", sides.len()));
            };
            let side = |report: &ExecutionReport| match report.kind {
                Execution::Trade {
                    price,
                    size,
                    is_maker,
                    ..
                } => (price, size, is_maker),
                _ => (0, 0, false),
            };
            let ((price, size, no), (other_price, other_size, yes)) = (side(taker), side(maker));
            let is_one = (price, size, no, yes) == (other_price, other_size, false, true);
            if !is_one || taker.side != maker.side.map(Action::opposite) {
                return Err(format!("the sides of trade {id} differ: {sides:?}"));
            }
            lots += size;
        }
        let traded = events.iter().map(|event| match event {
            Event::Trade { size, .. } => *size,
            _ => 0,
        });
        let traded: i64 = traded.sum();
        (lots == traded)
            .then_some(())
            .ok_or_else(|| format!("{traded} lots traded, {lots} reported"))
    }

    /// Checks that the reported orders are those of the books.
    fn agrees_with_the_books(&self, world: &World) -> Result<(), String> {
        let mut orders = self.orders.clone();
        for symbol in SYMBOLS {
            let book = world.state.matching.book(symbol).expect("added");
            let resting = [Action::Ask, Action::Bid].into_iter().flat_map(|side| {
                book.orders(side).map(|order| {
                    let key = (order.uid, symbol, order.order_id);
                    let left = order.size - order.filled;
                    (key, order.action, order.price, order.filled, left)
                })
            });
            let waiting = book.waiting().map(|stop| {
                let place = &stop.place;
                let key = (place.uid, symbol, place.order_id);
                (key, place.action, place.price, 0, place.size)
            });
            for (key, side, price, filled, left) in resting.chain(waiting) {
                let life = orders
                    .remove(&key)
                    .ok_or(format!("{key:?} is not reported"))?;
                if (life.side, life.price, life.filled, life.left) != (side, price, filled, left) {
                    return Err(format!("{key:?} is reported as {life:?}"));
                }
            }
        }
        orders
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("reported and not there: {orders:?}"))
    }
}

/// The reports of a command, as a fault would have them.
fn reports(
    sequence: u64,
    command: &Command,
    result: ResultCode,
    world: &World,
    fault: Fault,
) -> Vec<ExecutionReport> {
    let reports = ExecutionReports::new(sequence, command, result, &world.events);
    let mut reports: Vec<ExecutionReport> = reports.collect();
    match fault {
        Fault::None => {}
        Fault::MakerLost => {
            reports.retain(|report| !matches!(report.kind, Execution::Trade { is_maker: true, .. }))
        }
        Fault::TakerStands => {
            let mut first = None;
            for report in &mut reports {
                if let Execution::Trade {
                    is_maker: false, ..
                } = report.kind
                {
                    (report.left, report.filled) =
                        *first.get_or_insert((report.left, report.filled));
                }
            }
        }
        Fault::RestForgotten => reports.retain(|report| {
            let why = CancelReason::Left(RejectReason::ImmediateOrCancel);
            !matches!(report.kind, Execution::Cancelled { why: this, .. } if this == why)
        }),
        Fault::SameTrades => {
            for report in &mut reports {
                if let Execution::Trade { id, .. } = &mut report.kind {
                    id.index = 0;
                }
            }
        }
    }
    reports
}

fn holds(rules: Rules, money: i64, commands: &[Command], fault: Fault) -> Result<Follower, String> {
    let mut world = World::with_money(rules, money);
    let mut follower = Follower::default();
    for (sequence, command) in (0..).zip(commands) {
        let result = world.apply(command);
        let reports = reports(sequence, command, result, &world, fault);
        for report in &reports {
            let followed = follower.take_in(report, command.place());
            followed
                .map_err(|why| format!("{why}: {report:?} of {reports:?} after {command:?}"))?;
        }
        let is_about_an_order = command.symbol().is_some();
        if reports.is_empty() && is_about_an_order {
            return Err(format!("nothing was reported of {command:?}: {result}"));
        }
        let agrees = follower
            .trades_are_paired(sequence, &world.events)
            .and_then(|()| follower.agrees_with_the_books(&world));
        agrees.map_err(|why| format!("{why} after {command:?}"))?;
    }
    Ok(follower)
}

proptest! {
    #[test]
    fn every_order_lives_from_new_to_its_end(
        commands in stream(Rules::MENDED, 150),
        money in money(),
    ) {
        let followed = holds(Rules::MENDED, money, &commands, Fault::None);
        prop_assert!(followed.is_ok(), "{}", followed.err().unwrap_or_default());
    }
}

#[test]
fn the_streams_have_every_kind_of_report_and_faults_are_noticed() {
    use proptest::strategy::ValueTree;

    let mut runner = TestRunner::deterministic();
    let tree = stream(Rules::MENDED, 4_000).new_tree(&mut runner);
    let commands = tree.expect("a stream").current();
    let followed = holds(Rules::MENDED, 1_000_000, &commands, Fault::None).expect("it holds");
    for (what, least) in [
        ("New", 1_000),
        ("Trade", 1_000),
        ("Replaced", 80),
        ("Cancelled", 250),
        ("Expired", 40),
        ("Triggered", 200),
        ("Rejected", 300),
        ("RequestRejected", 500),
    ] {
        let times = followed.seen.get(what).copied().unwrap_or(0);
        let all = commands.len();
        assert!(times * 4_000 >= least * all, "{what}: {times} in {all}");
    }
    for fault in [
        Fault::MakerLost,
        Fault::TakerStands,
        Fault::RestForgotten,
        Fault::SameTrades,
    ] {
        let followed = holds(Rules::MENDED, 1_000_000, &commands, fault);
        assert!(followed.is_err(), "{fault:?} is not noticed");
    }
}

fn report_rows(world: &mut World, command: Command) -> Vec<(i64, i64, i64, i64, Execution)> {
    let result = world.apply(&command);
    ExecutionReports::new(7, &command, result, &world.events)
        .map(|report| {
            assert_eq!(report.command, 7);
            let (owner, order) = (report.owner.0, report.order.0);
            (owner, order, report.left, report.filled, report.kind)
        })
        .collect()
}

const fn trade(index: u32, price: i64, size: i64, is_maker: bool) -> Execution {
    let id = TradeId { command: 7, index };
    Execution::Trade {
        id,
        price,
        size,
        is_maker,
    }
}

const fn left(size: i64, why: RejectReason) -> Execution {
    let why = CancelReason::Left(why);
    Execution::Cancelled { size, why }
}

#[test]
fn both_sides_of_a_trade_are_reported_and_the_rest_comes_last() {
    let mut world = World::new(Rules::default());
    assert_eq!(
        report_rows(&mut world, Command::Place(ask(1, 1, 100, 4))),
        [(1, 1, 4, 0, Execution::New)]
    );
    report_rows(&mut world, with(iceberg(ask(2, 2, 101, 9), 2)));
    let taker = of_type(bid(3, 9, 101, 6), OrderType::Ioc);
    let expected = [
        (3, 9, 6, 0, Execution::New),
        (3, 9, 2, 4, trade(0, 100, 4, false)),
        (1, 1, 0, 4, trade(0, 100, 4, true)),
        (3, 9, 0, 6, trade(1, 101, 2, false)),
        (2, 2, 7, 2, trade(1, 101, 2, true)),
    ];
    assert_eq!(report_rows(&mut world, taker), expected);
    // An order with the id used before, for more lots than there are: hidden lots are met, too.
    let taker = of_type(bid(3, 9, 101, 10), OrderType::Ioc);
    let reports = report_rows(&mut world, taker);
    assert_eq!(reports[0], (3, 9, 10, 0, Execution::New));
    let why = RejectReason::ImmediateOrCancel;
    assert_eq!(reports.last(), Some(&(3, 9, 0, 7, left(3, why))));
}

/// Orders that an ask of user 1, of four lots at 100 with the id 1, keeps out.
fn rejected() -> Vec<(Place, OrderType, ResultCode)> {
    let post = OrderFlags::NONE.with_post_only();
    let taker = OrderFlags::NONE.with_self_trade(SelfTrade::CancelTaker);
    let used = [OrderType::Gtc, OrderType::Ioc, OrderType::Fok].map(|order_type| {
        let code = ResultCode::MatchingRejectedDuplicateId;
        (bid(1, 1, 100, 1), order_type, code)
    });
    let mut rejected = vec![
        (
            flagged(bid(2, 2, 100, 1), post),
            OrderType::Gtc,
            ResultCode::MatchingRejectedPostOnly,
        ),
        (
            bid(2, 2, 100, 5),
            OrderType::Fok,
            ResultCode::MatchingRejectedFillOrKill,
        ),
        (
            bid(2, 2, 399, 4),
            OrderType::FokBudget,
            ResultCode::MatchingRejectedFillOrKill,
        ),
        (
            bid(1, 1, 90, 1),
            OrderType::Gtc,
            ResultCode::MatchingRejectedDuplicateId,
        ),
        (
            flagged(bid(1, 2, 100, 1), taker),
            OrderType::Gtc,
            ResultCode::MatchingRejectedSelfTrade,
        ),
    ];
    rejected.extend(used);
    rejected
}

#[test]
fn every_reject_has_its_reason() {
    for symbol in [PAIR, FUTURES] {
        let mut world = World::new(Rules::default());
        report_rows(
            &mut world,
            Command::Place(in_symbol(ask(1, 1, 100, 4), symbol)),
        );
        let both = OrderFlags::NONE.with_self_trade(SelfTrade::CancelBoth);
        let money = world.state.risk.user(UserId(2)).cloned();
        for (place, order_type, code) in rejected() {
            let owner = place.uid.0;
            let order = place.order_id.0;
            let command = of_type(in_symbol(place, symbol), order_type);
            let rejected = (owner, order, 0, 0, Execution::Rejected(code));
            assert_eq!(
                report_rows(&mut world, command.clone()),
                [rejected],
                "{command:?}"
            );
            assert_eq!(world.side(symbol, Action::Ask), [(100, 1, 4)]);
        }
        assert_eq!(world.state.risk.user(UserId(2)).cloned(), money);
        let why = RejectReason::Budget;
        let command = of_type(in_symbol(bid(2, 3, 99, 2), symbol), OrderType::IocBudget);
        let expected = [(2, 3, 2, 0, Execution::New), (2, 3, 0, 0, left(2, why))];
        assert_eq!(report_rows(&mut world, command), expected);
        let command = Command::Place(in_symbol(flagged(bid(1, 2, 100, 1), both), symbol));
        let size = 4;
        let why = CancelReason::Removed(RemovalReason::SelfTrade);
        let code = ResultCode::MatchingRejectedSelfTrade;
        let expected = [
            (1, 2, 0, 0, Execution::Rejected(code)),
            (1, 1, 0, 0, Execution::Cancelled { size, why }),
        ];
        assert_eq!(report_rows(&mut world, command), expected);
        // A refusal of the risk check is reported as well.
        let poor = Command::Place(in_symbol(ask(1, 5, 1_000, i64::MAX / 8), symbol));
        let code = world.apply(&poor);
        assert!(code.is_refusal());
        assert_eq!(
            report_rows(&mut world, poor),
            [(1, 5, 0, 0, Execution::Rejected(code))]
        );
    }
}

#[test]
fn changes_of_an_order_are_reported_with_what_is_left() {
    let mut world = World::new(Rules::default());
    let place = bid(1, 1, 90, 10).with_reserve(120);
    report_rows(&mut world, Command::Place(place));
    report_rows(&mut world, Command::Place(ask(2, 2, 110, 3)));
    let replaced = |reduced_by| Execution::Replaced { reduced_by };
    assert_eq!(
        report_rows(&mut world, moved(1, PAIR, 1, 100)),
        [(1, 1, 10, 0, replaced(0))]
    );
    let expected = [
        (1, 1, 10, 0, replaced(0)),
        (1, 1, 7, 3, trade(0, 110, 3, false)),
        (2, 2, 0, 3, trade(0, 110, 3, true)),
    ];
    assert_eq!(report_rows(&mut world, moved(1, PAIR, 1, 110)), expected);
    assert_eq!(
        report_rows(&mut world, reduced(1, PAIR, 1, 2)),
        [(1, 1, 5, 3, replaced(2))]
    );
    let why = CancelReason::Requested;
    let size = 5;
    let expected = [(1, 1, 0, 3, Execution::Cancelled { size, why })];
    assert_eq!(report_rows(&mut world, cancelled(1, PAIR, 1)), expected);
    let code = ResultCode::MatchingUnknownOrderId;
    let expected = [(1, 1, 0, 0, Execution::RequestRejected(code))];
    assert_eq!(report_rows(&mut world, cancelled(1, PAIR, 1)), expected);
    // A reduction of a waiting stop order, and of many lots at once.
    report_rows(&mut world, with(stop(bid(3, 3, 100, 8), 150)));
    assert_eq!(
        report_rows(&mut world, reduced(3, PAIR, 3, 6)),
        [(3, 3, 2, 0, replaced(6))]
    );
    report_rows(
        &mut world,
        with(good_till(in_symbol(ask(4, 4, 100, 2), OTHER_PAIR), 50)),
    );
    let expected = [(4, 4, 0, 0, Execution::Expired { size: 2 })];
    assert_eq!(
        report_rows(&mut world, Command::Clock { time: 50 }),
        expected
    );
    let all = Command::cancel_all(None, None);
    let why = CancelReason::Removed(RemovalReason::CancelAll);
    let size = 2;
    let expected = [(3, 3, 0, 0, Execution::Cancelled { size, why })];
    assert_eq!(report_rows(&mut world, all), expected);
}
