//! On schedule: messages are due at fixed times, and latency counts from the time at which one was
//! due, whether or not the sender was held up.

use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::GapMeter;

use super::duo::Seats;
use super::roundtrip::{get, put};
use super::samples::Samples;
use crate::channels::{BlockingPair, BlockingRecv, BlockingSend, Message, TryPair};
use crate::experiment::subjects::{BlockingJob, Job, Subjects, TryJob};
use crate::runner::{Metric, Run, Subject};
use crate::sender::spin_until;

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("latency_p50", "ns"),
    Metric::lower("latency_p99", "ns"),
];

/// Messages a second.
pub(super) const PER_S: u64 = 1_000_000;
const CAPACITY: usize = 1024;
/// A longer step between two clock reads of the waiting sender is a gap, ns.
const GAP_NS: u64 = 5_000;
/// Messages that are not measured.
const WARM_UP: u64 = 2_000;
/// A run is cut when it has taken so many times its span.
const SPANS_MAX: u64 = 4;

/// How long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) span_ns: u64,
}

fn paced<M: Message>(
    load: Load,
    mut put: impl FnMut(M),
    mut get: impl FnMut() -> M + Send,
) -> Result<Run, String> {
    let seats = Seats::apart()?;
    let clock = Clock::global();
    let count = WARM_UP + (PER_S * load.span_ns / 1_000_000_000).max(1);
    let sender = || {
        let rate = Rate::per_second(PER_S).expect("a million a second is a rate");
        let mut schedule = OpenLoop::new(clock, rate);
        let mut meter = GapMeter::new(clock.ticks_from_ns(GAP_NS));
        let deadline = clock.ticks() + clock.ticks_from_ns(SPANS_MAX * (load.span_ns + 2_000_000));
        let (mut sent, mut sum) = (0, 0_u64);
        while sent < count && clock.ticks() < deadline {
            let due = schedule.next_due();
            spin_until(due, clock, &mut meter);
            let message = M::of(due);
            sum = sum.wrapping_add(message.digest());
            put(message);
            sent += 1;
        }
        put(M::of(M::LAST));
        (sent, sum, meter.gaps().disturbance(), put)
    };
    let mut samples = Samples::with_room((count - WARM_UP) as usize);
    let receiver = || {
        let (mut received, mut sum) = (0, 0_u64);
        loop {
            let message = get();
            if message == M::of(M::LAST) {
                break;
            }
            if received >= WARM_UP {
                samples.take(clock.ticks().saturating_sub(message.value()));
            }
            sum = sum.wrapping_add(message.digest());
            received += 1;
        }
        (received, sum)
    };
    let ((sent, sum, disturbance, _), (received, received_sum)) = seats.run(sender, receiver)?;
    Ok(Run {
        values: samples.quantiles_ns([0.5, 0.99]).to_vec(),
        disturbance,
        lost: sent.abs_diff(received) + u64::from(sum != received_sum),
        cut: sent < count,
    })
}

/// The job.
struct Paced;

impl Job for Paced {
    type Load = Load;
}

impl<M: Message> TryJob<M> for Paced {
    fn run<P: TryPair<M>>(load: &Load) -> Result<Run, String> {
        let (tx, rx) = P::pair(CAPACITY);
        paced::<M>(*load, put(tx), get(rx))
    }
}

impl<M: Message> BlockingJob<M> for Paced {
    const SUFFIX: &'static str = " blocking";

    fn run<P: BlockingPair<M>>(load: &Load) -> Result<Run, String> {
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let get = move || rx.recv().unwrap_or(M::of(M::LAST));
        paced::<M>(*load, move |message| tx.send(message), get)
    }
}

pub(super) fn subjects<M: Message>() -> Vec<Box<dyn Subject<Load>>> {
    Subjects::<Paced>::new().trying::<M>().waiting::<M>().all()
}
