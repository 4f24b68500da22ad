//! Batches that follow what waits, and the figures of a bus.

use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, bus, keyed, note};
use crate::bus::{check_totals, sum};
use std::panic::{AssertUnwindSafe, catch_unwind};
use thalweg::bus::{Bus, Consumer, Publisher, Topics};
use thalweg::state::Lifecycle;

fn ends(bus: &Bus<Note>) -> (Publisher<Note>, Consumer<Note>) {
    let rx = bus.subscribe(Topics::ALL).unwrap();
    (bus.publisher("feed").unwrap(), rx)
}

fn publish(tx: &mut Publisher<Note>, values: std::ops::Range<u64>) {
    for value in values {
        tx.publish(note(BLOCK, value)).unwrap();
    }
}

fn waiting(bus: &Bus<Note>) -> u64 {
    bus.totals().consumers.waiting
}

#[test]
fn a_batch_makes_room_at_once_and_counts_as_waiting() {
    // Medium priority fills 51 of 64.
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..51);
    assert!(tx.try_publish(note(BLOCK, 0)).is_err());
    let mut seen = Vec::new();
    let taken = rx.try_recv_each(20, |got| {
        if seen.is_empty() {
            assert_eq!(tx.try_publish(note(BLOCK, 51)).ok(), Some(1));
        }
        if seen.len() == 1 {
            // The rest of a batch of 16 has left the ring, too.
            publish(&mut tx, 52..67);
            assert_eq!(waiting(&bus), 65);
        }
        seen.push((got.message.value, got.lost_before));
    });
    assert_eq!((taken, waiting(&bus)), (Ok(20), 47));
    let _ = rx.try_recv_each(99, |got| seen.push((got.message.value, got.lost_before)));
    let expected = |value| (value, u64::from(value == 51));
    assert_eq!(seen, (0..67).map(expected).collect::<Vec<_>>());
    check_totals(&bus.totals());
}

#[test]
fn a_batch_is_not_lost_with_a_panic() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..40);
    let mut count = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        rx.try_recv_each(40, |_| {
            count += 1;
            assert!(count < 5, "a bad handler");
        })
    }));
    outcome.unwrap_err();
    assert_eq!(waiting(&bus), 35);
    assert_eq!(rx.recv().unwrap().message.value, 5);
    assert_eq!(rx.try_recv().unwrap().message.value, 6);
    let mut next = 7;
    assert_eq!(
        rx.wait_each(3, |got| next += u64::from(got.message.value == next)),
        Ok(3)
    );
    assert_eq!((next, waiting(&bus)), (10, 30));
    drop(rx);
    assert_eq!(sum(bus.totals().outcomes.discarded), 30);
    check_totals(&bus.totals());
}

#[test]
fn what_is_buffered_comes_in_its_place_of_a_batch() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..3);
    for key in [1, 2, 1] {
        tx.publish(keyed(CONFLATE, key, 100 + key)).unwrap();
    }
    publish(&mut tx, 3..5);
    tx.publish(note(OLDEST, 200)).unwrap();
    publish(&mut tx, 5..7);
    assert_eq!(waiting(&bus), 10);
    let mut seen = Vec::new();
    assert_eq!(
        rx.try_recv_each(99, |got| seen.push(got.message.value)),
        Ok(10)
    );
    assert_eq!(seen, [0, 1, 2, 102, 101, 3, 4, 200, 5, 6]);
    check_totals(&bus.totals());
}

#[test]
fn members_of_a_group_leave_each_other_their_share() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    let mut other = rx.share();
    publish(&mut tx, 0..41);
    let mut is_first = true;
    let taken = rx.try_recv_each(99, |_| {
        if !std::mem::take(&mut is_first) {
            return;
        }
        // The first one alone.
        assert_eq!(other.try_recv_each(10, drop), Ok(10));
    });
    assert_eq!(taken, Ok(31));
    publish(&mut tx, 0..41);
    let _ = rx.try_recv_each(2, |_| ());
    // A batch of half of the 40.
    assert_eq!(other.try_recv_each(99, drop), Ok(41 - 2));
    check_totals(&bus.totals());
}

#[test]
fn a_snapshot_has_all_figures() {
    let bus = bus(100);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..80);
    tx.publish(note(REJECT, 0)).unwrap_err();
    let snapshot = bus.snapshot();
    assert_eq!(snapshot.state, Lifecycle::Running);
    assert_eq!(snapshot.totals, bus.totals());
    let inbox = &snapshot.inboxes[0];
    assert_eq!((inbox.inbox, inbox.topics), (rx.inbox(), Topics::ALL));
    assert_eq!((inbox.reading.waiting, inbox.reading.lost), (80, 1));
    assert_eq!(
        (inbox.outcomes.refused, inbox.outcomes.admitted),
        ([1, 0, 0, 0], [0, 80, 0, 0])
    );
    let _ = rx.try_recv_each(99, drop);
    assert_eq!(bus.snapshot().inboxes[0].consumers.taken(), 80);
}
