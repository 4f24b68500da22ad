//! Counters are exact while no thread is at work.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use std::thread;
use std::time::Duration;
use thalweg::channel::{Counters, ManySenders};

fn elements(counters: Counters) -> [u64; 5] {
    [
        counters.sent,
        counters.received,
        counters.refused,
        counters.dropped,
        counters.discarded,
    ]
}

pub(crate) fn figures_outlive_their_senders<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u32>(2);
    let mut first = tx.clone();
    while first.try_send(1).is_ok() {}
    drop(first);
    assert_eq!(elements(rx.counters()), [2, 0, 1, 0, 0]);
    assert_eq!(rx.try_iter().count(), 2);
    let mut second = tx.clone();
    while second.try_send(1).is_ok() {}
    assert_eq!(elements(rx.counters()), [4, 2, 2, 0, 0]);
    assert_eq!(elements(second.counters()), [4, 2, 2, 0, 0]);
    rx.close();
    assert_eq!(rx.try_iter().count(), 2);
    assert_eq!(elements(rx.counters()), [4, 4, 2, 0, 0]);
    drop((tx, second));
    assert_eq!(elements(rx.counters()), [4, 4, 2, 0, 0]);
}

pub(crate) fn waits_are_counted<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    tx.send(0).unwrap();
    rx.recv().unwrap();
    assert_eq!((rx.counters().parked, rx.counters().woken), (0, 0));
    let (mut tx, mut rx) = thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            rx.recv().unwrap();
            rx
        });
        await_parked(|| tx.counters().parked);
        tx.send(1).unwrap();
        (tx, receiver.join().unwrap())
    });
    assert_eq!((rx.counters().parked, rx.counters().woken), (1, 1));
    tx.send(2).unwrap();
    let (tx, mut rx) = thread::scope(|scope| {
        let sender = scope.spawn(move || {
            tx.send(3).unwrap();
            tx
        });
        crate::channel::crowds::await_parked_times(2, || rx.counters().parked);
        rx.recv().unwrap();
        (sender.join().unwrap(), rx)
    });
    assert_eq!((rx.counters().parked, rx.counters().woken), (2, 2));
    assert_eq!((tx.counters().parked, tx.counters().woken), (2, 2));
    rx.recv().unwrap();
    assert!(rx.recv_timeout(Duration::from_millis(1)).is_err());
    assert_eq!(
        (rx.counters().parked, rx.counters().woken),
        (3, 2),
        "it was not woken"
    );
}

/// Above the soft limit senders yield, are counted, and go on; and where no receiver takes
/// elements, they look ever more rarely.
pub(crate) fn a_soft_limit_is_counted<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour
        .make::<u32>(flavour.options(6).soft_limit(2))
        .unwrap();
    for (n, balanced) in (0..6).zip([0, 0, 1, 1, 2, 2]) {
        tx.send(n).unwrap();
        assert_eq!(rx.counters().yields, balanced);
    }
    assert_eq!(rx.try_iter().count(), 6);
    tx.send_many(0..2).unwrap();
    assert_eq!(tx.counters().yields, 2);
    assert_eq!(elements(rx.counters()), [8, 6, 0, 0, 0]);
}

/// Holes are passed by the end that makes them, while others count.
#[test]
fn counts_hold_beside_claims_that_are_given_up() {
    let (mut tx, mut rx) = thalweg::channel::mpsc::<u32>(8);
    let mut other = tx.clone();
    let giving_up = thread::spawn(move || {
        for _ in 0..50_000 {
            let first = tx.claim(1).unwrap();
            let second = other.claim(1).unwrap();
            drop(first);
            drop(second);
        }
        tx
    });
    while !giving_up.is_finished() {
        // A hole that is just being passed may look like an element.
        assert!(rx.counters().received <= 100_000);
        assert!(rx.recv_timeout(Duration::ZERO).is_err());
    }
    assert_eq!(giving_up.join().unwrap().counters().received, 0);
}

/// By default there is a soft limit; what must not wait pays no heed to it.
#[test]
fn a_send_that_must_not_wait_gives_no_turn_away() {
    const SENT: u32 = 20_000;
    let (mut tx, mut rx) = thalweg::channel::mpsc::<u32>(1 << 20);
    for n in 0..SENT {
        tx.try_send(n).unwrap();
        tx.send_timeout(n, Duration::from_secs(600)).unwrap();
    }
    tx.try_send_many(0..SENT).unwrap();
    assert_eq!(rx.counters().yields, 0);
    tx.send_many(0..SENT).unwrap();
    assert!(rx.counters().yields > 0);
    assert_eq!(rx.try_iter().count(), 4 * SENT as usize);
}
