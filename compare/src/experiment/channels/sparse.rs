//! A message now and then, and both ends wait in their own way: latency, and what it costs.
//!
//! Latency is from just before `send` until `recv` has returned, so that the sender's own lateness
//! does not count. CPU time is that of each thread by its own clock, from after the warm-up until
//! the end, for each message. Where the sender sleeps until a message is due (timer slack 1 ns),
//! its CPU time includes that sleep: the subject without a channel shows how much it is. Where the
//! sender spins until then, it is busy all the time, and what counts is the time inside `send`.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

use super::duo::Seats;
use super::samples::Samples;
use crate::channels::{BlockingPair, BlockingRecv, BlockingSend, Message};
use crate::experiment::subjects::{BlockingJob, Job, Subjects};
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
    Metric::lower("receiver_cpu_per_message", "ns"),
    Metric::lower("sender_cpu_per_message", "ns"),
    Metric::lower("cpu_per_message", "ns"),
];
/// Where p50 and the sum of CPU times are among them.
pub(super) const P50: usize = 0;
pub(super) const CPU: usize = 4;
pub(super) const JUDGED: &[usize] = &[P50, CPU];

const CAPACITY: usize = 1024;
/// Messages that are not measured: a share of all.
const WARM_UP: u64 = 10;

/// Where the two threads are, and how the sender waits until a message is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// On two cores; it sleeps.
    Across,
    /// On two cores; it spins.
    AcrossBusy,
    /// On the same core; it sleeps.
    Shared,
}

impl Placement {
    pub(super) const EACH: [Self; 3] = [Self::Across, Self::AcrossBusy, Self::Shared];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Across => "across",
            Self::AcrossBusy => "across-busy",
            Self::Shared => "shared-core",
        }
    }

    pub(super) fn tells(self) -> &'static str {
        match self {
            Self::Across => "pinned to two cores, the sender sleeps in between",
            Self::AcrossBusy => "pinned to two cores, the sender spins in between",
            Self::Shared => "pinned to one core, the sender sleeps in between",
        }
    }
}

/// When messages are due, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) gap_ns: u64,
    pub(super) poisson: bool,
    pub(super) placement: Placement,
    pub(super) span_ns: u64,
}

/// The calling thread's CPU time, ns.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// What one side says: messages, their sum, CPU time of a message, latencies.
struct Side {
    count: u64,
    sum: u64,
    cpu_ns: f64,
}

/// Sends on schedule; returns its side, and how late it was.
fn send(load: Load, mut put: impl FnMut(u64)) -> (Side, Samples) {
    // Without it the schedule is coarser, which the subject without a channel shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let clock = Clock::global();
    let rate = Rate::per_second(1_000_000_000 / load.gap_ns).expect("gaps are below a second");
    let mut schedule = OpenLoop::new(clock, rate);
    if load.poisson {
        schedule = schedule.poisson(0x5EED);
    }
    let count = WARM_UP + (load.span_ns / load.gap_ns).max(10);
    let mut lateness = Samples::with_room(count as usize);
    let (mut sum, mut inside, mut begin_ns) = (0_u64, 0_u64, 0.0);
    for number in 0..count {
        if number == WARM_UP {
            begin_ns = cpu_ns();
        }
        let due = schedule.next_due();
        match load.placement {
            Placement::AcrossBusy => {
                schedule.wait_until(due);
            }
            Placement::Across | Placement::Shared => {
                let left = due.saturating_sub(clock.ticks());
                if left > 0 {
                    std::thread::sleep(Duration::from_nanos(clock.ns(left)));
                }
            }
        }
        let stamp = clock.ticks();
        put(stamp);
        sum = sum.wrapping_add(stamp);
        if number >= WARM_UP {
            inside += clock.ticks().saturating_sub(stamp);
            lateness.take(stamp.saturating_sub(due));
        }
    }
    let measured = (count - WARM_UP) as f64;
    let cpu_ns = match load.placement {
        Placement::AcrossBusy => clock.ns(inside) as f64 / measured,
        _ => (cpu_ns() - begin_ns) / measured,
    };
    put(u64::LAST);
    (Side { count, sum, cpu_ns }, lateness)
}

/// Receives until the last message; returns its side, and the latencies.
fn receive(mut get: impl FnMut() -> u64, room: usize) -> (Side, Samples) {
    let clock = Clock::global();
    let mut samples = Samples::with_room(room);
    let (mut count, mut sum, mut begin_ns) = (0, 0_u64, 0.0);
    loop {
        let stamp = get();
        if stamp == u64::LAST {
            break;
        }
        let now = clock.ticks();
        sum = sum.wrapping_add(stamp);
        count += 1;
        if count > WARM_UP {
            samples.take(now.saturating_sub(stamp));
        } else if count == WARM_UP {
            begin_ns = cpu_ns();
        }
    }
    let measured = count.saturating_sub(WARM_UP).max(1) as f64;
    let cpu_ns = (cpu_ns() - begin_ns) / measured;
    (Side { count, sum, cpu_ns }, samples)
}

impl Load {
    fn seats(self) -> Result<Seats, String> {
        match self.placement {
            Placement::Shared => Seats::together(),
            Placement::Across | Placement::AcrossBusy => Seats::apart(),
        }
    }

    fn room(self) -> usize {
        (self.span_ns / self.gap_ns).max(10) as usize
    }
}

/// The job.
struct Waiting;

impl Job for Waiting {
    type Load = Load;
}

impl BlockingJob<u64> for Waiting {
    const SUFFIX: &'static str = "";

    fn run<P: BlockingPair<u64>>(load: &Load) -> Result<Run, String> {
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let sender = || {
            let side = send(*load, |stamp| tx.send(stamp));
            // The channel must outlive the last message.
            (side, tx)
        };
        let receiver = || receive(|| rx.recv().unwrap_or(u64::LAST), load.room());
        let (((sent, _), _), (received, samples)) = load.seats()?.run(sender, receiver)?;
        let [p50, p99] = samples.quantiles_ns([0.5, 0.99]);
        let total = received.cpu_ns + sent.cpu_ns;
        let lost = sent.count.abs_diff(received.count) + u64::from(sent.sum != received.sum);
        Ok(Run::of(vec![p50, p99, received.cpu_ns, sent.cpu_ns, total]).with_lost(lost))
    }
}

/// Nothing is sent: how late the sender is by itself, and what its waiting costs.
fn nothing_sent(load: &Load) -> Result<Run, String> {
    let ((side, late), ()) = load.seats()?.run(|| send(*load, |_| ()), || ())?;
    let [p50, p99] = late.quantiles_ns([0.5, 0.99]);
    Ok(Run::of(vec![p50, p99, 0.0, side.cpu_ns, side.cpu_ns]))
}

pub(super) fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let floor = subject("raw schedule, nothing sent (its lateness)", nothing_sent);
    Subjects::<Waiting>::new()
        .with(floor)
        .waiting::<u64>()
        .all()
}
