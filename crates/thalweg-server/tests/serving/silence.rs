//! Which sessions are heard, and which are not.

use std::time::Duration;

use thalweg_exchange::Action;
use thalweg_exchange::codec::session::{ClientFrame, Hello};
use thalweg_exchange::session::Role;
use thalweg_server::config::SyncName;

use crate::client::{Client, Heard, hello, order};
use crate::house::{House, Place, scratch};
use crate::limited::Limited;

/// Heartbeats of the server: silence would be six.
const BEATS: usize = 30;

#[test]
fn a_client_is_not_silent_while_the_exchange_has_no_time_for_it() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let house = House::on(Place::Limited(disk.clone()), |config| {
        config.exchange.capacity = 64;
    });
    house.set_market();
    let asked = Hello {
        heartbeat_ms: 100,
        ..hello(Role::Trade, 1)
    };
    let (mut client, _) = Client::connect(house.trade_address(), asked);
    let stuck = disk.stick();
    // More than the exchange and the way to it have room for.
    for sequence in 1..=1_000 {
        client.submit(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
    }
    let mut beats = 0;
    while beats < BEATS {
        match client.hear() {
            Heard::Heartbeat => beats += 1,
            other => panic!("{other:?} after {beats} heartbeats"),
        }
        client.say(&ClientFrame::Heartbeat);
    }
    // The turn to submit is waiting for room; clients that connect are welcomed all the same.
    let (_reader, _) = Client::connect(house.trade_address(), hello(Role::Read, 2));
    let (_admin, _) = house.admin();
    drop(stuck);
    for sequence in 1..=1_000 {
        assert_eq!(client.answer().sequence.0, sequence);
    }
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}

/// While the exchange's thread waits for a disk that stands still, what comes waits in the socket.
#[test]
fn a_client_that_spoke_while_the_server_was_busy_is_not_silent() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    // Without syncs, that thread writes to the files itself when it is idle.
    let house = House::on(Place::Limited(disk.clone()), |config| {
        config.journal.sync = SyncName::Never;
    });
    house.set_market();
    let asked = Hello {
        heartbeat_ms: 100,
        ..hello(Role::Trade, 1)
    };
    let (mut client, _) = Client::connect(house.trade_address(), asked);
    for sequence in 1..=12 {
        let stuck = disk.stick();
        client.submit(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
        // More than three heartbeats, which end a client that says nothing.
        let mut answered = false;
        for _ in 0..8 {
            client.say(&ClientFrame::Heartbeat);
            let heard = client.next_within(Duration::from_millis(50));
            answered |= matches!(heard, Some(Heard::Answer(_)));
        }
        drop(stuck);
        while !answered {
            client.say(&ClientFrame::Heartbeat);
            match client.hear() {
                Heard::Heartbeat | Heard::Report(_) => {}
                Heard::Answer(answer) => {
                    assert_eq!(answer.sequence.0, sequence);
                    answered = true;
                }
                other => panic!("{other:?} at {sequence}"),
            }
        }
    }
    drop((client, house));
    let _ = std::fs::remove_dir_all(directory);
}
