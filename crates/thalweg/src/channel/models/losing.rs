//! Dropping the oldest element: each is received or counted, once.

use super::kept::{Kept, kept};
use super::{Ends, begin, check};
use crate::channel::{Builder, ManyReceivers, ManySenders, Overflow, Shape};
use loom::thread;

fn dropping(builder: Builder) -> Builder {
    builder.overflow(Overflow::DropOldest)
}

/// A sender that sends three through room for one, and a receiver that takes what it finds.
fn one_receiver<S: Shape>(ends: Ends<S>) {
    let (mut tx, mut rx) = kept(ends);
    let sender = thread::spawn(move || {
        for n in 0..3 {
            tx.send(n).unwrap();
        }
        drop(tx);
    });
    begin();
    let (mut received, mut reported) = (0, 0);
    while let Ok(n) = rx.recv() {
        reported += rx.lost_before();
        assert_eq!(u64::from(n), received + reported);
        received += 1;
    }
    sender.join().unwrap();
    assert_eq!(received + reported, 3);
    let counters = rx.counters();
    assert_eq!((counters.dropped, counters.received), (reported, received));
}

#[test]
fn a_sole_receiver_sees_each_gap() {
    check(1, &["release"], || {
        one_receiver(
            dropping(Builder::new(1))
                .spsc()
                .expect("a capacity in range"),
        );
    });
}

#[test]
fn a_sole_receiver_of_an_unbounded_channel_sees_each_gap() {
    check(1, &[], || {
        one_receiver(
            dropping(Builder::unbounded(1))
                .spsc()
                .expect("a limit in range"),
        );
    });
}

#[test]
fn a_receiver_that_could_be_one_of_many_sees_each_gap() {
    check(1, &["unreported_kept"], || {
        one_receiver(
            dropping(Builder::new(1))
                .mpmc()
                .expect("a capacity in range"),
        );
    });
}

/// Each of two senders may drop the other's; their counts go together.
fn two_senders<S: ManySenders>(ends: Ends<S>) {
    let (mut tx, mut rx) = kept(ends);
    let mut other = Kept::new(tx.clone());
    tx.send(0).unwrap();
    tx.send(0).unwrap();
    let senders = (
        thread::spawn(move || {
            tx.send(1).unwrap();
            tx
        }),
        thread::spawn(move || {
            other.send(2).unwrap();
            other
        }),
    );
    begin();
    let senders = (senders.0.join().unwrap(), senders.1.join().unwrap());
    let (mut received, mut reported) = (0, 0);
    while rx.try_recv().is_ok() {
        received += 1;
        reported += rx.lost_before();
    }
    assert_eq!(received + reported, 4);
    assert_eq!(rx.counters().dropped, reported);
    drop(senders);
}

#[test]
fn what_two_senders_drop_is_reported_once() {
    check(1, &["count_torn"], || {
        two_senders(
            dropping(Builder::new(2))
                .mpmc()
                .expect("a capacity in range"),
        );
    });
}

#[test]
fn what_two_senders_drop_is_reported_to_the_sole_receiver() {
    check(1, &["count_torn"], || {
        two_senders(
            dropping(Builder::new(2))
                .mpsc()
                .expect("a capacity in range"),
        );
    });
}

/// A receiver and a sender race for the oldest; another receiver takes what is left.
fn two_receivers<S: ManyReceivers>(ends: Ends<S>) {
    let (mut tx, mut rx) = kept(ends);
    let mut other = Kept::new(rx.clone());
    tx.send(0).unwrap();
    let taker = thread::spawn(move || {
        let is_found = other.try_recv().is_ok();
        let reported = if is_found { other.lost_before() } else { 0 };
        (u64::from(is_found) + reported, reported, other)
    });
    let sender = thread::spawn(move || {
        tx.send(1).unwrap();
        tx.send(2).unwrap();
        tx
    });
    begin();
    let (mut sum, mut reported) = (0, 0);
    let tx = sender.join().unwrap();
    let (of_other, reported_to_other, other) = taker.join().unwrap();
    while rx.try_recv().is_ok() {
        reported += rx.lost_before();
        sum += 1;
    }
    assert_eq!(sum + reported + of_other, 3);
    assert_eq!(rx.counters().dropped, reported + reported_to_other);
    drop((tx, other));
}

#[test]
fn a_loss_is_reported_to_one_of_two_receivers() {
    check(1, &["unreported_kept"], || {
        two_receivers(
            dropping(Builder::new(1))
                .mpmc()
                .expect("a capacity in range"),
        );
    });
}
