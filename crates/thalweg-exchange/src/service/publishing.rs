//! The publish stage.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::Builder;

use super::backlog::Backlog;
use super::slot::{Slot, Work};
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
    pub(super) risk_shards: usize,
    pub(super) backlog: Arc<Backlog>,
    /// When they were checked and matched.
    pub(super) times: [TimesReader; 2],
}

pub(super) fn publishing(
    builder: Builder<Slot>,
    slots: Slots,
    (first, digest): (u64, Option<&Arc<Mutex<Digest>>>),
    mut publish: impl FnMut(Published<'_>) + Send + 'static,
) -> Builder<Slot> {
    let mut keeper = digest.map(|told| Keeper {
        digest: *told.lock().unwrap_or_else(PoisonError::into_inner),
        told: Arc::clone(told),
    });
    let Slots {
        risk_shards,
        backlog,
        times: [mut checked, mut matched],
    } = slots;
    let mut queries = 0;
    // It has the slot for itself, to give memory back.
    let builder = builder.stage("publish", move |slot: &mut Slot, context| {
        let checked_at = checked.of(context.sequence(), slot.checked_at);
        let matched_at = matched.of(context.sequence(), slot.matched_at);
        // Queries have no numbers.
        let sequence = first + context.sequence() - queries;
        if matches!(slot.work, Work::Query | Work::Answered) {
            queries += 1;
            if let Some(inquiry) = slot.inquiry.upgrade() {
                inquiry.set_sequence(sequence);
            }
            publish(Published::Answer { tag: slot.tag });
            return;
        }
        if let Some(keeper) = &mut keeper {
            keeper.digest.fold(&slot.command, slot.result, &slot.events);
        }
        publish(Published::Outcome(Outcome {
            sequence,
            tag: slot.tag,
            due: slot.due,
            checked_at,
            matched_at,
            command: &slot.command,
            result: slot.result,
            events: &slot.events,
        }));
        backlog.take_off(&mut slot.events);
    });
    (0..risk_shards).fold(builder, |builder, shard| {
        builder.after(settle_name(shard, risk_shards))
    })
}
