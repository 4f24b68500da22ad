//! How commands come into a durable exchange: known ones are answered, new ones go into the journal
//! and then into the pipeline.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use thalweg::pipeline::Stopped;
use thalweg_journal::{Error as JournalError, Storage};

use super::admission::{Kind, Place};
use super::error::{Failed, SubmitError, shortage};
use super::exchange::Exchange;
use super::record::{Check, Origin, encode, record_bytes};
use super::sessions::{FirstAnswer, SessionSlot};
use crate::codec::FRAME_BYTES_MAX;
use crate::command::Command;
use crate::service::{Note, Query, Service};
use crate::session::{ClientSequence, Refusal, SessionKey};

/// Commands that go into the pipeline together.
const ROUND: usize = 64;
/// Commands after which an owner who is never idle looks whether a snapshot is due by time.
const LOOK_EVERY: u64 = 4096;

/// A command on its way into the exchange.
#[derive(Clone, Copy, Debug)]
pub struct Request<'c> {
    /// Who sent it.
    pub origin: Origin,
    /// The command.
    pub command: &'c Command,
    /// The caller's own note, which comes back with the outcome.
    pub tag: u64,
}

/// What a command that was taken is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
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

/// A command that is in the journal and not in the pipeline yet.
type Taken = (usize, u64, Note);

