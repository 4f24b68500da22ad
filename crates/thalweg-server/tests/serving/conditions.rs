//! Latency and faults of the binary protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::Action;
use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::SessionQuery;
use thalweg_exchange::session::Refusal;
use thalweg_server::conditions::{Conditions, Delay, Delays, Faults};

use crate::client::{Client, Received, order};
use crate::test_server::{Place, TestServer, symbols};

const MS: Duration = Duration::from_millis(1);

fn behind(conditions: Conditions) -> TestServer {
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
    let server = behind(Conditions {
        general: Some(delays(20, 30)),
        by_key: [("2".to_owned(), delays(100, 0))].into(),
        ..Conditions::default()
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

fn with_faults(faults: Faults) -> (TestServer, Client) {
    let server = behind(Conditions {
        faults,
        ..Conditions::default()
    });
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    (server, client)
}

#[test]
fn a_command_that_is_dropped_has_no_answer_and_the_session_goes_on() {
    let (_server, mut client) = with_faults(Faults {
        drop: 1.0,
        ..Faults::default()
    });
    client.query(9, SessionQuery::OpenOrders(UserId(1)));
    let received = client.receive();
    assert!(
        matches!(received, Received::QueryAnswer(..)),
        "{received:?}"
    );
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
