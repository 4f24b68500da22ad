//! Latency and faults of the binary protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::Action;
use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::{CloseReason, SessionQuery};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_server::conditions::{DELAY_MAX, Delay, Delays, Faults, NetworkConditions};

use crate::client::{Client, Received, hello, order};
use crate::test_server::{Place, TestServer, symbols};

const MS: Duration = Duration::from_millis(1);

fn behind(conditions: NetworkConditions) -> TestServer {
    let server = TestServer::on(Place::Behind(Arc::new(conditions)), |_| {});
    server.set_market();
    server
}

fn delays(inbound: u32, outbound: u32) -> Delays {
    Delays {
        inbound: Delay::Fixed(inbound * MS),
        outbound: Delay::Fixed(outbound * MS),
    }
}

/// Returns how long the answer to an order takes.
fn answered_in(client: &mut Client, user: i64) -> Duration {
    let begun = Instant::now();
    client.submit(1, &order(user, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    begun.elapsed()
}

#[test]
fn commands_and_answers_take_their_time_by_user_and_keep_their_order() {
    let server = behind(NetworkConditions {
        general: Some(delays(20, 30)),
        by_key: [("2".to_owned(), delays(100, 0))].into(),
        ..NetworkConditions::default()
    });
    let (mut slow, _) = server.trade(2);
    assert!(answered_in(&mut slow, 2) >= 100 * MS);
    let begun = Instant::now();
    let (mut client, _) = server.trade(1);
    assert!(begun.elapsed() >= 30 * MS, "the welcome came at once");
    assert!(answered_in(&mut client, 1) >= 50 * MS);
    for sequence in 2..=200 {
        let order = order(1, sequence as i64, Action::Bid, 10, 1);
        client.submit(sequence, &order);
    }
    for sequence in 2..=200 {
        client.succeeds(sequence);
    }
}

/// The bye, and answers before it, were lost in a line that ended with the process.
#[test]
fn what_waits_on_a_line_is_delivered_when_the_server_stops() {
    let longest = Delays {
        inbound: Delay::default(),
        outbound: Delay::Fixed(DELAY_MAX),
    };
    let mut server = behind(NetworkConditions {
        general: Some(longest),
        ..NetworkConditions::default()
    });
    let before = figure(&server, "thalweg_commands_total");
    let mut client = Client::with_hello(server.trade_address(), hello(Role::Trade, 1));
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    while figure(&server, "thalweg_commands_total") == before {
        std::thread::yield_now();
    }
    let finished = server.try_stop().expect("it stops in order");
    assert_eq!(finished.commands, before + 1);
    // Bytes that are not delivered now are lost.
    drop(server);
    assert!(matches!(client.receive(), Received::Welcome(_)));
    client.succeeds(1);
    assert_eq!(client.bye().0, CloseReason::Shutdown);
}

/// Returns a figure of the server.
fn figure(server: &TestServer, name: &str) -> u64 {
    let (_, page) = server.get("/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no number of {name}"))
}

fn with_faults(faults: Faults) -> (TestServer, Client) {
    let server = behind(NetworkConditions {
        faults,
        ..NetworkConditions::default()
    });
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    (server, client)
}

#[test]
fn a_command_that_is_dropped_has_no_answer_and_the_session_goes_on() {
    let (server, mut client) = with_faults(Faults {
        drop: 1.0,
        ..Faults::default()
    });
    client.query(9, SessionQuery::OpenOrders(UserId(1)));
    let received = client.receive();
    assert!(
        matches!(received, Received::QueryAnswer(..)),
        "{received:?}"
    );
    for (fault, count) in [("drop", 1), ("reject", 0), ("disconnect", 0)] {
        let name = format!("thalweg_faults_total{{fault=\"{fault}\"}}");
        assert_eq!(figure(&server, &name), count, "{fault}");
    }
}

#[test]
fn a_command_that_is_rejected_is_refused_with_a_reason() {
    let (_server, mut client) = with_faults(Faults {
        reject: 1.0,
        ..Faults::default()
    });
    assert_eq!(client.refused().why, Refusal::Resources);
}

#[test]
fn a_command_may_cut_its_connection() {
    let (server, mut client) = with_faults(Faults {
        disconnect: 1.0,
        ..Faults::default()
    });
    assert!(matches!(client.receive(), Received::Closed));
    // An administrator's session is not touched.
    let (mut admin, _) = server.admin();
    admin.submit(3, &symbols(&[2]));
    admin.succeeds(3);
}
