//! The stages of a service: their slot, what each does, and how they are put together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Flow, Pipeline, PipelineBuilder, PipelineError};
use thiserror::Error;

use super::prefetch::Prefetcher;
use super::query::PendingQuery;
use super::stamps::{Stamping, Stamps};
use super::{
    EVENTS_IN_FLIGHT, EVENTS_KEPT, EVENTS_MAX, LEFT_OVER_TAG, Outcome, Service, ServiceOptions,
};
use crate::command::Command;
use crate::engine::state::{State, apply, apply_left_over};
use crate::event::Events;
use crate::result_code::ResultCode;

/// Why a [`Service`] was not started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The pipeline refuses the options.
    #[error("{0}")]
    Pipeline(PipelineError),
    /// A placement names a stage that is a part of `execute` now: `risk`, `match` or `settle`.
    #[error(
        "{0:?} is no stage by itself: \"execute\" checks, matches and settles on \
        one thread"
    )]
    Stage(String),
    /// Room for more than [`EVENTS_MAX`] events a slot.
    #[error("room for {asked} events a slot asked for; 0 to {EVENTS_MAX} are possible")]
    Events {
        /// The number of events that was asked for.
        asked: usize,
    },
    /// A number of the first command above 2⁶³.
    #[error("the first command is to be {asked}; 0 to 2^63 are possible")]
    FirstSequence {
        /// The number that was asked for.
        asked: u64,
    },
}

impl From<PipelineError> for OptionsError {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::UnknownStage { name, .. }
                if ["risk", "match", "settle"].contains(&&*name) =>
            {
                Self::Stage(name)
            }
            error => Self::Pipeline(error),
        }
    }
}

/// Beyond it, there are as many numbers again.
const FIRST_SEQUENCE_MAX: u64 = 1 << 63;

/// Sets the progress interval of the stage that was declared last, if there is one.
fn paced(builder: PipelineBuilder<Slot>, progress: Option<usize>) -> PipelineBuilder<Slot> {
    match progress {
        Some(commands) => builder.progress(commands),
        None => builder,
    }
}

/// The stage that executes commands.
const EXECUTE: &str = "execute";

pub(super) fn start(
    mut state: State,
    options: ServiceOptions,
    mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
) -> Result<Service, OptionsError> {
    if options.events > EVENTS_MAX {
        let asked = options.events;
        return Err(OptionsError::Events { asked });
    }
    let mut first = options.first_sequence;
    if first > FIRST_SEQUENCE_MAX {
        return Err(OptionsError::FirstSequence { asked: first });
    }
    let (events, levels) = (options.events, options.levels);
    // Another service, or an exchange with a journal, may have ended before it was done.
    let mut made = Slot::new(events, levels).events;
    apply_left_over(&mut state, &mut made, |command, result, events| {
        publish(Outcome {
            sequence: first,
            tag: LEFT_OVER_TAG,
            due: 0,
            stamps: None,
            command,
            result,
            events,
        });
        first += 1;
    });
    drop(made);
    let backlog = Arc::new(Backlog::new(events));
    let returned = Arc::new(Mutex::new(None));
    let execute = ExecuteStage {
        state,
        returned: Arc::clone(&returned),
        prefetcher: Prefetcher::default(),
        stamping: Stamping::new(&options),
        backlog: Arc::clone(&backlog),
    };
    let builder = Pipeline::builder(options.capacity, move || Slot::new(events, levels));
    let builder = paced(execute.declare(builder), options.progress);
    let stage = PublishStage::new(backlog, first);
    let builder = stage.declare(builder, publish).after(EXECUTE);
    let pipeline = paced(builder, options.progress)
        .placement(options.placement)
        .sample_every(options.sample_every)
        .build()?;
    Ok(Service { pipeline, returned })
}

/// The execute stage. It has the state for itself, and gives it back when it ends.
struct ExecuteStage {
    state: State,
    returned: Arc<Mutex<Option<State>>>,
    prefetcher: Prefetcher,
    stamping: Stamping,
    backlog: Arc<Backlog>,
}

impl ExecuteStage {
    fn declare(mut self, builder: PipelineBuilder<Slot>) -> PipelineBuilder<Slot> {
        builder.stage_chunks(EXECUTE, move |mut chunk| {
            self.stamping.begin();
            let count = chunk.len();
            let commands =
                |each: &mut dyn FnMut(&Command)| chunk.inspect(|slot| each(&slot.command));
            self.prefetcher.prefetch(&self.state, count, commands);
            chunk.try_for_each(|slot, _| self.process(slot))
        })
    }

