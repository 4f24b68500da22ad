//! One to one: as fast as it goes, one message at a time or in batches; and there and back over two
//! channels, one message under way, beside the floor of one cache line each way.

use std::hint::spin_loop;

use thalweg_measure::clock::Clock;

use crate::channels::{
    BatchJob, BatchPair, BlockingJob, BlockingPair, BlockingRecv, BlockingSend, CacheLine, Job,
    Message, Pair, RecvBatch, SendBatch, TryJob, TryPair, TryRecv, TrySend, each_batch,
    each_blocking, each_try,
};
use crate::runner::{Metric, Ran, Run, Subjects, subject};
use crate::threads::{Samples, Seats};

/// Messages of a batch.
pub(super) const BATCH: usize = 64;
/// Messages between two looks at the clock.
const LOOK_EVERY: u64 = 256;

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// How much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) capacity: usize,
    pub(super) span_ns: u64,
}

impl Load {
    /// The first messages, which are sent and not measured: every slot has been touched then.
    fn warm_up(&self) -> u64 {
        (self.capacity + self.capacity / 4) as u64 + LOOK_EVERY
    }
}

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
    fn take<M: Message>(&mut self, message: M) {
        if message == M::of(self.next) {
            self.next += 1;
        } else {
            self.odd(message);
        }
    }

    #[cold]
    fn odd<M: Message>(&mut self, message: M) {
        if message == M::of(M::LAST) {
            self.over = true;
        } else {
            self.misplaced += 1;
            self.next = message.value().wrapping_add(1);
        }
    }

    fn lost(&self, sent: u64) -> u64 {
        sent.abs_diff(self.next) + self.misplaced
    }
}

/// Sends chunks of [`LOOK_EVERY`] messages by `send(first)` for the span.
#[inline]
fn send_for(load: Load, mut send: impl FnMut(u64)) -> u64 {
    let clock = Clock::global();
    let mut sent = 0;
    while sent < 2 * load.warm_up() {
        send(sent);
        sent += LOOK_EVERY;
    }
    let end = clock.ticks() + clock.ticks_from_ns(load.span_ns);
    while clock.ticks() < end {
        send(sent);
        sent += LOOK_EVERY;
    }
    sent
}

