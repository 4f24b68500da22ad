//! Channels at work: fan-in, a pool of workers, and waiting for the first of several.
//!
//! `cargo run --release -p thalweg --example channel`
//!
//! It shows what to call and what the counters say. It measures nothing: the system decides which
//! thread runs when, so waits differ from run to run.

use std::thread;
use std::time::Duration;

use thalweg::channel::{Counters, Select, mpmc, mpsc, spsc};

const PRODUCERS: u64 = 3;
const ORDERS_EACH: u64 = 20_000;
const WORKERS: usize = 2;
const JOBS: u64 = 10_000;

fn main() {
    fan_in();
    worker_pool();
    first_of_several();
}

fn print(counters: Counters) {
    println!(
        "  sent {}, received {}, dropped {}; somebody waited {} times, was woken {} times",
        counters.sent, counters.received, counters.dropped, counters.parked, counters.woken
    );
}

/// Three producers, one consumer, which sees each one's order.
fn fan_in() {
    let (tx, mut rx) = mpsc(256);
    let mut next = [0; PRODUCERS as usize];
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let mut tx = tx.clone();
            scope.spawn(move || {
                // An error would say that the consumer is gone: nothing is left to do then.
                let _ = tx.send_many((0..ORDERS_EACH).map(|n| (producer, n)));
            });
        }
        // The consumer's loop ends when the last sender is gone; this one would stay.
        drop(tx);
        for (producer, n) in rx.iter() {
            let next = &mut next[producer as usize];
            assert_eq!(n, *next, "a producer's orders come in its order");
            *next += 1;
        }
    });
    println!("fan-in: {PRODUCERS} producers, orders received of each: {next:?}");
    print(rx.counters());
}

/// A job of no fixed length: how often a number is halved, or tripled and incremented, until it
/// is 1.
fn collatz_steps(n: u64) -> u64 {
    let next = |&n: &u64| match n % 2 {
        0 => Some(n / 2),
        _ => Some(3 * n + 1),
    };
    std::iter::successors(Some(n), next)
        .take_while(|&n| n != 1)
        .count() as u64
}

/// Jobs for whichever worker is free; the results come back by another channel.
fn worker_pool() {
    let (mut jobs, todo) = mpmc::<u64>(64);
    let (results, mut done) = mpsc(64);
    let (shares, sum) = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| (todo.clone(), results.clone()))
            .map(|(mut todo, mut results)| {
                scope.spawn(move || {
                    let mut share = 0;
                    while let Ok(n) = todo.recv()
                        && results.send(collatz_steps(n)).is_ok()
                    {
                        share += 1;
                    }
                    share
                })
            })
            .collect();
        drop((todo, results));
        scope.spawn(move || jobs.send_many(1..=JOBS));
        let sum: u64 = done.iter().sum();
        let shares: Vec<u64> = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker does not panic"))
            .collect();
        (shares, sum)
    });
    assert_eq!(sum, (1..=JOBS).map(collatz_steps).sum::<u64>());
    println!("worker pool: {WORKERS} workers, jobs done by each: {shares:?}, {sum} steps in all");
    print(done.counters());
}

enum Event {
    Order(u64),
    Cancel(&'static str),
    Ended,
}

/// Orders and cancels come by channels of different types; silence is an event, too.
fn first_of_several() {
    let (mut orders, mut incoming) = spsc::<u64>(8);
    let (mut cancels, mut cancelled) = spsc::<&str>(8);
    let (mut notices, mut quiet) = spsc::<()>(0);
    let (mut seen, mut names, mut silences) = (Vec::new(), Vec::new(), 0);
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = orders.send_many(0..1000);
            let _ = cancels.send("order 7");
            // Sends no more until the other side has noticed.
            let _ = quiet.recv();
            let _ = cancels.send("order 8");
            // Both senders are dropped here, and the other side sees the end.
        });
        loop {
            let event = Select::new()
                .recv(&mut incoming, |order| {
                    order.map_or(Event::Ended, Event::Order)
                })
                .recv(&mut cancelled, |name| {
                    name.map_or(Event::Ended, Event::Cancel)
                })
                .wait_timeout(Duration::from_millis(20));
            match event {
                Ok(Event::Order(id)) => seen.push(id),
                Ok(Event::Cancel(name)) => names.push(name),
                // An end is always ready: no use to select with it again.
                Ok(Event::Ended) => break,
                Err(_) => {
                    silences += 1;
                    let _ = notices.try_send(());
                }
            }
        }
        // The elements that the other channel still holds.
        seen.extend(incoming.iter());
        names.extend(cancelled.iter());
    });
    assert!(seen.iter().copied().eq(0..1000) && names.len() == 2);
    println!(
        "select: {} orders, cancelled {names:?}, silent for 20 ms {silences} times",
        seen.len()
    );
    print(incoming.counters());
}
