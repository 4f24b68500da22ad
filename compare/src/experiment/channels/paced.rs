//! On schedule: messages are due at fixed times, and latency counts from the time at which one was
//! due, whether or not the sender was held up.

use std::marker::PhantomData;

use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::GapMeter;

use super::duo::Seats;
use super::roundtrip::{get, put};
use super::samples::Samples;
use crate::channels::{
    BlockingPairs, BlockingRecv, BlockingSend, Message, Pair, TryPairs, TryRecv, TrySend,
    each_blocking_pair, each_try_pair,
};
use crate::runner::{Metric, Run, Subject};

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
            let mut now = clock.ticks();
            while now < due {
                meter.tick(now);
                std::hint::spin_loop();
                now = clock.ticks();
            }
            meter.tick(now);
            // What the channel takes is no gap.
            meter.pause();
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

struct Trying<P, M>(PhantomData<fn() -> (P, M)>);

impl<M: Message, P: Pair<M>> Subject<Load> for Trying<P, M>
where
    P::Tx: TrySend<M>,
    P::Rx: TryRecv<M>,
{
    fn name(&self) -> String {
        P::NAME.to_owned()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let (tx, rx) = P::pair(CAPACITY);
        paced::<M>(*load, put(tx), get(rx))
    }
}

struct Blocking<P, M>(PhantomData<fn() -> (P, M)>);

impl<M: Message, P: Pair<M>> Subject<Load> for Blocking<P, M>
where
    P::Tx: BlockingSend<M>,
    P::Rx: BlockingRecv<M>,
{
    fn name(&self) -> String {
        format!("{} blocking", P::NAME)
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let (mut tx, mut rx) = P::pair(CAPACITY);
        let get = move || rx.recv().unwrap_or(M::of(M::LAST));
        paced::<M>(*load, move |message| tx.send(message), get)
    }
}

/// The subjects.
#[derive(Default)]
struct List(Vec<Box<dyn Subject<Load>>>);

impl<M: Message> TryPairs<M> for List {
    fn meet<P>(&mut self)
    where
        P: Pair<M>,
        P::Tx: TrySend<M>,
        P::Rx: TryRecv<M>,
    {
        self.0.push(Box::new(Trying::<P, M>(PhantomData)));
    }
}

impl<M: Message> BlockingPairs<M> for List {
    fn meet<P>(&mut self)
    where
        P: Pair<M>,
        P::Tx: BlockingSend<M>,
        P::Rx: BlockingRecv<M>,
    {
        self.0.push(Box::new(Blocking::<P, M>(PhantomData)));
    }
}

pub(super) fn subjects<M: Message>() -> Vec<Box<dyn Subject<Load>>> {
    let mut list = List::default();
    each_try_pair::<M>(&mut list);
    each_blocking_pair::<M>(&mut list);
    list.0
}
