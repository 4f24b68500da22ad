//! The counters of inboxes.

use crate::bus::note::{BLOCK, REJECT, bus, note};
use thalweg::bus::{InboxReading, Topics};

fn of(readings: &[(thalweg::bus::InboxId, InboxReading)], at: usize) -> [u64; 7] {
    let reading = readings[at].1;
    [
        reading.issued,
        reading.admitted,
        reading.lost,
        reading.taken,
        reading.waiting,
        reading.capacity,
        reading.consumers,
    ]
}

#[test]
fn each_open_inbox_has_its_own() {
    let bus = bus(10);
    let mut all = bus.subscribe(Topics::ALL).unwrap();
    let one = bus.subscribe(BLOCK.into()).unwrap();
    let worker = one.share();
    let mut tx = bus.publisher("feed").unwrap();
    // Low priority has room for 6 of 10.
    let taken = (0..8).filter(|n| tx.publish(note(REJECT, *n)).is_ok());
    assert_eq!(taken.count(), 6);
    tx.publish(note(BLOCK, 1)).unwrap();
    all.recv().unwrap();

    let readings = bus.inbox_readings();
    assert_eq!(readings.len(), 2);
    assert_eq!(readings[0].0, all.inbox());
    assert_eq!(of(&readings, 0), [9, 7, 2, 1, 6, 10, 1]);
    assert_eq!(of(&readings, 1), [1, 1, 0, 0, 1, 10, 2]);

    let again = bus.inbox_readings()[0].1;
    assert!(again.at_ns >= readings[0].1.at_ns && again.busy_ns >= readings[0].1.busy_ns);

    drop(one);
    drop(worker);
    assert_eq!(
        bus.inbox_readings().len(),
        1,
        "an inbox that has gone has none"
    );
}

#[test]
fn what_waits_is_no_more_than_the_capacity() {
    const CAPACITY: usize = 64;
    let bus = bus(CAPACITY);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    let mut fill = |topic| while tx.try_publish(note(topic, 0)).is_ok() {};
    fill(BLOCK);
    let mut most = 0;
    // Batches grow with what waits: the one that is taken leaves its places to others.
    for _ in 0..100 {
        let _ = rx.try_recv_each(CAPACITY, |_| {
            fill(BLOCK);
            most = most.max(bus.totals().consumers.waiting);
            let reading = bus.inbox_readings()[0].1;
            assert!(reading.waiting <= reading.capacity, "{reading:?}");
        });
    }
    assert!(
        most > CAPACITY as u64,
        "a batch is with the consumer: {most}"
    );
}