    /// A full backlog of events to publish holds commands up, and not queries.
    #[inline(always)]
    fn process(&mut self, slot: &mut Slot) -> Flow {
        if let Some(inquiry) = &mut slot.inquiry {
            self.answer(inquiry);
            return Flow::Next;
        }
        if self.backlog.is_full() {
            return Flow::Retry;
        }
        seeded(slot);
        if self.stamping.is_due() {
            let (command, events) = (&slot.command, &mut slot.events);
            (slot.result, slot.stamps) = self.stamping.apply(&mut self.state, command, events);
        } else {
            slot.result = apply(&mut self.state, &slot.command, &mut slot.events);
        }
        self.backlog.add(&slot.events);
        if self.state.may_go_on() {
            self.go_on(slot);
        }
        Flow::Next
    }

    /// Executes what is left over.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, slot: &mut Slot) {
        let mut left_over = Vec::new();
        while let Some(command) = self.state.left_over() {
            let mut events = slot.events.empty();
            let result = apply(&mut self.state, &command, &mut events);
            self.backlog.add(&events);
            left_over.push(LeftOverCommand {
                command,
                result,
                events,
            });
        }
        slot.left_over = (!left_over.is_empty()).then(|| left_over.into());
        // As after a query.
        self.stamping.begin();
    }

    #[cold]
    fn answer(&mut self, inquiry: &mut PendingQuery) {
        inquiry.answer(&self.state);
        // The time that took is not counted for the next command.
        self.stamping.begin();
    }
}

impl Drop for ExecuteStage {
    fn drop(&mut self) {
        let state = std::mem::take(&mut self.state);
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}

/// The publish stage: its state from one slot to the next.
struct PublishStage {
    /// The number of the first command, and how many had no place in the ring.
    first: u64,
    /// Queries so far, which have no numbers.
    queries: u64,
    backlog: Arc<Backlog>,
}

impl PublishStage {
    const fn new(backlog: Arc<Backlog>, first: u64) -> Self {
        Self {
            first,
            queries: 0,
            backlog,
        }
    }

