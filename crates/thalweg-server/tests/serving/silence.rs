//! Which sessions are ended since they are silent, and which are not.

use std::time::Duration;

use thalweg_exchange::Action;
use thalweg_exchange::codec::session::{ClientFrame, Hello};
use thalweg_exchange::session::Role;
use thalweg_server::config::SyncSetting;

use crate::client::{Client, Received, hello, order};
use crate::limited::Limited;
use crate::test_server::{Place, TestServer, scratch};

/// Heartbeats of the server: silence would be six.
const BEATS: usize = 30;

#[test]
fn a_client_is_not_silent_while_the_exchange_has_no_time_for_it() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let server = TestServer::on(Place::Limited(disk.clone()), |config| {
        config.exchange.capacity = 64;
    });
    server.set_market();
    let asked = Hello {
        heartbeat_ms: 100,
        ..hello(Role::Trade, 1)
    };
    let (mut client, _) = Client::connect(server.trade_address(), asked);
    let stuck = disk.stick();
    // More than the exchange and the way to it have room for.
    for sequence in 1..=1_000 {
        client.submit(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
    }
    let mut beats = 0;
    while beats < BEATS {
        match client.receive() {
            Received::Heartbeat => beats += 1,
            other => panic!("{other:?} after {beats} heartbeats"),
        }
        client.send(&ClientFrame::Heartbeat);
    }
    // The turn to submit is waiting for room; clients that connect are welcomed all the same.
    let (_reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 2));
    let (_admin, _) = server.admin();
    drop(stuck);
    for sequence in 1..=1_000 {
        assert_eq!(client.answer().sequence.0, sequence);
    }
    drop(server);
}

/// While the exchange's thread waits for a disk that stands still, what comes waits in the socket.
#[test]
fn a_client_that_sent_while_the_server_was_busy_is_not_silent() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    // Without syncs, that thread writes to the files itself when it is idle.
    let server = TestServer::on(Place::Limited(disk.clone()), |config| {
        config.journal.sync = SyncSetting::Never;
    });
    server.set_market();
    let asked = Hello {
        heartbeat_ms: 100,
        ..hello(Role::Trade, 1)
    };
    let (mut client, _) = Client::connect(server.trade_address(), asked);
    for sequence in 1..=12 {
        let stuck = disk.stick();
        client.submit(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
        // More than three heartbeats, which end a client that sends nothing.
        let mut answered = false;
        for _ in 0..8 {
            client.send(&ClientFrame::Heartbeat);
            let received = client.next_within(Duration::from_millis(50));
            answered |= matches!(received, Some(Received::Answer(_)));
        }
        drop(stuck);
        while !answered {
            client.send(&ClientFrame::Heartbeat);
            match client.receive() {
                Received::Heartbeat | Received::Report(_) => {}
                Received::Answer(answer) => {
                    assert_eq!(answer.sequence.0, sequence);
                    answered = true;
                }
                other => panic!("{other:?} at {sequence}"),
            }
        }
    }
    drop((client, server));
}
