//! Twice as many messages come as are served, for a long time: how long they wait, how many of high
//! priority are lost, and how long publishers wait.
//!
//! Two publishers send once a millisecond the messages that are due and sleep in between, since on
//! two cores no thread could spin beside the consumer. One that had to wait does not catch up. The
//! wait of a message counts from when `publish` returned, so that the wait for room is not in it,
//! until the consumer has it.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use thalweg::bus::{
    Bus, BusBuilder, Consumer, Message, Priority, Publisher, TopicId, TopicInfo, TopicOverflow,
    Topics,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::quantile;

use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Run, subject, text};
use crate::threads::crew;

/// This many messages may wait.
const CAPACITY: usize = 1_024;
/// The consumer takes this many messages a second.
const SERVED_PER_S: u64 = 20_000;
const SERVICE_NS: u64 = 1_000_000_000 / SERVED_PER_S;
const PUBLISHERS: u64 = 2;
/// One message in this many is of high priority.
const HIGH_EACH: u64 = 10;
const ROUND_NS: u64 = 1_000_000;

const METRICS: &[Metric] = &[
    Metric::lower("longest_of_bound", ""),
    Metric::lower("high_waits_p99", "ns"),
    Metric::lower("high_lost", "messages"),
    Metric::lower("publish_p99", "ns"),
    Metric::higher("taken", "1/s"),
    Metric::lower("memory_grown", "bytes"),
];
/// The longest wait is divided by the time that the consumer takes for as many messages as there is
/// room for.
const OF_BOUND: usize = 0;
const HIGH_P99: usize = 1;
const HIGH_LOST: usize = 2;
const GROWN: usize = 5;

const PLAIN: &str = "thalweg bus";
const EXPRESS: &str = "thalweg bus, express";
/// This many messages of high priority may wait in the express lane.
const EXPRESS_CAPACITY: usize = 64;
/// Messages of high priority wait for others of their round, and for the one that is being served.
const HIGH_WAITS_NS_MAX: f64 =
    ((1 + PUBLISHERS * ROUND_NS / SERVICE_NS / HIGH_EACH) * SERVICE_NS) as f64;

/// A message is a reading, or an alarm of high priority.
#[derive(Debug, Clone, Copy)]
struct Item {
    publisher: usize,
    number: usize,
    is_high: bool,
}

impl Message for Item {
    const TOPICS: &'static [TopicInfo] = &[
        TopicInfo {
            priority: Priority::Low,
            overflow: TopicOverflow::Block,
            ..TopicInfo::new("reading")
        },
        TopicInfo {
            priority: Priority::High,
            overflow: TopicOverflow::Reject,
            ..TopicInfo::new("alarm")
        },
    ];

    fn topic(&self) -> TopicId {
        TopicId::new(usize::from(self.is_high))
    }
}

/// Makes the case: the bus, and the bus with an express lane. Publishers wait at the limit.
pub(crate) fn case(settings: &Settings) -> Case {
    let plain = || Bus::builder().capacity(CAPACITY);
    let express = move || plain().express(Priority::High, EXPRESS_CAPACITY);
    let subjects = vec![
        subject(PLAIN, move |span_ns| run(*span_ns, plain())),
        subject(EXPRESS, move |span_ns| run(*span_ns, express())),
    ];
    let heading = format!(
        "{PUBLISHERS} publishers bring {SERVED_PER_S} messages a second each, the consumer takes \
         as many as one; room for {CAPACITY}"
    );
    let span_ns = settings.count(60_000_000_000);
    let case = Case::of("overload", heading, METRICS, subjects, span_ns);
    case.repeated(1).goals([
        Goal::at_most(PLAIN, OF_BOUND, 1.0),
        Goal::at_most(PLAIN, HIGH_LOST, 0.0),
        // Memory that grows by less counts as constant.
        Goal::at_most(PLAIN, GROWN, 1_048_576.0),
        Goal::at_most(EXPRESS, HIGH_P99, HIGH_WAITS_NS_MAX),
    ])
}

fn now_ns() -> u64 {
    let clock = Clock::global();
    clock.ns(clock.ticks())
}

