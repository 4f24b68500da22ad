//! There and back over two channels, one message under way, beside the floor of one cache line
//! each way.

use std::hint::spin_loop;

use thalweg_measure::clock::Clock;

use super::duo::Seats;
use super::samples::Samples;
use super::stream::Checker;
use crate::channels::{
    BlockingPair, BlockingRecv, BlockingSend, CacheLine, Message, TryPair, TryRecv, TrySend,
};
use crate::experiment::subjects::{BlockingJob, Job, Subjects, TryJob};
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("round_trip_p50", "ns"),
    Metric::lower("round_trip_p99", "ns"),
];

/// Room of both channels.
const CAPACITY: usize = 1024;
/// Round trips that are not measured.
const WARM_UP: u64 = 200;
const TRIPS_MAX: usize = 1 << 17;

/// How long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) span_ns: u64,
}

/// Both ends of a way, whichever calls it uses.
fn trips<M: Message>(
    load: Load,
    mut there: (impl FnMut(M), impl FnMut() -> M + Send),
    mut back: (impl FnMut(M) + Send, impl FnMut() -> M),
) -> Result<Run, String> {
    let seats = Seats::apart()?;
    let client = || {
        let clock = Clock::global();
        let mut samples = Samples::with_room(TRIPS_MAX);
        let mut checker = Checker::default();
        let mut trip = |checker: &mut Checker, number| {
            there.0(M::of(number));
            checker.take(back.1());
        };
        (0..WARM_UP).for_each(|number| trip(&mut checker, number));
        let mut number = WARM_UP;
        let mut last = clock.ticks();
        let end = last + clock.ticks_from_ns(load.span_ns);
        while last < end && !samples.is_full() {
            trip(&mut checker, number);
            number += 1;
            let now = clock.ticks();
            samples.take(now.saturating_sub(last));
            last = now;
        }
        trip(&mut checker, M::LAST);
        (checker, number, samples)
    };
    let server = || {
        loop {
            let message = there.1();
            back.0(message);
            if message == M::of(M::LAST) {
                break;
            }
        }
    };
    let ((checker, sent, samples), ()) = seats.run(client, server)?;
    Ok(Run::of(samples.quantiles_ns([0.5, 0.99]).to_vec())
        .with_lost(checker.lost(sent) + u64::from(!checker.over)))
}

pub(super) fn put<M: Message>(mut tx: impl TrySend<M>) -> impl FnMut(M) + Send {
    move |message| {
        while !tx.try_send(message) {
            spin_loop();
        }
    }
}

pub(super) fn get<M: Message>(mut rx: impl TryRecv<M>) -> impl FnMut() -> M + Send {
    move || {
        loop {
            match rx.try_recv() {
                Some(message) => break message,
                None => spin_loop(),
            }
        }
    }
}

/// The job.
struct RoundTrips;

impl Job for RoundTrips {
    type Load = Load;
}

impl<M: Message> TryJob<M> for RoundTrips {
    fn run<P: TryPair<M>>(load: &Load) -> Result<Run, String> {
        let (there, back) = (P::pair(CAPACITY), P::pair(CAPACITY));
        let there = (put(there.0), get(there.1));
        trips::<M>(*load, there, (put(back.0), get(back.1)))
    }
}

impl<M: Message> BlockingJob<M> for RoundTrips {
    const SUFFIX: &'static str = " blocking";

    fn run<P: BlockingPair<M>>(load: &Load) -> Result<Run, String> {
        let (mut there, mut back) = (P::pair(CAPACITY), P::pair(CAPACITY));
        // A side that is gone counts as a wrong answer.
        let there = (
            move |message| there.0.send(message),
            move || there.1.recv().unwrap_or(M::of(M::LAST)),
        );
        let back = (
            move |message| back.0.send(message),
            move || back.1.recv().unwrap_or(M::of(M::LAST)),
        );
        trips::<M>(*load, there, back)
    }
}

pub(super) fn subjects<M: Message>() -> Vec<Box<dyn Subject<Load>>> {
    let floor = Subjects::<RoundTrips>::new().with_pair::<M, CacheLine>();
    floor.trying::<M>().waiting::<M>().all()
}
