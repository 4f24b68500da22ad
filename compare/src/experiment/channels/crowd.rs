//! Several senders or receivers, on the cores that the system gives them: a stream, and a burst of
//! orders into a channel with room for all of them. Each waits in the peer's own way.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use thalweg_measure::clock::Clock;

use crate::case::{Case, Goal, Limit, Settings};
use crate::channels::{BlockingRecv, BlockingSend, Channel, Topology, each_crowd, shape, subjects};
use crate::runner::{Metric, Ran, Run};
use crate::threads::{Samples, crew};

const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];
/// The channel has room for this many.
const CAPACITY: usize = 1024;

/// Each sender sends an equal share of the messages.
#[derive(Debug, Clone, Copy)]
struct Load {
    shape: Topology,
    messages: usize,
}

/// Makes the cases of a stream.
pub(crate) fn cases(settings: &Settings) -> impl Iterator<Item = Case> {
    let messages = settings.count(300_000) as usize;
    let shapes = [shape(4, 1), shape(20, 1), shape(1, 20)];
    let names = ["fanin/4x1", "fanin/20x1", "fanout/1x20"];
    names.into_iter().zip(shapes).map(move |(name, shape)| {
        let subjects = each_crowd!(stream, u64, shape);
        let heading = "room for 1,024 in all, waiting calls, not pinned";
        let load = Load { shape, messages };
        let case = Case::of(name, heading, METRICS, subjects, load).repeated(31);
        case.judged(&[0]).goal(Goal::Best(0, Limit::AtLeast(1.1)))
    })
}

fn stream<C>(&Load { shape, messages }: &Load) -> Ran
where
    C: Channel<u64, Tx: BlockingSend<u64>, Rx: BlockingRecv<u64>>,
{
    let clock = Clock::global();
    let (txs, rxs) = C::open(CAPACITY, shape);
    let share = (messages / shape.senders) as u64;
    let start = Barrier::new(shape.senders + shape.receivers);
    let send = |at: usize, mut tx: C::Tx| {
        start.wait();
        let begin = clock.ticks();
        let first = at as u64 * share;
        (first..first + share).for_each(|value| tx.send(value));
        begin
    };
    let receive = |_, mut rx: C::Rx| {
        start.wait();
        let (mut count, mut sum) = (0_u64, 0_u64);
        while let Some(message) = rx.recv() {
            count += 1;
            sum += message;
        }
        (clock.ticks(), count, sum)
    };
    let (begins, ends) = crew(txs, rxs, send, receive);
    let sent = share * shape.senders as u64;
    let received: u64 = ends.iter().map(|(_, count, _)| count).sum();
    let sum: u64 = ends.iter().map(|(_, _, sum)| sum).sum();
    let begin = begins.into_iter().min().unwrap_or(0);
    let end = ends.iter().map(|(end, _, _)| *end).max().unwrap_or(begin);
    let each_ns = clock.ns(end.saturating_sub(begin)) as f64 / sent as f64;
    let lost = sent.abs_diff(received) + u64::from(sum != (0..sent).sum::<u64>());
    Ok(Run::of([each_ns]).with_lost(lost))
}

const BURST_METRICS: &[Metric] =
    &Metric::times(["wall", "flow", "latency_p50", "latency_p90", "latency_p99"]);
const WALL: usize = 0;
const P99: usize = 4;

/// Makes the cases of a burst.
pub(crate) fn bursts(settings: &Settings) -> Vec<Case> {
    let messages = settings.count(100_000) as usize;
    let cases = [1, 20].map(|senders| {
        let shape = shape(senders, 1);
        let heading = format!("{messages} orders at once, room for ten times as many, not pinned");
        let name = format!("{senders}x1");
        let (subjects, load) = (each_crowd!(burst, Order, shape), Load { shape, messages });
        let case = Case::of(name, heading, BURST_METRICS, subjects, load);
        let goal = |ours, metric, least| Goal::ratio([ours, "crossbeam"], metric, least);
        let case = case.repeated(51).judged(&[WALL, P99]);
        match senders {
            1 => case.goal(goal("thalweg soft limit", WALL, 0.95)),
            _ => case.goals([goal("thalweg", WALL, 1.05), goal("thalweg", P99, 2.0)]),
        }
    });
    cases.into()
}

/// An order of a trading program has 32 bytes, with a time stamp of 16.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Order {
    id: i32,
    price: f64,
    amount: u32,
    /// The time since the run began.
    timestamp: Duration,
}

const _: () = assert!(size_of::<Order>() == 32);

impl Order {
    /// Makes the order of this number.
    #[inline]
    fn numbered(id: i32, timestamp: Duration) -> Self {
        Self {
            id,
            price: f64::from(id) * 0.25,
            amount: id.unsigned_abs() & 0xFFFF,
            timestamp,
        }
    }
}

fn burst<C>(&Load { shape, messages }: &Load) -> Ran
where
    C: Channel<Order, Tx: BlockingSend<Order>, Rx: BlockingRecv<Order>>,
{
    let share = messages / shape.senders;
    let sent = share * shape.senders;
    let samples = Samples::with_room(sent);
    let clock = Clock::global();
    let epoch = Instant::now();
    let (txs, rxs) = C::open(10 * messages, shape);
    let send = |at: usize, mut tx: C::Tx| {
        let begin = Instant::now();
        for id in at * share..(at + 1) * share {
            tx.send(Order::numbered(id as i32, epoch.elapsed()));
        }
        begin
    };
    let receive = |_, (mut rx, mut samples): (C::Rx, Samples)| {
        let (mut count, mut ids, mut torn) = (0, 0, 0);
        while let Some(order) = rx.recv() {
            let latency = epoch.elapsed().saturating_sub(order.timestamp);
            samples.take(clock.ticks_from_ns(latency.as_nanos() as u64));
            count += 1;
            ids += u64::from(order.id.unsigned_abs());
            torn += u64::from(order != Order::numbered(order.id, order.timestamp));
        }
        (samples, Instant::now(), [count, ids, torn])
    };
    // There is one receiver.
    let rxs = rxs.into_iter().zip([samples]).collect();
    let (begins, mut receipts) = crew(txs, rxs, send, receive);
    let wall = epoch.elapsed();
    let (samples, end, [count, ids, torn]) = receipts.remove(0);
    let begin = begins.into_iter().min().unwrap_or(epoch);
    let flow = end.saturating_duration_since(begin);
    let wrong_ids = u64::from(ids != (sent as u64 - 1) * sent as u64 / 2);
    let lost = (sent as u64).abs_diff(count) + torn + wrong_ids;
    let [p50, p90, p99] = samples.quantiles_ns([0.5, 0.9, 0.99]);
    let [wall, flow] = [wall, flow].map(|time| time.as_nanos() as f64);
    Ok(Run::of([wall, flow, p50, p90, p99]).with_lost(lost))
}
