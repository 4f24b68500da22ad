//! Who is heard, and who is not.

use thalweg_exchange::Action;
use thalweg_exchange::codec::session::{ClientFrame, Hello};
use thalweg_exchange::session::Role;

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
    disk.set_stuck(true);
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
    disk.set_stuck(false);
    for sequence in 1..=1_000 {
        assert_eq!(client.answer().sequence.0, sequence);
    }
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}
