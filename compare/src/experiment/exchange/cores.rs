//! Where a second core helps: the same commands as fast as they go on one thread and on several,
//! for the bare engine, and from bytes in to bytes out.
//!
//! Wall time, from the first command until the last is done. From bytes to bytes, the caller parses
//! the commands' frames and submits them; the publish stage makes market data of what came of each,
//! and writes the outcome and the messages as frames. So a second thread that only publishes has
//! about half of the work.

use std::hint::black_box;
use std::sync::PoisonError;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Finished, Options, Outcome, Service};
use thalweg_exchange::{Command, Events, State, apply};
use thalweg_measure::clock::Clock;

use super::wire::{Desk, Incoming, Total, Wire};
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[Metric::higher("throughput", "commands/s")];

/// Commands submitted together.
const BATCH: usize = 64;
/// Commands in flight at most: a lap of the ring stays in a core's own cache.
const CAPACITY: usize = 256;
/// Stages of the service.
pub(super) const STAGES: usize = 4;

pub(super) const PLAIN: &str = "a loop, no pipeline";
pub(super) const INLINE: &str = "thalweg inline";
/// Subjects on two threads, the caller's being one.
pub(super) const TWO_THREADS: [&str; 3] = [
    "thalweg caller:3+threads:1",
    "thalweg caller:1+threads:1",
    "thalweg threads:1",
];

/// The bare engine, or from bytes to bytes: a loop on one thread, and the service.
pub(super) fn subjects(bytes: bool) -> Vec<Box<dyn Subject<Wire>>> {
    let two = Placement::caller_and_threads;
    let services = [
        Placement::inline(),
        two(STAGES - 1, 1),
        two(1, 1),
        Placement::threads(1),
        Placement::threads(2),
    ];
    let service = |placement: Placement| {
        subject(format!("thalweg {placement}"), move |wire: &Wire| {
            let (state, desk) = wire.ready();
            match bytes {
                true => service_of_bytes(wire, options(&placement), state, desk),
                false => bare_service(wire, options(&placement), state),
            }
        })
    };
    let plain = subject(PLAIN, move |wire: &Wire| {
        let (state, desk) = wire.ready();
        Ok(match bytes {
            true => loop_of_bytes(wire, state, desk),
            false => bare_loop(wire, state),
        })
    });
    [plain].into_iter().chain(services.map(service)).collect()
}

/// The figures of a run from `begin`, if its book and its bytes are the right ones.
fn figures(wire: &Wire, begin: u64, state: &State, total: Option<Total>) -> Run {
    let clock = Clock::global();
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin)).max(1);
    let flow = &wire.load.flow;
    flow.assert_levels(state, "a placement");
    if let Some(total) = total {
        assert_eq!(total, wire.total, "wrong result: other bytes went out");
    }
    let per_s = flow.commands.len() as f64 * 1e9 / took_ns as f64;
    Run::of(vec![per_s])
}

fn bare_loop(wire: &Wire, mut state: State) -> Run {
    let mut events = Events::with_capacity(1024);
    let begin = Clock::global().ticks();
    for command in &wire.load.flow.commands {
        black_box(apply(&mut state, command, &mut events));
    }
    figures(wire, begin, &state, None)
}

fn loop_of_bytes(wire: &Wire, mut state: State, mut desk: Desk) -> Run {
    let mut events = Events::with_capacity(1024);
    let begin = Clock::global().ticks();
    let mut incoming = Incoming::new(&wire.bytes);
    let mut command = Command::Nop;
    for at in 0..wire.load.flow.commands.len() as u64 {
        incoming.next_into(&mut command);
        let result = apply(&mut state, &command, &mut events);
        desk.publish(at, &command, result, &events);
    }
    figures(wire, begin, &state, Some(desk.total()))
}

fn options(placement: &Placement) -> Options {
    Options {
        capacity: CAPACITY,
        placement: placement.clone(),
        ..Options::default()
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn bare_service(wire: &Wire, options: Options, state: State) -> Result<Run, String> {
    let publish = |outcome: Outcome<'_>| {
        black_box(outcome.result);
    };
    let mut service = Service::start(state, options, publish).map_err(text)?;
    let begin = Clock::global().ticks();
    for batch in wire.load.flow.commands.chunks(BATCH) {
        service.submit_batch(batch, |_| 0).map_err(text)?;
    }
    let Finished { state, .. } = service.join().map_err(text)?;
    Ok(figures(wire, begin, &state, None))
}

fn service_of_bytes(
    wire: &Wire,
    options: Options,
    state: State,
    mut desk: Desk,
) -> Result<Run, String> {
    let told = desk.told();
    let publish = move |outcome: Outcome<'_>| {
        let (number, command) = (outcome.sequence, outcome.command);
        desk.publish(number, command, outcome.result, outcome.events);
    };
    let mut service = Service::start(state, options, publish).map_err(text)?;
    let mut incoming = Incoming::new(&wire.bytes);
    let mut left = wire.load.flow.commands.len();
    let begin = Clock::global().ticks();
    while left > 0 {
        let count = left.min(BATCH);
        let write = |_, command: &mut Command| {
            incoming.next_into(command);
            0
        };
        service.submit_with(count, write).map_err(text)?;
        left -= count;
    }
    let Finished { state, .. } = service.join().map_err(text)?;
    let total = *told.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(figures(wire, begin, &state, Some(total)))
}

#[cfg(test)]
mod tests {
    use super::super::engine::Load;
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_way_leaves_the_book_and_writes_the_bytes() {
        let wire = Wire::new(Load::new(mixes::trading(3_000)));
        for bytes in [false, true] {
            let subjects = subjects(bytes);
            for subject in &subjects {
                let run = subject.run(&wire).unwrap();
                assert!(run.values[0] > 0.0, "{}", subject.name());
            }
            let names: Vec<String> = subjects.iter().map(|subject| subject.name()).collect();
            assert!(names[..2] == [PLAIN, INLINE]);
            assert_eq!(names[2..5], TWO_THREADS);
        }
    }

    #[test]
    #[should_panic(expected = "wrong result: other bytes went out")]
    fn other_bytes_are_an_error() {
        let mut wire = Wire::new(Load::new(mixes::trading(100)));
        wire.total.bytes += 1;
        let (state, desk) = wire.ready();
        loop_of_bytes(&wire, state, desk);
    }
}
