//! The exchange as a replica: what it executes out of the command log, and what it writes there.
//!
//! While it writes the log, a command is executed at once and journaled when the log has
//! acknowledged it: so every journal is a prefix of the log, whenever its machine stops, and
//! nothing in it has to be taken back.

use std::time::Duration;

use thalweg_journal::{Error as JournalError, Lsn, Reader, Storage};

use super::error::{ExchangeError, SubmitError, shortage};
use super::exchange::Exchange;
use super::published::Published;
use super::record::{RecordError, decode_into, note_in};
use super::replication::batch::Batch;
use super::replication::leading::{BatchSink, Leading, Replication};
use super::replication::log::{Claim, LogStart};
use super::submission::{Submission, SubmitOutcome};
use crate::command::Command;
use crate::snapshot::state_hash;

/// How long an exchange that is to end waits for the log to acknowledge a batch.
pub(super) const LOG_SILENT_MAX: Duration = Duration::from_secs(5);

/// Why a record of the log was not executed.
#[derive(Debug)]
pub(super) enum NotExecuted {
    /// It is no record.
    Record(RecordError),
    /// It was refused, or was executed before.
    Refused(String),
    /// The disk has no room for now; those before it were executed.
    NoRoom,
    /// The exchange has stopped.
    Failed(ExchangeError),
}

impl<S: Storage> Exchange<S> {
    /// Returns below which number commands are in the journal.
    pub(super) fn journaled(&self) -> u64 {
        match &self.replication {
            Replication::Leading(leading) => leading.acked,
            _ => self.owner.number,
        }
    }

    /// Makes durable what may be, or has that begun. Returns below which number commands may be
    /// published.
    pub(super) fn releasable(&mut self) -> u64 {
        // The sequencer has another replica take over where nothing was taken from it for long.
        match self.owner.lag < self.owner.lag_max {
            true => self.journal_acked(),
            false => self.look_for_fence(),
        }
        let journaled = self.journaled();
        let durable = self.committer.commit(journaled);
        self.owner.lag = journaled.saturating_sub(durable);
        if let Replication::Leading(_) = self.replication
            && let Some(why) = self.gate.lack()
        {
            // It would refuse everything, and its heartbeats would keep others from taking over.
            self.gate.fail(ExchangeError::NoRoomToLead { why });
        }
        match self.replication {
            Replication::Alone => durable,
            // A majority has them on disk.
            _ => journaled,
        }
    }

    /// Returns whether the log has not acknowledged a batch for as long as an end waits for it.
    pub(super) fn is_log_silent(&self) -> bool {
        match &self.replication {
            Replication::Leading(leading) => leading.waits_for() >= LOG_SILENT_MAX,
            _ => false,
        }
    }

    /// Stops, where it is replicated and the log has not acknowledged a batch for 5 s: for an owner
    /// that is to end. A crash at this moment would leave the same behind.
    pub fn give_up_on_log(&mut self) {
        if self.is_log_silent() {
            self.gate.fail(ExchangeError::LogSilent {
                seconds: LOG_SILENT_MAX.as_secs(),
                in_flight: self.in_flight.len(),
            });
        }
    }

    /// Returns for how long the log that this exchange writes has not answered, and its last error,
    /// where it does not answer.
    #[must_use]
    pub fn log_outage(&self) -> Option<(Duration, String)> {
        match &self.replication {
            Replication::Leading(leading) => {
                let outage = leading.outage()?;
                Some((outage.since.elapsed(), outage.text))
            }
            _ => None,
        }
    }

    /// Writes nothing more into the log, heartbeats included: another replica takes over.
    pub(super) fn leave_log(&mut self) {
        if let Replication::Leading(leading) = &mut self.replication {
            leading.end();
        }
    }

    /// Returns whether commands wait for room on the disk.
    pub(super) fn lacks_room(&self) -> bool {
        self.gate.lack().is_some()
    }

    /// Stops where the sequencer has ended: another replica takes over. Takes nothing from it.
    fn look_for_fence(&mut self) {
        if let Replication::Leading(leading) = &self.replication
            && leading.has_ended()
        {
            let epoch = leading.epoch();
            self.gate.fail(ExchangeError::Fenced { epoch });
        }
    }

    /// Has the disk lag too far behind, as one that hangs.
    #[cfg(test)]
    pub(super) const fn hang(&mut self) {
        self.owner.lag_max = 0;
    }

    /// Returns whether this exchange writes the log, and a command of the session with this slot
    /// has not been acknowledged. Where another replica has taken over, it never will be.
    pub(super) fn has_unacknowledged(&self, session: u32) -> bool {
        matches!(self.replication, Replication::Leading(_)) && self.in_flight.has_of(session)
    }

    /// Journals the batches that were acknowledged.
    fn journal_acked(&mut self) {
        let Replication::Leading(leading) = &mut self.replication else {
            return;
        };
        loop {
            let acked = match leading.take_acked() {
                Ok(Some(acked)) => acked,
                Ok(None) => return,
                Err(_) => {
                    let epoch = leading.epoch();
                    return self.gate.fail(ExchangeError::Fenced { epoch });
                }
            };
            let batch = Batch::read(&acked).expect("it was sealed here");
            for record in batch.records() {
                let appended = self.journal.append_bytes_with(record.len(), |out| {
                    out.copy_from_slice(record);
                });
                if let Err(error) = appended {
                    return self.gate.fail(match shortage(&error) {
                        Some(why) => ExchangeError::NoRoomToLead { why },
                        None => ExchangeError::Journal(error.into()),
                    });
                }
            }
        }
    }