/// What the receiver saw: the checker, and ns per message after the warm-up.
#[inline]
fn receive(load: Load, mut receive: impl FnMut(&mut Checker)) -> (Checker, f64) {
    let clock = Clock::global();
    let mut checker = Checker::default();
    let warm_up = load.warm_up();
    while checker.next < warm_up && !checker.over {
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
    Run::of(vec![each_ns]).with_lost(checker.lost(sent))
}

/// One message a call.
struct OneByOne;

impl Job for OneByOne {
    type Load = Load;
}

impl<M: Message> TryJob<M> for OneByOne {
    fn run<P: TryPair<M>>(load: &Load) -> Ran {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(load.capacity);
        let mut put = move |value| put(&mut tx, M::of(value));
        let sender = move || {
            let sent = send_for(*load, |first| {
                (first..first + LOOK_EVERY).for_each(&mut put);
            });
            put(M::LAST);
            // The channel must outlive the last message.
            (sent, put)
        };
        let receiver = || {
            receive(*load, |checker| match rx.try_recv() {
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
    type Load = Load;
}

/// Sends `count` messages, in as many calls as it takes.
#[inline]
fn put_all<M: Message>(tx: &mut impl SendBatch<M>, count: usize, of: impl Fn(usize) -> u64) {
    let mut done = 0;
    while done < count {
        let sent = tx.send_batch(count - done, |at| M::of(of(done + at)));
        if sent == 0 {
            spin_loop();
        }
        done += sent;
    }
}

impl<M: Message> BatchJob<M> for Batches {
    fn run<P: BatchPair<M>>(load: &Load) -> Ran {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(load.capacity);
        let sender = move || {
            let sent = send_for(*load, |first| {
                for batch in 0..LOOK_EVERY / BATCH as u64 {
                    let first = first + batch * BATCH as u64;
                    put_all(&mut tx, BATCH, |at| first + at as u64);
                }
            });
            put_all(&mut tx, 1, |_| M::LAST);
            (sent, tx)
        };
        let receiver = || {
            receive(*load, |checker| {
                if rx.recv_batch(BATCH, |message| checker.take(message)) == 0 {
                    spin_loop();
                }
            })
        };
        let ((sent, _), seen) = seats.run(sender, receiver)?;
        Ok(figures(sent, seen))
    }
}

pub(super) fn one_by_one<M: Message>() -> Subjects<Load> {
    each_try::<M, OneByOne>()
}

pub(super) fn batches<M: Message>() -> Subjects<Load> {
    each_batch::<M, Batches>()
}

pub(super) const TRIP_METRICS: &[Metric] = &[
    Metric::lower("round_trip_p50", "ns"),
    Metric::lower("round_trip_p99", "ns"),
];

/// Room of both channels.
const CAPACITY: usize = 1024;
/// Round trips that are not measured.
const WARM_UP: u64 = 200;
const TRIPS_MAX: usize = 1 << 17;

/// Both ends of a way, whichever calls it uses.
fn trips<M: Message>(
    span_ns: u64,
    mut there: (impl FnMut(M), impl FnMut() -> M + Send),
    mut back: (impl FnMut(M) + Send, impl FnMut() -> M),
) -> Ran {
    let seats = Seats::apart()?;
    let client = || {
        let clock = Clock::global();
        let mut samples = Samples::with_room(TRIPS_MAX);
        let mut checker = Checker::default();
        let mut trip = |checker: &mut Checker, number| {
            there.0(M::of(number));
            checker.take(back.1());
        };
        (0..WARM_UP).for_each(|number| trip(&mut checker, number));
        let mut number = WARM_UP;
        let mut last = clock.ticks();
        let end = last + clock.ticks_from_ns(span_ns);
        while last < end && !samples.is_full() {
            trip(&mut checker, number);
            number += 1;
            let now = clock.ticks();
            samples.take(now.saturating_sub(last));
            last = now;
        }
        trip(&mut checker, M::LAST);
        (checker, number, samples)
    };
    let server = || {
        loop {
            let message = there.1();
            back.0(message);
            if message == M::of(M::LAST) {
                break;
            }
        }
    };
    let ((checker, sent, samples), ()) = seats.run(client, server)?;
    Ok(Run::of(samples.quantiles_ns([0.5, 0.99]).to_vec())
        .with_lost(checker.lost(sent) + u64::from(!checker.over)))
}

#[inline]
fn put<M: Message>(tx: &mut impl TrySend<M>, message: M) {
    while !tx.try_send(message) {
        spin_loop();
    }
}

#[inline]
fn get<M: Message>(rx: &mut impl TryRecv<M>) -> M {
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

impl<M: Message> TryJob<M> for RoundTrips {
    fn run<P: TryPair<M>>(span_ns: &u64) -> Ran {
        let (mut there, mut back) = (P::pair(CAPACITY), P::pair(CAPACITY));
        trips::<M>(
            *span_ns,
            (
                move |message| put(&mut there.0, message),
                move || get(&mut there.1),
            ),
            (
                move |message| put(&mut back.0, message),
                move || get(&mut back.1),
            ),
        )
    }
}

/// The same by the calls that wait.
struct Blocking;

impl Job for Blocking {
    type Load = u64;
    const SUFFIX: &'static str = " blocking";
}

impl<M: Message> BlockingJob<M> for Blocking {
    fn run<P: BlockingPair<M>>(span_ns: &u64) -> Ran {
        let (mut there, mut back) = (P::pair(CAPACITY), P::pair(CAPACITY));
        // A side that is gone counts as a wrong answer.
        let there = (
            move |message| there.0.send(message),
            move || there.1.recv().unwrap_or(M::of(M::LAST)),
        );
        let back = (
            move |message| back.0.send(message),
            move || back.1.recv().unwrap_or(M::of(M::LAST)),
        );
        trips::<M>(*span_ns, there, back)
    }
}

pub(super) fn round_trips<M: Message>() -> Subjects<u64> {
    let floor = <RoundTrips as TryJob<M>>::run::<CacheLine>;
    let mut all = vec![subject(<CacheLine as Pair<M>>::NAME, floor)];
    all.extend(each_try::<M, RoundTrips>());
    all.extend(each_blocking::<M, Blocking>());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Wide;

    #[test]
    fn the_checker_counts_what_is_lost_torn_or_out_of_place() {
        let lost = |values: &[u64], sent: u64| {
            let mut checker = Checker::default();
            for value in values {
                checker.take(Wide::of(*value));
            }
            checker.lost(sent)
        };
        assert_eq!(lost(&[0, 1, 2], 3), 0);
        assert_eq!(lost(&[0, 1], 3), 1);
        assert_eq!(lost(&[0, 2], 3), 1);
        assert!(lost(&[0, 2, 1], 3) >= 2);
        let mut checker = Checker::default();
        let mut torn = Wide::of(0).words();
        torn[3] ^= 1;
        checker.take(Wide::from_words(torn));
        assert_eq!(checker.lost(1), 1);
        checker.take(Wide::of(Wide::LAST));
        assert!(checker.over);
    }
}
