//! A service with a journal: a stage that makes commands durable, and a publish stage that takes
//! whole chunks. And how a durable exchange drives the service.
//!
//! The stage `journal` has its commands from the execute stage, since a pipeline has every stage
//! that changes slots in one order. The disk and the execution of later commands are side by side
//! all the same: whatever was appended when the journal commits is made durable, executed or not.

use thalweg::pipeline::{Builder, Chunk, Flow, Handled, Stopped};
use thalweg_measure::clock::Clock;

use super::publishing::{Numbers, Publishing, outcome_of};
use super::query::{Answered, Inquiry, Query};
use super::slot::{Note, Slot};
use super::stages::{EXECUTE, paced, start_with};
use super::{Options, OptionsError, Outcome, Published, Service};
use crate::command::Command;
use crate::digest::Digest;
use crate::engine::state::State;

/// Publishes chunks. For each: `is_on`, `look`, then `outcome` or `answer` of each slot, `end`.
pub(crate) trait Publisher: Send + 'static {
    /// Whether commands are published still. What comes after a failure is not.
    fn is_on(&mut self) -> bool;

    /// Has the publisher look at all commands of the chunk, by `visit`, before the first of them is
    /// published. They are those before this position of the ring.
    fn look(&mut self, position: u64, visit: impl FnOnce(&mut dyn FnMut(&Outcome<'_>, Note)));

    /// Publishes a command, in order.
    fn outcome(&mut self, outcome: Outcome<'_>);

    /// Publishes the answer to a query, in order.
    fn answer(&mut self, tag: u64, answered: Answered);

    /// Everything before this position of the ring is published, with this digest.
    fn end(&mut self, position: u64, digest: Option<Digest>);
}

/// Starts a service with such a publisher. `commit` makes the commands below a number durable,
/// or says that they are to be offered again.
pub(crate) fn start_journaled(
    state: State,
    options: Options,
    mut commit: impl FnMut(u64) -> Flow + Send + 'static,
    mut publisher: impl Publisher,
) -> Result<Service, OptionsError> {
    let progress = options.progress;
    start_with(state, options, move |builder: Builder<Slot>, mut stage| {
        let mut numbers = stage.numbers().clone();
        let journal = builder.stage_chunks("journal", move |chunk| {
            journal_chunk(&mut numbers, &mut commit, chunk)
        });
        let publish = paced(journal.after(EXECUTE), progress).stage_chunks("publish", move |c| {
            publish_chunk(&mut stage, &mut publisher, c)
        });
        publish.after(EXECUTE).after("journal")
    })
}

fn journal_chunk(
    numbers: &mut Numbers,
    commit: &mut impl FnMut(u64) -> Flow,
    mut chunk: Chunk<'_, Slot>,
) -> Handled {
    let mut end = numbers.at(chunk.first_sequence());
    chunk.look(|slot| end += u64::from(!slot.is_query()));
    if commit(end) == Flow::Retry {
        return chunk.try_for_each(|_, _| Flow::Retry);
    }
    let mut journaled = None;
    chunk.for_each(|slot, _| {
        numbers.pass(slot);
        if slot.stamps.begun > 0 {
            slot.stamps.journaled = *journaled.get_or_insert_with(|| Clock::global().ticks());
        }
    })
}

fn publish_chunk(
    stage: &mut Publishing,
    publisher: &mut impl Publisher,
    mut chunk: Chunk<'_, Slot>,
) -> Handled {
    let first = chunk.first_sequence();
    let position_end = first + chunk.len() as u64;
    if !publisher.is_on() {
        let handled = chunk.for_each(|slot, _| stage.discard(slot));
        publisher.end(position_end, None);
        return handled;
    }
    let mut number = stage.numbers().at(first);
    publisher.look(position_end, |note| {
        chunk.look(|slot| {
            if !slot.is_query() {
                note(&outcome_of(slot, number), slot.note);
                number += 1;
            }
        });
    });
    let mut publish = |published: Published<'_>| match published {
        Published::Outcome(outcome) => publisher.outcome(outcome),
        Published::Answer { tag, answered } => publisher.answer(tag, answered),
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

    /// Submits a query whose answer is published.
    pub(crate) fn submit_query(&mut self, query: Query, tag: u64) -> Result<(), Stopped> {
        let inquiry = Inquiry::new(query, None);
        self.pipeline
            .publish(|slot| slot.become_query(inquiry, tag))
    }

    /// Runs the caller's stages on what there is for them.
    pub(crate) fn drive(&mut self) -> Result<bool, Stopped> {
        self.pipeline.drive()
    }

    /// Returns the work of all commands and queries that were executed.
    pub(crate) fn work(&self) -> u64 {
        self.load.work()
    }

    /// Returns the exchange's time, if orders have expired by it that the last clock command has
    /// left over.
    pub(crate) fn expired_by(&self) -> Option<i64> {
        self.load.expired_by()
    }

    /// Slots in flight at most.
    pub(crate) fn capacity(&self) -> usize {
        self.pipeline.capacity()
    }
}
