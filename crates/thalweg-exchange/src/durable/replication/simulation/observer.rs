//! The observer: knows what was answered, and executes the log without a break.

use std::collections::BTreeMap;

use super::world::World;
use crate::command::Command;
use crate::durable::record::{Origin, decode_into};
use crate::durable::replication::batch::Batch;
use crate::durable::simulation::{Verdict, must};
use crate::engine::state::{State, apply};
use crate::event::Events;
use crate::result_code::ResultCode;
use crate::snapshot::state_hash;

/// An answer: the command's number, and its result.
type Answer = (u64, ResultCode);

#[derive(Debug, Default)]
pub(super) struct Observer {
    /// By session and sequence.
    pub(super) answers: BTreeMap<(i64, u32, u64), Answer>,
}

/// How many commands a batch has.
pub(super) fn count_of(bytes: &[u8]) -> u64 {
    Batch::read(bytes).map_or(0, |batch| batch.count)
}

pub(super) fn name_of(origin: Origin) -> Option<(i64, u32, u64)> {
    match origin {
        Origin::Engine => None,
        Origin::Session { key, sequence } => {
            // An administrator may have the number of a user.
            let holder = match key.role {
                crate::session::Role::Admin => -key.holder,
                _ => key.holder,
            };
            Some((holder, key.number, sequence.0))
        }
    }
}

impl Observer {
    /// A replica has published an outcome for a client, in this epoch; it has just been answered.
    pub(super) fn answered(
        &mut self,
        world: &World,
        epoch: u64,
        origin: Origin,
        answer: Answer,
    ) -> Verdict {
        let (number, _) = answer;
        let found = world.history.range(..=number).next_back();
        let found = found.filter(|(index, seen)| number < **index + count_of(&seen.bytes));
        let Some((index, seen)) = found else {
            return Err(format!("command {number} is answered, and not in the log"));
        };
        let batch = Batch::read(&seen.bytes).map_err(|error| error.to_string())?;
        let under = seen.written_under;
        must(under == epoch && batch.head.epoch == epoch, || {
            format!(
                "epoch {epoch} answers command {number} of the batch at {index}, which was \
                 written by epoch {} under the claim of epoch {under}",
                batch.head.epoch
            )
        })?;
        self.note(origin, answer)
    }

    /// A client got an answer, the first or a repetition.
    pub(super) fn note(&mut self, origin: Origin, answer: Answer) -> Verdict {
        let Some(name) = name_of(origin) else {
            return Ok(());
        };
        let before = *self.answers.entry(name).or_insert(answer);
        must(before == answer, || {
            format!("{name:?} was answered {before:?}, and now {answer:?}")
        })
    }

    /// Executes the whole log, and compares what was answered. Returns the number of commands, and
    /// the hash of the state.
    pub(super) fn close(&self, world: &World) -> Result<(u64, u64), String> {
        let (mut state, mut events) = (State::default(), Events::new());
        let mut number = 0;
        let mut executed = BTreeMap::new();
        for (index, seen) in &world.history {
            must(*index == number, || {
                format!("a batch at {index}, where {number} comes next")
            })?;
            let batch = Batch::read(&seen.bytes).map_err(|error| error.to_string())?;
            for record in batch.records() {
                let mut command = Command::Nop;
                let decoded = decode_into(record, &mut command);
                let origin = decoded.map_err(|error| error.to_string())?;
                let result = apply(&mut state, &command, &mut events);
                if let Some(name) = name_of(origin) {
                    let before = executed.insert(name, (number, result));
                    must(before.is_none(), || {
                        format!("{name:?} is in the log twice: {before:?} and {number}")
                    })?;
                }
                number += 1;
            }
        }
        for (name, answer) in &self.answers {
            let found = executed.get(name);
            must(found == Some(answer), || {
                format!("{name:?} was answered {answer:?}; in the log: {found:?}")
            })?;
        }
        Ok((number, state_hash(&state)))
    }
}
