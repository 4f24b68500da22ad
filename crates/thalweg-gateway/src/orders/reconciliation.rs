//! Comparing a user's orders with those that the exchange has open, where reports were lost.
//!
//! *Rules.*
//! 1. All reports of before the list are applied: see `reconciliation_queue.rs`.
//! 2. What reports would have said, as far as the list shows it, is said by reports that are made
//!    here. They go through the log like any other, so that a restart does the same.
//! 3. An order that the exchange does not have open any more is EXPIRED, with the lots that are
//!    known as filled: whether it was filled, cancelled or expired is not known.
//! 4. One that the gateway does not know is taken in as one of another session. Trades that are
//!    not known are worth the order's price, which is exact for those of an order that rested.

use std::collections::HashSet;

use thalweg_exchange::codec::session::OpenOrder;
use thalweg_exchange::execution::{Execution, ExecutionReport, TradeId};
use thalweg_exchange::{OrderId, SymbolId};
use thalweg_server::OpenOrdersOf;

use super::memory::Memory;
use super::order::{Order, Status};

/// Returns the reports that make the orders of a user those of a list.
pub(super) fn missing_reports(memory: &Memory, list: &OpenOrdersOf) -> Vec<ExecutionReport> {
    let command = list.number.saturating_sub(1);
    let mut missing = Vec::new();
    for listed in &list.orders {
        let report = ExecutionReport {
            command,
            owner: list.user,
            symbol: listed.symbol,
            order: listed.order_id,
            side: Some(listed.action),
            price: listed.price,
            left: listed.size - listed.filled,
            filled: listed.filled,
            kind: Execution::New,
        };
        let kinds = match memory.sent(listed.symbol, listed.order_id.0) {
            None => taken_in(listed),
            Some(order) if order.status.is_open() || order.status == Status::Unknown => {
                changed(order, listed)
            }
            Some(_) => Vec::new(),
        };
        let reports = kinds.into_iter();
        missing.extend(reports.map(|kind| ExecutionReport { kind, ..report }));
    }
    if list.is_cut {
        tracing::error!(user = %list.user, "too many open orders: some are not compared");
        return missing;
    }
    let listed = list.orders.iter();
    let listed = listed.map(|one| (one.symbol.0, one.order_id.0));
    let listed: HashSet<(i32, i64)> = listed.collect();
    let known = memory.open(None);
    let gone = known.filter(|order| !listed.contains(&(order.symbol, order.id)));
    missing.extend(gone.map(|order| ExecutionReport {
        command,
        owner: list.user,
        symbol: SymbolId(order.symbol),
        order: OrderId(order.id),
        side: Some(order.side),
        price: order.price,
        left: 0,
        filled: order.filled,
        kind: Execution::Expired { size: order.left() },
    }));
    missing
}

