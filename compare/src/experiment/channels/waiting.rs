//! Both ends wait in their own way: for a message now and then, its latency and what it costs; and
//! for nothing at all.
//!
//! Latency is from just before `send` until `recv` has returned, so that the sender's own lateness
//! does not count. CPU time is that of each thread by its own clock, from after the warm-up until
//! the end, for each message. The sender sleeps until a message is due (timer slack 1 ns), and its
//! CPU time includes that sleep: the subject without a channel shows how much it is.

use std::num::NonZeroU64;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::thread::{gettid, set_current_timer_slack};
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

use crate::channels::{
    BlockingJob, BlockingPair, BlockingRecv, BlockingSend, Job, LAST, each_blocking,
};
use crate::runner::{Metric, Ran, Run, Subjects, subject};
use crate::threads::{Samples, Seats, account, thread_cpu_ns};

pub(super) const SPARSE_METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
    Metric::lower("receiver_cpu_per_message", "ns"),
    Metric::lower("sender_cpu_per_message", "ns"),
    Metric::lower("cpu_per_message", "ns"),
];
pub(super) const SPARSE_JUDGED: &[usize] = &[0, 4];

const CAPACITY: usize = 1024;
/// Messages that are not measured: a share of all.
const WARM_UP: u64 = 10;

/// When messages are due, and whether both threads are on one core.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sparse {
    pub(super) gap_ns: u64,
    pub(super) is_shared: bool,
    pub(super) span_ns: u64,
}

/// What one side says: messages, their sum, CPU time of a message, latencies.
struct Side {
    count: u64,
    sum: u64,
    cpu_ns: f64,
}

/// Sends on schedule; returns its side, and how late it was.
fn send(load: Sparse, mut put: impl FnMut(u64)) -> (Side, Samples) {
    // Without it the schedule is coarser, which the subject without a channel shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let clock = Clock::global();
    let rate = Rate::per_second(1_000_000_000 / load.gap_ns).expect("gaps are below a second");
    let mut schedule = OpenLoop::new(clock, rate);
    let count = WARM_UP + (load.span_ns / load.gap_ns).max(10);
    let mut lateness = Samples::with_room(count as usize);
    let (mut sum, mut begin_ns) = (0_u64, 0.0);
    for number in 0..count {
        if number == WARM_UP {
            begin_ns = thread_cpu_ns() as f64;
        }
        let due = schedule.next_due();
        let left = due.saturating_sub(clock.ticks());
        if left > 0 {
            std::thread::sleep(Duration::from_nanos(clock.ns(left)));
        }
        let stamp = clock.ticks();
        put(stamp);
        sum = sum.wrapping_add(stamp);
        if number >= WARM_UP {
            lateness.take(stamp.saturating_sub(due));
        }
    }
    let measured = (count - WARM_UP) as f64;
    let cpu_ns = (thread_cpu_ns() as f64 - begin_ns) / measured;
    put(LAST);
    (Side { count, sum, cpu_ns }, lateness)
}

/// Receives until the last message; returns its side, and the latencies.
fn receive(mut get: impl FnMut() -> u64, room: usize) -> (Side, Samples) {
    let clock = Clock::global();
    let mut samples = Samples::with_room(room);
    let (mut count, mut sum, mut begin_ns) = (0, 0_u64, 0.0);
    loop {
        let stamp = get();
        if stamp == LAST {
            break;
        }
        let now = clock.ticks();
        sum = sum.wrapping_add(stamp);
        count += 1;
        if count > WARM_UP {
            samples.take(now.saturating_sub(stamp));
        } else if count == WARM_UP {
            begin_ns = thread_cpu_ns() as f64;
        }
    }
    let measured = count.saturating_sub(WARM_UP).max(1) as f64;
    let cpu_ns = (thread_cpu_ns() as f64 - begin_ns) / measured;
    (Side { count, sum, cpu_ns }, samples)
}

impl Sparse {
    fn seats(self) -> Result<Seats, String> {
        match self.is_shared {
            true => Seats::together(),
            false => Seats::apart(),
        }
    }

    fn room(self) -> usize {
        (self.span_ns / self.gap_ns).max(10) as usize
    }
}

/// The job.
struct Waiting;

impl Job for Waiting {
    type Load = Sparse;
}

