//! Several senders, several receivers, or both, on the cores that the system gives them: a stream,
//! and a burst of orders into a channel with room for all of them. Each waits in the peer's own
//! way.

use std::sync::Barrier;
use std::time::Instant;

use thalweg_measure::clock::Clock;

use crate::channels::{BlockingRecv, BlockingSend, Crowd, CrowdJob, Job, Order, Shape, each_crowd};
use crate::runner::{Metric, Ran, Run, Subjects};
use crate::threads::{Samples, crew};

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Room of the channel; senders with lanes share it.
const CAPACITY: usize = 1024;

/// How much, and between how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) shape: Shape,
    /// Messages in all; each sender sends the same share.
    pub(super) messages: u64,
}

/// The job.
struct Team;

impl Job for Team {
    type Load = Load;
}

impl CrowdJob<u64> for Team {
    fn run<C: Crowd<u64>>(load: &Load) -> Ran {
        let Load { shape, messages } = *load;
        let clock = Clock::global();
        let (txs, rxs) = C::crowd(CAPACITY, shape);
        let share = messages / shape.senders as u64;
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
                sum = sum.wrapping_add(message);
            }
            (clock.ticks(), count, sum)
        };
        let (begins, ends) = crew(txs, rxs, send, receive);
        let sent = share * shape.senders as u64;
        let expected = (0..sent).fold(0, |sum: u64, value| sum.wrapping_add(value));
        let received: u64 = ends.iter().map(|(_, count, _)| count).sum();
        let sum = ends
            .iter()
            .fold(0, |all: u64, (_, _, sum)| all.wrapping_add(*sum));
        let begin = begins.into_iter().min().unwrap_or(0);
        let end = ends.iter().map(|(end, _, _)| *end).max().unwrap_or(begin);
        let each_ns = clock.ns(end.saturating_sub(begin)) as f64 / sent as f64;
        let lost = sent.abs_diff(received) + u64::from(sum != expected);
        Ok(Run::of([each_ns]).with_lost(lost))
    }
}

pub(super) fn subjects(shape: Shape) -> Subjects<Load> {
    each_crowd::<u64, Team>(shape)
}

pub(super) const BURST_METRICS: &[Metric] = &[
    Metric::lower("wall", "ns"),
    Metric::lower("flow", "ns"),
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p90", "ns"),
    Metric::lower("latency_p99", "ns"),
];
pub(super) const WALL: usize = 0;
pub(super) const P99: usize = 4;

/// How many at once, and between how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    pub(super) shape: Shape,
    pub(super) orders: usize,
}

struct BurstJob;

impl Job for BurstJob {
    type Load = Burst;
}

/// What one receiver saw.
struct Receipt {
    count: usize,
    ids: u64,
    torn: u64,
    end: Option<Instant>,
    samples: Samples,
}

fn receive(mut rx: impl BlockingRecv<Order>, epoch: Instant, samples: Samples) -> Receipt {
    let clock = Clock::global();
    let mut receipt = Receipt {
        count: 0,
        ids: 0,
        torn: 0,
        end: None,
        samples,
    };
    while let Some(order) = rx.recv() {
        let latency = epoch.elapsed().saturating_sub(order.timestamp);
        let ticks = clock.ticks_from_ns(latency.as_nanos() as u64);
        receipt.samples.take(ticks);
        receipt.count += 1;
        receipt.ids += u64::from(order.id.unsigned_abs());
        receipt.torn += u64::from(!order.is_whole());
    }
    receipt.end = Some(Instant::now());
    receipt
}

impl CrowdJob<Order> for BurstJob {
    fn run<C: Crowd<Order>>(&Burst { shape, orders }: &Burst) -> Ran {
        let share = orders / shape.senders;
        let sent = share * shape.senders;
        let rooms = (0..shape.receivers).map(|_| Samples::with_room(sent));
        let rooms: Vec<Samples> = rooms.collect();
        let epoch = Instant::now();
        let (txs, rxs) = C::crowd(10 * orders, shape);
        let send = |at: usize, mut tx: C::Tx| {
            let begin = Instant::now();
            for id in at * share..(at + 1) * share {
                tx.send(Order::numbered(id as i32, epoch.elapsed()));
            }
            begin
        };
        let rxs = rxs.into_iter().zip(rooms).collect();
        let receive = |_, (rx, room)| receive(rx, epoch, room);
        let (begins, receipts) = crew(txs, rxs, send, receive);
        let wall = epoch.elapsed();
        let begin = begins.into_iter().min().unwrap_or(epoch);
        let end = receipts.iter().filter_map(|receipt| receipt.end).max();
        let flow = end.unwrap_or(begin).saturating_duration_since(begin);
        let ids: u64 = receipts.iter().map(|receipt| receipt.ids).sum();
        let count: usize = receipts.iter().map(|receipt| receipt.count).sum();
        let torn: u64 = receipts.iter().map(|receipt| receipt.torn).sum();
        let wrong_ids = u64::from(ids != (sent as u64 - 1) * sent as u64 / 2);
        let lost = (sent.abs_diff(count)) as u64 + torn + wrong_ids;
        let samples = Samples::merged(receipts.into_iter().map(|receipt| receipt.samples));
        let [p50, p90, p99] = samples.quantiles_ns([0.5, 0.9, 0.99]);
        let [wall, flow] = [wall, flow].map(|time| time.as_nanos() as f64);
        Ok(Run::of([wall, flow, p50, p90, p99]).with_lost(lost))
    }
}

pub(super) fn bursts(shape: Shape) -> Subjects<Burst> {
    each_crowd::<Order, BurstJob>(shape)
}
