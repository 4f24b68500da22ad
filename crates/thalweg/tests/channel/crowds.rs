//! Several threads: every element comes out once, and in order where that is promised.

use crate::channel::flavour::{Flavour, Made};
use std::thread;
use thalweg::channel::{ManyReceivers, ManySenders, Receiver, Sender};

/// Waits until a waiter is listed to be woken.
pub(crate) fn await_parked(parked: impl Fn() -> u64) {
    await_parked_times(1, parked);
}

/// Waits until waiters have been listed `times` times.
pub(crate) fn await_parked_times(times: u64, parked: impl Fn() -> u64) {
    while parked() < times {
        thread::yield_now();
    }
}

/// An element that says whose it is and which.
pub(crate) fn element(sender: u64, n: u64) -> u64 {
    sender << 32 | n
}

/// Checks what one receiver got: the elements of each sender in ascending order.
pub(crate) fn check_order(seen: &[u64], senders: u64) {
    let mut next = vec![0; senders as usize];
    for &value in seen {
        let (sender, n) = ((value >> 32) as usize, value & 0xFFFF_FFFF);
        assert!(
            n >= next[sender],
            "sender {sender}: {n} after {}",
            next[sender]
        );
        next[sender] = n + 1;
    }
}

/// Checks what all receivers got together: everything, once.
pub(crate) fn check_all(mut seen: Vec<u64>, senders: u64, each: u64) {
    seen.sort_unstable();
    let sent = (0..senders).flat_map(|sender| (0..each).map(move |n| element(sender, n)));
    assert!(seen.into_iter().eq(sent), "lost, doubled or made up");
}

/// Sends `each` elements, in the form that is due.
fn send_all<S: Made>(
    flavour: Flavour<S>,
    tx: &mut Sender<u64, S>,
    sender: u64,
    each: u64,
    form: usize,
) {
    let values = (0..each).map(|n| element(sender, n));
    match form % 5 {
        0 => values.for_each(|value| tx.send(value).unwrap()),
        1 => values.for_each(|mut value| {
            while let Err(error) = tx.try_send(value) {
                value = error.into_inner();
                thread::yield_now();
            }
        }),
        2 | 3 => tx.send_many(values).unwrap(),
        _ if flavour.has_claims => {
            let values: Vec<_> = values.collect();
            for some in values.chunks(3) {
                let mut claim = tx.claim(some.len()).unwrap();
                assert_eq!(claim.write(some), some.len());
                assert_eq!(claim.commit(), some.len());
            }
        }
        _ => tx.send_many(values.filter(|_| true)).unwrap(),
    }
}

/// Receives until the senders are gone, in the form that is due.
fn receive_all<S: Made>(rx: &mut Receiver<u64, S>, form: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    match form % 4 {
        0 => seen.extend(rx.iter()),
        1 => loop {
            match rx.try_recv() {
                Ok(value) => seen.push(value),
                Err(thalweg::channel::TryRecvError::Disconnected) => break,
                Err(_) => thread::yield_now(),
            }
        },
        2 => while rx.recv_many(&mut seen, 5).is_ok() {},
        _ => {
            while let Ok(value) = rx.recv() {
                seen.push(value);
                let _ = rx.try_recv_each(4, |value| seen.push(value));
                seen.extend(rx.batch(3));
            }
        }
    }
    seen
}

pub(crate) fn one_to_one_in_every_form<S: Made>(flavour: Flavour<S>) {
    const EACH: u64 = 4000;
    for form in 0..20 {
        for capacity in [1, 3, 64] {
            if capacity < 3 && form % 5 == 4 {
                // Claims of three.
                continue;
            }
            if flavour.is_rendezvous && form % 20 == 1 {
                // Tries on both sides never meet.
                continue;
            }
            let (mut tx, mut rx) = flavour.channel::<u64>(capacity);
            let seen = thread::scope(|scope| {
                scope.spawn(move || send_all(flavour, &mut tx, 0, EACH / 20, form));
                receive_all(&mut rx, form)
            });
            assert!(seen.into_iter().eq(0..EACH / 20), "form {form}, {capacity}");
        }
    }
}

/// `senders` threads with `each` elements into the given receivers.
fn crowd<S: Made + ManySenders>(
    flavour: Flavour<S>,
    tx: Sender<u64, S>,
    receivers: Vec<Receiver<u64, S>>,
    (senders, each): (u64, u64),
) {
    let seen = thread::scope(|scope| {
        for sender in 0..senders {
            let mut tx = tx.clone();
            scope.spawn(move || send_all(flavour, &mut tx, sender, each, sender as usize));
        }
        drop(tx);
        let threads: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(form, mut rx)| scope.spawn(move || receive_all(&mut rx, form)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let seen = thread.join().unwrap();
            check_order(&seen, senders);
            all.extend(seen);
        }
        all
    });
    check_all(seen, senders, each);
}

pub(crate) fn many_to_one<S: Made + ManySenders>(flavour: Flavour<S>) {
    for (senders, capacity) in [(2, 3), (5, 4), (5, 300), (20, 16)] {
        let (tx, rx) = flavour.channel::<u64>(capacity);
        crowd(flavour, tx, vec![rx], (senders, 10_000 / senders));
    }
}

pub(crate) fn one_to_many<S: Made + ManySenders + ManyReceivers>(flavour: Flavour<S>) {
    for (receivers, capacity) in [(2, 3), (4, 100), (12, 16)] {
        let (tx, rx) = flavour.channel::<u64>(capacity);
        let all = vec![rx; receivers];
        crowd(flavour, tx, all, (1, 10_000));
    }
}

pub(crate) fn many_to_many<S: Made + ManySenders + ManyReceivers>(flavour: Flavour<S>) {
    for (senders, receivers, capacity) in [(2, 2, 3), (5, 4, 3), (5, 3, 256), (7, 7, 16)] {
        let (tx, rx) = flavour.channel::<u64>(capacity);
        let all = vec![rx; receivers];
        crowd(flavour, tx, all, (senders, 10_000 / senders));
    }
}

/// One order for all: what a thread sends after it has seen another's element comes after that.
pub(crate) fn total_order<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(8);
    let turn = std::sync::Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            let (mut tx, turn) = (tx.clone(), &turn);
            scope.spawn(move || {
                for _ in 0..1000 {
                    let mut n = turn.lock().unwrap();
                    tx.send(*n).unwrap();
                    *n += 1;
                }
            });
        }
        drop(tx);
        assert!(rx.iter().eq(0..4000));
    });
}

/// A receiver that is in no hurry, so that senders are full and asleep most of the time.
pub(crate) fn slow_receiver<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(3);
    let mut seen = Vec::new();
    thread::scope(|scope| {
        for sender in 0..4 {
            let mut tx = tx.clone();
            scope.spawn(move || send_all(flavour, &mut tx, sender, 200, 0));
        }
        drop(tx);
        while let Ok(value) = rx.recv() {
            seen.push(value);
            thread::yield_now();
        }
    });
    check_order(&seen, 4);
    check_all(seen, 4, 200);
}
