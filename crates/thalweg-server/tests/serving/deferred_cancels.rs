//! Cancels that the server defers, since the exchange had no room for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_exchange::codec::session::{Hello, SessionQuery};
use thalweg_exchange::event::RemovalReason;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, Command, OrderFlags, UserId};

use crate::client::{Client, Received, hello, order};
use crate::disk::{is_full, send_until};
use crate::limited::Limited;
use crate::test_server::{Place, TestServer, scratch};

fn asking() -> Hello<'static> {
    Hello {
        cancels_on_disconnect: true,
        ..hello(Role::Trade, 1)
    }
}

/// An order of user 1 that goes with its session.
pub(crate) fn bound(id: i64) -> Command {
    let Command::Place(mut place) = order(1, id, Action::Bid, 10, 1) else {
        unreachable!("it is an order");
    };
    place.flags = OrderFlags::NONE.with_cancel_on_disconnect();
    Command::Place(place)
}

/// Returns a server on a disk that has no room, with a client that reads user 1's reports, and one
/// of user 2 that may ask; the connection of user 1 that took an order along is gone.
fn with_a_deferred_cancel(disk: &Limited) -> (TestServer, Client, Client) {
    let server = TestServer::on(Place::Limited(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 1 << 16;
    });
    server.set_market();
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    let (mut leaving, _) = Client::connect(server.trade_address(), asking());
    leaving.submit(1, &bound(1));
    leaving.succeeds(1);
    assert!(matches!(reader.report().report.kind, Execution::New));
    disk.set_full(true);
    let (mut busy, _) = server.trade(2);
    send_until((&mut busy, 2), &mut 0, is_full);
    drop(leaving);
    let gone = "thalweg_connections_ended_total{reason=\"Done\"} 2";
    while !server.get("/metrics").1.lines().any(|line| line == gone) {
        std::thread::yield_now();
    }
    // The exchange's thread was notified that it is gone; once it answers, it knows. Until then a
    // connection that comes counts beside the one that has left, and nothing is deferred.
    busy.query(0, SessionQuery::Account(UserId(2)));
    while !matches!(busy.receive(), Received::QueryAnswer(_)) {}
    (server, reader, busy)
}

#[test]
fn a_deferred_cancel_is_done_while_queries_keep_coming() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (server, mut reader, mut busy) = with_a_deferred_cancel(&disk);
    // A client asks something all the time.
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (asks, asked) = std::sync::mpsc::sync_channel(1);
        let is_done = &is_done;
        scope.spawn(move || {
            // ORDERING: Relaxed, pairs with the store below; nothing else is read.
            for id in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                busy.query(id, SessionQuery::Account(UserId(2)));
                while !matches!(busy.receive(), Received::QueryAnswer(_)) {}
                let _ = asks.try_send(());
            }
        });
        asked.recv().expect("it asks");
        disk.set_full(false);
        let received = reader.next_within(Duration::from_secs(600));
        // ORDERING: Relaxed, pairs with the load above.
        is_done.store(true, Ordering::Relaxed);
        let Some(Received::Report(report)) = received else {
            panic!("the order is still there: {received:?}");
        };
        let why = CancelReason::Removed(RemovalReason::Disconnected);
        assert_eq!(report.report.kind, Execution::Cancelled { size: 1, why });
    });
    drop(server);
}

/// A client that comes back while the orders of before still wait for their end finds them gone
/// first.
#[test]
fn a_deferred_cancel_comes_before_the_orders_of_the_next_connection() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (server, mut reader, _busy) = with_a_deferred_cancel(&disk);
    let (mut newer, _) = Client::connect(server.trade_address(), asking());
    // It was executed before, whatever waits now.
    newer.submit(1, &bound(1));
    let first = newer.answer();
    assert_eq!((first.sequence.0, first.is_repeated), (1, true));
    disk.set_full(false);
    // The report of the order's end may come before the refusal of one that was sent too early.
    'accepted: for sequence in 2.. {
        newer.submit(sequence, &bound(sequence as i64));
        loop {
            match newer.receive() {
                Received::Answer(_) => break 'accepted,
                Received::Refused(refusal) => {
                    assert_eq!(refusal.why, Refusal::DiskFull);
                    break;
                }
                Received::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let kinds = [reader.report(), reader.report()].map(|report| report.report.kind);
    let why = CancelReason::Removed(RemovalReason::Disconnected);
    assert_eq!(
        kinds,
        [Execution::Cancelled { size: 1, why }, Execution::New]
    );
    drop(server);
}
