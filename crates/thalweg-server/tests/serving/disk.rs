//! A disk that fails.

use thalweg_exchange::Action;
use thalweg_exchange::codec::session::Ending;
use thalweg_exchange::durable::SimDisk;
use thalweg_journal::{Fault, Operation};

use crate::client::{Heard, order};
use crate::house::House;

fn house(disk: &SimDisk) -> House {
    let house = House::on(Some(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
    });
    house.set_market();
    house
}

#[test]
fn a_disk_that_fails_ends_all_with_a_reason_and_no_answer() {
    let disk = SimDisk::new();
    let house = house(&disk);
    let (mut client, _) = house.trade(1);
    let (mut other, _) = house.trade(2);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    disk.fail(Operation::WriteNow, 0, Fault::Io);
    client.submit(2, &order(1, 2, Action::Bid, 10, 1));
    loop {
        match client.hear() {
            Heard::Report(_) => {}
            Heard::Bye(why, _) => break assert_eq!(why, Ending::Failed),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(other.bye().0, Ending::Failed);
    assert_eq!(house.get("/healthz"), (503, "failed\n".to_owned()));
    assert_eq!(house.get("/readyz"), (503, "failed\n".to_owned()));
}
