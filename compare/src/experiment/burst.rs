//! A burst of orders into a channel with room for all of them, from several senders, to several
//! receivers: how long it takes, and how long an order is under way.
//!
//! The stamp is taken before `send`. So a slower sender makes a shorter queue and better quantiles,
//! and p50 says whether the receiver happened to keep up. Wall time counts from before the channel
//! is made until all threads have ended; flow time from the first `send` to the last `recv`.

mod goals;

use std::time::Instant;

use super::channels::crew::{self, Job};
use super::channels::samples::Samples;
use super::channels::scoreboard::show_trial;
use super::subjects::{self, CrowdJob, Subjects};
use super::{Experiment, Settings, progress_note};
use crate::channels::{BlockingRecv, BlockingSend, Crowd, Order, Shape};
use crate::report::Report;
use crate::runner::{Metric, Run, interleave};
use crate::target::{Limit, Target};
use goals::{Goal, RIVAL};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "burst",
    shows: "100,000 orders at once through a channel, up to 20 senders or receivers",
    run,
};

/// Orders of a run.
const ORDERS: usize = 100_000;
/// Room of the channel, in all.
const CAPACITY: usize = 1_000_000;
/// Senders and receivers.
const SHAPES: [(usize, usize); 7] = [(1, 1), (5, 1), (10, 1), (20, 1), (1, 5), (1, 10), (1, 20)];
/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [51, 5];

const METRICS: &[Metric] = &[
    Metric::lower("wall", "ns"),
    Metric::lower("flow", "ns"),
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p90", "ns"),
    Metric::lower("latency_p99", "ns"),
];
const WALL: usize = 0;
const P99: usize = 4;

/// The job.
struct Burst;

impl subjects::Job for Burst {
    type Load = Shape;
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
    let mut receipt = Receipt {
        count: 0,
        ids: 0,
        torn: 0,
        end: None,
        samples,
    };
    while let Some(order) = rx.recv() {
        let latency = epoch.elapsed().saturating_sub(order.timestamp);
        receipt.samples.take(latency.as_nanos() as u64);
        receipt.count += 1;
        receipt.ids += u64::from(order.id.unsigned_abs());
        receipt.torn += u64::from(!order.is_whole());
    }
    receipt.end = Some(Instant::now());
    receipt
}

impl CrowdJob<Order> for Burst {
    fn run<C: Crowd<Order>>(shape: &Shape) -> Result<Run, String> {
        let share = ORDERS / shape.senders;
        let sent = share * shape.senders;
        let rooms: Vec<Samples> = (0..shape.receivers)
            .map(|_| Samples::with_room(sent))
            .collect();
        let epoch = Instant::now();
        let (txs, rxs) = C::crowd(CAPACITY, *shape);
        let send = |at: usize, mut tx: C::Tx| {
            let begin = Instant::now();
            for id in at * share..(at + 1) * share {
                tx.send(Order::numbered(id as i32, epoch.elapsed()));
            }
            begin
        };
        let send = &send;
        let senders = txs.into_iter().enumerate();
        let senders = senders.map(|(at, tx)| -> Job<'_, _> { Box::new(move || send(at, tx)) });
        let receivers = rxs.into_iter().zip(rooms);
        let receivers = receivers
            .map(|(rx, room)| -> Job<'_, _> { Box::new(move || receive(rx, epoch, room)) });
        let (begins, receipts) = crew::run(senders.collect(), receivers.collect());
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
        let [p50, p90, p99] = samples.quantiles_of_ns([0.5, 0.9, 0.99]);
        Ok(Run::of(vec![
            wall.as_nanos() as f64,
            flow.as_nanos() as f64,
            p50,
            p90,
            p99,
        ])
        .with_lost(lost))
    }
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let repetitions = settings.repetitions_or(REPETITIONS);
    report.say(format!(
        "{ORDERS} orders of {} bytes, room for {CAPACITY} (senders with lanes share it), threads \
         not pinned; {repetitions} interleaved runs",
        size_of::<Order>()
    ));
    let (mut targets, mut trials) = (Vec::new(), Vec::new());
    for (senders, receivers) in SHAPES {
        let shape = Shape { senders, receivers };
        let case = format!("{senders}x{receivers}");
        let subjects = Subjects::<Burst>::new().crowds::<Order>(shape).all();
        let wanted = settings.wanted(&case, &subjects);
        if wanted.is_empty() {
            continue;
        }
        progress_note(&format!(
            "{case}: {} subjects, {repetitions} runs",
            wanted.len()
        ));
        interleave(&case, METRICS, &wanted, &shape, 1);
        let trial = interleave(&case, METRICS, &wanted, &shape, repetitions);
        let heading = format!("{case}: {senders} senders, {receivers} receivers");
        let headlines = show_trial(&mut report, &heading, &trial, &[WALL, P99]);
        for Goal {
            metric,
            ours,
            at_least,
        } in goals::goals(senders)
        {
            let name = METRICS[metric].name;
            let sides = [ours, RIVAL];
            let told = headlines.iter().any(|headline| headline.tells(name, sides));
            let ratio = match told {
                true => trial.interval(sides, metric),
                false => report.compare(&trial, sides, metric),
            };
            let what = format!("{case} {name}");
            targets.push(Target::ratio(&what, sides, Limit::AtLeast(at_least), ratio));
        }
        trials.push(trial);
    }
    if !targets.is_empty() {
        targets.push(Target::none_lost("orders", &trials));
        report.targets(&targets, settings);
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_shape_has_all_that_the_goals_are_about() {
        assert!(REPETITIONS[0] >= 50);
        for (senders, receivers) in SHAPES {
            let shape = Shape { senders, receivers };
            let subjects = Subjects::<Burst>::new().crowds::<Order>(shape).all();
            let names: BTreeSet<String> = subjects.iter().map(|subject| subject.name()).collect();
            assert_eq!(names.len(), subjects.len());
            for name in [goals::DEFAULT, RIVAL, goals::LIMITED] {
                assert!(names.contains(name), "{name} {shape:?}");
            }
        }
    }
}
