//! One thread to another. Waits yield, since there may be one core.

use crate::ring_conformance::shape::Shape;
use std::thread::{spawn, yield_now};
use thalweg::ring::{PopError, PushError, SpscConsumer, SpscProducer};

/// Pushes, and waits while the ring is full; false if it is closed.
pub(crate) fn push<T>(tx: &mut SpscProducer<T>, mut value: T) -> bool {
    loop {
        match tx.try_push(value) {
            Ok(()) => return true,
            Err(PushError::Full(back)) => value = back,
            Err(_) => return false,
        }
        yield_now();
    }
}

/// Pops, and waits while the ring is empty; `None` if it is closed.
pub(crate) fn pop<T>(rx: &mut SpscConsumer<T>) -> Option<T> {
    loop {
        match rx.try_pop() {
            Ok(value) => return Some(value),
            Err(PopError::Closed) => return None,
            Err(_) => yield_now(),
        }
    }
}

pub(crate) fn one_thread_to_another<S: Shape>() {
    const COUNT: u64 = if cfg!(sanitized) { 10_000 } else { 100_000 };
    for capacity in [1, 3, 64] {
        let (mut tx, mut rx) = S::ring(capacity);
        let sender = spawn(move || (0..COUNT).all(|i| push(&mut tx, i)));
        for i in 0..COUNT {
            assert_eq!(pop(&mut rx), Some(i));
        }
        assert_eq!(pop(&mut rx), None);
        assert!(sender.join().unwrap());
    }
}

pub(crate) fn one_thread_to_another_in_batches<S: Shape>() {
    const COUNT: u64 = 300_000;
    let (mut tx, mut rx) = S::ring(100);
    let sender = spawn(move || {
        let mut next = 0;
        while next < COUNT {
            let end = COUNT.min(next + 1 + next % 70);
            let pushed = tx.push_iter(next..end) as u64;
            if pushed == 0 {
                yield_now();
            }
            next += pushed;
        }
    });
    let (mut next, mut out) = (0, Vec::new());
    while next < COUNT {
        if next % 2 == 0 {
            out.extend(rx.batch(64));
        } else {
            rx.pop_into(&mut out, 33);
        }
        if out.is_empty() {
            yield_now();
        }
        for value in out.drain(..) {
            assert_eq!(value, next);
            next += 1;
        }
    }
    sender.join().unwrap();
    assert_eq!(rx.try_pop(), Err(PopError::Closed));
}

pub(crate) fn boxes_cross_threads<S: Shape>() {
    const COUNT: u64 = 20_000;
    let (mut tx, mut rx) = S::ring(16);
    let sender = spawn(move || (0..COUNT).all(|i| push(&mut tx, Box::new([i, !i]))));
    for i in 0..COUNT {
        assert_eq!(pop(&mut rx).as_deref(), Some(&[i, !i]));
    }
    assert!(sender.join().unwrap());
}

pub(crate) fn a_close_loses_nothing_published_before<S: Shape>() {
    for round in 0..500 {
        let (mut tx, mut rx) = S::ring(8);
        let count = round % 9;
        let sender = spawn(move || {
            assert_eq!(tx.push_iter(0..count), count);
            if round % 2 == 0 {
                tx.close();
            }
        });
        let mut got = 0;
        while let Some(value) = pop(&mut rx) {
            assert_eq!(value, got);
            got += 1;
        }
        assert_eq!(got, count);
        sender.join().unwrap();
    }
}

pub(crate) fn a_consumer_that_leaves_stops_the_producer<S: Shape>() {
    for round in 0..200 {
        let (mut tx, mut rx) = S::ring(4);
        let sender = spawn(move || {
            let mut sent = 0_u64;
            while push(&mut tx, Box::new(sent)) {
                sent += 1;
            }
            sent
        });
        for i in 0..round % 20 {
            assert_eq!(pop(&mut rx).as_deref(), Some(&i));
        }
        drop(rx);
        assert!(sender.join().unwrap() >= round % 20);
    }
}

pub(crate) fn endpoints_move_between_threads<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    for i in 0..50 {
        tx = spawn(move || {
            assert_eq!(tx.push_slice(&[2 * i, 2 * i + 1]), 2);
            tx
        })
        .join()
        .unwrap();
        rx = spawn(move || {
            assert_eq!((rx.try_pop(), rx.try_pop()), (Ok(2 * i), Ok(2 * i + 1)));
            rx
        })
        .join()
        .unwrap();
    }
}
