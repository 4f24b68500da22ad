//! The stages of a service, and how they are put together.

use std::sync::{Arc, Mutex};
use std::{error, fmt};

use thalweg::pipeline::{BuildError, Builder, Chunk, Flow, Pipeline};

use super::ahead::{Foresight, Outlook};
use super::backlog::Backlog;
use super::front::Front;
use super::ledger::{Checked, Ledger};
use super::publishing::{Publishing, Slots, publishing};
use super::shards::{Shards, match_shard, risk_shard};
use super::slot::{Slot, Work};
use super::times::Times;
use super::{EVENTS_MAX, Options, Published, SHARDS_MAX, Service, Waits};
use crate::engine::state::State;
use crate::matching::Matching;

/// Why a [`Service`] was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// What the pipeline refuses.
    Pipeline(BuildError),
    /// A number of shards outside 1 to [`SHARDS_MAX`].
    Shards {
        /// Of which part: `risk` or `match`.
        part: &'static str,
        /// What was asked for.
        asked: usize,
    },
    /// Room for more than [`EVENTS_MAX`] events a slot.
    Events {
        /// What was asked for.
        asked: usize,
    },
    /// A number of the first command above 2⁶³.
    FirstSequence {
        /// What was asked for.
        asked: u64,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipeline(error) => error.fmt(f),
            Self::Shards { part, asked } => {
                write!(
                    f,
                    "{asked} {part} shards asked for; 1 to {SHARDS_MAX} are possible"
                )
            }
            Self::Events { asked } => {
                write!(
                    f,
                    "room for {asked} events a slot asked for; 0 to {EVENTS_MAX} are possible"
                )
            }
            Self::FirstSequence { asked } => {
                write!(
                    f,
                    "the first command is to be {asked}; 0 to 2^63 are possible"
                )
            }
        }
    }
}

impl error::Error for OptionsError {}

impl From<BuildError> for OptionsError {
    fn from(error: BuildError) -> Self {
        Self::Pipeline(error)
    }
}

/// Beyond it, there are as many numbers again.
const FIRST_SEQUENCE_MAX: u64 = 1 << 63;

