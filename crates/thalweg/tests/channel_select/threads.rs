//! Threads that select against each other.

use super::{LONG, linger, until};
use std::thread;
use thalweg::channel::mpmc::{Receiver, Sender};
use thalweg::channel::{Select, mpmc, mpsc, spsc, unbounded};

#[test]
fn a_select_that_sleeps_is_woken_by_any_arm() {
    for arm in 0..4 {
        let (mut ring, mut from_ring) = spsc::<u8>(1);
        let (mut shared, mut from_shared) = mpsc::<u8>(1);
        let (mut zero, mut from_zero) = mpmc::<u8>(0);
        let (mut full, mut from_full) = spsc::<u8>(1);
        full.send(9).unwrap();
        let selecting = thread::spawn(move || {
            let mut value = Some(3);
            Select::new()
                .recv(&mut from_ring, |got| got.unwrap())
                .recv(&mut from_shared, |got| got.unwrap())
                .recv(&mut from_zero, |got| got.unwrap())
                .send(&mut full, &mut value, |sent| sent.map(|()| 3).unwrap())
                .wait()
        });
        linger();
        match arm {
            0 => ring.send(arm).unwrap(),
            1 => shared.send(arm).unwrap(),
            2 => zero.send(arm).unwrap(),
            _ => assert_eq!(from_full.recv(), Ok(9)),
        }
        assert_eq!(selecting.join().unwrap(), arm);
    }
}

#[test]
fn a_select_that_sleeps_hears_of_a_disconnect() {
    for arm in 0..3 {
        let (ring, mut from_ring) = spsc::<u8>(1);
        let (zero, mut from_zero) = mpmc::<u8>(0);
        let (mut full, from_full) = mpmc::<u8>(1);
        full.send(9).unwrap();
        let selecting = thread::spawn(move || {
            let mut value = Some(3);
            Select::new()
                .recv(&mut from_ring, |got| (0, got.is_err()))
                .recv(&mut from_zero, |got| (1, got.is_err()))
                .send(&mut full, &mut value, |sent| (2, sent.is_err()))
                .wait()
        });
        linger();
        let mut ends = (Some(ring), Some(zero), Some(from_full));
        match arm {
            0 => ends.0 = None,
            1 => ends.1 = None,
            _ => ends.2 = None,
        }
        assert_eq!(selecting.join().unwrap(), (arm, true));
    }
}

#[test]
fn two_selects_meet() {
    const ROUNDS: u64 = 3_000;
    let (mut up, mut from_up) = mpmc::<u64>(0);
    let (mut down, mut from_down) = mpmc::<u64>(0);
    // Each offers on one channel and requests on the other; only one of the two can happen.
    let left = thread::spawn(move || {
        let (mut sent, mut sum) = (0, 0);
        for n in 0..ROUNDS {
            let mut value = Some(n);
            let (is_sent, got) = Select::new()
                .send(&mut up, &mut value, |sent| (sent.is_ok(), 0))
                .recv(&mut from_down, |got| (false, got.unwrap()))
                .wait();
            assert_eq!(value.is_none(), is_sent);
            sent += u64::from(is_sent);
            sum += got;
        }
        (sent, sum)
    });
    let (mut sent, mut received) = (0, 0);
    for n in 0..ROUNDS {
        let mut value = Some(n);
        let is_sent = Select::new()
            .recv(&mut from_up, |_| false)
            .send(&mut down, &mut value, |sent| sent.is_ok())
            .wait();
        sent += u64::from(is_sent);
        received += u64::from(!is_sent);
    }
    let (sent_there, _) = left.join().unwrap();
    assert_eq!((sent_there, sent + received), (received, ROUNDS));
}

#[test]
fn a_try_meets_a_select() {
    let (mut tx, mut rx) = mpmc::<u8>(0);
    let (_other, mut silent) = spsc::<u8>(1);
    let selecting = thread::spawn(move || {
        let got = Select::new()
            .recv(&mut rx, |got| got.unwrap())
            .recv(&mut silent, |got| got.unwrap())
            .wait();
        (got, rx)
    });
    until(|| tx.try_send(5).is_ok());
    let (got, mut rx) = selecting.join().unwrap();
    assert_eq!(got, 5);

    let (_other, mut silent) = spsc::<u8>(1);
    let selecting = thread::spawn(move || {
        Select::new()
            .recv(&mut silent, |_| false)
            .send(&mut tx, &mut Some(6), |sent| sent.is_ok())
            .wait()
    });
    until(|| rx.try_recv() == Ok(6));
    assert!(selecting.join().unwrap());
}

