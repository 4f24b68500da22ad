//! What the server owes an exchange that had no room for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_exchange::codec::session::{Hello, SessionQuery};
use thalweg_exchange::durable::SimDisk;
use thalweg_exchange::event::Removal;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, Command, OrderFlags, UserId};
use thalweg_journal::{Fault, Operation};

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
fn bound(id: i64) -> Command {
    let Command::Place(mut place) = order(1, id, Action::Bid, 10, 1) else {
        unreachable!("it is an order");
    };
    place.flags = OrderFlags::NONE.with_cancel_on_disconnect();
    Command::Place(place)
}

#[test]
fn what_a_full_disk_kept_waiting_is_done_however_much_else_is_asked() {
    let disk = SimDisk::new();
    let house = House::on(Place::Disk(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
    });
    house.set_market();
    let (mut reader, _) = Client::connect(house.trade_address(), hello(Role::Read, 1));
    let (mut leaving, _) = Client::connect(house.trade_address(), asking());
    leaving.submit(1, &bound(1));
    leaving.succeeds(1);
    assert!(matches!(reader.report().report.kind, Execution::New));
    let (mut busy, _) = house.trade(2);
    (0..40).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
    fill(&mut busy);
    drop(leaving);
    // Somebody asks something all the time.
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // ORDERING: Relaxed, pairs with the store below; nothing else is read.
            for id in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                busy.query(id, SessionQuery::Account(UserId(2)));
                while matches!(busy.hear(), Heard::Report(_)) {}
            }
        });
        let heard = reader.next_within(Duration::from_secs(20));
        // ORDERING: Relaxed, pairs with the load above.
        is_done.store(true, Ordering::Relaxed);
        let Some(Heard::Report(told)) = heard else {
            panic!("the order is still there: {heard:?}");
        };
        let why = CancelReason::Removed(Removal::Disconnected);
        assert_eq!(told.report.kind, Execution::Cancelled { size: 1, why });
    });
}

/// Who comes back while the orders of before still wait for their end finds them gone first.
#[test]
fn what_is_owed_to_a_connection_comes_before_the_orders_of_the_next_one() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let house = House::on(Place::Limited(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 1 << 16;
    });
    house.set_market();
    let (mut reader, _) = Client::connect(house.trade_address(), hello(Role::Read, 1));
    let (mut older, _) = Client::connect(house.trade_address(), asking());
    older.submit(1, &bound(1));
    older.succeeds(1);
    assert!(matches!(reader.report().report.kind, Execution::New));
    disk.set_full(true);
    let (mut busy, _) = house.trade(2);
    send_until((&mut busy, 2), &mut 0, is_full);
    drop(older);
    wait_for(&house, "thalweg_connections_ended_total{reason=\"Done\"} 2");
    let (mut newer, _) = Client::connect(house.trade_address(), asking());
    // It was executed before, whatever waits now.
    newer.submit(1, &bound(1));
    let first = newer.answer();
    assert_eq!((first.sequence.0, first.is_repeated), (1, true));
    disk.set_full(false);
    for sequence in 2.. {
        newer.submit(sequence, &bound(sequence as i64));
        match newer.hear() {
            Heard::Answer(_) => break,
            Heard::Refused(told) => assert_eq!(told.why, Refusal::DiskFull),
            Heard::Report(_) => break,
            other => panic!("{other:?}"),
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

/// Waits for a line of the figures.
fn wait_for(house: &House, line: &str) {
    while !house.get("/metrics").1.lines().any(|told| told == line) {
        std::thread::yield_now();
    }
}

/// Orders until there is no room for one.
fn fill(busy: &mut Client) {
    for first in (1..).step_by(500) {
        for sequence in first..first + 500 {
            busy.submit(sequence, &order(2, sequence as i64, Action::Bid, 10, 1));
        }
        let mut told = 0;
        let mut is_full = false;
        while told < 500 {
            match busy.hear() {
                Heard::Answer(_) => told += 1,
                Heard::Refused(refused) => {
                    assert_eq!(refused.why, Refusal::DiskFull);
                    (told, is_full) = (told + 1, true);
                }
                Heard::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
        if is_full {
            return;
        }
    }
}
