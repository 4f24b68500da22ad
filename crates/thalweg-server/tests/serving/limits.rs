//! Limits of the configuration, and those that an administrator sets.

use thalweg_exchange::codec::session::{ClientFrame, CloseReason};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, OrderId, ResultCode, SymbolId, UserId, UserLimits,
};

use crate::client::{Client, bytes_of, order, submit_of};
use crate::test_server::{TestServer, symbols};

/// How many orders user 1 may have, of three.
fn taken(server: &TestServer) -> usize {
    let (mut client, welcome) = server.trade(1);
    let after = welcome.last_executed.0;
    let mut results = Vec::new();
    for at in 1..=3 {
        client.submit(
            after + at,
            &order(1, (after + at) as i64, Action::Bid, 10, 1),
        );
        results.push(client.answer().result);
    }
    let cancel_all = Command::cancel_all(Some(UserId(1)), None);
    client.submit(after + 4, &cancel_all);
    assert_eq!(client.answer().result, ResultCode::Success);
    let is_taken = |result: &&ResultCode| **result == ResultCode::Success;
    results.iter().filter(is_taken).count()
}

#[test]
fn an_administrators_limit_outlives_a_start_with_another_in_the_configuration() {
    let mut server = TestServer::with_market(|config| config.sessions.open_orders_max = 1);
    assert_eq!(taken(&server), 1);
    server.stop();
    server.start();
    assert_eq!(taken(&server), 1);
    let (mut admin, welcome) = server.admin();
    let limits = Some(UserLimits::NONE.with_open_orders(2));
    let sequence = welcome.last_executed.0 + 1;
    admin.submit(sequence, &Command::SetLimits { uid: None, limits });
    admin.succeeds(sequence);
    server.stop();
    server.start();
    assert_eq!(taken(&server), 2);
}

/// Returns a batch of `count` symbols, none of which is there.
fn batch(count: i32) -> Command {
    let ids: Vec<i32> = (1_000..1_000 + count).collect();
    symbols(&ids)
}

#[test]
fn a_frame_of_an_administrator_may_be_as_long_as_the_welcome_says() {
    let server = TestServer::new(|_| ());
    let (mut admin, welcome) = server.admin();
    let max = welcome.frame_bytes_max as usize;
    let bytes_of = |count| submit_of(1, &batch(count)).len();
    let each = bytes_of(2) - bytes_of(1);
    let most = ((max - bytes_of(0)) / each) as i32;
    assert!(bytes_of(most) <= max && max < bytes_of(most + 1));
    admin.submit(1, &batch(most));
    admin.succeeds(1);
    admin.write(&submit_of(2, &batch(most + 1)));
    let (why, text) = admin.bye();
    assert_eq!(why, CloseReason::FrameTooLong);
    assert!(text.ends_with(&format!("the limit is {max}")), "{text}");
}

#[test]
fn a_user_has_as_many_open_orders_as_the_default_says() {
    let default = thalweg_server::config::Config::default()
        .sessions
        .open_orders_max;
    let server = TestServer::with_market(|config| config.sessions.open_orders_max = default);
    let (mut client, _) = server.trade(1);
    for id in 1..=u64::from(default) {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
        client.succeeds(id);
    }
    let next = u64::from(default) + 1;
    client.submit(next, &order(1, next as i64, Action::Bid, 10, 1));
    assert_eq!(client.answer().result, ResultCode::RiskTooManyOrders);
    // The orders of other users are not counted.
    let (mut other, _) = server.trade(2);
    other.submit(1, &order(2, 1, Action::Bid, 10, 1));
    other.succeeds(1);
}

/// A turn has 64 commands, so that nothing is left to be read after it.
#[test]
fn a_session_that_is_silent_after_a_whole_turn_delays_no_other() {
    let server = TestServer::with_market(|_| ());
    let (mut one, _) = server.trade(1);
    let (mut two, _) = server.trade(2);
    for heartbeats in 0..3 {
        let first = 64 * heartbeats as u64;
        let mut bytes = Vec::new();
        for id in first + 1..=first + 64 {
            bytes.extend(submit_of(id, &order(1, id as i64, Action::Bid, 10, 1)));
        }
        for _ in 0..heartbeats {
            bytes.extend(bytes_of(&ClientFrame::Heartbeat));
        }
        one.write(&bytes);
        for id in first + 1..=first + 64 {
            one.succeeds(id);
        }
        two.submit(
            1 + heartbeats as u64,
            &order(2, 1 + heartbeats, Action::Bid, 10, 1),
        );
        two.succeeds(1 + heartbeats as u64);
    }
}