pub(super) fn start(
    state: State,
    options: Options,
    publish: impl FnMut(Published<'_>) + Send + 'static,
) -> Result<Service, OptionsError> {
    let shards = options.risk_shards;
    start_with(state, options, move |builder, stage| {
        publishing(builder, shards, stage, publish)
    })
}

/// Starts a service whose publish stage `publish` declares.
pub(super) fn start_with(
    state: State,
    options: Options,
    publish: impl FnOnce(Builder<Slot>, Publishing) -> Builder<Slot>,
) -> Result<Service, OptionsError> {
    for (part, asked) in [
        ("risk", options.risk_shards),
        ("match", options.match_shards),
    ] {
        if !(1..=SHARDS_MAX).contains(&asked) {
            return Err(OptionsError::Shards { part, asked });
        }
    }
    if options.events > EVENTS_MAX {
        let asked = options.events;
        return Err(OptionsError::Events { asked });
    }
    let first = options.first_sequence;
    if first > FIRST_SEQUENCE_MAX {
        return Err(OptionsError::FirstSequence { asked: first });
    }
    let shards = Arc::new(Shards::new(
        state,
        options.risk_shards,
        options.match_shards,
    ));
    let waits = Arc::new(Mutex::new(Waits::default()));
    let digest = options.digest.map(|digest| Arc::new(Mutex::new(digest)));
    let events = options.events;
    let slot = move || Slot::new(events);
    let mut builder = Pipeline::builder(options.capacity, slot);
    let paced = |builder: Builder<Slot>| match options.progress {
        Some(commands) => builder.progress(commands),
        None => builder,
    };
    let backlog = Arc::new(Backlog::new(events));
    let is_sharded = options.risk_shards > 1 || options.match_shards > 1;
    if is_sharded {
        let front_stage = Front::new(&shards, &waits);
        builder = paced(front(builder, front_stage, Arc::clone(&backlog)));
    }
    let times = [options.risk_shards, options.match_shards]
        .map(|shards| Times::new(options.is_timed, shards, options.capacity));
    let readers = times.each_ref().map(Times::reader);
    let [risk_times, match_times] = times;
    builder = paced(risk(builder, &shards, risk_times));
    builder = if is_sharded {
        matching(builder.after("front"), &shards, &backlog, match_times)
    } else {
        whole_matching(builder, &shards, Arc::clone(&backlog), match_times)
    };
    builder = settle(paced(builder.after("risk")), &shards, paced);
    let slots = Slots {
        backlog,
        times: readers,
    };
    let stage = Publishing::new(slots, first, digest.as_ref());
    let pipeline = paced(publish(builder, stage))
        .placement(options.placement)
        .sample_every(options.sample_every)
        .build()?;
    Ok(Service {
        pipeline,
        shards,
        waits,
        digest,
    })
}

/// Nothing but in tests.
#[cfg(not(test))]
#[inline(always)]
const fn seeded(_stage: &str, _shard: usize, _slot: &Slot) {}

#[cfg(test)]
fn seeded(stage: &str, shard: usize, slot: &Slot) {
    super::faults::strike(stage, shard, slot.tag);
}

fn front(builder: Builder<Slot>, mut front: Front, backlog: Arc<Backlog>) -> Builder<Slot> {
    builder.stage_chunks("front", move |chunk| {
        chunk.try_for_each(|slot: &mut Slot, context| {
            seeded("front", 0, slot);
            if backlog.is_full() {
                return Flow::Retry;
            }
            let flow = front.pass(slot, context.sequence());
            if flow == Flow::Next && slot.work == Work::Done {
                backlog.add(&slot.events);
            }
            flow
        })
    })
}

fn risk(builder: Builder<Slot>, shards: &Arc<Shards>, times: Times) -> Builder<Slot> {
    let count = shards.risk_shards();
    let shards = Arc::clone(shards);
    let check = move |shard| {
        let (shards, times) = (Arc::clone(&shards), times.clone());
        let mut foresight = Foresight::default();
        move |mut chunk: Chunk<'_, Slot>| {
            let noting = times.begin(&chunk);
            let mut ledger = shards.risk(shard);
            foresight.ask(ledger.risk(), &mut chunk);
            let handled = chunk.try_for_each(|slot: &mut Slot, context| {
                seeded("risk", shard, slot);
                let flow = check(&mut ledger, slot, context.sequence());
                slot.checked_at = noting.time();
                flow
            });
            times.end(&noting, handled)
        }
    };
    if count == 1 {
        return builder.stage_chunks("risk", check(0));
    }
    let route = move |slot: &Slot| risk_shard(&slot.command, count);
    builder.sharded_chunks("risk", count, route, check)
}

/// All books, without a lock.
fn whole_matching(
    builder: Builder<Slot>,
    shards: &Arc<Shards>,
    backlog: Arc<Backlog>,
    times: Times,
) -> Builder<Slot> {
    let mut books = shards.borrow_books();
    let mut outlook = Outlook::default();
    builder.stage_chunks("match", move |mut chunk| {
        let noting = times.begin(&chunk);
        let books = books.get();
        outlook.ask(books, &mut chunk);
        let handled = chunk.try_for_each(|slot, _| {
            let flow = execute_if_room(books, slot, &backlog);
            slot.matched_at = noting.time();
            flow
        });
        times.end(&noting, handled)
    })
}

