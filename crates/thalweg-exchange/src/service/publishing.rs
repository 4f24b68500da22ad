//! The publish stage.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::Builder;

use super::backlog::Backlog;
use super::slot::Slot;
use super::{Outcome, Published};
use crate::digest::Digest;

/// A digest, given back when the stage that keeps it ends.
struct Keeper {
    digest: Digest,
    returned: Arc<Mutex<Digest>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = self.digest;
    }
}

/// The numbers of commands by their position in the ring.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// The number of the first command.
    first: u64,
    /// Queries so far, which have no numbers.
    queries: u64,
}

impl Numbers {
    /// The number of the command at a position of the ring, or of the next one after a query.
    #[inline(always)]
    pub(super) const fn at(&self, position: u64) -> u64 {
        self.first + position - self.queries
    }

    /// The slot at the position is passed.
    #[inline(always)]
    pub(super) fn pass(&mut self, slot: &Slot) {
        self.queries += u64::from(slot.is_query());
    }
}

/// What the publish stage keeps from one slot to the next.
pub(super) struct Publishing {
    numbers: Numbers,
    keeper: Option<Keeper>,
    backlog: Arc<Backlog>,
}

impl Publishing {
    pub(super) fn new(
        backlog: Arc<Backlog>,
        first: u64,
        digest: Option<&Arc<Mutex<Digest>>>,
    ) -> Self {
        let keeper = digest.map(|returned| Keeper {
            digest: *returned.lock().unwrap_or_else(PoisonError::into_inner),
            returned: Arc::clone(returned),
        });
        Self {
            numbers: Numbers { first, queries: 0 },
            keeper,
            backlog,
        }
    }

    pub(super) const fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The digest of all that was published.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.keeper.as_ref().map(|keeper| keeper.digest)
    }

    /// Publishes a slot.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        slot: &mut Slot,
        position: u64,
        publish: &mut impl FnMut(Published<'_>),
    ) {
        let sequence = self.numbers.at(position);
        self.numbers.pass(slot);
        if let Some(inquiry) = slot.inquiry.take() {
            if let Some(answered) = inquiry.finish(sequence) {
                let tag = slot.tag;
                publish(Published::Answer { tag, answered });
            }
            return;
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.digest.fold(&slot.command, slot.result, &slot.events);
        }
        publish(Published::Outcome(outcome_of(slot, sequence)));
        self.backlog.take_off(&mut slot.events);
    }

    /// Passes a slot that is not published.
    pub(super) fn discard(&mut self, slot: &mut Slot) {
        self.numbers.pass(slot);
        if slot.inquiry.take().is_none() {
            self.backlog.take_off(&mut slot.events);
        }
    }
}

/// What came of a command.
#[inline(always)]
pub(super) fn outcome_of(slot: &Slot, sequence: u64) -> Outcome<'_> {
    Outcome {
        sequence,
        tag: slot.tag,
        due: slot.due,
        stamps: (slot.stamps.begun > 0).then_some(slot.stamps),
        command: &slot.command,
        result: slot.result,
        events: &slot.events,
    }
}

pub(super) fn publishing(
    builder: Builder<Slot>,
    mut stage: Publishing,
    mut publish: impl FnMut(Published<'_>) + Send + 'static,
) -> Builder<Slot> {
    // It has the slot for itself, to give memory back.
    builder.stage("publish", move |slot: &mut Slot, context| {
        stage.pass(slot, context.sequence(), &mut publish);
    })
}
