//! Both ends wait in the peer's own way for rare messages, of which latency and processor time are
//! measured.
//!
//! Latency counts from just before `send` until `recv` has returned, so that the sender's own
//! lateness is not in it. Processor time is that of each thread by its own clock, from after the
//! warm-up until the end, for each message. The sender sleeps until a message is due (timer slack 1
//! ns), and its processor time includes that sleep: the subject without a channel shows how much it
//! is.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

use crate::case::{Case, Settings};
use crate::channels::{BlockingRecv, BlockingSend, Channel, LAST, each_blocking, subjects};
use crate::runner::{Metric, Ran, Run, subject};
use crate::threads::{Samples, Seats, thread_cpu_ns};

const SPARSE_METRICS: &[Metric] = &Metric::times([
    "latency_p50",
    "latency_p99",
    "receiver_cpu_per_message",
    "sender_cpu_per_message",
    "cpu_per_message",
]);

const CAPACITY: usize = 1024;
/// The first messages are not measured.
const WARM_UP: u64 = 10;

/// The schedule of the messages, and the cores.
#[derive(Debug, Clone, Copy)]
struct Sparse {
    gap_ns: u64,
    count: u64,
    is_shared: bool,
}

/// Makes the cases with rare messages.
pub(crate) fn sparse_cases(settings: &Settings) -> Vec<Case> {
    let span_ns = settings.count(120_000_000);
    let cases = [
        ("20us/regular/across", 20_000, false),
        ("1ms/regular/shared-core", 1_000_000, true),
    ];
    let cases = cases.map(|(name, gap_ns, is_shared)| {
        let name = format!("sparse/{name}");
        let heading = "both ends wait, pinned; the sender sleeps in between";
        let load = Sparse {
            gap_ns,
            count: WARM_UP + (span_ns / gap_ns).max(10),
            is_shared,
        };
        let floor = "raw schedule, nothing sent (its lateness)";
        let mut all = vec![subject(floor, nothing_sent)];
        all.extend(each_blocking!(sparse));
        let case = Case::of(name, heading, SPARSE_METRICS, all, load);
        case.repeated(9).judged(&[0, 4])
    });
    cases.into()
}

impl Sparse {
    fn seats(self) -> Result<Seats, String> {
        let seats = if self.is_shared {
            Seats::together
        } else {
            Seats::apart
        };
        seats()
    }

    /// Sends on schedule. Returns the sender's side, whose samples are its lateness.
    fn send(self, mut put: impl FnMut(u64)) -> Side {
        // Without this the schedule is coarser, which the subject without a channel shows.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let clock = Clock::global();
        let rate = Rate::per_second(1_000_000_000 / self.gap_ns).expect("gaps are below a second");
        let mut schedule = OpenLoop::new(clock, rate);
        let mut side = Side::new(self.count);
        for _ in 0..self.count {
            let due = schedule.next_due();
            let left = due.saturating_sub(clock.ticks());
            if left > 0 {
                #[expect(clippy::disallowed_methods)] // the gap is what is measured
                std::thread::sleep(Duration::from_nanos(clock.ns(left)));
            }
            let stamp = clock.ticks();
            put(stamp);
            side.take(stamp, stamp.saturating_sub(due));
        }
        side.end();
        put(LAST);
        side
    }
}

/// The account of one side: messages, their sum, processor time of a message, and spans.
struct Side {
    count: u64,
    sum: u64,
    cpu_ns: f64,
    samples: Samples,
}

impl Side {
    fn new(messages: u64) -> Self {
        Self {
            count: 0,
            sum: 0,
            cpu_ns: 0.0,
            samples: Samples::with_room(messages as usize),
        }
    }

    /// Counts a message.
    fn take(&mut self, stamp: u64, span_ticks: u64) {
        self.sum = self.sum.wrapping_add(stamp);
        self.count += 1;
        if self.count > WARM_UP {
            self.samples.take(span_ticks);
        } else if self.count == WARM_UP {
            self.cpu_ns = thread_cpu_ns() as f64;
        }
    }

    fn end(&mut self) {
        let measured = self.count.saturating_sub(WARM_UP).max(1) as f64;
        self.cpu_ns = (thread_cpu_ns() as f64 - self.cpu_ns) / measured;
    }
}

fn sparse<C>(load: &Sparse) -> Ran
where
    C: Channel<u64, Tx: BlockingSend<u64>, Rx: BlockingRecv<u64>>,
{
    let (mut tx, mut rx) = C::pair(CAPACITY);
    // The channel must outlive the last message.
    let sender = || (load.send(|stamp| tx.send(stamp)), tx);
    let receiver = || {
        let mut side = Side::new(load.count);
        while let Some(stamp) = rx.recv().filter(|stamp| *stamp != LAST) {
            side.take(stamp, Clock::global().ticks().saturating_sub(stamp));
        }
        side.end();
        side
    };
    let ((sent, _), received) = load.seats()?.run(sender, receiver)?;
    let [p50, p99] = received.samples.quantiles_ns([0.5, 0.99]);
    let total = received.cpu_ns + sent.cpu_ns;
    let lost = sent.count.abs_diff(received.count) + u64::from(sent.sum != received.sum);
    Ok(Run::of([p50, p99, received.cpu_ns, sent.cpu_ns, total]).with_lost(lost))
}

/// Sends nothing, and measures the lateness of the sender and the cost of its sleep.
fn nothing_sent(load: &Sparse) -> Ran {
    let (side, ()) = load.seats()?.run(|| load.send(|_| ()), || ())?;
    let [p50, p99] = side.samples.quantiles_ns([0.5, 0.99]);
    Ok(Run::of([p50, p99, 0.0, side.cpu_ns, side.cpu_ns]))
}
