//! Cancels that the server owes an exchange that had no room for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_exchange::codec::session::{Hello, SessionQuery};
use thalweg_exchange::event::Removal;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, Command, OrderFlags, UserId};

use crate::client::{Client, Heard, hello, order};
use crate::disk::{is_full, send_until};
use crate::house::{House, Place, scratch};
use crate::limited::Limited;

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

/// Returns a house on a disk that has no room, with a client that reads user 1's reports, and one
/// of user 2 that may ask; the connection of user 1 that took an order along is gone.
fn with_a_debt(disk: &Limited) -> (House, Client, Client) {
    let house = House::on(Place::Limited(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 1 << 16;
    });
    house.set_market();
    let (mut reader, _) = Client::connect(house.trade_address(), hello(Role::Read, 1));
    let (mut leaving, _) = Client::connect(house.trade_address(), asking());
    leaving.submit(1, &bound(1));
    leaving.succeeds(1);
    assert!(matches!(reader.report().report.kind, Execution::New));
    disk.set_full(true);
    let (mut busy, _) = house.trade(2);
    send_until((&mut busy, 2), &mut 0, is_full);
    drop(leaving);
    let gone = "thalweg_connections_ended_total{reason=\"Done\"} 2";
    while !house.get("/metrics").1.lines().any(|told| told == gone) {
        std::thread::yield_now();
    }
    // The exchange's thread was notified that it is gone; once it answers, it knows. Until then a
    // connection that comes counts beside the one that has left, and nothing is owed.
    busy.query(0, SessionQuery::Account(UserId(2)));
    while !matches!(busy.hear(), Heard::QueryAnswer(_)) {}
    (house, reader, busy)
}

#[test]
fn what_a_full_disk_kept_waiting_is_done_however_much_else_is_asked() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (house, mut reader, mut busy) = with_a_debt(&disk);
    // A client asks something all the time.
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (asks, asked) = std::sync::mpsc::sync_channel(1);
        let is_done = &is_done;
        scope.spawn(move || {
            // ORDERING: Relaxed, pairs with the store below; nothing else is read.
            for id in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                busy.query(id, SessionQuery::Account(UserId(2)));
                while !matches!(busy.hear(), Heard::QueryAnswer(_)) {}
                let _ = asks.try_send(());
            }
        });
        asked.recv().expect("it asks");
        disk.set_full(false);
        let heard = reader.next_within(Duration::from_secs(600));
        // ORDERING: Relaxed, pairs with the load above.
        is_done.store(true, Ordering::Relaxed);
        let Some(Heard::Report(told)) = heard else {
            panic!("the order is still there: {heard:?}");
        };
        let why = CancelReason::Removed(Removal::Disconnected);
        assert_eq!(told.report.kind, Execution::Cancelled { size: 1, why });
    });
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}

/// A client that comes back while the orders of before still wait for their end finds them gone
/// first.
#[test]
fn what_is_owed_to_a_connection_comes_before_the_orders_of_the_next_one() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (house, mut reader, _busy) = with_a_debt(&disk);
    let (mut newer, _) = Client::connect(house.trade_address(), asking());
    // It was executed before, whatever waits now.
    newer.submit(1, &bound(1));
    let first = newer.answer();
    assert_eq!((first.sequence.0, first.is_repeated), (1, true));
    disk.set_full(false);
    // The report of the order's end may come before the refusal of one that was sent too early.
    'accepted: for sequence in 2.. {
        newer.submit(sequence, &bound(sequence as i64));
        loop {
            match newer.hear() {
                Heard::Answer(_) => break 'accepted,
                Heard::Refused(told) => {
                    assert_eq!(told.why, Refusal::DiskFull);
                    break;
                }
                Heard::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let kinds = [reader.report(), reader.report()].map(|told| told.report.kind);
    let why = CancelReason::Removed(Removal::Disconnected);
    assert_eq!(
        kinds,
        [Execution::Cancelled { size: 1, why }, Execution::New]
    );
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}
