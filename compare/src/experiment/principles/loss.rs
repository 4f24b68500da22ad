//! Third principle: size the queue by the burst. A burst against slots, overload against slots, and
//! batches of the consumer.

use thalweg::ring::{self, Consumer, Layout, Producer};
use thalweg_measure::clock::Clock;

use super::formula::Burst;
use super::place::{Cores, work_ns};
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("lost_share", "percent"),
    Metric::higher("delivered_share", "percent"),
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
];
pub(super) const LOST: usize = 0;
pub(super) const DELIVERED: usize = 1;
pub(super) const P50: usize = 2;

/// 10,000 messages at 5 M/s to a consumer of 1 M/s that is away for the first 0.2 ms.
pub(super) const BURST: Burst = Burst {
    messages: 10_000,
    gap_ns: 200,
    service_ns: 1_000,
    stall_ns: 200_000,
};
/// As many at 10 M/s to a consumer that is away all the time.
pub(super) const STOPPED: Burst = Burst {
    messages: 10_000,
    gap_ns: 100,
    service_ns: 1_000,
    stall_ns: 1_000_000,
};
/// How often a burst comes, for the rule by means.
pub(super) const PERIOD_NS: u64 = 1_000_000_000;
/// Overload: twice what the consumer can.
pub(super) const OVERLOAD_GAP_NS: u64 = 500;
pub(super) const OVERLOAD_SLOTS: [usize; 3] = [256, 4_096, 32_768];
/// A batch costs the consumer this, and each of its messages that.
const BATCH_NS: u64 = 1_000;
const MESSAGE_NS: u64 = 400;
const BATCHED_GAP_NS: u64 = 900;
pub(super) const BATCHES: [usize; 5] = [1, 4, 16, 64, 256];
const BATCHED_SLOTS: usize = 1_024;

/// What is sent, and to whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) cores: Cores,
    /// Messages: all of the burst, or of the run.
    pub(super) messages: u64,
    pub(super) gap_ns: u64,
    pub(super) stall_ns: u64,
    /// From which message on losses and latencies count.
    pub(super) from: u64,
}

impl Load {
    pub(super) fn burst(burst: Burst, cores: Cores) -> Self {
        Self {
            cores,
            messages: burst.messages,
            gap_ns: burst.gap_ns,
            stall_ns: burst.stall_ns,
            from: 0,
        }
    }

    /// Overload; the queue is full in the last third, in which losses count.
    pub(super) fn overload(span_ns: u64, cores: Cores) -> Self {
        let messages = span_ns / OVERLOAD_GAP_NS;
        Self {
            cores,
            messages,
            gap_ns: OVERLOAD_GAP_NS,
            stall_ns: 0,
            from: messages / 3 * 2,
        }
    }

    pub(super) fn batches(span_ns: u64, cores: Cores) -> Self {
        Self {
            cores,
            messages: span_ns / BATCHED_GAP_NS,
            gap_ns: BATCHED_GAP_NS,
            stall_ns: 0,
            from: 0,
        }
    }
}

/// A queue and the consumer's habits.
#[derive(Debug, Clone, Copy)]
struct Queue {
    slots: usize,
    batch: usize,
    batch_ns: u64,
    message_ns: u64,
}

/// When it was due, and its number.
type Message = (u64, u64);

/// Sends on schedule and drops what finds no room; gives how many were lost, and of those that
/// count.
fn send(load: &Load, tx: &mut Producer<Message>) -> (u64, u64) {
    let clock = Clock::global();
    let begin = clock.ticks();
    let (mut lost, mut counted) = (0, 0);
    for number in 0..load.messages {
        let due = begin + clock.ticks_from_ns(number * load.gap_ns);
        load.cores.poll_until(due);
        if tx.try_push((due, number)).is_err() {
            lost += 1;
            counted += u64::from(number >= load.from);
        }
    }
    tx.close();
    (lost, counted)
}

/// Takes until the end; gives how many there were, and latencies of those that count.
fn take(load: &Load, queue: Queue, rx: &mut Consumer<Message>) -> (u64, Samples) {
    let clock = Clock::global();
    let mut samples = Samples::with_room(load.messages as usize);
    let mut taken = 0;
    let mut batch = Vec::with_capacity(queue.batch);
    work_ns(load.stall_ns);
    loop {
        let is_closed = rx.is_closed();
        if rx.pop_into(&mut batch, queue.batch) == 0 {
            if is_closed {
                return (taken, samples);
            }
            load.cores.turn();
            continue;
        }
        work_ns(queue.batch_ns);
        for (due, number) in batch.drain(..) {
            work_ns(queue.message_ns);
            taken += 1;
            if number >= load.from {
                samples.take(clock.ticks().saturating_sub(due));
            }
        }
    }
}

