//! One element a channel: made, sent and received on one thread; or as the reply to a request, by a
//! thread on another core.

use std::hint::{black_box, spin_loop};

use thalweg::ring::{self, Layout, PopError};
use thalweg_measure::clock::Clock;

use crate::channels::{Job, Oneshot, OneshotJob, each_oneshot};
use crate::runner::{Metric, Ran, Run, Subjects};
use crate::threads::{Samples, Seats};

pub(super) const ALONE_METRICS: &[Metric] = &[Metric::lower("time_per_reply", "ns")];
pub(super) const ACROSS_METRICS: &[Metric] = &[
    Metric::lower("reply_p50", "ns"),
    Metric::lower("reply_p99", "ns"),
];

/// Rounds between two looks at the clock.
const LOOK_EVERY: u64 = 256;
/// Replies that are not measured.
const WARM_UP: usize = 200;
const REPLIES_MAX: usize = 1 << 17;

/// Made, sent, received.
struct Alone;

impl Job for Alone {
    type Load = u64;
}

impl OneshotJob for Alone {
    fn run<O: Oneshot<u64>>(span_ns: &u64) -> Ran {
        let clock = Clock::global();
        let begin = clock.ticks();
        let span = clock.ticks_from_ns(*span_ns);
        let (mut rounds, mut lost, mut passed) = (0, 0, 0);
        while passed < span {
            for number in rounds..rounds + LOOK_EVERY {
                let (tx, rx) = O::pair();
                O::send(tx, black_box(number));
                lost += u64::from(O::recv(black_box(rx)) != Some(number));
            }
            rounds += LOOK_EVERY;
            passed = clock.ticks().saturating_sub(begin);
        }
        Ok(Run::of([clock.ns(passed) as f64 / rounds as f64]).with_lost(lost))
    }
}

/// The time from before the channel is made until the reply is there. Requests go through the same
/// ring for all, whose receiver looks without a pause.
struct Across;

impl Job for Across {
    type Load = u64;
}

impl OneshotJob for Across {
    fn run<O: Oneshot<u64>>(span_ns: &u64) -> Ran {
        let (mut requests, mut inbox) =
            ring::spsc::<(u64, O::Tx)>(64, Layout::Slotted).map_err(|error| error.to_string())?;
        let client = move || {
            let clock = Clock::global();
            let mut samples = Samples::with_room(REPLIES_MAX);
            let (mut number, mut lost) = (0, 0);
            let end = clock.ticks() + clock.ticks_from_ns(*span_ns);
            while (clock.ticks() < end || number <= WARM_UP as u64) && !samples.is_full() {
                let begin = clock.ticks();
                let (tx, rx) = O::pair();
                // One request is under way: there is room.
                let _ = requests.try_push((number, tx));
                lost += u64::from(O::recv(rx) != Some(number));
                if number >= WARM_UP as u64 {
                    samples.take(clock.ticks().saturating_sub(begin));
                }
                number += 1;
            }
            (samples, lost)
        };
        let server = move || loop {
            match inbox.try_pop() {
                Ok((number, tx)) => O::send(tx, number),
                Err(PopError::Empty) => spin_loop(),
                Err(_) => return,
            }
        };
        let ((samples, lost), ()) = Seats::apart()?.run(client, server)?;
        Ok(Run::of(samples.quantiles_ns([0.5, 0.99]).to_vec()).with_lost(lost))
    }
}

pub(super) fn alone() -> Subjects<u64> {
    each_oneshot::<Alone>()
}

pub(super) fn across() -> Subjects<u64> {
    each_oneshot::<Across>()
}
