//! Several senders, several receivers, or both, on whatever cores the system gives them. Each
//! waits in the peer's own way.

use std::sync::Barrier;

use thalweg_measure::clock::Clock;

use super::crew::{self, Job};
use crate::channels::{BlockingRecv, BlockingSend, Crowd, Message, Shape};
use crate::experiment::subjects::{self, CrowdJob, Subjects};
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// Room of the channel; senders with lanes share it.
pub(super) const CAPACITY: usize = 1024;

/// The shapes, and the names of their cases.
pub(super) const SHAPES: [(&str, usize, usize); 4] = [
    ("fanin/4x1", 4, 1),
    ("fanin/20x1", 20, 1),
    ("fanout/1x20", 1, 20),
    ("many/2x2", 2, 2),
];

/// How much, and between how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) shape: Shape,
    /// Messages in all; each sender sends the same share.
    pub(super) messages: u64,
}

/// The job.
struct Team;

impl subjects::Job for Team {
    type Load = Load;
}

impl CrowdJob<u64> for Team {
    fn run<C: Crowd<u64>>(load: &Load) -> Result<Run, String> {
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
        let receive = |mut rx: C::Rx| {
            start.wait();
            let (mut count, mut sum) = (0_u64, 0_u64);
            while let Some(message) = rx.recv() {
                count += 1;
                sum = sum.wrapping_add(message.digest());
            }
            (clock.ticks(), count, sum)
        };
        let (send, receive) = (&send, &receive);
        let senders = txs.into_iter().enumerate();
        let senders = senders.map(|(at, tx)| -> Job<'_, _> { Box::new(move || send(at, tx)) });
        let receivers = rxs.into_iter();
        let receivers = receivers.map(|rx| -> Job<'_, _> { Box::new(move || receive(rx)) });
        let (begins, ends) = crew::run(senders.collect(), receivers.collect());
        let sent = share * shape.senders as u64;
        let expected = (0..sent).fold(0, |sum: u64, value| sum.wrapping_add(value.digest()));
        let received: u64 = ends.iter().map(|(_, count, _)| count).sum();
        let sum = ends
            .iter()
            .fold(0, |all: u64, (_, _, sum)| all.wrapping_add(*sum));
        let begin = begins.into_iter().min().unwrap_or(0);
        let end = ends.iter().map(|(end, _, _)| *end).max().unwrap_or(begin);
        Ok(Run::of(vec![
            clock.ns(end.saturating_sub(begin)) as f64 / sent as f64,
        ])
        .with_lost(sent.abs_diff(received) + u64::from(sum != expected)))
    }
}

pub(super) fn subjects(shape: Shape) -> Vec<Box<dyn Subject<Load>>> {
    Subjects::<Team>::new().crowds::<u64>(shape).all()
}