    fn declare(
        mut self,
        builder: PipelineBuilder<Slot>,
        mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> PipelineBuilder<Slot> {
        // It has the slot for itself, to give memory back.
        builder.stage("publish", move |slot: &mut Slot, context| {
            self.process(slot, context.sequence(), &mut publish);
        })
    }

    /// Publishes the slot at a position of the ring.
    #[inline(always)]
    fn process(&mut self, slot: &mut Slot, position: u64, publish: &mut impl FnMut(Outcome<'_>)) {
        let sequence = self.first + position - self.queries;
        if let Some(inquiry) = slot.inquiry.take() {
            self.queries += 1;
            inquiry.finish(sequence);
            return;
        }
        publish(Outcome {
            sequence,
            tag: slot.tag,
            due: slot.due,
            stamps: (slot.stamps.begun > 0).then_some(&slot.stamps),
            command: &slot.command,
            result: slot.result,
            events: &slot.events,
        });
        self.backlog.remove(&mut slot.events);
        if let Some(left_over) = slot.left_over.take() {
            self.publish_left_over((sequence, slot.due), left_over.into(), publish);
        }
    }

    /// Publishes the commands for what the command of this number has left over.
    #[cold]
    fn publish_left_over(
        &mut self,
        (sequence, due): (u64, u64),
        left_over: Vec<LeftOverCommand>,
        publish: &mut impl FnMut(Outcome<'_>),
    ) {
        self.first += left_over.len() as u64;
        for (left_over, sequence) in left_over.into_iter().zip(sequence + 1..) {
            let LeftOverCommand {
                command,
                result,
                mut events,
            } = left_over;
            publish(Outcome {
                sequence,
                tag: LEFT_OVER_TAG,
                due,
                stamps: None,
                command: &command,
                result,
                events: &events,
            });
            self.backlog.remove(&mut events);
        }
    }
}

/// A command for what others have left over.
#[derive(Debug)]
pub(super) struct LeftOverCommand {
    pub(super) command: Command,
    pub(super) result: ResultCode,
    pub(super) events: Events,
}

/// A command or a query on its way through the stages.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) command: Command,
    pub(super) tag: u64,
    pub(super) due: u64,
    /// Their begin is 0 where the command was not stamped.
    pub(super) stamps: Stamps,
    pub(super) result: ResultCode,
    pub(super) events: Events,
    /// The commands that were executed for what this one has left over, if any were.
    pub(super) left_over: Option<Box<[LeftOverCommand]>>,
    /// The query, if this is one, until it is published.
    pub(super) inquiry: Option<Box<PendingQuery>>,
}

impl Slot {
    /// Returns a slot for events of this number, which list levels if they are to.
    pub(super) fn new(events: usize, levels: bool) -> Self {
        let events = Events::with_capacity(events);
        Self {
            command: Command::Nop,
            tag: 0,
            due: 0,
            stamps: Stamps::default(),
            result: ResultCode::New,
            events: if levels { events.with_levels() } else { events },
            left_over: None,
            inquiry: None,
        }
    }

    /// Becomes a command, with the note of its sender.
    #[inline]
    pub(super) const fn become_command(&mut self, tag: u64) {
        debug_assert!(self.inquiry.is_none(), "it was published");
        self.tag = tag;
        self.due = 0;
        self.stamps.begun = 0;
    }

    pub(super) fn become_query(&mut self, inquiry: Box<PendingQuery>) {
        self.command = Command::Nop;
        self.inquiry = Some(inquiry);
    }
}

/// Counts the events of commands that have more of them than their slots keep room for. The
/// execute stage waits while they are too many; commands that were executed are never held up, so
/// the wait ends.
#[derive(Debug)]
#[repr(align(128))]
struct Backlog {
    events: AtomicUsize,
    /// Events for which each slot keeps room.
    kept: usize,
}

impl Backlog {
    /// Makes a backlog for slots that have room for `events` events from the start.
    fn new(events: usize) -> Self {
        Self {
            events: AtomicUsize::new(0),
            kept: events.max(EVENTS_KEPT),
        }
    }

    /// Returns whether a command must wait before it is executed.
    #[inline(always)]
    fn is_full(&self) -> bool {
        // ORDERING: Relaxed; a count, nothing is read on its strength.
        self.events.load(Ordering::Relaxed) >= EVENTS_IN_FLIGHT
    }

    /// A command was executed.
    #[inline(always)]
    fn add(&self, events: &Events) {
        if events.len() > self.kept {
            // ORDERING: Relaxed, as in `is_full`.
            self.events.fetch_add(events.len(), Ordering::Relaxed);
        }
    }

    /// A command was published: its slot keeps no more room than it may.
    #[inline(always)]
    fn remove(&self, events: &mut Events) {
        if events.len() > self.kept {
            // ORDERING: Relaxed, as in `is_full`; `add` came before, as the event came here.
            self.events.fetch_sub(events.len(), Ordering::Relaxed);
        }
        events.keep_room_for(self.kept);
    }
}

/// Does nothing outside of tests.
#[cfg(not(test))]
#[inline(always)]
const fn seeded(_slot: &Slot) {}

/// Panics at a command that a test has marked.
#[cfg(test)]
fn seeded(slot: &Slot) {
    assert!(slot.tag != tests::FATAL, "seeded");
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use thalweg::pipeline::Placement;

    use crate::service::{Service, ServiceOptions};
    use crate::{Command, State, UserId};

    /// The tag of a command at which the execute stage panics.
    pub(super) const FATAL: u64 = u64::MAX;

    #[test]
    fn a_panic_in_the_execute_stage_ends_the_service_and_no_caller_hangs() {
        let placements = [
            Placement::inline(),
            Placement::threads(1),
            Placement::threads(2),
            Placement::caller_and_threads(1, 1),
        ];
        for placement in placements {
            let options = ServiceOptions {
                capacity: 64,
                placement: placement.clone(),
                ..ServiceOptions::default()
            };
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                let mut service =
                    Service::start(State::default(), options, |_| ()).expect("valid options");
                let commands = vec![Command::AddUser { uid: UserId(1) }; 200];
                // The error comes sooner or later; what matters is the end.
                let tag = |at| if at < 150 { 0 } else { FATAL };
                let _ = (0..20).find_map(|_| service.submit_batch(&commands, tag).err());
                sender.send(service.join().expect_err("a stage panicked"))
            });
            // Patience is for a hang only, no run comes near it.
            let failure = receiver.recv_timeout(Duration::from_secs(600));
            let failure = failure.expect("the service ends");
            assert_eq!(failure.stage, "execute", "{placement}");
            assert_eq!(failure.message, "seeded");
        }
    }
}
