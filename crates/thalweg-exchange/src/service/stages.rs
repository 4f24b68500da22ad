//! The stages of a service, and how they are put together.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Flow, Pipeline, PipelineBuilder, PipelineError};
use thiserror::Error;

use super::backlog::Backlog;
use super::foresight::Foresight;
use super::publishing::{Publishing, publishing};
use super::query::Inquiry;
use super::slot::{Further, Slot};
use super::stamps::Stamping;
use super::{EVENTS_MAX, LEFT_OVER_TAG, Outcome, Service, ServiceOptions};
use crate::command::Command;
use crate::engine::state::{State, apply, apply_left_over};

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
    let executing = Executing {
        state,
        returned: Arc::clone(&returned),
        foresight: Foresight::default(),
        stamping: Stamping::new(&options),
        backlog: Arc::clone(&backlog),
    };
    let builder = Pipeline::builder(options.capacity, move || Slot::new(events, levels));
    let builder = paced(executing.declare(builder), options.progress);
    let stage = Publishing::new(backlog, first);
    let builder = publishing(builder, stage, publish).after(EXECUTE);
    let pipeline = paced(builder, options.progress)
        .placement(options.placement)
        .sample_every(options.sample_every)
        .build()?;
    Ok(Service { pipeline, returned })
}

/// The execute stage. It has the state for itself, and gives it back when it ends.
struct Executing {
    state: State,
    returned: Arc<Mutex<Option<State>>>,
    foresight: Foresight,
    stamping: Stamping,
    backlog: Arc<Backlog>,
}

impl Executing {
    fn declare(mut self, builder: PipelineBuilder<Slot>) -> PipelineBuilder<Slot> {
        builder.stage_chunks(EXECUTE, move |mut chunk| {
            self.stamping.begin();
            let count = chunk.len();
            let look = |each: &mut dyn FnMut(&Command)| chunk.inspect(|slot| each(&slot.command));
            self.foresight.ask(&self.state, count, look);
            chunk.try_for_each(|slot, _| self.pass(slot))
        })
    }

    /// A full backlog of events to publish holds commands up, and not queries.
    #[inline(always)]
    fn pass(&mut self, slot: &mut Slot) -> Flow {
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
        let mut further = Vec::new();
        while let Some(command) = self.state.left_over() {
            let mut events = slot.events.empty();
            let result = apply(&mut self.state, &command, &mut events);
            self.backlog.add(&events);
            further.push(Further {
                command,
                result,
                events,
            });
        }
        slot.further = (!further.is_empty()).then(|| further.into());
        // As after a query.
        self.stamping.begin();
    }

    #[cold]
    fn answer(&mut self, inquiry: &mut Inquiry) {
        inquiry.answer(&self.state);
        // The time that took is not counted for the next command.
        self.stamping.begin();
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        let state = std::mem::take(&mut self.state);
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}

/// Does nothing outside of tests.
#[cfg(not(test))]
#[inline(always)]
const fn seeded(_slot: &Slot) {}

/// Panics at a command that a test has marked.
#[cfg(test)]
fn seeded(slot: &Slot) {
    assert!(slot.tag != super::faults::FATAL, "seeded");
}
