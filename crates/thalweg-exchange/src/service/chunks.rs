//! A publish stage that takes whole chunks, for a publisher that has something to do before each:
//! to make its commands durable. And how a durable exchange drives the service.

use std::sync::Arc;

use thalweg::pipeline::{Builder, Chunk, Flow, Stopped};

use super::publishing::{Publishing, behind_settlement, outcome_of};
use super::query::Inquiry;
use super::slot::{Note, Slot};
use super::{Options, OptionsError, Outcome, Published, Service, stages};
use crate::command::Command;
use crate::digest::Digest;
use crate::engine::state::State;

/// What a publisher says to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It may be published.
    Publish,
    /// Not yet: it is offered again.
    Later,
    /// Nobody hears of it any more.
    Discard,
}

/// Publishes chunks. For each: `begin`, `look`, then `outcome` or `answer` of each slot, `end`.
pub(crate) trait Publisher: Send + 'static {
    /// May the commands below this number be published?
    fn begin(&mut self, end: u64) -> Begun;

    /// Has the publisher look at all commands of the chunk, by `visit`, before the first of them is
    /// published.
    fn look(&mut self, visit: impl FnOnce(&mut dyn FnMut(&Outcome<'_>, Note)));

    /// Publishes a command, in order.
    fn outcome(&mut self, outcome: Outcome<'_>);

    /// Publishes that a query was answered, in order.
    fn answer(&mut self, tag: u64);

    /// Everything before this position of the ring is published, with this digest.
    fn end(&mut self, position: u64, digest: Option<Digest>);
}

/// Starts a service with such a publisher.
pub(crate) fn start_chunks(
    state: State,
    options: Options,
    mut publisher: impl Publisher,
) -> Result<Service, OptionsError> {
    let shards = options.risk_shards;
    stages::start_with(state, options, move |builder: Builder<Slot>, mut stage| {
        let builder = builder.stage_chunks("publish", move |chunk| {
            publish_chunk(&mut stage, &mut publisher, chunk)
        });
        behind_settlement(builder, shards)
    })
}

fn publish_chunk(
    stage: &mut Publishing,
    publisher: &mut impl Publisher,
    mut chunk: Chunk<'_, Slot>,
) -> thalweg::pipeline::Handled {
    let first = chunk.first_sequence();
    let position_end = first + chunk.len() as u64;
    let first_number = stage.number(first);
    let mut end = first_number;
    chunk.look(|slot| end += u64::from(!slot.is_query()));
    match publisher.begin(end) {
        Begun::Publish => {}
        Begun::Later => return chunk.try_for_each(|_, _| Flow::Retry),
        Begun::Discard => {
            let handled = chunk.for_each(|slot, _| stage.discard(slot));
            publisher.end(position_end, None);
            return handled;
        }
    }
    let mut number = first_number;
    publisher.look(|note| {
        chunk.look(|slot| {
            if !slot.is_query() {
                note(&outcome_of(slot, number), slot.note);
                number += 1;
            }
        });
    });
    let mut publish = |published: Published<'_>| match published {
        Published::Outcome(outcome) => publisher.outcome(outcome),
        Published::Answer { tag } => publisher.answer(tag),
    };
    let handled = chunk.for_each(|slot, context| {
        stage.pass(slot, context.sequence(), &mut publish);
    });
    publisher.end(position_end, stage.digest());
    handled
}

impl Service {
    /// Submits a command with a note for its publisher.
    #[inline]
    pub(crate) fn submit_noted(
        &mut self,
        command: &Command,
        tag: u64,
        note: Note,
    ) -> Result<(), Stopped> {
        self.pipeline.publish(|slot| {
            slot.command.clone_from(command);
            slot.become_command(tag);
            slot.note = note;
        })
    }

    /// The same of a command that was due at this time.
    pub(crate) fn submit_noted_due(
        &mut self,
        command: &Command,
        due: u64,
        tag: u64,
        note: Note,
    ) -> Result<(), Stopped> {
        self.pipeline.publish_due(due, |slot| {
            slot.command.clone_from(command);
            slot.become_command(tag);
            slot.due = due;
            slot.note = note;
        })
    }

    /// The same of several: `of(at)` gives each.
    pub(crate) fn submit_all_noted<'c>(
        &mut self,
        count: usize,
        mut of: impl FnMut(usize) -> (&'c Command, u64, Note),
    ) -> Result<(), Stopped> {
        self.pipeline.publish_batch(count, |at, slot| {
            let (command, tag, note) = of(at);
            slot.command.clone_from(command);
            slot.become_command(tag);
            slot.note = note;
        })
    }

    /// Submits a query without waiting for its answer.
    pub(crate) fn submit_inquiry(
        &mut self,
        inquiry: &Arc<Inquiry>,
        tag: u64,
    ) -> Result<(), Stopped> {
        self.pipeline
            .publish(|slot| slot.become_query(inquiry, tag))
    }

    /// Runs the caller's stages on what there is for them.
    pub(crate) fn drive(&mut self) -> Result<bool, Stopped> {
        self.pipeline.drive()
    }

    /// Slots in flight at most.
    pub(crate) fn capacity(&self) -> usize {
        self.pipeline.capacity()
    }
}
