//! The publish stage.

use std::sync::Arc;

use thalweg::pipeline::PipelineBuilder;

use super::backlog::Backlog;
use super::slot::{Further, Slot};
use super::{LEFT_OVER_TAG, Outcome};

/// The publish stage's state from one slot to the next.
pub(super) struct Publishing {
    /// The number of the first command, and how many had no place in the ring.
    first: u64,
    /// Queries so far, which have no numbers.
    queries: u64,
    backlog: Arc<Backlog>,
}

impl Publishing {
    pub(super) const fn new(backlog: Arc<Backlog>, first: u64) -> Self {
        Self {
            first,
            queries: 0,
            backlog,
        }
    }

    /// Publishes the slot at a position of the ring.
    #[inline(always)]
    fn pass(&mut self, slot: &mut Slot, position: u64, publish: &mut impl FnMut(Outcome<'_>)) {
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
            stamps: (slot.stamps.begun > 0).then_some(slot.stamps),
            command: &slot.command,
            result: slot.result,
            events: &slot.events,
        });
        self.backlog.take_off(&mut slot.events);
        if let Some(further) = slot.further.take() {
            self.publish_further((sequence, slot.due), further.into(), publish);
        }
    }

    /// Publishes the commands for what the command of this number has left over.
    #[cold]
    fn publish_further(
        &mut self,
        (sequence, due): (u64, u64),
        further: Vec<Further>,
        publish: &mut impl FnMut(Outcome<'_>),
    ) {
        self.first += further.len() as u64;
        for (further, sequence) in further.into_iter().zip(sequence + 1..) {
            let Further {
                command,
                result,
                mut events,
            } = further;
            publish(Outcome {
                sequence,
                tag: LEFT_OVER_TAG,
                due,
                stamps: None,
                command: &command,
                result,
                events: &events,
            });
            self.backlog.take_off(&mut events);
        }
    }
}

pub(super) fn publishing(
    builder: PipelineBuilder<Slot>,
    mut stage: Publishing,
    mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
) -> PipelineBuilder<Slot> {
    // It has the slot for itself, to give memory back.
    builder.stage("publish", move |slot: &mut Slot, context| {
        stage.pass(slot, context.sequence(), &mut publish);
    })
}
