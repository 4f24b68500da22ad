//! Consumers that come later, and groups.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, OLDEST, REJECT, RETAINED, bus, note};
use thalweg::bus::Topics;
use thalweg::channel::TryRecvError;

#[test]
fn a_late_joiner_gets_what_comes_after() {
    let bus = bus(8);
    let mut tx = bus.publisher("feed").unwrap();
    for topic in [BLOCK, OLDEST] {
        tx.publish(note(topic, 1)).unwrap();
    }
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    for topic in [BLOCK, OLDEST] {
        tx.publish(note(topic, 2)).unwrap();
        let got = rx.recv().unwrap();
        assert_eq!(
            (got.message.value, got.sequence, got.lost_before),
            (2, 1, 0)
        );
    }
}

#[test]
fn what_is_retained_comes_first() {
    let bus = bus(8);
    let mut tx = bus.publisher("feed").unwrap();
    for n in 0..3 {
        tx.publish(note(RETAINED, n)).unwrap();
    }
    let mut late = bus
        .subscription(Topics::ALL)
        .replay_retained()
        .open()
        .unwrap();
    let mut plain = bus.subscribe(Topics::ALL).unwrap();
    let mut other = bus
        .subscription(Topics::of(&[BLOCK]))
        .replay_retained()
        .open()
        .unwrap();
    tx.publish(note(RETAINED, 3)).unwrap();
    let got = late.recv().unwrap();
    assert_eq!(
        (got.message.value, got.sequence, got.is_replay),
        (2, 2, true)
    );
    let got = late.recv().unwrap();
    assert_eq!(
        (got.message.value, got.lost_before, got.is_replay),
        (3, 0, false)
    );
    assert_eq!(plain.recv().unwrap().message.value, 3);
    assert_eq!(other.try_recv().unwrap_err(), TryRecvError::Empty);
    // One that does not come to it counts as nothing.
    drop(
        bus.subscription(Topics::ALL)
            .replay_retained()
            .open()
            .unwrap(),
    );
    assert_eq!((late.counts().replayed, late.counts().taken()), (1, 1));
    check_totals(&bus.totals());
}

#[test]
fn a_group_shares_what_comes() {
    let bus = bus(64);
    let mut group = vec![bus.subscribe(Topics::ALL).unwrap()];
    for _ in 0..3 {
        group.push(group[0].share());
    }
    let mut tx = bus.publisher("feed").unwrap();
    for n in 0..20 {
        assert_eq!(tx.publish(note(REJECT, n)).unwrap(), 1);
    }
    let mut got: Vec<u64> = Vec::new();
    for _ in 0..5 {
        got.extend(group.iter_mut().map(|rx| rx.recv().unwrap().message.value));
    }
    assert_eq!(got, (0..20).collect::<Vec<_>>());
    // One that leaves takes nothing along but what it holds.
    for n in 0..4 {
        tx.publish(note(OLDEST, n)).unwrap();
    }
    tx.publish(note(REJECT, 20)).unwrap();
    let mut leaver = group.swap_remove(1);
    assert_eq!(leaver.recv().unwrap().message.value, 0);
    assert_eq!(leaver.counts().waiting, 4);
    drop(leaver);
    assert_eq!(group[1].recv().unwrap().message.value, 20);
    assert_eq!(
        group[0].publisher_counts()[0].outcomes.discarded,
        [0, 3, 0, 0]
    );
    assert_eq!(group[0].counts().taken(), 22);
    check_totals(&bus.totals());
}
