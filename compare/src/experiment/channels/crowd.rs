//! Several senders or receivers, on the cores that the system gives them. Each waits in the peer's
//! own way.

use std::sync::Barrier;

use thalweg_measure::clock::Clock;

use crate::case::{Case, Goal, Limit, Settings};
use crate::channels::{BlockingRecv, BlockingSend, Channel, Topology, each_crowd, shape, subjects};
use crate::runner::{Metric, Ran, Run};
use crate::threads::crew;

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
        let subjects = each_crowd!(stream, shape);
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
