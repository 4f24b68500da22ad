//! One to one: as fast as it goes, one message at a time or in batches; and there and back over two
//! channels, one message under way.

use std::hint::spin_loop;

use thalweg_measure::clock::Clock;

use crate::channels::{
    BatchJob, BatchPair, Job, LAST, RecvBatch, SendBatch, TryJob, TryPair, TryRecv, TrySend,
    each_batch, each_try,
};
use crate::runner::{Metric, Ran, Run, Subjects};
use crate::threads::{Samples, Seats};

/// Room of every channel.
const CAPACITY: usize = 1024;
/// The first messages, which are sent and not measured: every slot has been touched then.
const WARM_UP: u64 = (CAPACITY + CAPACITY / 2) as u64;
/// Messages of a batch.
pub(super) const BATCH: usize = 64;
/// Messages between two looks at the clock.
const LOOK_EVERY: u64 = 256;

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Checks that messages come whole and in their order.
#[derive(Debug, Default)]
struct Checker {
    /// The number of the next one.
    next: u64,
    misplaced: u64,
    over: bool,
}

impl Checker {
    #[inline]
    fn take(&mut self, message: u64) {
        if message == self.next {
            self.next += 1;
        } else if message == LAST {
            self.over = true;
        } else {
            self.misplaced += 1;
            self.next = message.wrapping_add(1);
        }
    }

    fn lost(&self, sent: u64) -> u64 {
        sent.abs_diff(self.next) + self.misplaced
    }
}

/// Sends chunks of [`LOOK_EVERY`] messages by `send(first)` for the span.
#[inline]
fn send_for(span_ns: u64, mut send: impl FnMut(u64)) -> u64 {
    let clock = Clock::global();
    let mut sent = 0;
    while sent < 2 * WARM_UP {
        send(sent);
        sent += LOOK_EVERY;
    }
    let end = clock.ticks() + clock.ticks_from_ns(span_ns);
    while clock.ticks() < end {
        send(sent);
        sent += LOOK_EVERY;
    }
    sent
}

/// What the receiver saw: the checker, and ns per message after the warm-up.
#[inline]
fn receive(mut receive: impl FnMut(&mut Checker)) -> (Checker, f64) {
    let clock = Clock::global();
    let mut checker = Checker::default();
    while checker.next < WARM_UP && !checker.over {
        receive(&mut checker);
    }
    let (first, begin) = (checker.next, clock.ticks());
    while !checker.over {
        receive(&mut checker);
    }
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin)) as f64;
    let each_ns = took_ns / checker.next.saturating_sub(first).max(1) as f64;
    (checker, each_ns)
}

fn figures(sent: u64, (checker, each_ns): (Checker, f64)) -> Run {
    Run::of([each_ns]).with_lost(checker.lost(sent))
}

/// One message a call.
struct OneByOne;

impl Job for OneByOne {
    type Load = u64;
}

impl TryJob for OneByOne {
    fn run<P: TryPair<u64>>(span_ns: &u64) -> Ran {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let mut put = move |value| put(&mut tx, value);
        let sender = move || {
            let sent = send_for(*span_ns, |first| {
                (first..first + LOOK_EVERY).for_each(&mut put);
            });
            put(LAST);
            // The channel must outlive the last message.
            (sent, put)
        };
        let receiver = || {
            receive(|checker| match rx.try_recv() {
                Some(message) => checker.take(message),
                None => spin_loop(),
            })
        };
        let ((sent, _), seen) = seats.run(sender, receiver)?;
        Ok(figures(sent, seen))
    }
}

/// [`BATCH`] messages a call.
struct Batches;

impl Job for Batches {
    type Load = u64;
}

/// Sends `count` messages, in as many calls as it takes.
#[inline]
fn put_all(tx: &mut impl SendBatch<u64>, count: usize, of: impl Fn(usize) -> u64) {
    let mut done = 0;
    while done < count {
        let sent = tx.send_batch(count - done, |at| of(done + at));
        if sent == 0 {
            spin_loop();
        }
        done += sent;
    }
}

