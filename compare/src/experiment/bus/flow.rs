//! What a publish costs where there is room; and messages to consumers that are at work: how long
//! one is under way, and how many pass.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::wait::cores;
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::GapMeter;

use super::broker::{Broker, Checker, Job, Publish, Take, Tick};
use crate::channels::Shape;
use crate::runner::{Metric, Ran, Run};
use crate::sender::{GAP_NS, spin_until};
use crate::threads::{Samples, Seats, crew};

pub(super) const HOP_METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
];
pub(super) const STREAM_METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Messages a second: far apart, so that none waits for another.
pub(super) const PER_S: u64 = 500_000;
/// Messages that may wait.
pub(super) const CAPACITY: usize = 4096;
/// Messages that are not measured.
const WARM_UP: u64 = 4 * CAPACITY as u64;
const HOP_WARM_UP: u64 = 2_000;
/// Looks of a consumer before it yields.
const LOOKS: u32 = 64;

pub(super) struct Hop;

impl Job for Hop {
    type Load = u64;

    fn run<B: Broker>(span_ns: &u64) -> Ran {
        let seats = Seats::apart()?;
        let (mut txs, mut rxs) = B::open(CAPACITY, ONE);
        let clock = Clock::global();
        let count = HOP_WARM_UP + (PER_S * span_ns / 1_000_000_000).max(1);
        let publisher = || {
            let rate = Rate::per_second(PER_S).expect("it is a rate");
            let mut schedule = OpenLoop::new(clock, rate);
            let mut meter = GapMeter::new(clock.ticks_from_ns(GAP_NS));
            for number in 0..count {
                spin_until(schedule.next_due(), clock, &mut meter);
                txs[0].publish(Tick::new(0, number, clock.ticks()));
            }
            txs[0].publish(Tick::last());
            (meter.gaps().disturbance(), txs)
        };
        let mut samples = Samples::with_room((count - HOP_WARM_UP) as usize);
        let consumer = || {
            let mut checker = Checker::default();
            loop {
                let Some(tick) = rxs[0].take() else {
                    spin_loop();
                    continue;
                };
                let latency = clock.ticks().saturating_sub(tick.stamp);
                if tick.is_last() {
                    break;
                }
                if checker.taken >= HOP_WARM_UP {
                    samples.take(latency);
                }
                checker.take(&tick);
            }
            checker
        };
        let ((disturbance, _), checker) = seats.run(publisher, consumer)?;
        let quantiles = samples.quantiles_ns([0.5, 0.99]);
        let values = quantiles.map(|ns| ns - clock.read_cost_ns()).to_vec();
        let run = Run::of(values).with_lost(checker.lost(count));
        Ok(Run { disturbance, ..run })
    }
}

/// As fast as it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flood {
    pub(super) shape: Shape,
    /// Messages of each publisher.
    pub(super) messages: u64,
}

pub(super) struct Stream;

/// Threads sit on cores of their own if there are enough.
fn sit(at: usize, threads: usize) {
    let usable = cores::usable();
    let cpus = usable.cpus();
    if threads <= cpus.len() && cores::pin_current_thread(&cpus[at..=at]).is_err() {
        eprintln!("core {} refuses to be pinned to", cpus[at]);
    }
}

impl Job for Stream {
    type Load = Flood;

    fn run<B: Broker>(load: &Flood) -> Ran {
        let Shape { senders, receivers } = load.shape;
        let (txs, rxs) = B::open(CAPACITY, load.shape);
        let threads = senders + receivers;
        let (start, end) = (Barrier::new(threads), Barrier::new(senders));
        let publish = |at: usize, mut tx: B::Tx| {
            sit(at, threads);
            start.wait();
            for number in 0..load.messages {
                tx.publish(Tick::new(at as u32, number, 0));
            }
            // The last one comes after all others of all publishers.
            if end.wait().is_leader() {
                tx.publish(Tick::last());
            }
            tx
        };
        let take = |at: usize, rx: B::Rx| {
            sit(senders + at, threads);
            start.wait();
            consume(rx)
        };
        let (_, taken) = crew(txs, rxs, publish, take);
        let published = senders as u64 * load.messages;
        let lost = taken.iter().map(|(checker, _)| checker.lost(published));
        let lost = lost.sum();
        // The slower one, where there are two.
        let each_ns = taken.iter().map(|(_, each_ns)| *each_ns);
        let each_ns = each_ns.fold(0.0, f64::max);
        Ok(Run::of([each_ns]).with_lost(lost))
    }
}

/// Takes all; gives what came, and the time for each that came after the warm-up.
fn consume(mut rx: impl Take) -> (Checker, f64) {
    let clock = Clock::global();
    let mut checker = Checker::default();
    let (mut begin, mut looks) = (0, 0_u32);
    loop {
        let Some(tick) = rx.take() else {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                std::thread::yield_now();
            } else {
                spin_loop();
            }
            continue;
        };
        looks = 0;
        if tick.is_last() {
            break;
        }
        checker.take(&tick);
        if checker.taken == WARM_UP {
            begin = clock.ticks();
        }
    }
    let count = checker.taken.saturating_sub(WARM_UP);
    let ticks = clock.ticks().saturating_sub(begin);
    let each_ns = match count {
        0 => f64::INFINITY,
        _ => clock.ns(ticks) as f64 / count as f64,
    };
    (checker, each_ns)
}

const ONE: Shape = Shape {
    senders: 1,
    receivers: 1,
};