#[test]
fn a_select_does_not_meet_itself() {
    let (mut tx, mut rx) = mpmc::<u8>(0);
    let mut value = Some(1);
    let outcome = Select::new()
        .send(&mut tx, &mut value, |_| ())
        .recv(&mut rx, |_| ())
        .wait_timeout(super::SHORT);
    assert!(outcome.is_err());
    assert_eq!(value, Some(1));
}

/// One of each kind of channel.
type Outs = (Sender<u64>, Sender<u64>, Sender<u64>, Sender<u64>);
type Ins = (Receiver<u64>, Receiver<u64>, Receiver<u64>, Receiver<u64>);

fn send_anywhere(ends: &mut Outs, element: u64) {
    let mut values = [Some(element); 4];
    let [a, b, c, d] = &mut values;
    let arm = Select::new()
        .send(&mut ends.0, a, |sent| sent.map(|()| 0))
        .send(&mut ends.1, b, |sent| sent.map(|()| 1))
        .send(&mut ends.2, c, |sent| sent.map(|()| 2))
        .send(&mut ends.3, d, |sent| sent.map(|()| 3))
        .wait()
        .expect("the receivers are there");
    for (at, value) in values.iter().enumerate() {
        assert_eq!(value.is_none(), at == arm, "exactly one is sent");
    }
}

/// Receives until all four are disconnected; gives the count and the sum.
fn drain(ends: &mut Ins) -> (u64, u64) {
    let (mut count, mut sum, mut ended) = (0, 0, [false; 4]);
    while ended != [true; 4] {
        let (at, got) = Select::new()
            .recv(&mut ends.0, |got| (0, got))
            .recv(&mut ends.1, |got| (1, got))
            .recv(&mut ends.2, |got| (2, got))
            .recv(&mut ends.3, |got| (3, got))
            .wait_timeout(LONG)
            .expect("a sender sends, or all are gone");
        match got {
            Ok(value) => {
                sum += value;
                count += 1;
            }
            Err(_) => ended[at] = true,
        }
    }
    (count, sum)
}

/// A thread that is stuck makes the test fail.
#[test]
fn many_selects_lose_nothing_and_double_nothing() {
    const EACH: u64 = 3_000;
    let (zero, from_zero) = mpmc::<u64>(0);
    let (ring, from_ring) = mpmc::<u64>(2);
    let (larger, from_larger) = mpmc::<u64>(3);
    let (queue, from_queue) = unbounded::<u64>(3);
    let outs = (zero, ring, larger, queue);
    let ins = (from_zero, from_ring, from_larger, from_queue);
    let senders = [0, 1, 2].map(|n| {
        let mut ends = outs.clone();
        thread::spawn(move || {
            for i in 0..EACH {
                send_anywhere(&mut ends, n * EACH + i);
            }
        })
    });
    drop(outs);
    let receivers = [0, 1].map(|_| {
        let mut ends = ins.clone();
        thread::spawn(move || drain(&mut ends))
    });
    for sender in senders {
        sender.join().unwrap();
    }
    let drained = receivers.map(|thread| thread.join().unwrap());
    let total = 3 * EACH;
    assert_eq!(drained[0].0 + drained[1].0, total);
    assert_eq!(drained[0].1 + drained[1].1, total * (total - 1) / 2);
}

#[test]
fn selects_and_plain_receivers_share_a_channel() {
    const EACH: u64 = 5_000;
    let (tx, rx) = mpmc::<u64>(4);
    let (_other, silent) = mpmc::<u64>(4);
    let senders = [0, 1].map(|_| {
        let mut tx = tx.clone();
        thread::spawn(move || tx.send_many(0..EACH).unwrap())
    });
    drop(tx);
    let plain = {
        let mut rx = rx.clone();
        thread::spawn(move || rx.iter().count() as u64)
    };
    let selecting = {
        let (mut rx, mut silent) = (rx, silent);
        thread::spawn(move || {
            let mut count = 0;
            loop {
                let got = Select::new()
                    .recv(&mut silent, |got| got)
                    .recv(&mut rx, |got| got)
                    .wait();
                match got {
                    Ok(_) => count += 1,
                    Err(_) => return count,
                }
            }
        })
    };
    for sender in senders {
        sender.join().unwrap();
    }
    let counts = [plain, selecting].map(|thread| thread.join().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 2 * EACH);
}
