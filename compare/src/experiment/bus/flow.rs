//! Messages to consumers that are at work: how long one is under way, and how many pass.

use std::hint::spin_loop;
use std::sync::Barrier;

use thalweg::wait::cores;
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::GapMeter;

use super::broker::{Broker, Checker, Job, Ours, OursWaiting, Publish, Subjects, Take, Tick};
use super::peers::{Callbacks, Disruptor, TheCrate, Tokio};
use crate::channels::Shape;
use crate::experiment::channels::crew;
use crate::experiment::channels::duo::Seats;
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject};
use crate::sender::spin_until;

pub(super) const HOP_METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
];
pub(super) const STREAM_METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Messages a second: far apart, so that none waits for another.
pub(super) const PER_S: u64 = 500_000;
/// Messages that may wait.
pub(super) const CAPACITY: usize = 4096;
/// A longer step between two clock reads of the waiting publisher is a gap, ns.
const GAP_NS: u64 = 5_000;
/// Messages that are not measured.
const WARM_UP: u64 = 4 * CAPACITY as u64;
const HOP_WARM_UP: u64 = 2_000;
/// Looks of a consumer before it yields.
const LOOKS: u32 = 64;

/// How long a hop's load lasts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hops {
    pub(super) span_ns: u64,
}

struct Hop;

impl Job for Hop {
    type Load = Hops;

    fn run<B: Broker>(load: &Hops) -> Result<Run, String> {
        let seats = Seats::apart()?;
        let (mut txs, mut rxs) = B::open(CAPACITY, ONE);
        let clock = Clock::global();
        let count = HOP_WARM_UP + (PER_S * load.span_ns / 1_000_000_000).max(1);
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

struct Stream;

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

    fn run<B: Broker>(load: &Flood) -> Result<Run, String> {
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
        let (publish, take) = (&publish, &take);
        let txs = txs.into_iter().enumerate();
        let txs = txs.map(|(at, tx)| -> crew::Job<'_, _> { Box::new(move || publish(at, tx)) });
        let rxs = rxs.into_iter().enumerate();
        let rxs = rxs.map(|(at, rx)| -> crew::Job<'_, _> { Box::new(move || take(at, rx)) });
        let (_, taken) = crew::run(txs.collect(), rxs.collect());
        let published = senders as u64 * load.messages;
        let lost = taken.iter().map(|(checker, _)| checker.lost(published));
        let lost = lost.sum();
        // The slower one, where there are two.
        let each_ns = taken.iter().map(|(_, each_ns)| *each_ns);
        let each_ns = each_ns.fold(0.0, f64::max);
        Ok(Run::of(vec![each_ns]).with_lost(lost))
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

pub(super) fn hops() -> Vec<Box<dyn Subject<Hops>>> {
    each::<Hop>(ONE)
}

pub(super) fn streams(shape: Shape) -> Vec<Box<dyn Subject<Flood>>> {
    each::<Stream>(shape)
}

fn each<J: Job>(shape: Shape) -> Vec<Box<dyn Subject<J::Load>>> {
    let subjects = Subjects::<J>::new(shape).with::<Ours>();
    let subjects = subjects.with::<OursWaiting>().with::<TheCrate>();
    let subjects = subjects.with::<Tokio>().with::<Callbacks>();
    subjects.with::<Disruptor>().all()
}
