//! A disk without room, and one that fails.

use thalweg_exchange::codec::session::Ending;
use thalweg_exchange::durable::SimDisk;
use thalweg_exchange::session::Refusal;
use thalweg_exchange::{Action, ResultCode};
use thalweg_journal::{Fault, Operation};

use crate::client::{Client, Heard, order};
use crate::house::{House, Place, scratch};
use crate::limited::Limited;

fn house(disk: &SimDisk) -> House {
    let house = House::on(Place::Disk(disk.clone()), |config| {
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

/// Sends orders of a user, without waiting for answers, until `is_it` is said.
pub(crate) fn send_until(
    (client, user): (&mut Client, i64),
    sequence: &mut u64,
    is_it: impl Fn(&Heard) -> bool,
) {
    loop {
        *sequence += 1;
        client.submit(
            *sequence,
            &order(user, *sequence as i64, Action::Bid, 10, 1),
        );
        while let Some(heard) = client.hear_soon() {
            match &heard {
                heard if is_it(heard) => return,
                Heard::Answer(answer) => assert_eq!(answer.result, ResultCode::Success),
                Heard::Refused(told) => assert_eq!(told.why, Refusal::DiskFull),
                Heard::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) fn is_full(heard: &Heard) -> bool {
    matches!(heard, Heard::Refused(told) if told.why == Refusal::DiskFull)
}

#[test]
fn a_full_disk_refuses_orders_serves_readers_and_goes_on_when_there_is_room() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let house = House::on(Place::Limited(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 1 << 16;
    });
    house.set_market();
    let (mut client, _) = house.trade(1);
    let mut sequence = 0;
    disk.set_full(true);
    send_until((&mut client, 1), &mut sequence, is_full);
    // Whoever comes is welcomed, and sees the market; only orders are refused.
    let (mut reader, _) = house.trade(2);
    reader.subscribe(&[1]);
    let Heard::Snapshot(snapshot) = reader.hear() else {
        panic!("a snapshot was expected");
    };
    assert!(!snapshot.bids.is_empty());
    reader.submit(1, &order(2, 1, Action::Bid, 10, 1));
    assert_eq!(reader.refused().why, Refusal::DiskFull);
    assert_eq!(house.get("/readyz").0, 200);
    let (_, page) = house.get("/metrics");
    assert!(
        !page.contains("thalweg_refusals_total{reason=\"DISK_FULL\"} 0"),
        "{page}"
    );
    disk.set_full(false);
    let from = sequence;
    let is_taken = |heard: &Heard| matches!(heard, Heard::Answer(told) if told.sequence.0 > from);
    send_until((&mut client, 1), &mut sequence, is_taken);
    house.serves();
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}
