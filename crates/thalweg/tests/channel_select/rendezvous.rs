//! Channels of capacity 0 between threads.

use super::{LONG, SHORT, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    Builder, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, mpmc, mpsc, spsc,
};
use thalweg::wait::WaitMode;

#[test]
fn a_send_returns_when_the_element_was_taken() {
    let (mut tx, mut rx) = spsc(0);
    let taken = Arc::new(AtomicBool::new(false));
    let sender = {
        let taken = Arc::clone(&taken);
        thread::spawn(move || {
            tx.send(5).unwrap();
            assert!(taken.load(SeqCst));
            tx.counters()
        })
    };
    until(|| rx.counters().parked == 1);
    taken.store(true, SeqCst);
    assert_eq!(rx.recv(), Ok(5));
    let counters = sender.join().unwrap();
    assert_eq!((counters.sent, counters.received), (1, 1));
}

#[test]
fn tries_succeed_only_where_somebody_waits() {
    let (mut tx, mut rx) = mpmc(0);
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    let receiver = {
        let mut rx = rx.clone();
        thread::spawn(move || rx.recv())
    };
    until(|| tx.try_send(2).is_ok());
    assert_eq!(receiver.join().unwrap(), Ok(2));

    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let sender = thread::spawn(move || tx.send(3));
    until(|| match rx.try_recv() {
        Ok(value) => value == 3,
        Err(error) => {
            assert_eq!(error, TryRecvError::Empty);
            false
        }
    });
    sender.join().unwrap().unwrap();
}

#[test]
fn time_limits_give_the_element_back() {
    let (mut tx, mut rx) = spsc(0);
    let begin = Instant::now();
    assert_eq!(tx.send_timeout(1, SHORT), Err(SendTimeoutError::Timeout(1)));
    assert_eq!(rx.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    assert!(begin.elapsed() >= 2 * SHORT);
    let past = Instant::now();
    assert_eq!(tx.send_deadline(1, past), Err(SendTimeoutError::Timeout(1)));
    assert_eq!(rx.recv_deadline(past), Err(RecvTimeoutError::Timeout));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty), "it was taken back");

    let sender = thread::spawn(move || tx.send_timeout(2, LONG));
    assert_eq!(rx.recv_timeout(LONG), Ok(2));
    sender.join().unwrap().unwrap();
}

#[test]
fn dropping_one_side_wakes_the_other() {
    let (mut tx, mut rx) = mpmc::<u8>(0);
    let receivers = [rx.clone(), rx.clone()].map(|mut rx| thread::spawn(move || rx.recv()));
    until(|| rx.counters().parked == 2);
    let last = tx.clone();
    drop(tx);
    drop(last);
    for receiver in receivers {
        assert!(receiver.join().unwrap().is_err());
    }
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));

    (tx, rx) = mpmc(0);
    let senders = [tx.clone(), tx.clone()].map(|mut tx| thread::spawn(move || tx.send(1)));
    until(|| rx.counters().parked == 2);
    let last = rx.clone();
    drop(rx);
    drop(last);
    for sender in senders {
        let error = sender.join().unwrap().unwrap_err();
        assert!(error.is_disconnected());
        assert_eq!(error.into_inner(), 1);
    }
    assert_eq!(tx.try_send(2), Err(TrySendError::Disconnected(2)));
}

#[test]
fn closing_wakes_senders() {
    let (mut tx, mut rx) = mpsc::<u8>(0);
    let sender = thread::spawn(move || tx.send(1).unwrap_err().into_inner());
    until(|| rx.counters().parked == 1);
    rx.close();
    assert_eq!(sender.join().unwrap(), 1);
    assert!(rx.recv().is_err());
}

#[test]
fn batches_go_element_by_element() {
    let (mut tx, mut rx) = mpsc(0);
    let sender = thread::spawn(move || {
        tx.send_many(0..103).unwrap();
    });
    let mut got = Vec::new();
    while let Ok(count) = rx.recv_many(&mut got, 7) {
        assert!((1..=7).contains(&count));
    }
    sender.join().unwrap();
    assert!(got.iter().copied().eq(0..103));
}

#[test]
fn every_element_arrives_once_whatever_the_ways() {
    const EACH: u64 = 4_000;
    for &mode in WaitMode::ALL {
        let (tx, rx) = Builder::new(0).mode(mode).mpmc::<u64>().unwrap();
        let senders = [0, 1, 2].map(|n| {
            let mut tx = tx.clone();
            thread::spawn(move || {
                for i in 0..EACH {
                    let mut value = n * EACH + i;
                    loop {
                        let outcome = match i % 3 {
                            0 => return_of(tx.send(value).map_err(|e| e.into_inner())),
                            1 => return_of(tx.try_send(value).map_err(|e| e.into_inner())),
                            _ => return_of(
                                tx.send_timeout(value, Duration::from_micros(20))
                                    .map_err(|e| e.into_inner()),
                            ),
                        };
                        match outcome {
                            None => break,
                            Some(back) => value = back,
                        }
                        thread::yield_now();
                    }
                }
            })
        });
        drop(tx);
        let sum = Arc::new(AtomicU64::new(0));
        let receivers = [0, 1].map(|n| {
            let (mut rx, sum) = (rx.clone(), Arc::clone(&sum));
            thread::spawn(move || {
                let mut count = 0;
                loop {
                    let got = match (count + n) % 2 {
                        0 => rx.recv().map_err(|_| RecvTimeoutError::Disconnected),
                        _ => rx.recv_timeout(Duration::from_micros(20)),
                    };
                    match got {
                        Ok(value) => {
                            sum.fetch_add(value, SeqCst);
                            count += 1;
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(_) => return count,
                    }
                }
            })
        });
        for sender in senders {
            sender.join().unwrap();
        }
        let counts = receivers.map(|receiver| receiver.join().unwrap());
        let total = 3 * EACH;
        assert_eq!(counts.iter().sum::<u64>(), total);
        assert_eq!(sum.load(SeqCst), total * (total - 1) / 2);
        let counters = rx.counters();
        assert_eq!((counters.sent, counters.received), (total, total));
    }
}

fn return_of(outcome: Result<(), u64>) -> Option<u64> {
    outcome.err()
}
