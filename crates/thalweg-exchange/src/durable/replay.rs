//! The journal's commands, executed again.

use thalweg_journal::{Lsn, Reader, Storage};

use super::error::OpenError;
use super::history::Recorded;
use super::options::Options;
use super::record::{Check, Origin, RecordError, decode_into};
use super::tables::Tables;
use crate::command::Command;
use crate::digest::Digest;
use crate::engine::state::{State, apply_batch};
use crate::event::Events;
use crate::service::Outcome;

/// The durable state of an exchange after `number` commands.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) state: State,
    pub(super) tables: Tables,
    pub(super) digest: Digest,
    /// How many commands; the number of the next one.
    pub(super) number: u64,
}

/// The closure that is called with each command and its outcome.
type OnRecord<'f> = &'f mut dyn FnMut(Recorded<'_>);

/// Memory that is used again for each block.
#[derive(Debug, Default)]
pub(super) struct Replayer {
    commands: Vec<Command>,
    senders: Vec<(Origin, Check)>,
    bytes: u64,
    /// Whether the last block goes on behind what was executed of it.
    is_cut: bool,
    events: Events,
}

impl Image {
    /// Nothing, under the rules of a new exchange.
    pub(super) fn new(options: &Options) -> Self {
        Self {
            state: State::new(options.rules),
            tables: Tables::new(&options.sessions),
            digest: Digest::new(),
            number: 0,
        }
    }
}

impl Replayer {
    /// Bytes of the records that were executed.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the last block has more than was executed of it: the caller must open a reader anew
    /// to go on there.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Executes the commands below `until` of the next block, and calls `on_record` with each and
    /// its outcome. Returns their number; `None` at the end of the journal.
    pub(super) fn block<S: Storage>(
        &mut self,
        image: &mut Image,
        reader: &mut Reader<S>,
        until: u64,
        place: &str,
        on_record: Option<OnRecord<'_>>,
    ) -> Result<Option<u64>, OpenError> {
        let Some(block) = reader.next_block()? else {
            return Ok(None);
        };
        let mut count = 0;
        self.is_cut = block.last().number() > until;
        // The command with number n is record n + 1.
        let below = |(lsn, _): &(Lsn, &[u8])| lsn.number() <= until;
        for (lsn, bytes) in block.bytes().take_while(below) {
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
            self.bytes += bytes.len() as u64;
            count += 1;
        }
        self.apply(image, count, on_record)
            .map_err(|(at, why)| OpenError::Record {
                place: place.to_owned(),
                lsn: Lsn::new(block.first().number() + at as u64),
                why,
            })?;
        Ok(Some(count as u64))
    }

    fn apply(
        &mut self,
        image: &mut Image,
        count: usize,
        mut on_record: Option<OnRecord<'_>>,
    ) -> Result<(), (usize, RecordError)> {
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
                stamps: None,
                command,
                result,
                events,
            };
            match &mut on_record {
                None => tables.note(&outcome, note, None),
                Some(on_record) => {
                    let mut reports = Vec::new();
                    tables.note(&outcome, note, Some(&mut reports));
                    on_record(Recorded {
                        outcome,
                        origin,
                        reports: &reports,
                    });
                }
            }
            *number += 1;
        });
        wrong.map_or(Ok(()), Err)
    }
}
