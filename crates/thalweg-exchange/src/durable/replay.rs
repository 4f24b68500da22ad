//! The journal's commands, executed again.

use std::thread;

use thalweg::channel::spsc;
use thalweg_journal::{Lsn, Reader, Storage};

use super::error::OpenError;
use super::options::Options;
use super::published::Executed;
use super::record::{Origin, RecordError, decode_into};
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
type OnRecord<'f> = &'f mut dyn FnMut(Executed<'_>);

/// Bytes of a journal from which on a thread of its own reads ahead: a shorter one is executed
/// before a thread would have begun.
const READ_AHEAD_BYTES: u64 = 4 << 20;
/// The command for whose report memory is prefetched comes this number of commands later.
const AHEAD: usize = 16;
/// Batches that are between the thread that reads and the one that executes.
const BATCHES: usize = 4;

/// The commands of a block, decoded.
#[derive(Debug, Default)]
struct Batch {
    commands: Vec<Command>,
    senders: Vec<Origin>,
    /// How many of them are of this block: memory is used again.
    count: usize,
    /// The record of the first one.
    first: u64,
    /// Bytes of their records.
    bytes: u64,
    /// Whether the block goes on behind them.
    is_cut: bool,
    /// Bytes of the journal that were read, and of all that is to be read.
    progress: (u64, u64),
}

/// Executes blocks of a journal.
#[derive(Debug, Default)]
pub(super) struct Replayer {
    batch: Batch,
    bytes: u64,
    events: Events,
    /// Answers and reports of commands below this number are not made.
    tables_from: u64,
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

impl Batch {
    /// Decodes the commands below `until` of the next block. Returns whether there was one.
    ///
    /// # Errors
    /// The journal cannot be read, or a record is none of a command.
    fn read<S: Storage>(
        &mut self,
        reader: &mut Reader<S>,
        until: u64,
        place: &str,
    ) -> Result<bool, OpenError> {
        (self.count, self.bytes) = (0, 0);
        let Some(block) = reader.next_block()? else {
            return Ok(false);
        };
        self.first = block.first().number();
        self.is_cut = block.last().number() > until;
        // The command with number n is record n + 1.
        let below = |(lsn, _): &(Lsn, &[u8])| lsn.number() <= until;
        for (lsn, bytes) in block.bytes().take_while(below) {
            if self.count == self.commands.len() {
                self.commands.push(Command::Nop);
                self.senders.push(Origin::Engine);
            }
            let command = &mut self.commands[self.count];
            self.senders[self.count] =
                decode_into(bytes, command).map_err(|why| refused(place, lsn, why))?;
            self.bytes += bytes.len() as u64;
            self.count += 1;
        }
        self.progress = reader.progress_bytes();
        Ok(true)
    }

    /// Executes the commands, those below `tables_from` without their answers and reports, and
    /// calls `on_record` with each other one and its outcome.
    ///
    /// # Errors
    /// A session has executed a sequence before.
    fn apply(
        &self,
        image: &mut Image,
        (events, tables_from): (&mut Events, u64),
        place: &str,
        mut on_record: Option<OnRecord<'_>>,
    ) -> Result<(), OpenError> {
        let Image {
            state,
            tables,
            digest,
            number,
        } = image;
        let commands = &self.commands[..self.count];
        let mut wrong = None;
        apply_batch(state, commands, events, |at, result, events| {
            let command = &commands[at];
            if *number < tables_from {
                digest.fold(command, result, events);
                *number += 1;
                return;
            }
            if let Some(owner) = commands.get(at + AHEAD).and_then(Command::uid) {
                tables.reports.prefetch(owner);
            }
            let check = digest.fold_and_check(command, result, events);
            let origin = self.senders[at];
            let note = match tables.note_of(origin, *number) {
                Ok(note) => note,
                Err(why) => {
                    wrong.get_or_insert((self.first + at as u64, why));
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
                None => tables.note(&outcome, (note, check), None),
                Some(on_record) => {
                    let mut reports = Vec::new();
                    tables.note(&outcome, (note, check), Some(&mut reports));
                    on_record(Executed {
                        outcome,
                        origin,
                        reports: &reports,
                    });
                }
            }
            *number += 1;
        });
        wrong.map_or(Ok(()), |(number, why)| {
            Err(refused(place, Lsn::new(number), why))
        })
    }
}

fn refused(place: &str, lsn: Lsn, why: RecordError) -> OpenError {
    let place = place.to_owned();
    OpenError::Record { place, lsn, why }
}

impl Replayer {
    /// Returns one that makes no answers and reports of the commands below this number.
    pub(super) fn with_tables_from(tables_from: u64) -> Self {
        Self {
            tables_from,
            ..Self::default()
        }
    }

    /// Returns how many bytes the records have that were executed.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the last block has more than was executed of it: the caller must open a
    /// reader anew to go on there.
    pub(super) const fn is_cut(&self) -> bool {
        self.batch.is_cut
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
        if !self.batch.read(reader, until, place)? {
            return Ok(None);
        }
        self.bytes += self.batch.bytes;
        self.batch.apply(
            image,
            (&mut self.events, self.tables_from),
            place,
            on_record,
        )?;
        Ok(Some(self.batch.count as u64))
    }

    /// Executes the commands below `until`, and calls `progress` after each block with the bytes
    /// that were read and those that are to be read at most. A long journal is read, checked and
    /// decoded by a thread of its own meanwhile, which is about a sixth of the work.
    pub(super) fn run<S: Storage>(
        &mut self,
        image: &mut Image,
        mut reader: Reader<S>,
        until: u64,
        place: &str,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), OpenError> {
        let (read, total) = reader.progress_bytes();
        if total - read >= READ_AHEAD_BYTES {
            return self.run_beside(image, reader, until, place, progress);
        }
        while image.number < until
            && self
                .block(image, &mut reader, until, place, None)?
                .is_some()
        {
            let (read, total) = self.batch.progress;
            progress(read, total);
        }
        Ok(())
    }

    fn run_beside<S: Storage>(
        &mut self,
        image: &mut Image,
        mut reader: Reader<S>,
        until: u64,
        place: &str,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), OpenError> {
        let (mut decoded, to_execute) = spsc(BATCHES);
        // One more batch is in each hand.
        let (mut used, mut to_fill) = spsc::<Batch>(BATCHES + 2);
        thread::scope(|scope| {
            // The thread ends where this does, with an error or a panic, too.
            let mut to_execute = to_execute;
            let reading = move || {
                loop {
                    let mut batch = to_fill.try_recv().unwrap_or_default();
                    let read = batch.read(&mut reader, until, place);
                    let goes_on = match &read {
                        Ok(true) => batch.first + (batch.count as u64) <= until,
                        Ok(false) => return,
                        Err(_) => false,
                    };
                    if decoded.send(read.map(|_| batch)).is_err() || !goes_on {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new().name("thalweg-replay".to_owned());
            let spawned = thread.spawn_scoped(scope, reading);
            spawned.map_err(|error| OpenError::Thread(error.to_string()))?;
            while let Ok(batch) = to_execute.recv() {
                let batch: Batch = batch?;
                self.bytes += batch.bytes;
                batch.apply(image, (&mut self.events, self.tables_from), place, None)?;
                let (read, total) = batch.progress;
                progress(read, total);
                // Nothing takes it after the last one.
                let _ = used.try_send(batch);
            }
            Ok(())
        })
    }
}