/// A call is what a thread spends on it; a message is what passes between the first and the last
/// of all threads, by all messages.
pub(super) const PUBLISH_METRICS: &[Metric] = &[
    Metric::lower("time_of_a_call", "ns"),
    Metric::lower("time_of_a_message", "ns"),
];
/// Bursts before those that are timed: all of the ring has been touched then.
const WARM_UP_BURSTS: u64 = 8;

/// How much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publishes {
    pub(super) capacity: usize,
    /// The time of all bursts together.
    pub(super) span_ns: u64,
}

impl Publishes {
    /// Messages of each publisher in each burst; those of two fill half the ring.
    fn burst(&self) -> u64 {
        self.capacity as u64 / 4
    }
}

#[inline]
fn publish_all(tx: &mut impl Publish, publisher: u32, sent: &mut u64, count: u64) -> (u64, u64) {
    let clock = Clock::global();
    let begin = clock.ticks();
    for number in *sent..*sent + count {
        tx.publish(Tick::new(publisher, number, 0));
    }
    *sent += count;
    (begin, clock.ticks())
}

#[inline]
fn drain(rx: &mut impl Take, checker: &mut Checker) {
    while let Some(tick) = rx.take() {
        checker.take(&tick);
    }
}

/// Returns the time of one, of spans that each have a clock read in them.
fn each_ns(ticks: u64, bursts: u64, count: u64) -> f64 {
    let clock = Clock::global();
    let ns = clock.ns(ticks) as f64 - bursts as f64 * clock.read_cost_ns();
    ns / (bursts * count) as f64
}

/// One publisher, whose thread is the consumer's as well.
pub(super) struct One;

impl Job for One {
    type Load = Publishes;

    fn run<B: Broker>(load: &Publishes) -> Ran {
        let (mut txs, mut rxs) = B::open(load.capacity, ONE);
        let (Some(tx), Some(rx)) = (txs.first_mut(), rxs.first_mut()) else {
            unreachable!("there is one of each");
        };
        let enough = Clock::global().ticks_from_ns(load.span_ns);
        let (mut sent, mut checker) = (0, Checker::default());
        let (mut ticks, mut bursts) = (0, 0);
        for burst in 0.. {
            let (begin, end) = publish_all(tx, 0, &mut sent, load.burst());
            drain(rx, &mut checker);
            if burst >= WARM_UP_BURSTS {
                ticks += end.saturating_sub(begin);
                bursts += 1;
            }
            if ticks >= enough {
                break;
            }
        }
        let ns = each_ns(ticks, bursts, load.burst());
        Ok(Run::of([ns, ns]).with_lost(checker.lost(sent)))
    }
}

/// Two publishers on two cores; the first one's thread is the consumer's as well.
pub(super) struct Two;

/// Where two threads meet, without sleep.
#[derive(Default)]
struct Meeting(AtomicU64);

impl Meeting {
    /// Waits for the other one, for the `time`th time.
    fn meet(&self, time: u64) {
        // ORDERING: Relaxed, as the load below: it says when to go on, and publishes nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
        // ORDERING: Relaxed, see above.
        while self.0.load(Ordering::Relaxed) < 2 * time {
            spin_loop();
        }
    }
}

impl Job for Two {
    type Load = Publishes;

    fn run<B: Broker>(load: &Publishes) -> Ran {
        let shape = Shape {
            senders: 2,
            receivers: 1,
        };
        let seats = Seats::apart()?;
        let (mut txs, mut rxs) = B::open(load.capacity, shape);
        let (Some(mut other), Some(mut tx), Some(mut rx)) = (txs.pop(), txs.pop(), rxs.pop())
        else {
            unreachable!("there are two and one");
        };
        // Both must know how many there will be: as many as last so long at 20 ns each.
        let bursts = (load.span_ns / (20 * load.burst())).max(2);
        let meeting = Meeting::default();
        let each = |tx: &mut dyn FnMut() -> (u64, u64), after: &mut dyn FnMut()| {
            let mut spans = Vec::with_capacity(bursts as usize);
            for burst in 0..WARM_UP_BURSTS + bursts {
                meeting.meet(2 * burst + 1);
                let span = tx();
                meeting.meet(2 * burst + 2);
                after();
                if burst >= WARM_UP_BURSTS {
                    spans.push(span);
                }
            }
            spans
        };
        let (mut sent, mut checker) = (0, Checker::default());
        let first = || {
            let mut publish = || publish_all(&mut tx, 0, &mut sent, load.burst());
            let spans = each(&mut publish, &mut || drain(&mut rx, &mut checker));
            drain(&mut rx, &mut checker);
            spans
        };
        let second = || {
            let mut sent = 0;
            let mut publish = || publish_all(&mut other, 1, &mut sent, load.burst());
            let spans = each(&mut publish, &mut || ());
            // It must outlive the last message.
            (spans, other)
        };
        let (first, (second, _)) = seats.run(first, second)?;
        let span = |&(begin, end): &(u64, u64)| end.saturating_sub(begin);
        let calls: u64 = first.iter().chain(&second).map(span).sum();
        let all = first.iter().zip(&second);
        let all: u64 = all
            .map(|(one, other)| one.1.max(other.1).saturating_sub(one.0.min(other.0)))
            .sum();
        let values = [
            each_ns(calls, 2 * bursts, load.burst()),
            each_ns(all, bursts, 2 * load.burst()),
        ];
        Ok(Run::of(values).with_lost(checker.lost(2 * sent)))
    }
}
