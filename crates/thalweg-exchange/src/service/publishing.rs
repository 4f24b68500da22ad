//! The publish stage.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::Builder;

use super::backlog::Backlog;
use super::slot::Slot;
use super::stages::settle_name;
use super::times::TimesReader;
use super::{Outcome, Published};
use crate::digest::Digest;

/// A digest, told when the stage that keeps it ends.
struct Keeper {
    digest: Digest,
    told: Arc<Mutex<Digest>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = self.digest;
    }
}

/// What the publish stage has to do with slots.
pub(super) struct Slots {
    pub(super) backlog: Arc<Backlog>,
    /// When they were checked and matched.
    pub(super) times: [TimesReader; 2],
}

/// What the publish stage keeps from one slot to the next.
pub(super) struct Publishing {
    /// The number of the first command.
    first: u64,
    /// Queries so far, which have no numbers.
    queries: u64,
    keeper: Option<Keeper>,
    backlog: Arc<Backlog>,
    checked: TimesReader,
    matched: TimesReader,
}

impl Publishing {
    pub(super) fn new(slots: Slots, first: u64, digest: Option<&Arc<Mutex<Digest>>>) -> Self {
        let Slots {
            backlog,
            times: [checked, matched],
            ..
        } = slots;
        let keeper = digest.map(|told| Keeper {
            digest: *told.lock().unwrap_or_else(PoisonError::into_inner),
            told: Arc::clone(told),
        });
        Self {
            first,
            queries: 0,
            keeper,
            backlog,
            checked,
            matched,
        }
    }

    /// The number of the command at a position of the ring, or of the next one after a query.
    #[inline(always)]
    pub(super) const fn number(&self, position: u64) -> u64 {
        self.first + position - self.queries
    }

    /// The digest of all that was published.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.keeper.as_ref().map(|keeper| keeper.digest)
    }

    /// Passes a slot; it is published with its times, unless it was discarded.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        slot: &mut Slot,
        position: u64,
        publish: &mut impl FnMut(Published<'_>),
    ) {
        let checked_at = self.checked.of(position, slot.checked_at);
        let matched_at = self.matched.of(position, slot.matched_at);
        let sequence = self.number(position);
        if slot.is_query() {
            self.queries += 1;
            if let Some(inquiry) = slot.inquiry.upgrade() {
                inquiry.set_sequence(sequence);
            }
            publish(Published::Answer { tag: slot.tag });
            return;
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.digest.fold(&slot.command, slot.result, &slot.events);
        }
        publish(Published::Outcome(Outcome {
            checked_at,
            matched_at,
            ..outcome_of(slot, sequence)
        }));
        self.backlog.take_off(&mut slot.events);
    }

    /// Passes a slot of which nobody hears.
    pub(super) fn discard(&mut self, slot: &mut Slot) {
        if slot.is_query() {
            self.queries += 1;
        } else {
            self.backlog.take_off(&mut slot.events);
        }
    }
}

/// What came of a command, without times.
#[inline(always)]
pub(super) fn outcome_of(slot: &Slot, sequence: u64) -> Outcome<'_> {
    Outcome {
        sequence,
        tag: slot.tag,
        due: slot.due,
        checked_at: 0,
        matched_at: 0,
        command: &slot.command,
        result: slot.result,
        events: &slot.events,
    }
}

pub(super) fn publishing(
    builder: Builder<Slot>,
    risk_shards: usize,
    mut stage: Publishing,
    mut publish: impl FnMut(Published<'_>) + Send + 'static,
) -> Builder<Slot> {
    // It has the slot for itself, to give memory back.
    let builder = builder.stage("publish", move |slot: &mut Slot, context| {
        stage.pass(slot, context.sequence(), &mut publish);
    });
    behind_settlement(builder, risk_shards)
}

/// Has the stage that was declared last come after all settlement.
pub(super) fn behind_settlement(builder: Builder<Slot>, risk_shards: usize) -> Builder<Slot> {
    (0..risk_shards).fold(builder, |builder, shard| {
        builder.after(settle_name(shard, risk_shards))
    })
}
