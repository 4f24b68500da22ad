//! Fifth principle: optimise what was measured. Each of five optimisations by itself, on one core
//! and on two.

use std::time::Instant;

use thalweg_measure::clock::Clock;

use super::place::{Cores, work_ns};
use super::rings::{Apart, Positions, Ring, Together};
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const STREAM: &[Metric] = &[Metric::lower("time of one", "ns")];
pub(super) const LANES: &[Metric] = &[
    Metric::lower("urgent_p99", "ns"),
    Metric::lower("other_p99", "ns"),
    Metric::lower("time of one", "ns"),
];
pub(super) const URGENT: usize = 0;
pub(super) const OTHER: usize = 1;
pub(super) const EACH: usize = 2;

const SLOTS: usize = 1024;
const BATCH: u64 = 64;

/// The base has positions on lines of their own, and copies of the other's.
pub(super) const BASE: &str = "one at a time, padded, cached";
pub(super) const BATCHED: &str = "in batches of 64";
pub(super) const UNPADDED: &str = "without padding";
pub(super) const UNCACHED: &str = "without the cached index";
pub(super) const ONE_LANE: &str = "one queue";
pub(super) const TWO_LANES: &str = "a lane for the urgent";

/// How many messages, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) messages: u64,
    pub(super) cores: Cores,
    /// One in so many is urgent; none if 0.
    pub(super) urgent: u64,
}

fn stream<P: Positions, const IS_CACHED: bool>(batch: u64, load: &Load) -> Result<Run, String> {
    let ring = Ring::<P>::new(SLOTS);
    let (mut tx, mut rx) = ring.ends::<IS_CACHED>();
    let sender = || {
        let (begin, mut sent) = (Instant::now(), 0);
        while sent < load.messages {
            match tx.push(sent, batch.min(load.messages - sent)) {
                0 => load.cores.turn(),
                count => sent += count,
            }
        }
        begin
    };
    let receiver = || {
        let (mut next, mut wrong) = (0, 0);
        while next < load.messages {
            let count = rx.pop(batch, |value| {
                wrong += u64::from(value != next);
                next += 1;
            });
            if count == 0 {
                load.cores.turn();
            }
        }
        (Instant::now(), wrong)
    };
    let (begin, (end, wrong)) = load.cores.seats()?.run(sender, receiver)?;
    let ns = end.saturating_duration_since(begin).as_nanos() as f64;
    Ok(Run::of(vec![ns / load.messages as f64]).with_lost(wrong))
}

pub(super) fn streams() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(BASE, |load| stream::<Apart, true>(1, load)),
        subject(BATCHED, |load| stream::<Apart, true>(BATCH, load)),
        subject(UNPADDED, |load| stream::<Together, true>(1, load)),
        subject(UNCACHED, |load| stream::<Apart, false>(1, load)),
    ]
}

/// What the consumer does with a message of the lanes.
const SERVICE_NS: u64 = 200;
/// Messages of a burst: fewer than a lane has slots.
const BURST: u64 = 512;
/// Says that a message is urgent; its other bits are when it was sent, in ticks.
const IS_URGENT: u64 = 1 << 63;

/// Bursts in which some are urgent, through one lane or two; each burst begins when the one before
/// is through.
fn lanes(has_two: bool, load: &Load) -> Result<Run, String> {
    let clock = Clock::global();
    let (urgent, other, done) = (
        Ring::<Apart>::new(SLOTS),
        Ring::<Apart>::new(SLOTS),
        Ring::<Apart>::new(SLOTS),
    );
    let (mut urgent_tx, mut urgent_rx) = urgent.ends::<true>();
    let (mut other_tx, mut other_rx) = other.ends::<true>();
    let (mut done_tx, mut done_rx) = done.ends::<true>();
    let bursts = (load.messages / BURST).max(1);
    let is_urgent = |at: u64| load.urgent > 0 && at % load.urgent == load.urgent - 1;
    let sender = || {
        let begin = Instant::now();
        for _ in 0..bursts {
            for at in 0..BURST {
                let mark = if is_urgent(at) { IS_URGENT } else { 0 };
                let message = clock.ticks() | mark;
                let pushed = match mark {
                    IS_URGENT if has_two => urgent_tx.push(message, 1),
                    _ => other_tx.push(message, 1),
                };
                assert_eq!(pushed, 1, "a burst has room");
            }
            while done_rx.pop(1, |_| ()) == 0 {
                load.cores.turn();
            }
        }
        begin.elapsed().as_nanos() as f64
    };
    let receiver = || {
        let room = (bursts * BURST) as usize;
        let mut samples = [Samples::with_room(room), Samples::with_room(room)];
        let mut counts = [0_u64; 2];
        while counts[0] + counts[1] < bursts * BURST {
            let mut found = None;
            let mut take = |message| found = Some(message);
            if !has_two || urgent_rx.pop(1, &mut take) == 0 {
                other_rx.pop(1, &mut take);
            }
            let Some(message) = found else {
                load.cores.turn();
                continue;
            };
            if load.urgent > 0 {
                work_ns(SERVICE_NS);
                let lane = usize::from(message & IS_URGENT == 0);
                counts[lane] += 1;
                samples[lane].take(clock.ticks().saturating_sub(message & !IS_URGENT));
            } else {
                counts[1] += 1;
            }
            if (counts[0] + counts[1]) % BURST == 0 {
                done_tx.push(0, 1);
            }
        }
        (samples, counts)
    };
    let (ns, (samples, counts)) = load.cores.seats()?.run(sender, receiver)?;
    let expected = bursts * (0..BURST).filter(|&at| is_urgent(at)).count() as u64;
    // Without urgent ones nobody reads the clock, and there is no latency.
    let [[urgent], [other]] = match load.urgent {
        0 => [[0.0], [0.0]],
        _ => samples.map(|samples| samples.quantiles_ns([0.99])),
    };
    let each = ns / (bursts * BURST) as f64;
    Ok(Run::of(vec![urgent, other, each]).with_lost(counts[0].abs_diff(expected)))
}

pub(super) fn lane_subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(ONE_LANE, |load| lanes(false, load)),
        subject(TWO_LANES, |load| lanes(true, load)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_lanes_deliver_everything_in_its_order() {
        for (cores, urgent) in [(Cores::One, 16), (Cores::Two, 16), (Cores::One, 0)] {
            let load = Load {
                messages: 4_000,
                cores,
                urgent,
            };
            for subject in streams().into_iter().chain(lane_subjects()) {
                let job = || subject.run(&load);
                match std::thread::scope(|scope| scope.spawn(job).join().expect("no panic")) {
                    Ok(run) => assert_eq!(run.lost, 0, "{}", subject.name()),
                    Err(why) => println!("skipped on {}: {why}", cores.name()),
                }
            }
        }
    }
}
