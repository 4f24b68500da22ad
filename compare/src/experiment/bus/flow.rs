//! The cost of a publish with room; and the latency and throughput of messages to consumers that
//! run.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::wait::cores;
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::GapMeter;

use super::OURS;
use super::broker::{self, Broker, Tick, TickChecker, each_broker};
use crate::case::{Case, Goal, Settings};
use crate::channels::{BlockingSend, PAIR, Topology, TryRecv, insist, shape, subjects};
use crate::runner::{Metric, Ran, Run};
use crate::sender::{GAP_NS, spin_until};
use crate::threads::{Samples, Seats, crew};

const HOP_METRICS: &[Metric] = &Metric::times(["latency_p50", "latency_p99"]);

/// The rate of messages is low, so that none waits for another.
const PER_S: u64 = 500_000;
/// This many messages may wait.
const CAPACITY: usize = 4096;
/// The first messages are not measured.
const WARM_UP: u64 = 4 * CAPACITY as u64;
const HOP_WARM_UP: u64 = 2_000;
/// A consumer yields after this many tries.
const LOOKS: u32 = 64;

/// Makes the case of a message from one core to another.
pub(crate) fn hop_case(settings: &Settings) -> Case {
    let heading = format!(
        "{PER_S} messages a second from one core to another, from before the publish until it is \
         taken; the clock read is taken off"
    );
    let span_ns = settings.count(40_000_000);
    let subjects = each_broker!(hop, PAIR);
    let case = Case::of("hop", heading, HOP_METRICS, subjects, span_ns);
    let case = case.repeated(21).judged(&[0, 1]);
    case.goal(Goal::at_most(OURS, 0, 200.0))
}

fn hop<B: Broker>(span_ns: &u64) -> Ran {
    let (mut tx, mut rx) = B::pair(CAPACITY);
    let clock = Clock::global();
    let count = HOP_WARM_UP + (PER_S * span_ns / 1_000_000_000).max(1);
    let publisher = || {
        let rate = Rate::per_second(PER_S).expect("it is a rate");
        let mut schedule = OpenLoop::new(clock, rate);
        let mut meter = GapMeter::new(clock.ticks_from_ns(GAP_NS));
        for number in 0..count {
            spin_until(schedule.next_due(), clock, &mut meter);
            tx.send(Tick::new(0, number, clock.ticks()));
        }
        tx.send(Tick::last());
        (meter.gaps().disturbance(), tx)
    };
    let mut samples = Samples::with_room((count - HOP_WARM_UP) as usize);
    let consumer = || {
        let mut checker = TickChecker::default();
        loop {
            let Some(tick) = rx.try_recv() else {
                spin_loop();
                continue;
            };
            let latency = clock.ticks().saturating_sub(tick.stamp);
            if tick.is_last() {
                break checker;
            }
            if checker.taken >= HOP_WARM_UP {
                samples.take(latency);
            }
            checker.take(&tick);
        }
    };
    let ((disturbance, _), checker) = Seats::apart()?.run(publisher, consumer)?;
    let quantiles = samples.quantiles_ns([0.5, 0.99]);
    let run = Run::of(quantiles.map(|ns| ns - clock.read_cost_ns()));
    let run = run.with_lost(checker.lost(count));
    Ok(Run { disturbance, ..run })
}

const STREAM_METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// A stream at full speed.
#[derive(Debug, Clone, Copy)]
struct Flood {
    shape: Topology,
    /// Each publisher sends this many messages.
    messages: u64,
}

/// Makes the cases of streams.
pub(crate) fn streams(settings: &Settings) -> [Case; 3] {
    // Some messages remain after the warm-up.
    let messages = settings.count(500_000).max(8 * CAPACITY as u64);
    [("stream/1", 1, 1), ("stream/2", 2, 1), ("fan/2", 1, 2)].map(|(name, senders, receivers)| {
        let shape = shape(senders, receivers);
        let heading = format!(
            "{senders} publishers, {receivers} consumers that each get all, room for {CAPACITY}"
        );
        let (load, subjects) = (Flood { shape, messages }, each_broker!(stream, shape));
        let case = Case::of(name, heading, STREAM_METRICS, subjects, load);
        case.repeated(21).judged(&[0])
    })
}