    /// Hands over to the sequencer what was executed: before what was acknowledged is published,
    /// which takes time in which the log can write.
    pub(super) fn hand_over(&mut self) {
        if let Replication::Leading(leading) = &mut self.replication
            && self.owner.lag < self.owner.lag_max
            && self.gate.failed().is_none()
        {
            leading.hand_over();
        }
    }

    /// Returns the state that a log goes on from which this exchange makes. Takes as long as
    /// encoding the state.
    pub(super) fn start_of_log(&self) -> LogStart {
        LogStart {
            commands: self.owner.number,
            digest: self.digest.value(),
            state_hash: state_hash(&self.state),
            limits_hash: self.options.sessions.hash(),
        }
    }

    /// Returns whether a log was made with other limits of sessions than this exchange has.
    pub(super) fn has_other_limits(&self, start: &LogStart) -> bool {
        self.options.sessions.hash() != start.limits_hash
    }

    /// Follows a log from now on: submitted commands are those of the log.
    pub(super) fn begin_to_follow(&mut self) {
        self.replication = Replication::Following;
        self.committer.pace();
        (self.publish)(Published::Following);
    }

    /// Has the identity of the exchange whose log it follows.
    pub(super) const fn be_replica_of(&mut self, claim: &Claim) {
        self.identity = claim.identity;
    }

    /// Publishes the claim of another replica, under which what follows was written.
    pub(super) fn follow_claim(&mut self, epoch: u64) {
        (self.publish)(Published::Claimed {
            epoch,
            leads: false,
        });
    }

    /// Writes the log from now on, under this claim.
    pub(super) fn begin_to_lead(&mut self, claim: &Claim, sink: Box<dyn BatchSink>) {
        debug_assert_eq!(
            self.digest.outcomes(),
            self.owner.number,
            "all is published"
        );
        let leading = Leading::new(sink, claim.epoch, self.digest);
        self.replication = Replication::Leading(Box::new(leading));
        self.be_replica_of(claim);
        let epoch = claim.epoch;
        (self.publish)(Published::Claimed { epoch, leads: true });
    }

    /// Has everything published by this closure from now on.
    #[cfg(test)]
    pub(super) fn publish_by(&mut self, publish: impl FnMut(Published<'_>) + Send + 'static) {
        self.publish = Box::new(publish);
    }

    /// Executes records of the log, the first of which has the number of the next command.
    pub(super) fn execute_records<'r>(
        &mut self,
        records: impl Iterator<Item = &'r [u8]>,
    ) -> Result<(), NotExecuted> {
        let mut commands = Vec::new();
        for record in records {
            let mut command = Command::Nop;
            let origin = decode_into(record, &mut command).map_err(NotExecuted::Record)?;
            commands.push((origin, command, note_in(record)));
        }
        for (origin, command, note) in &commands {
            if !note.is_empty() {
                (self.publish)(Published::Noted(note));
                self.owner.note = Some((*note).into());
            }
            let submission = Submission {
                origin: *origin,
                command,
                tag: 0,
            };
            // One that follows a refused one must not be executed.
            let mut taken = Ok(());
            let expected = self.owner.number;
            self.submit_many([submission], |_, admitted| {
                taken = match admitted {
                    Ok(SubmitOutcome::New { number }) if number == expected => Ok(()),
                    Ok(other) => Err(NotExecuted::Refused(format!("{other:?}"))),
                    Err(SubmitError::Failed(failed)) => Err(NotExecuted::Failed(failed)),
                    Err(error) if error.is_shortage() => Err(NotExecuted::NoRoom),
                    Err(error) => Err(NotExecuted::Refused(error.to_string())),
                };
            });
            self.owner.note = None;
            taken?;
        }
        self.publish().map_err(NotExecuted::Failed)
    }

    /// Returns the number of the first command that the journal has and that is not the one of the
    /// batch. Commands that the journal has given up are not compared.
    pub(super) fn first_difference(&self, batch: &Batch<'_>) -> Result<Option<u64>, JournalError> {
        let storage = self.snapshots.writer.storage.clone();
        let first = Lsn::new(batch.head.index + 1);
        let mut reader = match Reader::open_in(storage, first) {
            Ok(reader) => reader,
            Err(JournalError::NoRecord { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut records = batch.records();
        let mut number = batch.head.index;
        while number < batch.end().min(self.owner.number) {
            let Some(block) = reader.next_block()? else {
                return Ok(None);
            };
            for (lsn, own) in block.bytes() {
                if lsn < first {
                    continue;
                }
                match records.next() {
                    None => return Ok(None),
                    Some(record) if record == own => number += 1,
                    Some(_) => return Ok(Some(number)),
                }
            }
        }
        Ok(None)
    }
}