impl<S: Storage> Exchange<S> {
    /// Takes a command, unless it was taken before: writes it into the journal, and has the
    /// pipeline execute it. Waits while the pipeline is full, not for the disk; but for commands
    /// that are executed where a stage behind waits for it.
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
    ) -> Result<Admitted, SubmitError> {
        self.submit_by(origin, command, |service, note| {
            service.submit_noted(command, tag, note)
        })
    }

    /// As [`submit`](Self::submit), of a command that was due at this time, in ticks of the clock:
    /// see [`Service::submit_due`].
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_due(
        &mut self,
        origin: Origin,
        command: &Command,
        due: u64,
        tag: u64,
    ) -> Result<Admitted, SubmitError> {
        self.submit_by(origin, command, |service, note| {
            service.submit_noted_due(command, due, tag, note)
        })
    }

    #[inline]
    fn submit_by(
        &mut self,
        origin: Origin,
        command: &Command,
        submit: impl FnOnce(&mut Service, Note) -> Result<(), Stopped>,
    ) -> Result<Admitted, SubmitError> {
        match self.admit(origin, command)? {
            Ok((number, note)) => {
                let submitted = submit(self.service_mut()?, note);
                submitted.map_err(|stopped| self.stopped(stopped))?;
                Ok(Admitted::New { number })
            }
            Err(known) => Ok(known),
        }
    }

    /// Takes commands together, in order, which costs less for each: `told(at, what)` says once of
    /// each what came of it. If that panics, those up to there are taken, and no other.
    pub fn submit_many(
        &mut self,
        requests: &[Request<'_>],
        mut told: impl FnMut(usize, Result<Admitted, SubmitError>),
    ) {
        let mut taken: Vec<Taken> = Vec::with_capacity(ROUND.min(requests.len()));
        let mut panic = None;
        for (at, request) in requests.iter().enumerate() {
            if taken.len() == ROUND || self.admission.in_flight() >= self.capacity() {
                self.send(requests, &mut taken);
            }
            let mut admitted = self.admit(request.origin, request.command);
            let is_full = matches!(
                admitted,
                Err(SubmitError::Refused(Refusal::InFlight { .. }))
            );
            if is_full && !taken.is_empty() {
                // Those before it are in flight because they were kept back here.
                self.send(requests, &mut taken);
                admitted = match self.drive() {
                    Ok(()) => self.admit(request.origin, request.command),
                    Err(failed) => Err(failed.into()),
                };
            }
            let admitted = admitted.map(|admitted| match admitted {
                Ok((number, note)) => {
                    taken.push((at, request.tag, note));
                    Admitted::New { number }
                }
                Err(known) => known,
            });
            panic = catch_unwind(AssertUnwindSafe(|| told(at, admitted))).err();
            if panic.is_some() {
                break;
            }
        }
        // Also if the callback has panicked: they are in the journal.
        self.send(requests, &mut taken);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// A failure is told by the next call.
    fn send(&mut self, requests: &[Request<'_>], taken: &mut Vec<Taken>) {
        if taken.is_empty() {
            return;
        }
        if let Some(service) = &mut self.service {
            let sent = service.submit_all_noted(taken.len(), |at| {
                let (request, tag, note) = taken[at];
                (requests[request].command, tag, note)
            });
            if let Err(stopped) = sent {
                self.stopped(stopped);
            }
        }
        taken.clear();
    }

    /// Asks something: the answer is published, behind everything that was submitted before.
    ///
    /// # Errors
    /// [`Refusal::DiskFull`] or [`Refusal::Resources`] while commands wait for room on the disk,
    /// since the answer would have to wait for them; or the exchange has stopped.
    pub fn query(&mut self, query: Query, tag: u64) -> Result<(), SubmitError> {
        self.gate.check()?;
        self.make_room()?;
        self.admission.take_other();
        let submitted = self.service_mut()?.submit_query(query, tag);
        submitted.map_err(|stopped| self.stopped(stopped).into())
    }

    /// Whether a session sent this sequence, or a higher one, and it was taken: what comes with it
    /// is not executed now, and has the answer of the first, or none.
    #[must_use]
    pub fn knows(&self, key: SessionKey, sequence: ClientSequence) -> bool {
        matches!(self.admission.kind(key, sequence.0), Ok(Kind::Old(_)))
    }

    /// Takes a command into the journal, or says what is known of it.
    #[inline]
    fn admit(
        &mut self,
        origin: Origin,
        command: &Command,
    ) -> Result<Result<(u64, Note), Admitted>, SubmitError> {
        self.gate.check()?;
        let place = match origin {
            Origin::Engine => None,
            Origin::Session { key, sequence } => {
                if sequence.0 == 0 {
                    return Err(SubmitError::SequenceZero);
                }
                match self.admission.kind(key, sequence.0)? {
                    Kind::New(place) => Some((place, key, sequence.0)),
                    Kind::Old(slot) => return self.repeat(slot, sequence.0, command).map(Err),
                }
            }
        };
        self.make_room()?;
        if let Some((place, ..)) = place
            && self.admission.is_full(place)
        {
            self.refresh();
            if self.admission.is_full(place) {
                return Err(self.admission.too_many().into());
            }
        }
        let check = self.append(origin, command)?;
        let number = self.owner.number;
        self.owner.number += 1;
        let Some((place, key, sequence)) = place else {
            self.admission.take_other();
            return Ok(Ok((number, Note::NONE)));
        };
        let slot = match place {
            Place::Known(slot) => slot,
            Place::New => self.open_session(key),
        };
        self.admission.take(slot, sequence, check, number);
        let note = Note {
            session: slot.0,
            check: check.0,
            sequence,
        };
        Ok(Ok((number, note)))
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
    ) -> Result<Admitted, SubmitError> {
        let frame_bytes = record_bytes(command);
        let too_long = |_| SubmitError::TooLong {
            bytes: frame_bytes,
            bytes_max: FRAME_BYTES_MAX,
        };
        let check = Check::of_command(command, &mut self.owner.buffer).map_err(too_long)?;
        // In this order: what is not in the tables yet will be published.
        let first = self
            .reports
            .lock()
            .sessions
            .first_answer(slot, sequence, check);
        match first {
            Some(Ok(first)) => Ok(Admitted::Repeat(first)),
            Some(Err(refusal)) => Err(refusal.into()),
            None => {
                let number = self.admission.in_flight_of(slot, sequence, check)?;
                Ok(Admitted::Pending { number })
            }
        }
    }

    /// Writes a command into the journal.
    #[inline]
    fn append(&mut self, origin: Origin, command: &Command) -> Result<Check, SubmitError> {
        let bytes = record_bytes(command);
        if bytes > FRAME_BYTES_MAX {
            let bytes_max = FRAME_BYTES_MAX;
            return Err(SubmitError::TooLong { bytes, bytes_max });
        }
        if self.owner.refused_until.is_some() {
            self.ask_again()?;
        }
        let mut check = Check::default();
        let appended = self.journal.append_bytes_with(bytes, |out| {
            check = encode(origin, command, out).expect("the frame has room, and is not too long");
        });
        match appended {
            Ok(lsn) => {
                debug_assert_eq!(lsn.number(), self.owner.number + 1);
                self.owner.commands += 1;
                self.owner.bytes += bytes as u64;
                self.owner.is_unflushed = true;
                let is_due = self.snapshots.is_due_by(self.owner.bytes)
                    || lsn.number().is_multiple_of(LOOK_EVERY) && self.snapshots.is_due_now();
                if is_due {
                    self.snapshot_now();
                }
                Ok(check)
            }
            Err(error) => Err(self.not_appended(error)),
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
                    let failed = Failed::Journal(Arc::new(error));
                    self.gate.fail(failed.clone());
                    SubmitError::Failed(failed)
                }
            },
        }
    }

    /// Whether it is time to ask the journal for room again, which it did not have.
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

    /// Waits for room in the pipeline.
    ///
    /// # Errors
    /// The disk is full, or the exchange has stopped.
    #[inline]
    fn make_room(&mut self) -> Result<(), SubmitError> {
        if self.gate.lack().is_some() {
            return self.find_room();
        }
        let in_flight = self.admission.in_flight();
        if in_flight.is_multiple_of(ROUND) {
            self.refresh();
        }
        if in_flight >= self.capacity() {
            return self.find_room();
        }
        Ok(())
    }

    #[cold]
    fn find_room(&mut self) -> Result<(), SubmitError> {
        loop {
            self.drive()?;
            if let Some(lack) = self.gate.lack() {
                return Err(lack.into());
            }
            let capacity = self.capacity();
            let in_flight = self.admission.in_flight();
            if in_flight < capacity {
                return Ok(());
            }
            let passed = self.gate.passed();
            let gate = &self.gate;
            let is_over =
                || gate.passed() != passed || gate.lack().is_some() || gate.failed().is_some();
            gate.wait(&mut self.owner.pace, is_over);
        }
    }
}
