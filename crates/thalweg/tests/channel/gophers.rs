//! Patterns that Go's channel tests and crossbeam's go through, with our calls.

use crate::channel::flavour::{Ends, Flavour, Made};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use thalweg::channel::{ManyReceivers, ManySenders, Receiver, Sender};

fn filter<S: thalweg::channel::Shape>(
    (mut rx, mut tx): (Receiver<u32, S>, Sender<u32, S>),
    prime: u32,
) {
    for n in rx.iter() {
        if n % prime != 0 && tx.send(n).is_err() {
            return;
        }
    }
}

/// A filter for each prime, one behind the other. The end of the last ends them all.
pub(crate) fn sieve<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx): Ends<S, u32> = flavour.channel::<_>(3);
    let mut threads = vec![thread::spawn(move || {
        let mut n = 2;
        while tx.send(n).is_ok() {
            n += 1;
        }
    })];
    let mut primes = Vec::new();
    while primes.len() < 15 {
        let prime = rx.recv().unwrap();
        primes.push(prime);
        let (next_tx, next_rx) = flavour.channel::<_>(3);
        let from = std::mem::replace(&mut rx, next_rx);
        threads.push(thread::spawn(move || filter((from, next_tx), prime)));
    }
    drop(rx);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(
        primes,
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]
    );
}

/// A channel's elements as permits: never more inside than there are permits.
pub(crate) fn semaphore<S: Made + ManySenders + ManyReceivers>(flavour: Flavour<S>) {
    const PERMITS: usize = 3;
    let (enter, leave) = flavour.channel::<()>(PERMITS);
    let enter = std::sync::Mutex::new(enter);
    let inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            let (enter, mut leave, inside) = (&enter, leave.clone(), &inside);
            scope.spawn(move || {
                for _ in 0..200 {
                    enter.lock().unwrap().send(()).unwrap();
                    // ORDERING: SeqCst, a test's count.
                    assert!(inside.fetch_add(1, SeqCst) < PERMITS);
                    thread::yield_now();
                    // ORDERING: SeqCst, a test's count.
                    inside.fetch_sub(1, SeqCst);
                    leave.recv().unwrap();
                }
            });
        }
    });
}

/// crossbeam's `stress_oneshot`.
pub(crate) fn one_shots<S: Made>(flavour: Flavour<S>) {
    for n in 0..500 {
        let (mut tx, mut rx) = flavour.channel::<u32>(1);
        thread::scope(|scope| {
            scope.spawn(move || assert_eq!(rx.recv(), Ok(n)));
            tx.send(n).unwrap();
        });
    }
}

/// crossbeam's `stress_timeout_two_threads`: sides that are late by turns.
pub(crate) fn late_by_turns<S: Made>(flavour: Flavour<S>) {
    const COUNT: u32 = 60;
    let late = Duration::from_millis(1);
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..COUNT {
                if n % 2 == 0 {
                    thread::park_timeout(late);
                }
                while tx.send_timeout(n, late).is_err() {}
            }
        });
        for n in 0..COUNT {
            if n % 3 == 0 {
                thread::park_timeout(late);
            }
            loop {
                if let Ok(got) = rx.recv_timeout(late) {
                    assert_eq!(got, n);
                    break;
                }
            }
        }
    });
}

/// crossbeam's `len`: never more than there can be, seen from both sides while both work.
pub(crate) fn lengths_stay_in_bounds<S: Made>(flavour: Flavour<S>) {
    const COUNT: usize = 10_000;
    const CAPACITY: usize = 50;
    let (mut tx, mut rx) = flavour.channel::<usize>(CAPACITY);
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..COUNT {
                tx.send(n).unwrap();
                assert!(tx.len() <= CAPACITY);
            }
            while !tx.is_empty() {
                thread::yield_now();
            }
            assert_eq!(tx.counters().received, COUNT as u64);
        });
        for n in 0..COUNT {
            assert_eq!(rx.recv(), Ok(n));
            assert!(rx.len() <= CAPACITY);
        }
        assert_eq!(rx.len(), 0);
    });
}