/// Pins a thread to a core of its own if there are enough.
fn sit(at: usize, threads: usize) {
    let usable = cores::usable();
    let cpus = usable.cpus();
    if threads <= cpus.len() && cores::pin_current_thread(&cpus[at..=at]).is_err() {
        eprintln!("core {} refuses to be pinned to", cpus[at]);
    }
}

fn stream<B: Broker>(load: &Flood) -> Ran {
    let Topology { senders, receivers } = load.shape;
    let (txs, rxs) = B::open(CAPACITY, load.shape);
    let threads = senders + receivers;
    let (start, end) = (Barrier::new(threads), Barrier::new(senders));
    let publish = |at: usize, mut tx: B::Tx| {
        sit(at, threads);
        start.wait();
        for number in 0..load.messages {
            tx.send(Tick::new(at as u32, number, 0));
        }
        // The last message comes after all others of all publishers.
        if end.wait().is_leader() {
            tx.send(Tick::last());
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
    // The slower consumer counts.
    let each_ns = taken.iter().map(|(_, each_ns)| *each_ns);
    let each_ns = each_ns.fold(0.0, f64::max);
    Ok(Run::of([each_ns]).with_lost(lost))
}

/// Takes all messages. Returns the checker, and the time of each message after the warm-up.
fn consume(mut rx: impl TryRecv<Tick>) -> (TickChecker, f64) {
    let clock = Clock::global();
    let mut checker = TickChecker::default();
    let mut begin = 0;
    loop {
        let tick = insist(LOOKS, || rx.try_recv());
        if tick.is_last() {
            break;
        }
        checker.take(&tick);
        if checker.taken == WARM_UP {
            begin = clock.ticks();
        }
    }
    let ns = clock.ns(clock.ticks().saturating_sub(begin)) as f64;
    let each_ns = match checker.taken.saturating_sub(WARM_UP) {
        0 => f64::INFINITY,
        count => ns / count as f64,
    };
    (checker, each_ns)
}

/// The time of a call is that of its thread; the time of a message is the time from the first to
/// the last call of all threads, divided by all messages.
const PUBLISH_METRICS: &[Metric] = &Metric::times(["time_of_a_call", "time_of_a_message"]);
/// The first bursts are not timed: all of the ring has been touched then.
const WARM_UP_BURSTS: u64 = 8;

/// The load of publishers with room.
#[derive(Debug, Clone, Copy)]
struct Publishes {
    capacity: usize,
    /// Each publisher sends this many messages in each burst; those of two fill half the ring.
    burst: u64,
    /// All bursts together take this long.
    span_ns: u64,
}

/// Makes the cases of publishes with room.
pub(crate) fn publishes(settings: &Settings) -> Vec<Case> {
    let cases = [65_536, 1_024].map(|capacity| {
        let load = Publishes {
            capacity,
            burst: capacity as u64 / 4,
            span_ns: settings.count(10_000_000),
        };
        let heading = "one publisher, bursts of a quarter of the room, drained between them";
        let (name, subjects) = (format!("publish/1/{capacity}"), each_broker!(one, PAIR));
        let case = Case::of(name, heading, PUBLISH_METRICS, subjects, load);
        let first = case.goal(Goal::at_most(OURS, 0, 15.0));
        let heading = "two publishers on two cores at once";
        let (name, subjects) = (
            format!("publish/2/{capacity}"),
            each_broker!(two, shape(2, 1)),
        );
        let case = Case::of(name, heading, PUBLISH_METRICS, subjects, load);
        let second = case.goals([0, 1].map(|at| Goal::at_most(OURS, at, 20.0)));
        [first, second].map(|case| case.repeated(21).judged(&[0]))
    });
    cases.into_iter().flatten().collect()
}

/// Publishes a burst. Returns when it began and ended.
#[inline]
fn publish_all(
    tx: &mut impl BlockingSend<Tick>,
    publisher: u32,
    sent: &mut u64,
    count: u64,
) -> (u64, u64) {
    let clock = Clock::global();
    let begin = clock.ticks();
    for number in *sent..*sent + count {
        tx.send(Tick::new(publisher, number, 0));
    }
    *sent += count;
    (begin, clock.ticks())
}

#[inline]
fn drain(rx: &mut impl TryRecv<Tick>, checker: &mut TickChecker) {
    while let Some(tick) = rx.try_recv() {
        checker.take(&tick);
    }
}

/// Returns the time of one message, from spans that each contain a clock read.
fn each_ns(ticks: u64, bursts: u64, count: u64) -> f64 {
    let clock = Clock::global();
    let ns = clock.ns(ticks) as f64 - bursts as f64 * clock.read_cost_ns();
    ns / (bursts * count) as f64
}

/// Runs one publisher, whose thread is the consumer's as well.
fn one<B: Broker>(load: &Publishes) -> Ran {
    let (mut tx, mut rx) = B::pair(load.capacity);
    let enough = Clock::global().ticks_from_ns(load.span_ns);
    let (mut sent, mut checker) = (0, TickChecker::default());
    let (mut ticks, mut bursts) = (0, 0);
    for burst in 0.. {
        let (begin, end) = publish_all(&mut tx, 0, &mut sent, load.burst);
        drain(&mut rx, &mut checker);
        if burst >= WARM_UP_BURSTS {
            ticks += end.saturating_sub(begin);
            bursts += 1;
        }
        if ticks >= enough {
            break;
        }
    }
    let ns = each_ns(ticks, bursts, load.burst);
    Ok(Run::of([ns, ns]).with_lost(checker.lost(sent)))
}

/// Runs two publishers on two cores; the first one's thread is the consumer's as well.
fn two<B: Broker>(load: &Publishes) -> Ran {
    let (mut txs, mut rxs) = B::open(load.capacity, shape(2, 1));
    let (Some(mut other), Some(mut tx), Some(mut rx)) = (txs.pop(), txs.pop(), rxs.pop()) else {
        unreachable!("there are two and one");
    };
    // Both publishers know the number of bursts: as many as take the span at 20 ns a message.
    let bursts = (load.span_ns / (20 * load.burst)).max(2);
    // Both publishers meet here, without sleep, for the `time`th time.
    let met = AtomicU64::new(0);
    let meet = |time: u64| {
        // ORDERING: Relaxed, as the load below: it says when to go on, and publishes nothing.
        met.fetch_add(1, Ordering::Relaxed);
        // ORDERING: Relaxed, see above.
        while met.load(Ordering::Relaxed) < 2 * time {
            spin_loop();
        }
    };
    let each = |tx: &mut dyn FnMut() -> (u64, u64), after: &mut dyn FnMut()| {
        let mut spans = Vec::with_capacity(bursts as usize);
        for burst in 0..WARM_UP_BURSTS + bursts {
            meet(2 * burst + 1);
            let span = tx();
            meet(2 * burst + 2);
            after();
            if burst >= WARM_UP_BURSTS {
                spans.push(span);
            }
        }
        spans
    };
    let (mut sent, mut checker) = (0, TickChecker::default());
    let first = || {
        let mut publish = || publish_all(&mut tx, 0, &mut sent, load.burst);
        let spans = each(&mut publish, &mut || drain(&mut rx, &mut checker));
        drain(&mut rx, &mut checker);
        spans
    };
    let second = || {
        let mut sent = 0;
        let mut publish = || publish_all(&mut other, 1, &mut sent, load.burst);
        let spans = each(&mut publish, &mut || ());
        // The publisher must outlive the last message.
        (spans, other)
    };
    let (first, (second, _)) = Seats::apart()?.run(first, second)?;
    let span = |&(begin, end): &(u64, u64)| end.saturating_sub(begin);
    let calls = first.iter().chain(&second).map(span).sum();
    let both = first.iter().zip(&second);
    let both = both.map(|(one, other)| span(&(one.0.min(other.0), one.1.max(other.1))));
    let values = [
        each_ns(calls, 2 * bursts, load.burst),
        each_ns(both.sum(), bursts, 2 * load.burst),
    ];
    Ok(Run::of(values).with_lost(checker.lost(2 * sent)))
}
