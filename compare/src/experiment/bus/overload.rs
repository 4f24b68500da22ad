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
    Builder, Bus, Consumer, Message, Policy, Priority, Publisher, TopicId, TopicInfo, Topics,
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
            policy: Policy::Block,
            ..TopicInfo::new("reading")
        },
        TopicInfo {
            priority: Priority::High,
            policy: Policy::Reject,
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

/// A publisher's own account, by the number of the message.
struct Published {
    returned_ns: Vec<u64>,
    calls_ns: Vec<f64>,
    high_lost: u64,
}

impl Published {
    /// Makes room for this many messages, which is written before, so that the account takes no
    /// more memory.
    fn with_room(most: usize) -> Self {
        Self {
            returned_ns: vec![1; most],
            calls_ns: vec![1.0; most],
            high_lost: 0,
        }
    }

    fn publish(mut self, mut tx: Publisher<Item>, publisher: usize, span_ns: u64) -> Self {
        let clock = Clock::global();
        let now_ns = || clock.ns(clock.ticks());
        let (begin, gap_ns) = (now_ns(), SERVICE_NS);
        let (mut due, mut number) = (begin, 0);
        while due < begin + span_ns {
            let now = now_ns();
            while due <= now && number < self.calls_ns.len() {
                let is_high = (number as u64).is_multiple_of(HIGH_EACH);
                let called = now_ns();
                let outcome = tx.publish(Item {
                    publisher,
                    number,
                    is_high,
                });
                let returned = now_ns();
                self.high_lost += u64::from(outcome.is_err());
                self.returned_ns[number] = returned;
                self.calls_ns[number] = (returned - called) as f64;
                number += 1;
                // Messages that were due while it had to wait are not sent later.
                due = (due + gap_ns).max(returned.saturating_sub(ROUND_NS));
            }
            thread::sleep(Duration::from_nanos(ROUND_NS));
        }
        self.returned_ns.truncate(number);
        self.calls_ns.truncate(number);
        self
    }
}

/// Returns the resident memory of this process.
fn memory_bytes() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0.0) * 4096.0
}

fn run(span_ns: u64, builder: Builder<Item>) -> Ran {
    let span_ns = span_ns.max(100_000_000);
    let bus = builder.build().map_err(text)?;
    let rx = bus.subscribe(Topics::ALL).map_err(text)?;
    let most = (span_ns / SERVICE_NS + 1_000) as usize;
    let txs: Result<Vec<_>, _> = (0..PUBLISHERS).map(|_| bus.publisher("source")).collect();
    let txs = txs.map_err(text)?;
    drop(bus);
    let start = Barrier::new(PUBLISHERS as usize + 1);
    let publish = |publisher: usize, tx| {
        let published = Published::with_room(most);
        start.wait();
        published.publish(tx, publisher, span_ns)
    };
    let consume = |_, mut rx: Consumer<Item>| {
        let clock = Clock::global();
        let none = Item {
            publisher: 0,
            number: 1,
            is_high: false,
        };
        let mut taken = vec![(none, 1_u64); 2 * most];
        let (mut count, mut before) = (0, 0.0);
        start.wait();
        let begin = clock.ns(clock.ticks());
        while let Ok(delivery) = rx.recv() {
            let now = clock.ns(clock.ticks());
            taken[count] = (delivery.message, now);
            count += 1;
            if before == 0.0 && now > begin + span_ns / 4 {
                before = memory_bytes();
            }
            while clock.ns(clock.ticks()) < now + SERVICE_NS {
                std::hint::spin_loop();
            }
        }
        taken.truncate(count);
        let span_s = (clock.ns(clock.ticks()) - begin) as f64 / 1e9;
        (taken, (memory_bytes() - before).max(0.0), span_s)
    };
    let (published, consumed) = crew(txs, vec![rx], publish, consume);
    let (taken, grown, span_s) = &consumed[0];
    Ok(summary(&published, taken, *grown, *span_s))
}

fn summary(published: &[Published], taken: &[(Item, u64)], grown: f64, span_s: f64) -> Run {
    let waited = |(item, at): &(Item, u64)| {
        let returned = published[item.publisher].returned_ns[item.number];
        (item.is_high, at.saturating_sub(returned) as f64)
    };
    let waits: Vec<(bool, f64)> = taken.iter().map(waited).collect();
    let longest = waits.iter().map(|wait| wait.1).fold(0.0, f64::max);
    let high = waits.iter().filter(|wait| wait.0).map(|wait| wait.1);
    let high: Vec<f64> = high.collect();
    let calls = published.iter().flat_map(|one| &one.calls_ns).copied();
    let calls: Vec<f64> = calls.collect();
    let p99 = |values: &[f64]| quantile(values, 0.99).unwrap_or(f64::NAN);
    let high_lost: u64 = published.iter().map(|one| one.high_lost).sum();
    let sent: usize = published.iter().map(|one| one.returned_ns.len()).sum();
    let taken_per_s = taken.len() as f64 / span_s;
    let bound_ns = CAPACITY as f64 * 1e9 / taken_per_s;
    Run::of([
        longest / bound_ns,
        p99(&high),
        high_lost as f64,
        p99(&calls),
        taken_per_s,
        grown,
    ])
    .with_lost((sent as u64 - high_lost).abs_diff(taken.len() as u64))
}