fn run(load: &Load, queue: Queue) -> Result<Run, String> {
    let ring = ring::spsc(queue.slots, Layout::Packed).map_err(|error| error.to_string());
    let (mut tx, mut rx) = ring?;
    let sender = || send(load, &mut tx);
    let seats = load.cores.seats()?;
    let ((lost, counted), (taken, samples)) = seats.run(sender, || take(load, queue, &mut rx))?;
    let share = 100.0 * counted as f64 / (load.messages - load.from) as f64;
    let [p50, p99] = samples.quantiles_ns([0.5, 0.99]);
    let unaccounted = load.messages.abs_diff(lost + taken);
    Ok(Run::of(vec![share, 100.0 - share, p50, p99]).with_lost(unaccounted))
}

fn queued(name: String, queue: Queue) -> Box<dyn Subject<Load>> {
    subject(name, move |load| run(load, queue))
}

/// A queue of so many slots, each message taken by itself.
fn plain(slots: u64) -> Queue {
    Queue {
        slots: slots as usize,
        batch: 1,
        batch_ns: 0,
        message_ns: BURST.service_ns,
    }
}

pub(super) fn slots_name(slots: u64) -> String {
    format!("{slots} slots")
}

pub(super) fn by_formula(burst: &Burst) -> String {
    format!("{} slots, by the formula", burst.slots())
}

/// The slots that a burst is tried with: few to plenty.
pub(super) fn tried(burst: &Burst) -> [u64; 5] {
    // A ring has at least one slot where the rule by means asks for none.
    let by_mean = burst.slots_by_mean(PERIOD_NS).max(1);
    [by_mean, 1_024, 4_096, burst.slots() / 2, burst.slots()]
}

pub(super) fn burst_subjects(burst: Burst) -> Vec<Box<dyn Subject<Load>>> {
    let [by_mean, .., formula] = tried(&burst);
    let named = |slots| {
        let name = match slots {
            slots if slots == by_mean => format!("{slots} slot, the rule by means says 0"),
            slots if slots == formula => by_formula(&burst),
            slots => slots_name(slots),
        };
        queued(name, plain(slots))
    };
    tried(&burst).map(named).into()
}

pub(super) fn overload_subjects() -> Vec<Box<dyn Subject<Load>>> {
    let named = |slots: usize| queued(slots_name(slots as u64), plain(slots as u64));
    OVERLOAD_SLOTS.map(named).into()
}

pub(super) fn batch_name(batch: usize) -> String {
    format!("up to {batch} at once")
}

pub(super) fn batch_subjects() -> Vec<Box<dyn Subject<Load>>> {
    let named = |batch| {
        let queue = Queue {
            slots: BATCHED_SLOTS,
            batch,
            batch_ns: BATCH_NS,
            message_ns: MESSAGE_NS,
        };
        queued(batch_name(batch), queue)
    };
    BATCHES.map(named).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_taken_or_counted_as_lost() {
        for cores in Cores::EACH {
            let load = Load {
                messages: 2_000,
                ..Load::burst(BURST, cores)
            };
            for slots in [1, 64, 2_000] {
                let job = || run(&load, plain(slots));
                match std::thread::scope(|scope| scope.spawn(job).join().expect("no panic")) {
                    Ok(run) => {
                        assert_eq!(run.lost, 0, "{slots} slots");
                        assert_eq!(run.values[LOST] + run.values[DELIVERED], 100.0);
                        assert!(slots < 2_000 || run.values[LOST] == 0.0);
                    }
                    Err(why) => println!("skipped on {}: {why}", cores.name()),
                }
            }
        }
    }

    #[test]
    fn the_rule_by_means_asks_for_nothing_in_both_bursts() {
        for burst in [BURST, STOPPED] {
            assert!(burst.is_stable(PERIOD_NS));
            assert_eq!(burst.slots_by_mean(PERIOD_NS), 0);
            assert_eq!(tried(&burst)[0], 1);
        }
        assert_eq!((STOPPED.lost_share(4096) * 100.0).round(), 59.0);
        assert_eq!(BURST.slots(), 9_000);
    }
}
