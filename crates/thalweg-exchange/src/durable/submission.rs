//! The way of commands through a durable exchange: known ones are answered, new ones go into the
//! journal and are executed, and once they are durable their answers and reports are published.

mod frames;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use thalweg_journal::{AppendGuard, Error as JournalError, Lsn, Shared, Storage};
use thalweg_measure::clock::Clock;

use super::committer::Gate;
use super::error::{ExchangeError, SubmitError, shortage};
use super::exchange::{Exchange, Publish, Reported};
use super::faults::Seeded;
use super::in_flight::{InFlightQuery, Kind, SessionRef, Slot};
use super::published::{Outcomes, Published};
use super::record::{Origin, encode, encode_note, record_bytes};
use super::replication::batch::{Pending, RECORD_BYTES_MAX};
use super::replication::leading::Replication;
use super::tables::{FirstAnswer, Note, ReportFrame, SessionSlot};
use crate::codec::FRAME_BYTES_MAX;
use crate::command::Command;
use crate::digest::check;
use crate::engine::state::apply;
use crate::service::{Answered, Query};
use crate::session::{ClientSequence, Refusal, SessionKey};

/// Commands that are executed together.
const ROUND: usize = 64;
/// Commands that are published together at most: their reports are kept until all are noted.
const TOGETHER: usize = 256;
/// Commands after which an owner who is never idle looks whether a snapshot is due by time.
const LOOK_EVERY: u64 = 4096;

/// A command on its way into the exchange.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'c> {
    /// The sender: a session or the exchange itself.
    pub origin: Origin,
    /// The command.
    pub command: &'c Command,
    /// The caller's own note, which comes back with the outcome.
    pub tag: u64,
}

impl<'c> Submission<'c> {
    #[inline(always)]
    const fn parts(self) -> (Origin, &'c Command, u64) {
        (self.origin, self.command, self.tag)
    }
}

/// Why no more commands are taken together.
enum RunEnd<'c> {
    /// All were taken.
    All,
    /// As many were taken as are executed together.
    Full,
    /// The next one needs a look of its own.
    Other(usize, Submission<'c>),
}

/// Where the records of commands go that are taken together.
enum Records<'x, S: Storage> {
    Journal(AppendGuard<'x, S>),
    /// The batch that the command log gets next: they are journaled when it has acknowledged them.
    Log(&'x mut Pending),
}

impl<'x, S: Storage> Records<'x, S> {
    /// Returns where they go; none where the journal has stopped.
    fn of(replication: &'x mut Replication, journal: &'x Shared<[u8], S>) -> Option<Self> {
        match replication {
            Replication::Leading(leading) => Some(Self::Log(&mut leading.pending)),
            _ => journal.lock_appends().ok().map(Self::Journal),
        }
    }

    /// Writes the record of the command that gets this number. Returns how many bytes it has, if
    /// there is room.
    #[inline(always)]
    fn append(&mut self, request: Submission<'_>, number: u64) -> Option<usize> {
        let bytes = record_bytes(request.command);
        match self {
            Self::Journal(_) if bytes > FRAME_BYTES_MAX => return None,
            Self::Journal(journal) => {
                write_record(request, journal.claim(bytes)?);
                let lsn = journal.finish();
                debug_assert_eq!(lsn.number(), number + 1, "a record is a command");
            }
            Self::Log(_) if bytes > RECORD_BYTES_MAX => return None,
            Self::Log(pending) => pending.push_with(bytes, move |out| write_record(request, out)),
        }
        Some(bytes)
    }
}

/// Writes the record of a command over its room.
#[inline(always)]
fn write_record(request: Submission<'_>, out: &mut [u8]) {
    let encoded = encode(request.origin, request.command, out);
    encoded.expect("the frame has room, and is not too long");
}

/// How a command was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// A new one: its outcome will be published, or was by now.
    New {
        /// Its number.
        number: u64,
    },
    /// One that was executed before: nothing will be published.
    Repeat(FirstAnswer),
    /// One that is in flight: its outcome will be published, with the tag that it had when it came
    /// first.
    Pending {
        /// Its number.
        number: u64,
    },
}

impl<S: Storage> Exchange<S> {
    /// Takes a command, unless it was taken before: writes it into the journal and executes it.
    /// Waits while too many are in flight, and for the disk where the caller commits.
    ///
    /// Its outcome may be published before this returns.
    ///
    /// # Errors
    /// See [`SubmitError`]; but for [`SubmitError::Failed`], nothing has changed.
    pub fn submit(
        &mut self,
        origin: Origin,
        command: &Command,
        tag: u64,
    ) -> Result<SubmitOutcome, SubmitError> {
        self.submit_due(origin, command, 0, tag)
    }

