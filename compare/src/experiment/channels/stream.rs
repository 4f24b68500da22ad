//! One sender and one receiver: a stream at full speed, one message at a time or in batches; and
//! round trips over two channels, one message under way.

use std::hint::spin_loop;

use thalweg_measure::clock::Clock;

use crate::case::{Case, Goal, Limit, Settings};
use crate::channels::{
    Channel, LAST, PAIR, RecvBatch, SendBatch, TryRecv, TrySend, each_try, subjects,
};
use crate::report::ns;
use crate::runner::{Metric, Ran, Run};
use crate::threads::{Samples, Seats};

/// Every channel has room for this many messages.
const CAPACITY: usize = 1024;
/// The first messages are sent and not measured: every slot has been touched then.
const WARM_UP: u64 = (CAPACITY + CAPACITY / 2) as u64;
/// A batch has this many messages.
const BATCH: usize = 64;
/// The clock is read once in this many messages.
const LOOK_EVERY: u64 = 256;

const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Makes the cases of a stream, and of round trips.
pub(crate) fn cases(settings: &Settings) -> Vec<Case> {
    let span_ns = settings.count(12_000_000);
    let pinned = "room for 1,024, pinned to two cores";
    let best = |least| Goal::Best(0, Limit::AtLeast(least));
    let (name, heading) = (
        "one/8B/1024",
        format!("one at a time, try and spin, {pinned}"),
    );
    let one = Case::of(name, heading, METRICS, each_try!(one_by_one), span_ns);
    let (name, heading) = ("batch/8B/1024", format!("batches of {BATCH}, {pinned}"));
    // These pairs have batches on both sides.
    let in_batches = subjects! {
        batches, u64, PAIR; ours::Spsc, ours::RingPacked, ours::RingSlotted, rings::Rtrb, gil::Spsc,
    };
    let batch = Case::of(name, heading, METRICS, in_batches, span_ns);
    let read = ns(Clock::global().read_cost_ns());
    let heading = format!("there and back, {pinned}; one clock read of {read} a trip included");
    let (metrics, trips) = (TRIP_METRICS, each_try!(round_trips));
    let trips = Case::of("roundtrip/8B", heading, metrics, trips, span_ns);
    vec![
        one.repeated(31).judged(&[0]).goal(best(1.3)),
        batch.repeated(31).judged(&[0]).goal(best(1.3)),
        trips.repeated(31).judged(&[0, 1]).goal(best(1.15)),
    ]
}

/// Checks that messages come whole and in their order.
#[derive(Debug, Default)]
pub struct Checker {
    /// The number of the next message.
    next: u64,
    misplaced: u64,
    over: bool,
}

impl Checker {
    /// Checks the next message.
    #[inline]
    pub fn take(&mut self, message: u64) {
        if message == self.next {
            self.next += 1;
        } else if message == LAST {
            self.over = true;
        } else {
            self.misplaced += 1;
            self.next = message.wrapping_add(1);
        }
    }

    /// Returns how many of the messages that were sent did not come whole and in order.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.abs_diff(self.next) + self.misplaced
    }
}

/// Sends chunks of [`LOOK_EVERY`] messages with `send(first)` for the span. Returns how many
/// messages it sent.
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

/// Runs `sender` on one core, and `receive`, which takes one or several messages, on another.
#[inline]
fn run<T>(sender: impl FnOnce() -> (u64, T), mut receive: impl FnMut(&mut Checker) + Send) -> Ran {
    let receiver = || {
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
    };
    // The channel must outlive the last message.
    let ((sent, _tx), (checker, each_ns)) = Seats::apart()?.run(sender, receiver)?;
    Ok(Run::of([each_ns]).with_lost(checker.lost(sent)))
}

/// Sends one message a call.
fn one_by_one<C>(span_ns: &u64) -> Ran
where
    C: Channel<u64, Tx: TrySend<u64>, Rx: TryRecv<u64>>,
{
    let (mut tx, mut rx) = C::pair(CAPACITY);
    let sender = move || {
        let sent = send_for(*span_ns, |first| {
            (first..first + LOOK_EVERY).for_each(|message| put(&mut tx, message));
        });
        put(&mut tx, LAST);
        (sent, tx)
    };
    run(sender, |checker| match rx.try_recv() {
        Some(message) => checker.take(message),
        None => spin_loop(),
    })
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

/// Sends [`BATCH`] messages a call.
fn batches<C>(span_ns: &u64) -> Ran
where
    C: Channel<u64, Tx: SendBatch<u64>, Rx: RecvBatch<u64>>,
{
    let (mut tx, mut rx) = C::pair(CAPACITY);
    let sender = move || {
        let sent = send_for(*span_ns, |first| {
            for first in (first..first + LOOK_EVERY).step_by(BATCH) {
                put_all(&mut tx, BATCH, |at| first + at as u64);
            }
        });
        put_all(&mut tx, 1, |_| LAST);
        (sent, tx)
    };
    run(sender, |checker| {
        if rx.recv_batch(BATCH, |message| checker.take(message)) == 0 {
            spin_loop();
        }
    })
}

const TRIP_METRICS: &[Metric] = &Metric::times(["round_trip_p50", "round_trip_p99"]);

/// The first round trips are not measured.
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

fn round_trips<C>(span_ns: &u64) -> Ran
where
    C: Channel<u64, Tx: TrySend<u64>, Rx: TryRecv<u64>>,
{
    let (mut there, mut back) = (C::pair(CAPACITY), C::pair(CAPACITY));
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
    let ((lost, samples), ()) = Seats::apart()?.run(client, server)?;
    Ok(Run::of(samples.quantiles_ns([0.5, 0.99])).with_lost(lost))
}
