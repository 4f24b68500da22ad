//! loom models of select. A lost wake-up is a deadlock, which loom reports.

use super::Select;
use crate::channel::models::kept::{Kept, kept};
use crate::channel::{Mpmc, Receiver, Sender, mpmc, spsc, unbounded};
use crate::ring::sync::fault;
use loom::thread;
use std::time::Instant;

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

/// Two senders, and a select that has to receive from both.
fn two_arms() {
    let (mut left, mut from_left) = kept(spsc::<u32>(1));
    let (mut right, mut from_right) = kept(spsc::<u32>(1));
    let one = thread::spawn(move || {
        left.send(1).unwrap();
        left
    });
    let two = thread::spawn(move || {
        right.send(2).unwrap();
        right
    });
    let mut sum = 0;
    for _ in 0..2 {
        sum += Select::new()
            .recv(&mut from_left, |got| got.unwrap())
            .recv(&mut from_right, |got| got.unwrap())
            .wait();
    }
    assert_eq!(sum, 3);
    drop((one.join().unwrap(), two.join().unwrap()));
}

#[test]
fn a_select_hears_of_both_arms() {
    check(two_arms, &["select_look_again", "dekker"]);
}

/// Each of two threads offers on one channel and requests on the other.
fn cross(mut tx: Kept<Sender<u32, Mpmc>>, mut rx: Kept<Receiver<u32, Mpmc>>) -> bool {
    let mut value = Some(1);
    let is_sent = Select::new()
        .send(&mut tx, &mut value, |sent| {
            sent.unwrap();
            true
        })
        .recv(&mut rx, |got| {
            got.unwrap();
            false
        })
        .wait();
    assert_eq!(value.is_none(), is_sent);
    is_sent
}

#[test]
fn two_selects_meet_once() {
    model(|| {
        let (up, from_up) = kept(mpmc(0));
        let (down, from_down) = kept(mpmc(0));
        // No endpoint disconnects before both are done.
        let others = kept((up.clone(), down.clone()));
        let more = kept((from_up.clone(), from_down.clone()));
        let other = thread::spawn(move || cross(up, from_down));
        let here = cross(down, from_up);
        assert_ne!(other.join().unwrap(), here);
        drop((others, more));
    });
}

/// A select that offers an element to a thread that may come, and has room beside it that may be
/// found: it sends one of both.
fn one_of_both() {
    let (mut zero, mut from_zero) = kept(spsc::<u32>(0));
    let (mut ring, mut from_ring) = kept(spsc::<u32>(1));
    ring.send(0).unwrap();
    let partner = thread::spawn(move || {
        let got = from_zero.recv_deadline(Instant::now());
        (got.is_ok(), from_zero)
    });
    let drain = thread::spawn(move || {
        assert_eq!(from_ring.recv(), Ok(0));
        from_ring
    });
    let mut values = [Some(1), Some(2)];
    let [first, second] = &mut values;
    let arm = Select::new()
        .send(&mut zero, first, |sent| sent.map(|()| 0))
        .send(&mut ring, second, |sent| sent.map(|()| 1))
        .wait();
    assert_eq!(
        values.map(|value| value.is_none()),
        [arm == Ok(0), arm == Ok(1)]
    );
    let (is_met, _from_zero) = partner.join().unwrap();
    assert_eq!(is_met, arm == Ok(0));
    drop(drain.join().unwrap());
}

#[test]
fn one_arm_fires_and_no_other() {
    model(one_of_both);
}

/// A select offers at two rendezvous at which a receiver arrives: it sends at one at most.
fn one_of_two_rendezvous() {
    let (mut first, mut from_first) = kept(spsc::<u32>(0));
    let (mut second, mut from_second) = kept(spsc::<u32>(0));
    let one = thread::spawn(move || (from_first.try_recv().is_ok(), from_first));
    let two = thread::spawn(move || (from_second.try_recv().is_ok(), from_second));
    let mut values = [Some(1), Some(2)];
    let [a, b] = &mut values;
    let arm = Select::new()
        .send(&mut first, a, |sent| sent.map(|()| 0))
        .send(&mut second, b, |sent| sent.map(|()| 1))
        .wait_deadline(Instant::now());
    let (is_first_met, _from_first) = one.join().unwrap();
    let (is_second_met, _from_second) = two.join().unwrap();
    let is_met = [is_first_met, is_second_met];
    assert_eq!(values.map(|value| value.is_none()), is_met);
    assert_eq!([arm == Ok(Ok(0)), arm == Ok(Ok(1))], is_met);
}

#[test]
fn a_select_meets_once() {
    check(one_of_two_rendezvous, &["select_token"]);
}

/// One of two channels has an element at every moment: it comes to the second before it goes from
/// the first. Unbounded ones, whose lock orders what threads see of both.
fn what_moves() {
    let (mut to_first, mut from_first) = kept(unbounded::<u32>(1));
    let (mut to_second, mut from_second) = kept(unbounded::<u32>(1));
    let mut taker = Kept::new(from_first.clone());
    to_first.send(1).unwrap();
    let mover = thread::spawn(move || {
        to_second.send(2).unwrap();
        let _ = taker.try_recv();
        (to_second, taker)
    });
    let found = Select::new()
        .recv(&mut from_second, |got| got.is_ok())
        .recv(&mut from_first, |got| got.is_ok())
        .try_wait();
    assert_eq!(found, Some(true), "it was in one of both all the time");
    drop((mover.join().unwrap(), to_first));
}

#[test]
fn a_look_does_not_miss_what_moves() {
    check(what_moves, &["select_glance"]);
}
