//! loom models of a rendezvous. A lost wake-up is a deadlock, which loom reports.

use crate::channel::models::kept::{Kept, kept};
use crate::channel::{Mpmc, Receiver, SendTimeoutError, Sender, mpmc};
use crate::ring::sync::{Arc, fault};
use loom::thread;
use std::task::Waker;
use std::time::Instant;

type Ends = (Kept<Sender<u32, Mpmc>>, Kept<Receiver<u32, Mpmc>>);

fn ends() -> Ends {
    kept(mpmc(0))
}

fn model(work: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2 + crate::channel::models::more_preemptions());
    builder.check(work);
}

/// The model holds, and notices each of the faults.
fn check(work: fn(), faults: &[&'static str]) {
    model(work);
    for fault in faults {
        assert!(fault::caught(fault, work), "`{fault}` was not caught");
    }
}

fn is_left(rx: &Receiver<u32, Mpmc>) -> bool {
    let (rendezvous, _) = rx.source.end.rendezvous().expect("its capacity is 0");
    rendezvous.can_pop() || rendezvous.is_requested()
}

fn one_meets_one() {
    let (mut tx, mut rx) = ends();
    let sender = thread::spawn(move || {
        tx.send(7).unwrap();
        tx
    });
    assert_eq!(rx.recv(), Ok(7));
    assert!(!is_left(&rx));
    drop(sender.join().unwrap());
}

#[test]
fn a_sender_and_a_receiver_meet() {
    check(one_meets_one, &["rendezvous_look"]);
}

/// In a model a deadline may be reached at any moment.
#[test]
fn both_sides_agree_whether_they_met() {
    model(|| {
        let (mut tx, mut rx) = ends();
        let now = Instant::now();
        let sender = thread::spawn(move || (tx.send_deadline(7, now), tx));
        let got = rx.recv_deadline(now).ok();
        let (sent, _tx) = sender.join().unwrap();
        match got {
            Some(value) => assert_eq!((value, sent), (7, Ok(()))),
            None => assert_eq!(sent, Err(SendTimeoutError::Timeout(7))),
        }
        assert!(!is_left(&rx));
    });
}

/// As a dropped future does, while another receiver waits.
fn a_cancelled_receiver() {
    let (mut tx, mut rx) = ends();
    let rendezvous = Arc::clone(rx.source.end.rendezvous().expect("its capacity is 0").0);
    let Err(entry) = rendezvous.request(Waker::noop(), None) else {
        unreachable!("no end is there");
    };
    let sender = thread::spawn(move || (tx.try_send(7).is_ok(), tx));
    let cancelled = thread::spawn(move || {
        let got = rendezvous.leave_request(entry);
        got.into_iter()
            .for_each(|value| rendezvous.give_back(value));
        Kept::new(rendezvous)
    });
    let got = rx.recv_deadline(Instant::now()).ok();
    let (is_sent, _tx) = sender.join().unwrap();
    drop(cancelled.join().unwrap());
    let left = rx.try_recv().ok();
    let there = [got, left].into_iter().flatten().count();
    assert_eq!(there, usize::from(is_sent), "neither lost nor doubled");
    assert!(!is_left(&rx));
}

#[test]
fn a_cancelled_receiver_loses_nothing() {
    check(a_cancelled_receiver, &["rendezvous_give_back"]);
}

#[test]
fn closing_ends_a_wait_or_comes_too_late() {
    model(|| {
        let (mut tx, mut rx) = ends();
        let mut closing = Kept::new(rx.clone());
        let sender = thread::spawn(move || (tx.send(7), tx));
        let closer = thread::spawn(move || {
            closing.close();
            closing
        });
        let got = rx.recv();
        drop(closer.join().unwrap());
        let (sent, _tx) = sender.join().unwrap();
        assert_eq!(got.is_ok(), sent.is_ok());
    });
}