#[test]
fn orders_that_expire_by_an_administrators_clock_go_with_as_few_commands_as_it_takes() {
    let server = TestServer::with_market(|config| config.exchange.clock_ms = 0);
    for user in 1..=2 {
        let (mut client, _) = server.trade(user);
        for id in 1..=700_u64 {
            let Command::Place(place) = order(user, id as i64, Action::Bid, 10, 1) else {
                unreachable!("it is an order");
            };
            let order = ConditionalOrder::from(place).with_good_till(1 << 50);
            client.submit(id, &Command::PlaceConditional(order.into()));
            client.succeeds(id);
        }
    }
    let (mut admin, welcome) = server.admin();
    let next = welcome.last_executed.0 + 1;
    admin.submit(next, &Command::Clock { time: 1 << 51 });
    let number = admin.succeeds(next);
    // One command for the 1,024 of them, and one for the rest, before or after this one.
    commands_reach(&server, (&mut admin, next + 1), number + 2);
}

/// Waits until this number of commands were executed. There are no more: the next one that comes
/// from a client has the next number.
fn commands_reach(server: &TestServer, (admin, sequence): (&mut Client, u64), number: u64) {
    let mut commands = Vec::new();
    while !commands.ends_with(&[number]) {
        let (_, page) = server.get("/metrics");
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("thalweg_commands_total "));
        commands.push(line.expect("a metric").parse().expect("a number"));
        assert!(commands.last() <= Some(&number), "{commands:?}");
        // A page is good for a while.
        std::thread::yield_now();
    }
    admin.submit(sequence, &Command::Nop);
    assert_eq!(admin.succeeds(sequence), number);
}

#[test]
fn stop_orders_that_are_left_over_go_with_as_few_commands_as_it_takes() {
    let server = TestServer::with_market(|config| config.exchange.clock_ms = 0);
    let limit = |user, id, action, price| {
        let Command::Place(place) = order(user, id, action, price, 1) else {
            unreachable!("it is an order");
        };
        place
    };
    let mut clients = [1, 2].map(|user| server.trade(user).0);
    for (user, client) in (1..).zip(&mut clients) {
        for id in 1..=700_u64 {
            let stop =
                ConditionalOrder::from(limit(user, id as i64, Action::Bid, 5)).with_trigger(10);
            client.submit(id, &Command::PlaceConditional(stop.into()));
            client.succeeds(id);
        }
    }
    let [one, two] = &mut clients;
    one.submit(701, &Command::Place(limit(1, 701, Action::Ask, 10)));
    one.succeeds(701);
    two.submit(701, &Command::Place(limit(2, 701, Action::Bid, 10)));
    let number = two.succeeds(701);
    // One command for those that this one has left over.
    let (mut admin, welcome) = server.admin();
    let next = welcome.last_executed.0 + 1;
    commands_reach(&server, (&mut admin, next), number + 2);
}

#[test]
fn a_mass_cancel_of_all_users_goes_on_by_itself() {
    let server = TestServer::with_market(|config| config.exchange.clock_ms = 0);
    for user in 1..=2 {
        let (mut client, _) = server.trade(user);
        for id in 1..=700_u64 {
            client.submit(id, &order(user, id as i64, Action::Bid, 10, 1));
            client.succeeds(id);
        }
    }
    let (mut admin, welcome) = server.admin();
    let next = welcome.last_executed.0 + 1;
    admin.submit(next, &Command::cancel_all(None, None));
    let number = admin.succeeds(next);
    // One command for the 376 orders behind the first 1,024.
    commands_reach(&server, (&mut admin, next + 1), number + 2);
    admin.submit(
        next + 2,
        &Command::cancel(UserId(2), SymbolId(1), OrderId(700)),
    );
    assert_eq!(admin.answer().result, ResultCode::MatchingUnknownOrderId);
}
