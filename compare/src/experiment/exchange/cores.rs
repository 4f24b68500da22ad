//! Where a second core helps: the same commands as fast as they go on one thread and on several,
//! for the bare engine, and from bytes in to bytes out.
//!
//! Wall time, from the first command until the last is done. The bytes that come in are frames of
//! one length, parsed on the caller's thread or in a stage; what goes out is each command's result
//! and its events, which are the trades of the market data.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Pipeline, Placement};
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};
use thalweg_measure::clock::Clock;

use super::engine::Load;
use super::frame::{self, CommandFrame, Outgoing};
use crate::runner::{Metric, Run, Subject};
use crate::workload::CAPACITY;

pub(super) const METRICS: &[Metric] = &[Metric::higher("throughput", "events/s")];

/// Commands submitted together.
const BATCH: usize = 64;
/// Stages of the service.
pub(super) const STAGES: usize = 4;

pub(super) const PLAIN: &str = "a loop, no pipeline";
pub(super) const INLINE: &str = "thalweg inline";
/// Subjects on two threads, the caller's being one.
pub(super) const TWO_THREADS: [&str; 4] = [
    "thalweg caller:1+threads:1",
    "thalweg threads:1",
    "thalweg stages of bytes caller:1+threads:1",
    "thalweg stages of bytes caller:2+threads:1",
];

/// A flow with its commands as bytes.
#[derive(Debug)]
pub(super) struct Wire {
    load: Load,
    frames: Arc<[CommandFrame]>,
    /// What goes out for it: bytes, and their check.
    total: (u64, u64),
}

impl Wire {
    /// # Errors
    /// The engine cannot run the flow.
    pub(super) fn new(load: Load) -> Result<Self, String> {
        let tape = load.tape.as_ref().map_err(String::clone)?;
        let frames = load.flow.commands.iter();
        let frames = frames.map(|command| frame::of_command(command).expect("all are of a book"));
        let frames = frames.collect();
        let mut out = Outgoing::new();
        for (at, code) in tape.results.iter().enumerate() {
            out.result(at as u64, *code, &tape.events[at]);
        }
        let total = out.total();
        Ok(Self {
            load,
            frames,
            total,
        })
    }

    fn ready(&self) -> Result<State, String> {
        self.load.flow.ready(Rules::MENDED)
    }

    /// The figures of a run from `begin`, if its book and its bytes are the right ones.
    fn run(&self, begin: u64, state: &State, total: Option<(u64, u64)>) -> Run {
        let clock = Clock::global();
        let took_ns = clock.ns(clock.ticks().saturating_sub(begin)).max(1);
        self.load.flow.assert_levels(state, "a placement");
        if let Some(total) = total {
            assert_eq!(total, self.total, "wrong result: other bytes went out");
        }
        let per_s = self.frames.len() as f64 * 1e9 / took_ns as f64;
        Run {
            values: vec![per_s],
            disturbance: 0.0,
            lost: 0,
            cut: false,
        }
    }
}

/// Writes results, and tells the total when the stage that owns it ends.
#[derive(Debug)]
struct Sink {
    out: Outgoing,
    told: Arc<Mutex<(u64, u64)>>,
}

impl Sink {
    fn new() -> (Self, Arc<Mutex<(u64, u64)>>) {
        let told = Arc::default();
        let sink = Self {
            out: Outgoing::new(),
            told: Arc::clone(&told),
        };
        (sink, told)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = self.out.total();
    }
}

fn total(told: &Mutex<(u64, u64)>) -> (u64, u64) {
    *told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Who moves the commands.
#[derive(Debug, Clone)]
enum Mover {
    /// A loop on one thread.
    Loop,
    /// The service.
    Service(Placement),
    /// A pipeline with the stages parse, apply, encode.
    Stages(Placement),
}

/// A way to run the engine.
#[derive(Debug, Clone)]
pub(super) struct Way {
    mover: Mover,
    bytes: bool,
}

/// The bare engine, or from bytes to bytes: all ways.
pub(super) fn subjects(bytes: bool) -> Vec<Box<dyn Subject<Wire>>> {
    let two = Placement::caller_and_threads;
    let services = [
        Placement::inline(),
        two(1, 1),
        Placement::threads(1),
        Placement::threads(2),
    ];
    let mut movers = vec![Mover::Loop];
    movers.extend(services.map(Mover::Service));
    if bytes {
        movers.extend([Placement::inline(), two(1, 1), two(2, 1)].map(Mover::Stages));
    }
    let way = |mover| -> Box<dyn Subject<Wire>> { Box::new(Way { mover, bytes }) };
    movers.into_iter().map(way).collect()
}

impl Subject<Wire> for Way {
    fn name(&self) -> String {
        match &self.mover {
            Mover::Loop => PLAIN.to_owned(),
            Mover::Service(placement) => format!("thalweg {placement}"),
            Mover::Stages(placement) => format!("thalweg stages of bytes {placement}"),
        }
    }

    fn run(&self, wire: &Wire) -> Result<Run, String> {
        match &self.mover {
            Mover::Loop if self.bytes => loop_of_bytes(wire),
            Mover::Loop => bare_loop(wire),
            Mover::Service(placement) if self.bytes => service_of_bytes(wire, placement),
            Mover::Service(placement) => bare_service(wire, placement),
            Mover::Stages(placement) => stages(wire, placement),
        }
    }
}

fn bare_loop(wire: &Wire) -> Result<Run, String> {
    let mut state = wire.ready()?;
    let mut events = Events::with_capacity(1024);
    let begin = Clock::global().ticks();
    for command in &wire.load.flow.commands {
        black_box(apply(&mut state, command, &mut events));
    }
    Ok(wire.run(begin, &state, None))
}

fn loop_of_bytes(wire: &Wire) -> Result<Run, String> {
    let mut state = wire.ready()?;
    let mut events = Events::with_capacity(1024);
    let mut out = Outgoing::new();
    let begin = Clock::global().ticks();
    for (at, frame) in wire.frames.iter().enumerate() {
        let command = frame::parse(frame).ok_or("a frame of no known kind")?;
        let code = apply(&mut state, &command, &mut events);
        out.result(at as u64, code, &events);
    }
    Ok(wire.run(begin, &state, Some(out.total())))
}

fn options(placement: &Placement) -> Options {
    Options {
        capacity: CAPACITY,
        placement: placement.clone(),
        events: 64,
        ..Options::default()
    }
}

fn bare_service(wire: &Wire, placement: &Placement) -> Result<Run, String> {
    let publish = |outcome: thalweg_exchange::service::Outcome<'_>| {
        black_box(outcome.result);
    };
    let service = Service::start(wire.ready()?, options(placement), publish);
    let mut service = service.map_err(text)?;
    let begin = Clock::global().ticks();
    for batch in wire.load.flow.commands.chunks(BATCH) {
        service.submit_batch(batch, |_| 0).map_err(text)?;
    }
    let finished = service.join().map_err(text)?;
    Ok(wire.run(begin, &finished.state, None))
}

