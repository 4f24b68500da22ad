//! What only a ring with several lanes has to show: order per producer, fairness, lanes that close.

use crate::threads::{pop, push};
use std::thread::{spawn, yield_now};
use thalweg::ring::{Layout, PopError, Producer, mpsc};

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Slotted];

#[test]
fn several_threads_to_one() {
    const PRODUCERS: u64 = 4;
    const COUNT: u64 = 50_000;
    for layout in LAYOUTS {
        let (producers, mut rx) = mpsc(PRODUCERS as usize, 32, layout).unwrap();
        let send = |(id, mut tx): (u64, Producer<(u64, u64)>)| {
            spawn(move || assert!((0..COUNT).all(|i| push(&mut tx, (id, i)))))
        };
        let senders: Vec<_> = (0..).zip(producers).map(send).collect();
        let mut next = [0; PRODUCERS as usize];
        while let Some((id, i)) = pop(&mut rx) {
            assert_eq!(i, next[id as usize], "order within producer {id}");
            next[id as usize] += 1;
        }
        assert_eq!(next, [COUNT; PRODUCERS as usize]);
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
    }
}

#[test]
fn several_threads_to_one_in_batches() {
    const PRODUCERS: u64 = 3;
    const COUNT: u64 = 60_000;
    for layout in LAYOUTS {
        let (producers, mut rx) = mpsc(PRODUCERS as usize, 50, layout).unwrap();
        let send = |(id, mut tx): (u64, Producer<u64>)| {
            spawn(move || {
                let mut values = (0..COUNT).map(|i| i * PRODUCERS + id).peekable();
                while values.peek().is_some() {
                    if tx.push_iter(&mut values) == 0 {
                        yield_now();
                    }
                }
            })
        };
        let senders: Vec<_> = (0..).zip(producers).map(send).collect();
        let (mut sum, mut count) = (0, 0);
        while count < COUNT * PRODUCERS {
            let batch = rx.batch(40);
            if batch.len() == 0 {
                yield_now();
            }
            for value in batch {
                sum += value;
                count += 1;
            }
        }
        assert_eq!(sum, (0..COUNT * PRODUCERS).sum::<u64>());
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
        assert_eq!(rx.try_pop(), Err(PopError::Closed));
    }
}

#[test]
fn full_lanes_get_equal_shares() {
    for layout in LAYOUTS {
        let (mut producers, mut rx) = mpsc(5, 256, layout).unwrap();
        let mut taken = [0_i32; 5];
        for _ in 0..20_000 {
            for (id, tx) in producers.iter_mut().enumerate() {
                while tx.try_push(id).is_ok() {}
            }
            taken[rx.try_pop().unwrap()] += 1;
        }
        // A share of 4,000 each, give or take one turn.
        assert!(
            taken.iter().all(|count| (count - 4000).abs() <= 32),
            "{taken:?}"
        );
    }
}

#[test]
fn a_busy_lane_does_not_starve_a_quiet_one() {
    let (mut producers, mut rx) = mpsc(2, 1024, Layout::Packed).unwrap();
    let mut waits = Vec::new();
    for round in 0..100 {
        producers[0].push_iter(std::iter::repeat(false));
        for _ in 0..round {
            assert_eq!(rx.try_pop(), Ok(false));
            producers[0].push_slice(&[false]);
        }
        producers[1].try_push(true).unwrap();
        let mut wait = 0;
        while !rx.try_pop().unwrap() {
            wait += 1;
        }
        waits.push(wait);
    }
    assert!(waits.iter().all(|&wait| wait <= 32), "{waits:?}");
}

#[test]
fn batches_go_from_lane_to_lane() {
    let (mut producers, mut rx) = mpsc(3, 8, Layout::Packed).unwrap();
    for (id, tx) in producers.iter_mut().enumerate() {
        tx.push_slice(&[id; 6]);
    }
    let lanes: Vec<_> = (0..6).map(|_| rx.batch(3).collect::<Vec<_>>()).collect();
    for batch in &lanes {
        assert!(
            batch.len() == 3 && batch.iter().all(|id| *id == batch[0]),
            "{lanes:?}"
        );
    }
    let first: Vec<_> = lanes[..3].iter().map(|batch| batch[0]).collect();
    let again: Vec<_> = lanes[3..].iter().map(|batch| batch[0]).collect();
    assert_eq!(first, again);
    assert_eq!(rx.batch(3).len(), 0);
}

#[test]
fn lanes_close_one_by_one() {
    let (mut producers, mut rx) = mpsc(3, 4, Layout::Slotted).unwrap();
    assert_eq!(rx.capacity(), 12);
    producers[0].push_slice(&[1, 2]);
    producers[2].push_slice(&[5]);
    drop(producers.remove(0));
    assert!(!rx.is_closed());
    let mut seen: Vec<_> = (0..3).map(|_| rx.try_pop().unwrap()).collect();
    seen.sort();
    assert_eq!(seen, [1, 2, 5]);
    assert_eq!(rx.try_pop(), Err(PopError::Empty));
    assert_eq!(rx.open_lanes(), 2);
    producers[1].push_slice(&[6]);
    producers[1].close();
    drop(producers.remove(0));
    assert!(rx.is_closed());
    assert_eq!(rx.peek(), Ok(&6));
    assert_eq!(rx.try_pop(), Ok(6));
    assert_eq!(rx.try_pop(), Err(PopError::Closed));
    assert_eq!((rx.open_lanes(), rx.len()), (0, 0));
    assert!(rx.is_closed() && rx.is_empty() && rx.batch(1).len() == 0);
}

#[test]
fn no_producers_means_closed() {
    let (producers, mut rx) = mpsc::<u8>(0, 4, Layout::Packed).unwrap();
    assert!(producers.is_empty() && rx.is_closed());
    assert_eq!(rx.try_pop(), Err(PopError::Closed));
}