/// Returns what happened to an order that is not known.
fn taken_in(listed: &OpenOrder) -> Vec<Execution> {
    let traded = (listed.filled > 0).then(|| traded(listed, listed.filled));
    [Some(Execution::New), traded]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns what happened to an open order since its last report, or since it was sent.
fn changed(order: &Order, listed: &OpenOrder) -> Vec<Execution> {
    let is_new = matches!(order.status, Status::Pending | Status::Unknown);
    let waited = order.stop.is_some() && order.working_us == 0;
    let is_triggered = waited && listed.trigger.is_none();
    let reduced_by = order.lots - listed.size;
    let is_replaced = reduced_by != 0 || order.price != listed.price;
    let filled = listed.filled - order.filled;
    let kinds = [
        is_new.then_some(Execution::New),
        is_triggered.then_some(Execution::Triggered),
        is_replaced.then_some(Execution::Replaced { reduced_by }),
        (filled > 0).then(|| traded(listed, filled)),
    ];
    kinds.into_iter().flatten().collect()
}

/// Returns trades of which nothing but the lots is known.
fn traded(listed: &OpenOrder, size: i64) -> Execution {
    Execution::Trade {
        id: TradeId::default(),
        price: listed.price,
        size,
        is_maker: true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg_client::TradeCommand;
    use thalweg_exchange::{
        Action, Amend, Command, ConditionalOrder, OrderFlags, OrderType, Place, SelfTrade, UserId,
    };
    use thalweg_server::DropCopyEvent;
    use thalweg_server::config::Config;
    use thalweg_testkit::Random;

    use super::super::User;
    use super::super::session::Done;
    use super::*;
    use crate::error::ApiError;
    use crate::link::tests::{Fixture, SYMBOL, place_buy};
    use crate::state::State;

    const USER: UserId = UserId(1);

    fn few_reports(config: &mut Config) {
        config.sessions.reports_kept = 2;
    }

    fn user(state: &State) -> Arc<User> {
        state.orders.tracked(USER).expect("it is followed")
    }

    /// Waits for the lists that are wanted, and follows them.
    async fn compare(fixture: &mut Fixture) {
        while !fixture.state().orders.is_compared() {
            fixture.next().await;
            fixture.take(false);
        }
    }

    /// Returns id, status, lots, filled, price of the open orders.
    fn open(state: &State) -> Vec<(i64, Status, i64, i64, i64)> {
        let user = user(state);
        let memory = user.memory();
        let open = memory.open(None);
        open.map(|o| (o.id, o.status, o.lots, o.filled, o.price))
            .collect()
    }

    fn limit(id: i64, side: Action, price: i64, lots: i64) -> Place {
        Place::limit((USER, OrderId(id)), SYMBOL, side, (price, lots))
    }

    /// Drops the reports of all commands up to one, as the writer does when there is no room.
    async fn lose(fixture: &mut Fixture, number: u64) {
        fixture.until(number).await;
        fixture.entries = vec![DropCopyEvent::Restart, DropCopyEvent::End(number)];
        fixture.take(false);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn orders_without_their_reports_are_those_that_the_exchange_has_open() {
        for is_restart in [false, true] {
            let name = format!("compared-{is_restart}");
            let mut fixture = Fixture::with(&name, few_reports).await;
            fixture.state().orders.user(USER);
            for id in 1..=4 {
                fixture.submit(limit(id, Action::Bid, 100 - id, 5)).await;
            }
            let number = fixture.place(9, Action::Bid).await;
            fixture.reach(number).await;
            compare(&mut fixture).await;
            // Without the gateway: one is cancelled, one partly filled, one moved and reduced, one
            // filled, and there are new ones.
            let symbol = SYMBOL;
            fixture
                .submit(TradeCommand::cancel(USER, symbol, OrderId(1)))
                .await;
            fixture.submit(limit(20, Action::Ask, 100, 5)).await;
            fixture.submit(limit(21, Action::Ask, 98, 2)).await;
            fixture
                .submit(TradeCommand::move_to(USER, symbol, OrderId(3), 95))
                .await;
            fixture
                .submit(TradeCommand::reduce(USER, symbol, OrderId(3), 2))
                .await;
            fixture.submit(limit(30, Action::Bid, 90, 7)).await;
            fixture.submit(limit(31, Action::Ask, 120, 7)).await;
            fixture.submit(limit(32, Action::Bid, 120, 3)).await;
            let number = fixture.place(33, Action::Bid).await;
            let state = if is_restart {
                Arc::clone(&fixture.restart(number).await.state)
            } else {
                lose(&mut fixture, number).await;
                compare(&mut fixture).await;
                Arc::clone(fixture.state())
            };
            let expected = [
                (2, Status::PartiallyFilled, 5, 2, 98),
                (3, Status::New, 3, 0, 95),
                (4, Status::New, 5, 0, 96),
                (30, Status::New, 7, 0, 90),
                (31, Status::PartiallyFilled, 7, 3, 120),
                (33, Status::New, 5, 0, 100),
            ];
            assert_eq!(open(&state), expected);
            let user = user(&state);
            let memory = user.memory();
            let of = |id| memory.order(SYMBOL, id).expect("it is kept");
            // How these ended is not known.
            assert_eq!(of(1).status, Status::Expired);
            assert_eq!((of(9).status, of(9).filled), (Status::Expired, 0));
            assert_eq!(of(31).client_id, "session-31");
            assert_eq!(of(2).spent, 2 * 98);
            assert_eq!(memory.fills(SYMBOL).count(), 0);
            drop(memory);
            // The log says the same.
            let again = fixture.read_again(&state);
            assert_eq!(open(&again), expected);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn orders_on_their_way_at_a_kill_are_open_unknown_or_not_placed() {
        let mut fixture = Fixture::with("killed", few_reports).await;
        let state = Arc::clone(fixture.state());
        let followed = state.orders.user(USER);
        compare(&mut fixture).await;
        let number = fixture.place(7, Action::Bid).await;
        fixture.reach(number).await;
        let rests = place_buy(&state, &followed, "rests");
        fixture.until(number + 1).await;
        let gone = place_buy(&state, &followed, "gone");
        fixture.until(number + 2).await;
        let of = |name| {
            let memory = followed.memory();
            memory.sent_by_client(SYMBOL, name).expect("it is sent").id
        };
        let cancel = TradeCommand::cancel(USER, SYMBOL, OrderId(of("gone")));
        fixture.submit(cancel).await;
        // More reports than are kept, and the gateway is killed before it has any of them.
        for id in 10..14 {
            fixture.place(id, Action::Bid).await;
        }
        rests.abort();
        gone.abort();
        // One that was in the log, and never sent.
        let mut unsent = Order::pending(
            (USER, SYMBOL.0, of("gone") + 1),
            "unsent".to_owned(),
            (Action::Bid, 5, 6),
            1,
        );
        unsent.created_us = 7;
        let orders = &fixture.state().orders;
        let record = super::super::Record::Order(Box::new(unsent));
        let lsn = orders.log().append(&record).expect("there is room");
        orders.log().commit(lsn).expect("there is room");
        let follower = fixture.restart(number + 7).await;
        let next = fixture.read_again(&follower.state);
        for state in [&*follower.state, &next] {
            let user = user(state);
            let memory = user.memory();
            let sent = |name| memory.sent_by_client(SYMBOL, name);
            let rests = sent("rests").expect("it is open");
            assert_eq!((rests.status, rests.lots), (Status::New, 5));
            let gone = sent("gone").expect("it is kept");
            assert_eq!(gone.status, Status::Unknown);
            assert_eq!(memory.order(SYMBOL, gone.id), None);
            assert!(!memory.is_open_client(SYMBOL, "gone"));
            assert_eq!(sent("unsent"), None);
        }
    }

    /// Places an order while its reports are lost, and then has it compared.
    async fn place_and_lose(
        fixture: &mut Fixture,
        query: &str,
        first: i64,
    ) -> Result<Status, ApiError> {
        let state = Arc::clone(fixture.state());
        let followed = user(&state);
        let query = format!("symbol=BTCUSDT&quantity=0.0005&{query}");
        let before = state.orders.reconciliation.executed(USER);
        let placing = tokio::spawn(async move {
            let params = crate::params::Params::of_request(&query, "").expect("parameters");
            let draft = super::super::Draft::read(&params, &state.symbols).expect("an order");
            let placed = state.orders.place(&followed, &draft, i64::MAX).await;
            placed.map(|placed| placed.order.status)
        });
        while fixture.state().orders.reconciliation.executed(USER) == before {
            tokio::task::yield_now().await;
        }
        let mut last = 0;
        for id in 1..4 {
            last = fixture.place(first + id, Action::Bid).await;
        }
        lose(fixture, last).await;
        while !placing.is_finished() {
            if fixture.state().orders.is_compared() {
                tokio::task::yield_now().await;
            } else {
                compare(fixture).await;
            }
        }
        placing.await.expect("it does not panic")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_whose_reports_are_lost_gives_its_client_id_back_without_a_restart() {
        let mut fixture = Fixture::with("given-back", few_reports).await;
        fixture.state().orders.user(USER);
        compare(&mut fixture).await;
        let query = "side=BUY&type=LIMIT&timeInForce=GTC&price=1&newClientOrderId=one";
        let placed = place_and_lose(&mut fixture, query, 100).await;
        assert_eq!(placed, Ok(Status::New));
        // It trades, or not, and is gone either way.
        let query = "side=BUY&type=LIMIT&timeInForce=IOC&price=2&newClientOrderId=two";
        let placed = place_and_lose(&mut fixture, query, 200).await;
        assert_eq!(placed, Err(ApiError::TIMEOUT));
        let followed = user(fixture.state());
        assert!(!followed.memory().is_open_client(SYMBOL, "two"));
        let sent = followed.memory().sent_by_client(SYMBOL, "two").cloned();
        assert_eq!(sent.map(|order| order.status), Some(Status::Unknown));
    }

    /// Puts an order on its way that no session sends.
    fn unsent(fixture: &Fixture, client_id: &str) -> i64 {
        let followed = user(fixture.state());
        let id = (1 << 52) + followed.memory().sequence + 1;
        let terms = (Action::Bid, 5, 6);
        let order = Order::pending((USER, SYMBOL.0, id), client_id.to_owned(), terms, 1);
        followed.memory().insert(order.clone());
        let orders = &fixture.state().orders;
        let record = super::super::Record::Order(Box::new(order));
        let lsn = orders.log().append(&record).expect("there is room");
        orders.log().commit(lsn).expect("there is room");
        id
    }

    /// Ends an order's command as a session does whose connection is gone.
    fn lose_outcome(fixture: &Fixture, id: i64) {
        end_with(fixture, id, ApiError::TIMEOUT);
    }

    fn end_with(fixture: &Fixture, id: i64, error: ApiError) {
        let done = Done {
            sender: tokio::sync::oneshot::channel().0,
            noted: Some((user(fixture.state()), (SYMBOL.0, id))),
            reconciliation: Arc::clone(&fixture.state().orders.reconciliation),
            log: fixture.state().orders.log.clone(),
        };
        done.settle(Err(error));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_order_whose_reduction_has_no_outcome_can_be_reduced_again() {
        let mut fixture = Fixture::new("reduction-lost").await;
        let followed = fixture.state().orders.user(USER);
        compare(&mut fixture).await;
        let id = unsent(&fixture, "waits");
        let begin = || {
            let mut memory = followed.memory();
            let order = memory.sent(SYMBOL, id).cloned().expect("it is known");
            memory.begin_reduction(&order, 1).is_some()
        };
        assert!(begin() && !begin());
        end_with(&fixture, id, ApiError::BUSY);
        assert!(begin() && !begin());
        lose_outcome(&fixture, id);
        assert!(!begin(), "it may still be executed");
        while !fixture.state().orders.is_compared() {
            fixture.next().await;
            fixture.take(false);
        }
        assert!(followed.memory().is_open_client(SYMBOL, "waits"));
        assert!(begin());
    }

    /// Waits for some lists, and returns them. Other entries are dropped.
    async fn lists(fixture: &mut Fixture, count: usize) -> Vec<DropCopyEvent> {
        let mut lists = Vec::new();
        while lists.len() < count {
            fixture.next().await;
            let entries = std::mem::take(&mut fixture.entries).into_iter();
            lists.extend(entries.filter(|entry| matches!(entry, DropCopyEvent::OpenOrders(_))));
        }
        lists
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_whose_outcome_never_comes_gives_its_client_id_back() {
        let mut fixture = Fixture::new("unanswered").await;
        let followed = fixture.state().orders.user(USER);
        compare(&mut fixture).await;
        let id = unsent(&fixture, "lost");
        // While a list of before is on its way, which says nothing of it.
        fixture.state().orders.reconciliation.want(USER);
        lose_outcome(&fixture, id);
        fixture.next().await;
        fixture.take(false);
        assert!(followed.memory().is_open_client(SYMBOL, "lost"));
        // Its end is kept when there is room.
        let refused = &fixture.state().orders.log().refused;
        refused.store(2, std::sync::atomic::Ordering::Relaxed);
        while !fixture.state().orders.is_compared() {
            fixture.next().await;
            tokio::task::block_in_place(|| fixture.take(false));
        }
        assert!(!followed.memory().is_open_client(SYMBOL, "lost"));
        assert_eq!(followed.memory().sent_by_client(SYMBOL, "lost"), None);
        let state = Arc::clone(fixture.state());
        let again = fixture.read_again(&state);
        assert_eq!(user(&again).memory().forget_unsent(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_second_list_of_one_question_does_not_answer_the_next_question() {
        let mut fixture = Fixture::new("stale").await;
        let state = Arc::clone(fixture.state());
        let followed = state.orders.user(USER);
        compare(&mut fixture).await;
        // It is asked twice after a restart of the drop copy.
        state.orders.reconciliation.want(USER);
        state.orders.list_again();
        let old = lists(&mut fixture, 2).await;
        // Then an order is executed whose reports are lost, and the outcome of another one is.
        let before = state.orders.reconciliation.executed(USER);
        let placing = place_buy(&state, &followed, "rests");
        while state.orders.reconciliation.executed(USER) == before {
            tokio::task::yield_now().await;
        }
        placing.abort();
        let id = unsent(&fixture, "lost");
        lose_outcome(&fixture, id);
        for list in old {
            fixture.entries = vec![list];
            fixture.take(false);
            let memory = followed.memory();
            for name in ["rests", "lost"] {
                let sent = memory.sent_by_client(SYMBOL, name);
                let status = sent.map(|order| order.status);
                assert_eq!(status, Some(Status::Pending), "{name}");
            }
        }
        fixture.entries = lists(&mut fixture, 1).await;
        fixture.take(false);
        assert!(state.orders.is_compared());
        let memory = followed.memory();
        let rests = memory.sent_by_client(SYMBOL, "rests").expect("it rests");
        assert_eq!(rests.status, Status::New);
        assert_eq!(memory.sent_by_client(SYMBOL, "lost"), None);
        assert_eq!(memory.open(None).count(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_of_unknown_execution_is_open_again_under_its_name_when_it_is_listed() {
        let fixture = Fixture::new("again").await;
        let followed = fixture.state().orders.user(USER);
        let id = unsent(&fixture, "one");
        let mut memory = followed.memory();
        assert_eq!(memory.close_unknown(id, 0), 1);
        let listed = OpenOrder {
            symbol: SYMBOL,
            order_id: OrderId(id),
            action: Action::Bid,
            order_type: OrderType::Gtc,
            flags: OrderFlags::NONE,
            price: 5,
            reserve_price: 0,
            size: 6,
            filled: 2,
            hidden: 0,
            trigger: None,
            display: None,
            good_till: None,
        };
        let list = OpenOrdersOf {
            user: USER,
            token: 0,
            number: 9,
            orders: vec![listed],
            is_cut: false,
        };
        for report in missing_reports(&memory, &list) {
            let reported = crate::orders::UserReport {
                number: thalweg_exchange::session::ReportNumber::default(),
                report,
                trade: None,
                time_us: 1,
                is_auction: false,
            };
            memory.apply(&reported, &fixture.state().symbols);
        }
        assert!(memory.is_open_client(SYMBOL, "one"));
        let order = memory.order(SYMBOL, id).expect("it is shown");
        let found = (order.status, order.filled, order.client_id.as_str());
        assert_eq!(found, (Status::PartiallyFilled, 2, "one"));
        assert_eq!(memory.all(SYMBOL, 0, false).count(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_list_that_is_cut_ends_no_order() {
        let mut fixture = Fixture::new("cut").await;
        let state = Arc::clone(fixture.state());
        let followed = state.orders.user(USER);
        compare(&mut fixture).await;
        let id = unsent(&fixture, "lost");
        lose_outcome(&fixture, id);
        let mut cut = lists(&mut fixture, 1).await;
        let DropCopyEvent::OpenOrders(list) = &mut cut[0] else {
            panic!("it is a list");
        };
        list.is_cut = true;
        fixture.entries = cut;
        fixture.take(false);
        assert!(state.orders.is_compared());
        // Nor does the start.
        assert_eq!(state.orders.forget_unsent(), []);
        assert!(followed.memory().is_open_client(SYMBOL, "lost"));
        state.orders.reconciliation.want(USER);
        compare(&mut fixture).await;
        assert_eq!(followed.memory().sent_by_client(SYMBOL, "lost"), None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn reports_of_before_a_users_first_command_are_made_up_for_by_a_list() {
        for is_start in [false, true] {
            let mut fixture = Fixture::new(&format!("first-{is_start}")).await;
            let state = Arc::clone(fixture.state());
            let followed = state.orders.user(USER);
            compare(&mut fixture).await;
            // Another session places an order, and the gateway has not seen its report.
            let number = fixture.place(7, Action::Bid).await;
            if is_start {
                assert_eq!(state.orders.begin(&[USER]).len(), 1);
            } else {
                let placing = place_buy(&state, &followed, "first");
                while followed.memory().last_report.is_none() {
                    tokio::task::yield_now().await;
                }
                placing.abort();
            }
            fixture.reach(number).await;
            compare(&mut fixture).await;
            assert!(followed.memory().order(SYMBOL, 7).is_some(), "{is_start}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn users_are_asked_for_in_the_order_in_which_they_are_wanted() {
        let fixture = Fixture::new("queue").await;
        let queue = &fixture.state().orders.reconciliation;
        let mut answer = OpenOrdersOf {
            user: UserId(100),
            token: u64::MAX,
            number: 9,
            orders: Vec::new(),
            is_cut: false,
        };
        for user in (100..108).chain([50, 60, 40]) {
            queue.want(UserId(user));
        }
        queue.done(UserId(100));
        let is_asked = [50, 60, 40].map(|user| {
            answer.user = UserId(user);
            queue.answered(&answer).is_some()
        });
        assert_eq!(is_asked, [true, false, false]);
    }

    #[tokio::test]
    async fn a_query_of_a_user_who_is_not_compared_for_long_is_refused() {
        let fixture = Fixture::new("long").await;
        let state = fixture.state();
        state.orders.user(USER);
        tokio::time::pause();
        assert_eq!(state.orders.compare(USER).await, Err(ApiError::TIMEOUT));
        let key = Some(Arc::new(crate::keys::ApiKey::read_only(USER)));
        let params = crate::params::Params::of_request("symbol=BTCUSDT", "").expect("one");
        let call = crate::rest::Call {
            state,
            params: &params,
            unit: crate::rest::TimeUnit::Milliseconds,
            key,
        };
        let row = crate::rest::find(&hyper::Method::GET, "/api/v3/openOrders").expect("a row");
        let answer = crate::rest::run(row, &call).await;
        assert_eq!(answer.err(), Some(ApiError::TIMEOUT));
    }

    /// Returns a command as trading programs send them.
    fn command(random: &mut Random, id: i64) -> TradeCommand {
        let side = [Action::Bid, Action::Ask][random.below(2) as usize];
        let price = 90 + random.below(20) as i64;
        let lots = 1 + random.below(30) as i64;
        let other = OrderId(1 + random.below(id as u64) as i64);
        let place = limit(id, side, price, lots);
        let modes = [
            SelfTrade::Allow,
            SelfTrade::CancelTaker,
            SelfTrade::CancelMaker,
            SelfTrade::CancelBoth,
            SelfTrade::Decrement,
        ];
        let mode = modes[random.below(5) as usize];
        let place = place.with_flags(OrderFlags::NONE.with_self_trade(mode));
        match random.below(10) {
            0 => TradeCommand::cancel(USER, SYMBOL, other),
            1 => TradeCommand::move_to(USER, SYMBOL, other, price),
            2 => TradeCommand::reduce(USER, SYMBOL, other, lots / 4 + 1),
            3 => ConditionalOrder {
                place,
                trigger: Some(90 + random.below(20) as i64),
                display: None,
                good_till: None,
            }
            .into(),
            4 => ConditionalOrder {
                place,
                trigger: None,
                display: Some((lots / 3).max(1)),
                good_till: None,
            }
            .into(),
            5 => place.with_type(OrderType::Ioc).into(),
            6 => TradeCommand::try_from(Command::Amend(Arc::new(Amend {
                uid: USER,
                symbol: SYMBOL,
                order_id: other,
                action: side,
                reserve_price: price,
                size_before: lots,
                price,
                size: (lots / 2).max(1),
            })))
            .expect("a user's command"),
            _ => place.into(),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_list_says_what_the_reports_have_said() {
        let mut fixture = Fixture::new("same").await;
        let followed = fixture.state().orders.user(USER);
        compare(&mut fixture).await;
        let (mut random, mut id, mut opened) = (Random(36), 0, 0);
        for _ in 0..40 {
            for _ in 0..25 {
                id += 1;
                fixture.submit(command(&mut random, id)).await;
            }
            fixture.state().orders.reconciliation.want(USER);
            let mut lists = Vec::new();
            while lists.is_empty() {
                fixture.next().await;
                lists.extend(
                    fixture
                        .entries
                        .extract_if(.., |entry| matches!(entry, DropCopyEvent::OpenOrders(_))),
                );
                fixture.take(false);
            }
            let Some(DropCopyEvent::OpenOrders(list)) = lists.pop() else {
                panic!("there is a list");
            };
            // All that was reported before it is applied.
            assert_eq!(missing_reports(&followed.memory(), &list), []);
            let known = followed.memory().open(None).count();
            assert_eq!(known, list.orders.len());
            opened += known;
            fixture.state().orders.compared(&list);
        }
        assert!(opened > 1_000, "{opened}");
    }

    #[test]
    fn orders_that_a_cut_list_lacks_are_left_as_they_are() {
        let mut memory = Memory::new(10);
        let mut order = Order::pending((USER, 1, 7), "a".to_owned(), (Action::Bid, 5, 6), 1);
        order.status = Status::New;
        memory.insert(order);
        let mut list = OpenOrdersOf {
            user: USER,
            token: 0,
            number: 9,
            orders: Vec::new(),
            is_cut: true,
        };
        assert_eq!(missing_reports(&memory, &list), []);
        list.is_cut = false;
        let missing = missing_reports(&memory, &list);
        let [report] = missing[..] else {
            panic!("one is missing: {missing:?}");
        };
        assert_eq!((report.order, report.command), (OrderId(7), 8));
        assert_eq!(report.kind, Execution::Expired { size: 6 });
    }
}