fn service_of_bytes(wire: &Wire, placement: &Placement) -> Result<Run, String> {
    let (mut sink, told) = Sink::new();
    let publish = move |outcome: thalweg_exchange::service::Outcome<'_>| {
        sink.out
            .result(outcome.sequence, outcome.result, outcome.events);
    };
    let service = Service::start(wire.ready()?, options(placement), publish);
    let mut service = service.map_err(text)?;
    let mut commands: Vec<Command> = Vec::with_capacity(BATCH);
    let begin = Clock::global().ticks();
    for batch in wire.frames.chunks(BATCH) {
        commands.clear();
        for frame in batch {
            commands.push(frame::parse(frame).ok_or("a frame of no known kind")?);
        }
        service.submit_batch(&commands, |_| 0).map_err(text)?;
    }
    let finished = service.join().map_err(text)?;
    Ok(wire.run(begin, &finished.state, Some(total(&told))))
}

/// A command between the stages of bytes.
#[derive(Debug)]
struct Slot {
    frame: CommandFrame,
    command: Command,
    code: ResultCode,
    events: Events,
}

fn stages(wire: &Wire, placement: &Placement) -> Result<Run, String> {
    let state = Arc::new(Mutex::new(wire.ready()?));
    let applied = Arc::clone(&state);
    let (mut sink, told) = Sink::new();
    let slot = || Slot {
        frame: [0; frame::COMMAND_BYTES],
        command: Command::Nop,
        code: ResultCode::Success,
        events: Events::with_capacity(64),
    };
    let pipeline = Pipeline::builder(CAPACITY, slot)
        .stage("parse", |slot: &mut Slot, _| {
            slot.command = frame::parse(&slot.frame).unwrap_or_default();
        })
        .stage_chunks("apply", move |chunk| {
            let mut state = applied.lock().unwrap_or_else(PoisonError::into_inner);
            chunk.for_each(|slot: &mut Slot, _| {
                slot.code = apply(&mut state, &slot.command, &mut slot.events);
            })
        })
        .after("parse")
        .stage("encode", move |slot: &mut Slot, context| {
            sink.out.result(context.sequence(), slot.code, &slot.events);
        })
        .after("apply")
        .placement(placement.clone())
        .build();
    let mut pipeline = pipeline.map_err(text)?;
    let begin = Clock::global().ticks();
    for batch in wire.frames.chunks(BATCH) {
        let write = |at: usize, slot: &mut Slot| slot.frame = batch[at];
        pipeline.publish_batch(batch.len(), write).map_err(text)?;
    }
    pipeline.join().map_err(text)?;
    let state = state.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(wire.run(begin, &state, Some(total(&told))))
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_way_leaves_the_book_and_writes_the_bytes() {
        let wire = Wire::new(Load::new(mixes::trading(3_000))).unwrap();
        for bytes in [false, true] {
            let subjects = subjects(bytes);
            for subject in &subjects {
                let run = subject.run(&wire).unwrap();
                assert!(run.values[0] > 0.0, "{}", subject.name());
            }
            let names: Vec<String> = subjects.iter().map(|subject| subject.name()).collect();
            let two = TWO_THREADS
                .iter()
                .filter(|two| names.iter().any(|name| name == *two));
            assert_eq!(two.count(), if bytes { 4 } else { 2 });
            assert!(names[..2] == [PLAIN, INLINE]);
        }
    }

    #[test]
    #[should_panic(expected = "wrong result: other bytes went out")]
    fn other_bytes_are_an_error() {
        let mut wire = Wire::new(Load::new(mixes::trading(100))).unwrap();
        wire.total.1 ^= 1;
        let _ = loop_of_bytes(&wire);
    }
}
