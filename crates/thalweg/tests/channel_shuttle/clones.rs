//! Senders that multiply and leave while receivers go to sleep, or leave.

use crate::channel_shuttle::ledger::{Seen, joined, on_threads, seen_once};
use crate::channel_shuttle::store::Ends;
use crate::channel_shuttle::{explore, over_stores};
use shuttle::thread;
use thalweg::channel::{ManySenders, TryRecvError, mpsc};

/// Elements that each sender sends, and clones that it is followed by.
const EACH: usize = 3;

/// A sender is followed by its clone after each element; all arrives, and then the end.
fn clones_are_heard<S: ManySenders>(ends: Ends<S>) {
    let made = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n).take(EACH);
        for item in items {
            tx.send(item).unwrap();
            // The original goes when its clone is there.
            tx = tx.clone();
        }
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let mut numbers = Vec::new();
        while let Ok(item) = rx.recv() {
            numbers.push((item.sender, item.number));
        }
        numbers
    });
    joined(senders);
    // Clones are senders of their own: elements of two of them are in no order.
    let mut seen: Vec<_> = joined(receivers).into_iter().flatten().collect();
    seen.sort_unstable();
    let all = (0..made).map(|n| (n / EACH, n % EACH));
    assert_eq!(seen, all.collect::<Vec<_>>());
    ends.ledger.check_all_gone(made);
}

/// Clones are made while the receivers leave, and wait for room: each gets the error that no
/// receiver is left.
fn clones_get_the_end<S: ManySenders>(ends: Ends<S>) {
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, tx| {
        let mut items = ledger.items(n);
        let mut clones: Vec<_> = (1..EACH).map(|_| tx.clone()).collect();
        clones.insert(0, tx);
        let mut made = 0;
        // The last one waits for room until it gets the error.
        for (n, clone) in clones.iter_mut().enumerate() {
            loop {
                made += 1;
                let is_refused = clone.send(items.next().unwrap()).is_err();
                if is_refused || n + 1 < EACH {
                    break;
                }
            }
        }
        made
    });
    let receivers = on_threads(ends.receivers, move |n, mut rx| {
        let mut seen = Seen::default();
        // Unless another has closed it already.
        if n % 2 == 1 {
            rx.recv().iter().for_each(|item| seen.see(item));
        }
        rx.close();
        seen
    });
    let seen = joined(receivers);
    seen_once(&seen);
    ends.ledger
        .check_all_gone(joined(senders).into_iter().sum());
}

over_stores! {
    clones_are_heard: ordered mpmc unbounded rendezvous
}

over_stores! { clones_get_the_end: ordered mpmc unbounded rendezvous }

/// A weak sender comes too late: the receiver has got the end, and nothing is to come.
fn the_end_is_final() {
    let (tx, mut rx) = mpsc::<u32>(2);
    let weak = tx.downgrade();
    let late = thread::spawn(move || weak.upgrade().map(drop));
    let last = thread::spawn(move || drop(tx));
    while rx.try_recv() != Err(TryRecvError::Disconnected) {
        thread::yield_now();
    }
    for _ in 0..3 {
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        thread::yield_now();
    }
    last.join().unwrap();
    late.join().unwrap();
}

#[test]
fn a_late_upgrade_opens_nothing() {
    explore(the_end_is_final);
}