    /// Submits as [`submit`](Self::submit) does a command that was due at this time, in ticks of
    /// the clock: its [outcome](crate::service::Outcome::due) says so.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_due(
        &mut self,
        origin: Origin,
        command: &Command,
        due: u64,
        tag: u64,
    ) -> Result<SubmitOutcome, SubmitError> {
        let request = Submission {
            origin,
            command,
            tag,
        };
        let admitted = self.admit(request, due)?;
        self.execute();
        // A failure has stopped the exchange, which the next call says.
        let _ = self.publish();
        Ok(admitted)
    }

    /// Takes commands together, in order, which costs less for each: `admitted(at, what)` is called
    /// once for each with what came of it. If that panics, those up to there are taken, and no
    /// other. Neither the iterator nor `admitted` may wait for another thread that uses the
    /// exchange's journal: both are called while this one has its lock.
    pub fn submit_many<'c>(
        &mut self,
        requests: impl IntoIterator<Item = Submission<'c>>,
        mut admitted: impl FnMut(usize, Result<SubmitOutcome, SubmitError>),
    ) {
        let mut requests = requests.into_iter().enumerate();
        let panic = loop {
            let run = AssertUnwindSafe(|| self.take_run(&mut requests, &mut admitted));
            match catch_unwind(run) {
                Ok(RunEnd::All) => break None,
                Ok(RunEnd::Full) => {
                    self.execute();
                    let _ = self.publish();
                }
                Ok(RunEnd::Other(at, request)) => {
                    let taken = self.admit_behind(request);
                    let call = AssertUnwindSafe(|| admitted(at, taken));
                    if let Err(panic) = catch_unwind(call) {
                        break Some(panic);
                    }
                }
                Err(panic) => break Some(panic),
            }
        };
        // Also if the callback has panicked: they are in the journal.
        self.execute();
        let _ = self.publish();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Takes a command as [`admit`](Self::admit) does, behind others that were kept back.
    fn admit_behind(&mut self, request: Submission<'_>) -> Result<SubmitOutcome, SubmitError> {
        let taken = self.admit(request, 0);
        let is_full = matches!(taken, Err(SubmitError::Refused(Refusal::InFlight { .. })));
        if !is_full || self.in_flight.to_execute() == 0 {
            return taken;
        }
        // They are in flight because they were kept back.
        self.execute();
        self.publish()?;
        self.admit(request, 0)
    }

    /// Takes the next commands as [`admit`](Self::admit) would one after the other, with one look
    /// at all that stays as it is meanwhile: up to the first that is not new, of a session that is
    /// known and may send it, or for which the journal's block has no room.
    fn take_run<'c>(
        &mut self,
        requests: &mut impl Iterator<Item = (usize, Submission<'c>)>,
        admitted: &mut impl FnMut(usize, Result<SubmitOutcome, SubmitError>),
    ) -> RunEnd<'c> {
        if self.in_flight.to_execute() == ROUND {
            return RunEnd::Full;
        }
        let mut room = self.room_of_run();
        let Some(mut records) = (match room {
            0 => None,
            _ => Records::of(&mut self.replication, &self.journal),
        }) else {
            let next = requests.next();
            return next.map_or(RunEnd::All, |(at, request)| RunEnd::Other(at, request));
        };
        let before = self.owner.number;
        let (owner, mut session) = (&mut self.owner, None);
        let end = loop {
            if self.in_flight.to_execute() == ROUND {
                break RunEnd::Full;
            }
            let Some((at, request)) = requests.next() else {
                break RunEnd::All;
            };
            let known = self.admission.known(request.origin, &mut session);
            let Some((slot, sequence)) = known.filter(|_| room > 0) else {
                break RunEnd::Other(at, request);
            };
            let Some(bytes) = records.append(request, owner.number) else {
                break RunEnd::Other(at, request);
            };
            room -= 1;
            self.admission.take(slot, sequence);
            let number = owner.note_taken(bytes);
            let stamp = self.stamping.is_due();
            (self.in_flight.take()).begin(request.parts(), (number, slot.0), (0, stamp));
            admitted(at, Ok(SubmitOutcome::New { number }));
        };
        drop(records);
        if self.owner.number > before {
            self.look_at_snapshots(before);
        }
        end
    }

    /// Returns how many commands can be taken together now, if none of them is special.
    fn room_of_run(&mut self) -> usize {
        let is_plain = self.gate.failed().is_none()
            && self.gate.lack().is_none()
            && self.owner.refused_until.is_none()
            && self.options.notes.0.is_none()
            && !matches!(self.replication, Replication::Following);
        match is_plain {
            true => self.capacity().saturating_sub(self.in_flight.len()),
            false => 0,
        }
    }

    /// Executes what was taken.
    #[inline]
    fn execute(&mut self) {
        let (count, in_flight) = (self.in_flight.to_execute(), &mut self.in_flight);
        let commands = |each: &mut dyn FnMut(&Command)| in_flight.look(|slot| each(&slot.command));
        self.prefetcher.prefetch(&self.state, count, commands);
        let (state, stamping, work) = (&mut self.state, &mut self.stamping, &mut self.owner.work);
        let mut leading = match &mut self.replication {
            Replication::Leading(leading) => Some(leading),
            _ => None,
        };
        stamping.begin();
        self.in_flight.execute(|slot| {
            if let Some(question) = &mut slot.question {
                let (answer, cost) = question.query.answer(state);
                *work += cost;
                question.answered = Some(Answered {
                    sequence: slot.number,
                    answer,
                });
                // The time that took is not counted for the next command.
                stamping.begin();
                return;
            }
            if slot.taken > 0 {
                let stamped = stamping.apply(state, &slot.command, &mut slot.events);
                (slot.result, slot.stamps) = stamped;
            } else {
                slot.stamps.begun = 0;
                slot.result = apply(state, &slot.command, &mut slot.events);
            }
            *work += slot.events.work();
            if let Some(leading) = &mut leading {
                leading.note_executed(&slot.command, slot.result, &slot.events);
            }
        });
    }

    /// Asks something: the answer is published, behind everything that was submitted before.
    ///
    /// # Errors
    /// [`Refusal::DiskFull`] or [`Refusal::Resources`] while commands wait for room on the disk,
    /// since the answer would have to wait for them; or the exchange has stopped.
    pub fn query(&mut self, query: Query, tag: u64) -> Result<(), SubmitError> {
        self.gate.check()?;
        self.make_room()?;
        let number = self.owner.number;
        let slot = self.in_flight.take();
        slot.command = Command::Nop;
        (slot.number, slot.tag, slot.taken) = (number, tag, 0);
        slot.question = Some(Box::new(InFlightQuery {
            query,
            answered: None,
        }));
        self.execute();
        self.publish().map_err(SubmitError::from)
    }

    /// Returns whether a session sent this sequence, or a higher one, and it was taken: what comes
    /// with it is not executed now, and has the answer of the first, or none.
    #[must_use]
    pub fn knows(&mut self, key: SessionKey, sequence: ClientSequence) -> bool {
        matches!(self.admission.kind(key, sequence.0), Ok(Kind::Old(_)))
    }

    /// Takes a command into the journal and among those in flight, or says what is known of it.
    #[inline]
    fn admit(&mut self, request: Submission<'_>, due: u64) -> Result<SubmitOutcome, SubmitError> {
        self.gate.check()?;
        let Submission {
            origin, command, ..
        } = request;
        let place = match origin {
            Origin::Engine => None,
            Origin::Session { key, sequence } => {
                if sequence.0 == 0 {
                    return Err(SubmitError::SequenceZero);
                }
                match self.admission.kind(key, sequence.0)? {
                    Kind::New(place) => Some((place, key, sequence.0)),
                    Kind::Old(slot) => return self.repeat(slot, sequence.0, command),
                }
            }
        };
        self.make_room()?;
        if let Some((place, ..)) = place
            && self.admission.is_full(place)
        {
            return Err(self.admission.too_many().into());
        }
        self.append(request)?;
        let session = place.map_or(Note::NONE.session, |(place, key, sequence)| {
            let slot = match place {
                SessionRef::Known(slot) => slot,
                SessionRef::New => self.open_session(key),
            };
            self.admission.take(slot, sequence);
            slot.0
        });
        let number = self.owner.number - 1;
        let stamp = self.stamping.is_due();
        (self.in_flight.take()).begin(request.parts(), (number, session), (due, stamp));
        Ok(SubmitOutcome::New { number })
    }

    /// A new session, whose first command is in the journal.
    #[cold]
    fn open_session(&mut self, key: SessionKey) -> SessionSlot {
        let slot = self.admission.open(key);
        let same = self.reports.lock().sessions.open(key);
        debug_assert_eq!(slot, same, "both tables have the order of the journal");
        slot
    }

    /// A command that was taken before, or that comes behind a later one.
    #[cold]
    fn repeat(
        &mut self,
        slot: SessionSlot,
        sequence: u64,
        command: &Command,
    ) -> Result<SubmitOutcome, SubmitError> {
        let check_with = |result| check(command, result);
        // In this order: what is not in the tables yet will be published.
        let first = self
            .reports
            .lock()
            .sessions
            .first_answer(slot, sequence, check_with);
        match first {
            Some(Ok(first)) => Ok(SubmitOutcome::Repeat(first)),
            Some(Err(refusal)) => Err(refusal.into()),
            None => {
                let in_flight = self.in_flight.find(slot.0, sequence).map(|slot| {
                    let is_same = check(&slot.command, slot.result) == check_with(slot.result);
                    (slot.number, is_same)
                });
                match in_flight {
                    Some((number, true)) => Ok(SubmitOutcome::Pending { number }),
                    // The log may have other commands of the session, if it has another writer now.
                    _ if self.has_unacknowledged(slot.0) => Err(Refusal::Resources.into()),
                    Some(_) => Err(Refusal::SequenceReused.into()),
                    None => Err(Refusal::NotExecuted.into()),
                }
            }
        }
    }

    /// Writes a command into the journal.
    #[inline]
    fn append(&mut self, request: Submission<'_>) -> Result<(), SubmitError> {
        let note = match self.replication {
            Replication::Following => self.owner.note.take(),
            _ => self.options.notes.of(request.origin),
        };
        let note = note.as_deref().unwrap_or_default();
        let bytes = record_bytes(request.command) + note.len();
        let bytes_max = match self.replication {
            Replication::Alone => FRAME_BYTES_MAX,
            _ => RECORD_BYTES_MAX,
        };
        if bytes > bytes_max {
            return Err(SubmitError::TooLong { bytes, bytes_max });
        }
        if self.owner.refused_until.is_some() {
            self.ask_again()?;
        }
        let write = |out: &mut [u8]| {
            write_record(request, out);
            if !note.is_empty() {
                encode_note(note, out);
            }
        };
        let appended = match &mut self.replication {
            Replication::Leading(leading) => {
                leading.pending.push_with(bytes, write);
                Ok(Lsn::new(self.owner.number + 1))
            }
            _ => self.journal.append_bytes_with(bytes, write),
        };
        match appended {
            Ok(lsn) => {
                let number = self.owner.note_taken(bytes);
                debug_assert_eq!(lsn.number(), number + 1);
                self.look_at_snapshots(number);
                Ok(())
            }
            Err(error) => Err(self.not_appended(error)),
        }
    }

    /// Has a snapshot made where one is due, once commands from this number on were taken.
    #[inline]
    fn look_at_snapshots(&mut self, from: u64) {
        let is_time = from / LOOK_EVERY < self.owner.number / LOOK_EVERY;
        if self.snapshots.is_due_by(self.owner.bytes) || is_time && self.snapshots.is_due_now() {
            self.snapshot_now();
        }
    }

    #[cold]
    fn not_appended(&mut self, error: JournalError) -> SubmitError {
        match error {
            JournalError::RecordTooLong { bytes, bytes_max } => {
                SubmitError::TooLong { bytes, bytes_max }
            }
            error => match shortage(&error) {
                Some(lack) => {
                    let until = Instant::now().checked_add(self.options.room_pause);
                    self.owner.refused_until = until.map(|until| (until, lack));
                    lack.into()
                }
                None => {
                    let failed = ExchangeError::Journal(Arc::new(error));
                    self.gate.fail(failed.clone());
                    SubmitError::Failed(failed)
                }
            },
        }
    }

    /// Lets the journal be asked for room again, which it did not have, unless it is too early.
    #[cold]
    fn ask_again(&mut self) -> Result<(), SubmitError> {
        match self.owner.refused_until {
            Some((until, lack)) if Instant::now() < until => Err(lack.into()),
            _ => {
                self.owner.refused_until = None;
                Ok(())
            }
        }
    }

    /// Waits for room for one more.
    ///
    /// # Errors
    /// The disk is full, the command log does not answer, or the exchange has stopped.
    #[inline]
    fn make_room(&mut self) -> Result<(), SubmitError> {
        if self.gate.lack().is_some() || self.in_flight.len() >= self.capacity() {
            return self.find_room();
        }
        Ok(())
    }

    #[cold]
    fn find_room(&mut self) -> Result<(), SubmitError> {
        loop {
            self.execute();
            self.publish()?;
            if let Some(lack) = self.gate.lack() {
                return Err(lack.into());
            }
            if self.in_flight.len() < self.capacity() {
                return Ok(());
            }
            if self.is_log_silent() {
                return Err(Refusal::Resources.into());
            }
            self.wait_until(|gate| gate.lack().is_some());
        }
    }

    /// Makes durable what was executed, or has that begun, and publishes what is.
    pub(super) fn publish(&mut self) -> Result<(), ExchangeError> {
        let durable = match self.faults.has(Seeded::PublishUnsynced) {
            true => u64::MAX,
            false => self.releasable(),
        };
        if let Some(failed) = self.gate.failed()
            && !self.faults.has(Seeded::PublishFailed)
        {
            let failed = failed.clone();
            if !std::mem::replace(&mut self.owner.is_failure_published, true) {
                self.leave_log();
                (self.publish)(Published::Failed(&failed));
            }
            return Err(failed);
        }
        // Read before anything is published: a client that has its answer may send the next command
        // at once.
        let durable = match self.faults.has(Seeded::PublishFailed) {
            true => u64::MAX,
            false => durable,
        };
        self.hand_over();
        loop {
            let count = self.in_flight.publishable(durable).min(TOGETHER);
            if count == 0 {
                return Ok(());
            }
            let count = self.in_flight.next_slots(count).len();
            self.publish_next(count);
        }
    }

    fn publish_next(&mut self, count: usize) {
        let guard = StopIfPanicked(Arc::clone(&self.gate));
        self.note_next(count);
        let (clock, publish) = (Clock::global(), &mut self.publish);
        let Reported { reports, apart } = &self.reported;
        let slots = self.in_flight.next_slots(count);
        let (mut from, mut reports_from) = (0, 0);
        for &(at, reports_at) in apart {
            publish_run(
                publish,
                &slots[from..at],
                &reports[reports_from..reports_at],
            );
            let slot = &mut slots[at];
            (from, reports_from) = (at + 1, reports_at + slot.reports);
            if let Some(question) = &mut slot.question {
                if let Some(answered) = question.answered.take() {
                    let tag = slot.tag;
                    publish(Published::Answer { tag, answered });
                }
                continue;
            }
            slot.stamps.journaled = clock.ticks();
            let own = &reports[reports_at..reports_from];
            publish_run(publish, std::slice::from_ref(slot), own);
            self.stage_times.record(slot, clock.ticks());
        }
        publish_run(publish, &slots[from..], &reports[reports_from..]);
        publish(Published::ChunkEnd);
        drop(guard);
        self.in_flight.free(count);
        self.reported.clear();
    }

    /// Notes the next commands in the digest and the tables.
    #[inline(never)]
    fn note_next(&mut self, count: usize) {
        let mut tables = self.reports.lock();
        let tables = &mut *tables;
        let Reported { reports, apart } = &mut self.reported;
        for (at, slot) in self.in_flight.next_slots(count).iter_mut().enumerate() {
            let before = reports.len();
            if slot.is_apart() {
                apart.push((at, before));
            }
            if slot.question.is_some() {
                slot.reports = 0;
                continue;
            }
            let note = slot.note();
            let check = (self.digest).fold_and_check(&slot.command, slot.result, &slot.events);
            tables.note(&slot.outcome(), (note, check), Some(reports));
            slot.reports = reports.len() - before;
            self.admission.answer(note);
        }
        tables.noted = self.digest;
    }
}

/// Publishes commands in a row, whose reports these are.
#[inline]
fn publish_run(publish: &mut Publish, slots: &[Slot], reports: &[ReportFrame]) {
    if !slots.is_empty() {
        publish(Published::Outcomes(Outcomes::of(slots, reports)));
    }
}

/// Stops the exchange where the closure has panicked: it has missed something.
struct StopIfPanicked(Arc<Gate>);

impl Drop for StopIfPanicked {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(ExchangeError::Panicked);
        }
    }
}

#[cfg(test)]
mod tests;
