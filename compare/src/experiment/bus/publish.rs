//! What a publish costs where there is room: bursts while the consumer is stopped, which takes all
//! of it after each, outside of what is timed.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_measure::clock::Clock;

use super::broker::{Broker, Checker, Job, Ours, Publish, Subjects, Take, Tick};
use super::peers::{Callbacks, Disruptor, TheCrate, Tokio};
use crate::channels::Shape;
use crate::experiment::channels::duo::Seats;
use crate::runner::{Metric, Run, Subject};

/// Of a call: what a thread spends on it. Of a message: what passes between the first and the last
/// of all threads, by all messages.
pub(super) const METRICS: &[Metric] = &[
    Metric::lower("time_of_a_call", "ns"),
    Metric::lower("time_of_a_message", "ns"),
];
pub(super) const CALL: usize = 0;
pub(super) const MESSAGE: usize = 1;

/// Bursts before those that are timed: all of the ring has been touched then.
const WARM_UP: u64 = 8;

/// How much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) capacity: usize,
    /// Of all bursts together, as timed.
    pub(super) span_ns: u64,
}

impl Load {
    /// Messages of each publisher in each burst; those of two fill half the ring.
    fn burst(&self) -> u64 {
        self.capacity as u64 / 4
    }
}

#[inline]
fn publish(tx: &mut impl Publish, publisher: u32, sent: &mut u64, count: u64) -> (u64, u64) {
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

/// The time of one of so many, of spans that each have a clock read in them.
fn each_ns(ticks: u64, bursts: u64, count: u64) -> f64 {
    let clock = Clock::global();
    let ns = clock.ns(ticks) as f64 - bursts as f64 * clock.read_cost_ns();
    ns / (bursts * count) as f64
}

/// One publisher, whose thread is the consumer's as well.
struct One;

impl Job for One {
    type Load = Load;

    fn run<B: Broker>(load: &Load) -> Result<Run, String> {
        let shape = Shape {
            senders: 1,
            receivers: 1,
        };
        let (mut txs, mut rxs) = B::open(load.capacity, shape);
        let (Some(tx), Some(rx)) = (txs.first_mut(), rxs.first_mut()) else {
            unreachable!("there is one of each");
        };
        let enough = Clock::global().ticks_from_ns(load.span_ns);
        let (mut sent, mut checker) = (0, Checker::default());
        let (mut ticks, mut bursts) = (0, 0);
        for burst in 0.. {
            let (begin, end) = publish(tx, 0, &mut sent, load.burst());
            drain(rx, &mut checker);
            if burst >= WARM_UP {
                ticks += end.saturating_sub(begin);
                bursts += 1;
            }
            if ticks >= enough {
                break;
            }
        }
        let ns = each_ns(ticks, bursts, load.burst());
        Ok(Run::of(vec![ns, ns]).with_lost(checker.lost(sent)))
    }
}

/// Two publishers on two cores; the first one's thread is the consumer's as well.
struct Two;

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
    type Load = Load;

    fn run<B: Broker>(load: &Load) -> Result<Run, String> {
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
            for burst in 0..WARM_UP + bursts {
                meeting.meet(2 * burst + 1);
                let span = tx();
                meeting.meet(2 * burst + 2);
                after();
                if burst >= WARM_UP {
                    spans.push(span);
                }
            }
            spans
        };
        let (mut sent, mut checker) = (0, Checker::default());
        let first = || {
            let mut publish = || publish(&mut tx, 0, &mut sent, load.burst());
            let spans = each(&mut publish, &mut || drain(&mut rx, &mut checker));
            drain(&mut rx, &mut checker);
            spans
        };
        let second = || {
            let mut sent = 0;
            let mut publish = || publish(&mut other, 1, &mut sent, load.burst());
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
        let values = vec![
            each_ns(calls, 2 * bursts, load.burst()),
            each_ns(all, bursts, 2 * load.burst()),
        ];
        Ok(Run::of(values).with_lost(checker.lost(2 * sent)))
    }
}

pub(super) fn one() -> Vec<Box<dyn Subject<Load>>> {
    let shape = Shape {
        senders: 1,
        receivers: 1,
    };
    each::<One>(shape)
}

pub(super) fn two() -> Vec<Box<dyn Subject<Load>>> {
    let shape = Shape {
        senders: 2,
        receivers: 1,
    };
    each::<Two>(shape)
}

fn each<J: Job>(shape: Shape) -> Vec<Box<dyn Subject<J::Load>>> {
    let subjects = Subjects::<J>::new(shape).with::<Ours>();
    let subjects = subjects.with::<TheCrate>().with::<Tokio>();
    subjects.with::<Callbacks>().with::<Disruptor>().all()
}
