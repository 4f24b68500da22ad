//! Waits with an end. Only lower bounds are asserted.

use crate::channel::flavour::{Flavour, Made};
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{RecvTimeoutError, SendTimeoutError};

const SOON: Duration = Duration::from_millis(15);

pub(crate) fn recv_times_out<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(2);
    let began = Instant::now();
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert!(began.elapsed() >= SOON);
    let deadline = Instant::now() + SOON;
    assert_eq!(rx.recv_deadline(deadline), Err(RecvTimeoutError::Timeout));
    assert!(Instant::now() >= deadline);
    // A wait that timed out leaves nothing behind.
    tx.send(1).unwrap();
    assert_eq!(rx.recv_timeout(SOON), Ok(1));
}

pub(crate) fn send_times_out<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(1);
    tx.send_timeout(1, SOON).unwrap();
    let began = Instant::now();
    assert_eq!(tx.send_timeout(2, SOON), Err(SendTimeoutError::Timeout(2)));
    assert!(began.elapsed() >= SOON);
    let deadline = Instant::now() + SOON;
    assert_eq!(
        tx.send_deadline(3, deadline),
        Err(SendTimeoutError::Timeout(3))
    );
    assert!(Instant::now() >= deadline);
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!(tx.send_timeout(4, SOON), Ok(()));
    assert_eq!(rx.recv(), Ok(4));
}

pub(crate) fn a_limit_that_is_over_is_a_try<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(1);
    let past = Instant::now();
    assert_eq!(
        rx.recv_timeout(Duration::ZERO),
        Err(RecvTimeoutError::Timeout)
    );
    assert_eq!(rx.recv_deadline(past), Err(RecvTimeoutError::Timeout));
    assert_eq!(tx.send_deadline(1, past), Ok(()));
    assert_eq!(tx.send_deadline(2, past), Err(SendTimeoutError::Timeout(2)));
    assert_eq!(
        tx.send_timeout(2, Duration::ZERO),
        Err(SendTimeoutError::Timeout(2))
    );
    assert_eq!(rx.recv_deadline(past), Ok(1));
    assert_eq!(tx.send_timeout(3, Duration::ZERO), Ok(()));
    assert_eq!(rx.recv_timeout(Duration::ZERO), Ok(3));
}

pub(crate) fn an_element_in_time_is_received<S: Made>(flavour: Flavour<S>) {
    for limit in [Duration::MAX, Duration::from_secs(3600)] {
        let (mut tx, mut rx) = flavour.channel::<u8>(1);
        thread::scope(|scope| {
            scope.spawn(move || {
                crate::channel::crowds::await_parked(|| tx.counters().parked);
                tx.send(1).unwrap();
            });
            assert_eq!(rx.recv_timeout(limit), Ok(1));
            assert_eq!(rx.recv_timeout(limit), Err(RecvTimeoutError::Disconnected));
        });
    }
}

pub(crate) fn room_in_time_is_used<S: Made>(flavour: Flavour<S>) {
    for limit in [Duration::MAX, Duration::from_secs(3600)] {
        let (mut tx, mut rx) = flavour.channel::<u8>(1);
        tx.send(1).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                crate::channel::crowds::await_parked(|| rx.counters().parked);
                assert_eq!(rx.recv(), Ok(1));
                assert_eq!(rx.recv(), Ok(2));
            });
            assert_eq!(tx.send_timeout(2, limit), Ok(()));
        });
        assert_eq!(
            tx.send_timeout(3, limit),
            Err(SendTimeoutError::Disconnected(3))
        );
    }
}

/// Timeouts at the very moment when the element comes: it is received or still there, once.
pub(crate) fn timeouts_lose_nothing<S: Made>(flavour: Flavour<S>) {
    const ELEMENTS: u64 = 3000;
    let (mut tx, mut rx) = flavour.channel::<u64>(2);
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..ELEMENTS {
                let mut n = n;
                while let Err(error) = tx.send_timeout(n, Duration::from_micros(n % 50)) {
                    n = error.into_inner();
                }
            }
        });
        let mut next = 0;
        loop {
            match rx.recv_timeout(Duration::from_micros(next % 70)) {
                Ok(n) => {
                    assert_eq!(n, next);
                    next += 1;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(_) => break,
            }
        }
        assert_eq!(next, ELEMENTS);
    });
}