/// Publishes for the span. Returns the times at which each call began and returned, in the places
/// of `calls`, and how many messages of high priority were lost.
fn publish(
    mut tx: Publisher<Item>,
    publisher: usize,
    mut calls: Vec<[u64; 2]>,
    span_ns: u64,
) -> (Vec<[u64; 2]>, u64) {
    let begin = now_ns();
    let (mut due, mut number, mut high_lost) = (begin, 0, 0);
    while due < begin + span_ns {
        let now = now_ns();
        while due <= now && number < calls.len() {
            let is_high = (number as u64).is_multiple_of(HIGH_EACH);
            let item = Item {
                publisher,
                number,
                is_high,
            };
            let called = now_ns();
            let outcome = tx.publish(item);
            let returned = now_ns();
            high_lost += u64::from(outcome.is_err());
            calls[number] = [called, returned];
            number += 1;
            // Messages that were due while it had to wait are not sent later.
            due = (due + SERVICE_NS).max(returned.saturating_sub(ROUND_NS));
        }
        thread::sleep(Duration::from_nanos(ROUND_NS));
    }
    calls.truncate(number);
    (calls, high_lost)
}

/// Returns the resident memory of this process.
fn memory_bytes() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0.0) * 4096.0
}

/// Takes all messages, with the times at which they came, into the places of `taken`. Returns them,
/// by how much memory grew, and how long it took.
fn consume(
    mut rx: Consumer<Item>,
    mut taken: Vec<(Item, u64)>,
    span_ns: u64,
) -> (Vec<(Item, u64)>, f64, f64) {
    let (mut count, mut before) = (0, 0.0);
    let begin = now_ns();
    while let Ok(delivery) = rx.recv() {
        let now = now_ns();
        taken[count] = (delivery.message, now);
        count += 1;
        if before == 0.0 && now > begin + span_ns / 4 {
            before = memory_bytes();
        }
        while now_ns() < now + SERVICE_NS {
            std::hint::spin_loop();
        }
    }
    taken.truncate(count);
    let span_s = (now_ns() - begin) as f64 / 1e9;
    (taken, (memory_bytes() - before).max(0.0), span_s)
}

fn run(span_ns: u64, builder: BusBuilder<Item>) -> Ran {
    let span_ns = span_ns.max(100_000_000);
    let bus = builder.build().map_err(text)?;
    let rx = bus.subscribe(Topics::ALL).map_err(text)?;
    let most = (span_ns / SERVICE_NS + 1_000) as usize;
    let txs: Result<Vec<_>, _> = (0..PUBLISHERS).map(|_| bus.publisher("source")).collect();
    let txs = txs.map_err(text)?;
    drop(bus);
    let start = Barrier::new(PUBLISHERS as usize + 1);
    // The places are written before, so that the accounts take no more memory during the run.
    let publish = |publisher, tx| {
        let calls = vec![[1; 2]; most];
        start.wait();
        publish(tx, publisher, calls, span_ns)
    };
    let consume = |_, rx| {
        let none = Item {
            publisher: 0,
            number: 1,
            is_high: false,
        };
        let taken = vec![(none, 1); 2 * most];
        start.wait();
        consume(rx, taken, span_ns)
    };
    let (published, consumed) = crew(txs, vec![rx], publish, consume);
    let (taken, grown, span_s) = &consumed[0];
    let wait = |(item, at): &(Item, u64)| {
        let [_, returned] = published[item.publisher].0[item.number];
        at.saturating_sub(returned) as f64
    };
    let longest = taken.iter().map(wait).fold(0.0, f64::max);
    let high = taken.iter().filter(|(item, _)| item.is_high);
    let calls = published.iter().flat_map(|(calls, _)| calls);
    let calls = calls.map(|[called, returned]| (returned - called) as f64);
    let p99 = |values: Vec<f64>| quantile(&values, 0.99).unwrap_or(f64::NAN);
    let high_lost: u64 = published.iter().map(|(_, lost)| lost).sum();
    let sent: usize = published.iter().map(|(calls, _)| calls.len()).sum();
    let taken_per_s = taken.len() as f64 / span_s;
    let bound_ns = CAPACITY as f64 * 1e9 / taken_per_s;
    let values = [
        longest / bound_ns,
        p99(high.map(wait).collect()),
        high_lost as f64,
        p99(calls.collect()),
        taken_per_s,
        *grown,
    ];
    let lost = (sent as u64 - high_lost).abs_diff(taken.len() as u64);
    Ok(Run::of(values).with_lost(lost))
}
