//! The journal's commands, executed again.

use thalweg_journal::{Lsn, Reader, Storage};

use super::error::OpenError;
use super::record::{Check, Origin, RecordError, decode_into};
use super::tables::Tables;
use crate::command::Command;
use crate::digest::Digest;
use crate::engine::state::{State, apply_batch};
use crate::event::Events;
use crate::service::Outcome;

/// All that is durable, after so many commands.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) state: State,
    pub(super) tables: Tables,
    pub(super) digest: Digest,
    /// How many commands; the number of the next one.
    pub(super) number: u64,
}

/// Memory that is used again for each block.
#[derive(Debug, Default)]
pub(super) struct Replayer {
    commands: Vec<Command>,
    senders: Vec<(Origin, Check)>,
    events: Events,
}

impl Replayer {
    /// Executes the next block of a journal; gives how many commands, none at its end.
    ///
    /// Commands of the block before the image's number are left out.
    pub(super) fn block<S: Storage>(
        &mut self,
        image: &mut Image,
        reader: &mut Reader<S>,
        place: &str,
    ) -> Result<Option<u64>, OpenError> {
        let Some(block) = reader.next_block()? else {
            return Ok(None);
        };
        let mut count = 0;
        for (lsn, bytes) in block.bytes() {
            if count == self.commands.len() {
                self.commands.push(Command::Nop);
                self.senders.push((Origin::Engine, Check::default()));
            }
            let refused = |why| OpenError::Record {
                place: place.to_owned(),
                lsn,
                why,
            };
            self.senders[count] = decode_into(bytes, &mut self.commands[count]).map_err(refused)?;
            count += 1;
        }
        self.apply(image, count)
            .map_err(|(at, why)| OpenError::Record {
                place: place.to_owned(),
                lsn: Lsn::new(block.first().number() + at as u64),
                why,
            })?;
        Ok(Some(count as u64))
    }

    fn apply(&mut self, image: &mut Image, count: usize) -> Result<(), (usize, RecordError)> {
        let Image {
            state,
            tables,
            digest,
            number,
        } = image;
        let (commands, senders) = (&self.commands[..count], &self.senders);
        let mut wrong = None;
        apply_batch(state, commands, &mut self.events, |at, result, events| {
            let command = &commands[at];
            digest.fold(command, result, events);
            let (origin, check) = senders[at];
            let noted = tables.note_of(origin, check);
            let note = match noted {
                Ok(note) => note,
                Err(why) => {
                    wrong.get_or_insert((at, why));
                    return;
                }
            };
            let outcome = Outcome {
                sequence: *number,
                tag: 0,
                due: 0,
                checked_at: 0,
                matched_at: 0,
                command,
                result,
                events,
            };
            tables.note(&outcome, note, |_, _, _| {});
            *number += 1;
        });
        wrong.map_or(Ok(()), Err)
    }
}