impl BatchJob for Batches {
    fn run<P: BatchPair<u64>>(span_ns: &u64) -> Ran {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let sender = move || {
            let sent = send_for(*span_ns, |first| {
                for batch in 0..LOOK_EVERY / BATCH as u64 {
                    let first = first + batch * BATCH as u64;
                    put_all(&mut tx, BATCH, |at| first + at as u64);
                }
            });
            put_all(&mut tx, 1, |_| LAST);
            (sent, tx)
        };
        let receiver = || {
            receive(|checker| {
                if rx.recv_batch(BATCH, |message| checker.take(message)) == 0 {
                    spin_loop();
                }
            })
        };
        let ((sent, _), seen) = seats.run(sender, receiver)?;
        Ok(figures(sent, seen))
    }
}

pub(super) fn one_by_one() -> Subjects<u64> {
    each_try::<OneByOne>()
}

pub(super) fn batches() -> Subjects<u64> {
    each_batch::<Batches>()
}

pub(super) const TRIP_METRICS: &[Metric] = &[
    Metric::lower("round_trip_p50", "ns"),
    Metric::lower("round_trip_p99", "ns"),
];

/// Round trips that are not measured, and how many are at most.
const TRIPS_WARM_UP: u64 = 200;
const TRIPS_MAX: usize = 1 << 17;

#[inline]
fn put(tx: &mut impl TrySend<u64>, message: u64) {
    while !tx.try_send(message) {
        spin_loop();
    }
}

#[inline]
fn get(rx: &mut impl TryRecv<u64>) -> u64 {
    loop {
        match rx.try_recv() {
            Some(message) => break message,
            None => spin_loop(),
        }
    }
}

struct RoundTrips;

impl Job for RoundTrips {
    type Load = u64;
}

impl TryJob for RoundTrips {
    fn run<P: TryPair<u64>>(span_ns: &u64) -> Ran {
        let (mut there, mut back) = (P::pair(CAPACITY), P::pair(CAPACITY));
        let seats = Seats::apart()?;
        let client = || {
            let clock = Clock::global();
            let mut samples = Samples::with_room(TRIPS_MAX);
            let mut checker = Checker::default();
            let mut trip = |number| {
                put(&mut there.0, number);
                checker.take(get(&mut back.1));
            };
            (0..TRIPS_WARM_UP).for_each(&mut trip);
            let (mut number, mut last) = (TRIPS_WARM_UP, clock.ticks());
            let end = last + clock.ticks_from_ns(*span_ns);
            while last < end && !samples.is_full() {
                trip(number);
                number += 1;
                let now = clock.ticks();
                samples.take(now.saturating_sub(last));
                last = now;
            }
            trip(LAST);
            (checker.lost(number) + u64::from(!checker.over), samples)
        };
        let server = || {
            loop {
                let message = get(&mut there.1);
                put(&mut back.0, message);
                if message == LAST {
                    break;
                }
            }
        };
        let ((lost, samples), ()) = seats.run(client, server)?;
        Ok(Run::of(samples.quantiles_ns([0.5, 0.99])).with_lost(lost))
    }
}

pub(super) fn round_trips() -> Subjects<u64> {
    each_try::<RoundTrips>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checker_counts_what_is_lost_or_out_of_place() {
        let lost = |values: &[u64], sent: u64| {
            let mut checker = Checker::default();
            values.iter().for_each(|value| checker.take(*value));
            checker.lost(sent)
        };
        assert_eq!(lost(&[0, 1, 2, LAST], 3), 0);
        assert_eq!(lost(&[0, 1], 3), 1);
        assert_eq!(lost(&[0, 2], 3), 1);
        assert!(lost(&[0, 2, 1], 3) >= 2);
    }
}