impl BlockingJob for Waiting {
    fn run<P: BlockingPair<u64>>(load: &Sparse) -> Ran {
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let sender = || {
            let side = send(*load, |stamp| tx.send(stamp));
            // The channel must outlive the last message.
            (side, tx)
        };
        let receiver = || receive(|| rx.recv().unwrap_or(LAST), load.room());
        let (((sent, _), _), (received, samples)) = load.seats()?.run(sender, receiver)?;
        let [p50, p99] = samples.quantiles_ns([0.5, 0.99]);
        let total = received.cpu_ns + sent.cpu_ns;
        let lost = sent.count.abs_diff(received.count) + u64::from(sent.sum != received.sum);
        Ok(Run::of(vec![p50, p99, received.cpu_ns, sent.cpu_ns, total]).with_lost(lost))
    }
}

/// Nothing is sent: how late the sender is by itself, and what its waiting costs.
fn nothing_sent(load: &Sparse) -> Ran {
    let ((side, late), ()) = load.seats()?.run(|| send(*load, |_| ()), || ())?;
    let [p50, p99] = late.quantiles_ns([0.5, 0.99]);
    Ok(Run::of(vec![p50, p99, 0.0, side.cpu_ns, side.cpu_ns]))
}

pub(super) fn sparse() -> Subjects<Sparse> {
    let floor = "raw schedule, nothing sent (its lateness)";
    let mut all = vec![subject(floor, nothing_sent)];
    all.extend(each_blocking::<Waiting>());
    all
}

pub(super) const IDLE_METRICS: &[Metric] = &[
    Metric::lower("receiver_cpu_per_s", "ns"),
    Metric::lower("sender_cpu_per_s", "ns"),
    Metric::lower("receiver_switches_per_s", "count"),
    Metric::lower("sender_switches_per_s", "count"),
];

const IDLE_CAPACITY: usize = 16;
/// More than any channel of that capacity has room for.
const MESSAGES: u64 = 4_096;
/// The longest time until both wait.
const SETTLE: Duration = Duration::from_millis(100);

/// One thread waits to receive from an empty channel, another one to send into a full one. What
/// they cost a second, from the system's own count of their time and switches.
struct Idle;

impl Job for Idle {
    type Load = u64;
}

impl BlockingJob for Idle {
    fn run<P: BlockingPair<u64>>(span_ns: &u64) -> Ran {
        let (mut waker, mut waiting_rx) = P::pair(IDLE_CAPACITY);
        let (mut waiting_tx, mut drain) = P::pair(IDLE_CAPACITY);
        let (started, ids) = mpsc::channel();
        let id = || gettid().as_raw_nonzero().get();
        let receiver_started = started.clone();
        let receiver = std::thread::spawn(move || {
            let _ = receiver_started.send((0, id()));
            waiting_rx.recv()
        });
        let sender = std::thread::spawn(move || {
            let _ = started.send((1, id()));
            (0..MESSAGES).for_each(|value| waiting_tx.send(value));
            waiting_tx
        });
        let mut ids: Vec<(usize, i32)> = ids.iter().take(2).collect();
        ids.sort_unstable();
        let [(_, receives), (_, sends)] = ids[..] else {
            return Err("a thread did not start".to_owned());
        };
        let span = Duration::from_nanos(*span_ns);
        std::thread::sleep(SETTLE.min(span));
        let accounts = || [account(receives), account(sends)];
        let (before, since) = (accounts(), Instant::now());
        std::thread::sleep(span);
        let (after, seconds) = (accounts(), since.elapsed().as_secs_f64());
        waker.send(7);
        let lost = (0..MESSAGES).filter(|value| drain.recv() != Some(*value));
        let mut lost = lost.count() as u64;
        let received = receiver.join().map_err(|_| "the receiver panicked")?;
        lost += u64::from(received != Some(7));
        drop(sender.join().map_err(|_| "the sender panicked")?);
        let mut values = [0.0; 4];
        for (end, (before, after)) in before.into_iter().zip(after).enumerate() {
            let (before, after) = (before?, after?);
            values[end] = (after[0] - before[0]) / seconds;
            values[2 + end] = (after[1] - before[1]) / seconds;
        }
        Ok(Run::of(values).with_lost(lost))
    }
}

pub(super) fn idle() -> Subjects<u64> {
    each_blocking::<Idle>()
}
