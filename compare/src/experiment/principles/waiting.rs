//! Second principle: how to wait, over gaps from 2 µs to 10 ms.
//!
//! Latency is from just before a message is sent until the receiver has it. Processor time is that
//! of the receiver by its own clock, and the sender's inside `put` (two cores, where it spins until
//! a message is due) or by its clock (one core, where it sleeps). Switches are the receiver's.

use rustix::time::{ClockId, clock_gettime};
use thalweg_measure::clock::Clock;

use super::place::{Cores, sleep_precisely};
use super::strategies::{
    Article, Backoff, Balanced, Get, Latency, Park, Polled, Power, Put, Sleep, Spin, Way,
};
use crate::experiment::channels::idle::Account;
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
    Metric::lower("cpu_per_message", "ns"),
    Metric::lower("switches_per_message", "switches"),
];
pub(super) const P50: usize = 0;
pub(super) const CPU: usize = 2;

pub(super) const SLEEP: &str = "sleep(10 µs)";
pub(super) const SPIN: &str = "spin";
pub(super) const BACKOFF: &str = "backoff, pauses double";
pub(super) const ARTICLE: &str = "article's adaptive, as described";
pub(super) const PARK: &str = "park";
pub(super) const LATENCY: &str = "thalweg latency";
pub(super) const BALANCED: &str = "thalweg balanced";
pub(super) const POWER: &str = "thalweg power";
pub(super) const ALL: [&str; 8] = [
    SLEEP, SPIN, BACKOFF, ARTICLE, PARK, LATENCY, BALANCED, POWER,
];

/// Gaps between messages: name, length, and what a run takes in full.
pub(super) const GAPS: [(&str, u64, u64); 6] = [
    ("2us", 2_000, 10_000_000),
    ("20us", 20_000, 25_000_000),
    ("100us", 100_000, 40_000_000),
    ("200us", 200_000, 60_000_000),
    ("2ms", 2_000_000, 120_000_000),
    ("10ms", 10_000_000, 200_000_000),
];

/// Messages that are not measured.
const WARM_UP: u64 = 10;
const LAST: u64 = u64::MAX;

/// When messages are due, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) gap_ns: u64,
    pub(super) span_ns: u64,
    pub(super) cores: Cores,
}

impl Load {
    fn measured(self) -> u64 {
        (self.span_ns / self.gap_ns).max(10)
    }
}

/// The calling thread's processor time, ns.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Sends on schedule; gives the sum of what was sent, and the time that sending took.
fn send(load: Load, tx: &mut impl Put) -> (u64, f64) {
    sleep_precisely();
    tx.begin();
    let clock = Clock::global();
    let gap = clock.ticks_from_ns(load.gap_ns);
    let (mut due, mut sum) = (clock.ticks(), 0_u64);
    let (mut inside, mut begin_ns) = (0, 0.0);
    for number in 0..WARM_UP + load.measured() {
        if number == WARM_UP {
            begin_ns = cpu_ns();
        }
        due += gap;
        load.cores.until(due);
        let stamp = clock.ticks();
        tx.put(stamp);
        sum = sum.wrapping_add(stamp);
        if number >= WARM_UP {
            inside += clock.ticks() - stamp;
        }
    }
    let ns = match load.cores {
        Cores::One => cpu_ns() - begin_ns,
        Cores::Two => clock.ns(inside) as f64,
    };
    tx.put(LAST);
    (sum, ns)
}

/// What the receiver knows.
struct Received {
    count: u64,
    sum: u64,
    cpu_ns: f64,
    switches: f64,
    samples: Samples,
}

fn receive(load: Load, rx: &mut impl Get) -> Result<Received, String> {
    rx.begin();
    let clock = Clock::global();
    let mut samples = Samples::with_room(load.measured() as usize);
    let (mut count, mut sum) = (0, 0_u64);
    let mut begin = (Account::own(), 0.0);
    loop {
        let stamp = rx.get();
        if stamp == LAST {
            break;
        }
        let now = clock.ticks();
        sum = sum.wrapping_add(stamp);
        count += 1;
        if count > WARM_UP {
            samples.take(now.saturating_sub(stamp));
        } else if count == WARM_UP {
            begin = (Account::own(), cpu_ns());
        }
    }
    let cpu_ns = cpu_ns() - begin.1;
    Ok(Received {
        count,
        sum,
        cpu_ns,
        switches: Account::own()?.voluntary - begin.0?.voluntary,
        samples,
    })
}

/// A run of one way to wait.
fn run<W: Way>(load: &Load) -> Result<Run, String> {
    let (mut tx, mut rx) = W::pair();
    let sender = || {
        let sent = send(*load, &mut tx);
        // What it sends through must outlive the last message.
        (sent, tx)
    };
    let seats = load.cores.seats()?;
    let (((sum, send_ns), _), received) = seats.run(sender, || receive(*load, &mut rx))?;
    let received = received?;
    let measured = load.measured() as f64;
    let lost = received.count.abs_diff(WARM_UP + load.measured());
    let [p50, p99] = received.samples.quantiles_ns([0.5, 0.99]);
    let cpu = (received.cpu_ns + send_ns) / measured;
    let values = vec![p50, p99, cpu, received.switches / measured];
    Ok(Run::of(values).with_lost(lost + u64::from(received.sum != sum)))
}

pub(super) fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(SLEEP, run::<Polled<Sleep>>),
        subject(SPIN, run::<Polled<Spin>>),
        subject(BACKOFF, run::<Polled<Backoff>>),
        subject(ARTICLE, run::<Polled<Article>>),
        subject(PARK, run::<Park>),
        subject(LATENCY, run::<Latency>),
        subject(BALANCED, run::<Balanced>),
        subject(POWER, run::<Power>),
    ]
}

/// Those that differ only in whether they spin first.
pub(super) fn spin_or_park() -> Vec<Box<dyn Subject<Load>>> {
    let all = subjects().into_iter();
    all.filter(|subject| [BALANCED, POWER].contains(&&*subject.name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_delivers_every_message_on_one_core_and_on_two() {
        let subjects = subjects();
        let names: Vec<String> = subjects.iter().map(|subject| subject.name()).collect();
        assert_eq!(names, ALL);
        for cores in Cores::EACH {
            if let Err(why) = cores.seats() {
                println!("skipped on {}: {why}", cores.name());
                continue;
            }
            let load = Load {
                gap_ns: 20_000,
                span_ns: 1_000_000,
                cores,
            };
            for subject in &subjects {
                // On a thread of its own, which it pins.
                let run = std::thread::scope(|scope| {
                    let run = scope.spawn(|| subject.run(&load));
                    run.join().expect("no panic")
                });
                let run = run.expect("the cores are there");
                let name = subject.name();
                assert_eq!(run.lost, 0, "{name} on {}", cores.name());
                assert!(
                    run.values[P50].is_finite() && run.values[CPU] > 0.0,
                    "{name}"
                );
            }
        }
    }
}