fn matching(
    builder: Builder<Slot>,
    shards: &Arc<Shards>,
    backlog: &Arc<Backlog>,
    times: Times,
) -> Builder<Slot> {
    let count = shards.match_shards();
    let (shards, backlog) = (Arc::clone(shards), Arc::clone(backlog));
    let matching = move |shard| {
        let (shards, backlog) = (Arc::clone(&shards), Arc::clone(&backlog));
        let times = times.clone();
        let mut outlook = Outlook::default();
        move |mut chunk: Chunk<'_, Slot>| {
            let noting = times.begin(&chunk);
            let mut books = shards.books(shard);
            let books = books.get();
            outlook.ask(books, &mut chunk);
            let handled = chunk.try_for_each(|slot: &mut Slot, _| {
                seeded("match", shard, slot);
                let flow = execute_if_room(books, slot, &backlog);
                slot.matched_at = noting.time();
                flow
            });
            times.end(&noting, handled)
        }
    };
    if count == 1 {
        return builder.stage_chunks("match", matching(0));
    }
    let route = move |slot: &Slot| match_shard(&slot.command, count);
    builder.sharded_chunks("match", count, route, matching)
}

/// The risk stage.
#[inline]
pub(super) fn check(ledger: &mut Ledger, slot: &mut Slot, sequence: u64) -> Flow {
    if slot.work != Work::Command {
        return pass_or_ask(ledger, slot, sequence);
    }
    ledger.check(&slot.command, sequence, &mut slot.checked)
}

/// A query is asked when everything before it is settled; nothing behind it is checked by then.
#[cold]
fn pass_or_ask(ledger: &mut Ledger, slot: &Slot, sequence: u64) -> Flow {
    if let (Work::Query, Some(inquiry)) = (slot.work, slot.inquiry.upgrade()) {
        if !ledger.is_settled(sequence) {
            return Flow::Retry;
        }
        inquiry.ask_risk(ledger.risk());
    }
    Flow::Next
}

/// The match stage. What the front stage has executed is not held up: the wait would be for itself.
#[inline(always)]
fn execute_if_room(books: &mut Matching, slot: &mut Slot, backlog: &Backlog) -> Flow {
    let is_command = slot.work == Work::Command;
    if is_command && backlog.is_full() {
        return Flow::Retry;
    }
    execute(books, slot);
    if is_command {
        backlog.add(&slot.events);
    }
    Flow::Next
}

/// The same, without a look at what waits to be published.
#[inline]
pub(super) fn execute(books: &mut Matching, slot: &mut Slot) {
    if slot.work != Work::Command {
        if let (Work::Query, Some(inquiry)) = (slot.work, slot.inquiry.upgrade()) {
            inquiry.ask_books(books);
        }
        return;
    }
    let Checked { code, owner } = slot.checked;
    slot.result = books.execute_for(&slot.command, code, owner, &mut slot.events);
}

/// The settle stage.
#[inline]
pub(super) fn book(ledger: &mut Ledger, slot: &Slot, sequence: u64) {
    if slot.work != Work::Command {
        ledger.pass(sequence);
    } else {
        ledger.settle(&slot.command, slot.result, &slot.events, sequence);
    }
}

/// One looker a shard, each of which sees all events and books those of its own users.
fn settle(
    mut builder: Builder<Slot>,
    shards: &Arc<Shards>,
    paced: impl Fn(Builder<Slot>) -> Builder<Slot>,
) -> Builder<Slot> {
    let count = shards.risk_shards();
    for shard in 0..count {
        let shards = Arc::clone(shards);
        let name = settle_name(shard, count);
        builder = paced(builder.observe_chunks(name, move |view| {
            let mut ledger = shards.risk(shard);
            let mut last = None;
            let handled = view.for_each(|slot: &Slot, context| {
                let sequence = context.sequence();
                seeded("settle", shard, slot);
                book(&mut ledger, slot, sequence);
                last = Some(sequence);
            });
            if let Some(last) = last {
                shards.set_settled(shard, last + 1);
            }
            handled
        }));
        builder = builder.after("match");
    }
    builder
}

pub(super) fn settle_name(shard: usize, of: usize) -> String {
    if of == 1 {
        "settle".into()
    } else {
        format!("settle[{shard}]")
    }
}
