//! The engine in a loop beside the service, on one thread and on two: commands as fast as they go,
//! for the bare engine, and from bytes in to bytes out.
//!
//! From bytes to bytes, the caller decodes the commands' frames and submits them; the publish stage
//! makes market data of each outcome, and writes the answer and the messages as frames.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Outcome, Service, ServiceOptions, ServiceResults};
use thalweg_exchange::{Command, Events, State, apply, apply_batch};
use thalweg_measure::clock::Clock;

use super::wire::{Total, Wire, decode};
use crate::runner::{Metric, Ran, Run, Subjects, subject, text};

pub(crate) const METRICS: &[Metric] = &[Metric::higher("throughput", "commands/s")];

/// This many commands are submitted together.
const BATCH: usize = 64;
/// At most this many commands are in flight: a lap of the ring stays in a core's own cache.
const CAPACITY: usize = 256;

pub(crate) const APPLY: &str = "thalweg apply, a loop";
pub(crate) const APPLY_BATCH: &str = "thalweg apply_batch, a loop";
pub(crate) const INLINE: &str = "thalweg service inline";
/// The publish stage has a thread of its own.
pub(crate) const BESIDE: &str = "thalweg service caller:1+threads:1";

fn placements() -> [(&'static str, Placement); 2] {
    let beside = Placement::caller_and_threads(1, 1);
    [(INLINE, Placement::inline()), (BESIDE, beside)]
}

/// Returns the loops on one thread, and the service: the bare engine, or from bytes to bytes.
pub(crate) fn subjects<const BYTES: bool>() -> Subjects<Wire> {
    let mut all = vec![
        subject(APPLY, |wire| Ok(looped::<BYTES>(wire, false))),
        subject(APPLY_BATCH, |wire| Ok(looped::<BYTES>(wire, true))),
    ];
    for (name, placement) in placements() {
        all.push(subject(name, move |wire: &Wire| {
            served::<BYTES>(wire, placement.clone())
        }));
    }
    all
}

/// Returns the figures of a run from `begin`.
///
/// # Panics
/// The book or the bytes are wrong: there is no figure then.
fn done(wire: &Wire, begin: u64, state: &State, total: Option<Arc<Mutex<Total>>>) -> Run {
    let clock = Clock::global();
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin)).max(1);
    wire.flow.assert_levels(state, "a placement");
    if let Some(total) = total {
        let total = *total.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(total, wire.total, "wrong result: other bytes went out");
    }
    Run::of([wire.flow.commands.len() as f64 * 1e9 / took_ns as f64])
}

/// Executes a stream in a loop, one command at a time or in batches.
pub fn looped<const BYTES: bool>(wire: &Wire, in_batches: bool) -> Run {
    let (mut state, mut publisher) = wire.ready();
    let mut events = Events::with_capacity(1024);
    if BYTES {
        events = events.with_levels();
    }
    let mut decoded = vec![Command::Nop; BATCH];
    let mut incoming = &wire.bytes[..];
    let mut number = 0;
    let begin = Clock::global().ticks();
    for commands in wire.flow.commands.chunks(BATCH) {
        let decoded = &mut decoded[..commands.len()];
        let batch = if BYTES {
            for command in &mut *decoded {
                decode(&mut incoming, command);
            }
            &*decoded
        } else {
            commands
        };
        let mut publish = |at: usize, result, events: &Events| {
            if BYTES {
                publisher.publish(number, &batch[at], result, events);
                number += 1;
            } else {
                black_box(result);
            }
        };
        if in_batches {
            apply_batch(&mut state, batch, &mut events, publish);
        } else {
            for (at, command) in batch.iter().enumerate() {
                let result = apply(&mut state, command, &mut events);
                publish(at, result, &events);
            }
        }
    }
    let total = BYTES.then(|| Arc::clone(&publisher.total));
    drop(publisher);
    done(wire, begin, &state, total)
}

fn served<const BYTES: bool>(wire: &Wire, placement: Placement) -> Ran {
    let options = ServiceOptions {
        capacity: CAPACITY,
        placement,
        levels: BYTES,
        ..ServiceOptions::default()
    };
    let (state, mut publisher) = wire.ready();
    let total = BYTES.then(|| Arc::clone(&publisher.total));
    let publish = move |outcome: Outcome<'_>| {
        if BYTES {
            let (number, command) = (outcome.sequence, outcome.command);
            publisher.publish(number, command, outcome.result, outcome.events);
        } else {
            black_box(outcome.result);
        }
    };
    let mut service = Service::start(state, options, publish).map_err(text)?;
    let mut incoming = &wire.bytes[..];
    let begin = Clock::global().ticks();
    for batch in wire.flow.commands.chunks(BATCH) {
        let submitted = if BYTES {
            service.submit_with(batch.len(), |_, command| {
                decode(&mut incoming, command);
                0
            })
        } else {
            service.submit_batch(batch, |_| 0)
        };
        submitted.map_err(text)?;
    }
    let ServiceResults { state, .. } = service.join().map_err(text)?;
    Ok(done(wire, begin, &state, total))
}
