//! A replica that follows: reads the log, checks the chain, executes, and takes over.

use std::io;

use thalweg_journal::Storage;

use super::batch::{Batch, BatchHead, count_of};
use super::halt_reason::HaltReason;
use super::leading::{BatchQueue, BatchSink};
use super::log::{Claim, CommandLog, LogError, StoredBatch, Tail, WriteOutcome};
use super::log_file::{log_of, note_log};
use super::log_retention::LogRetention;
use super::sequencer::Sequencer;
use crate::durable::error::shortage;
use crate::durable::exchange::Exchange;
use crate::durable::replica::NotExecuted;

/// The findings of one look at the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// How many commands were executed.
    pub executed: u64,
    /// A number that changes while the writer lives; none where the log was never claimed.
    pub revision: Option<u64>,
    /// Whether there was nothing more to read.
    pub is_complete: bool,
    /// Whether all that the log had is executed.
    pub is_at_end: bool,
    /// Whether the log is this replica's, and it has executed all of it.
    pub may_lead: bool,
}

/// The question of a replica to the log, which may take seconds to answer: another thread can ask
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The index from which on batches are read.
    pub(super) from: u64,
    /// How many commands the replica has, where it does not know yet where in the log it is.
    commands: Option<u64>,
}

/// The answer of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    tail: Tail,
    /// The batch with the last of the replica's own commands, where it has to be compared.
    last: Option<StoredBatch>,
}

impl Question {
    /// Asks the log.
    pub(super) fn ask(self, log: &mut dyn CommandLog) -> Result<Read, LogError> {
        let tail = log.read(self.from)?;
        let start = tail.claim.as_ref().map(|claim| claim.start.commands);
        let last = match (self.commands, start) {
            (Some(commands), Some(start)) if commands > start => log.find(commands - 1)?,
            _ => None,
        };
        Ok(Read { tail, last })
    }
}

/// A claim to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claiming {
    seen: Option<Claim>,
    new: Claim,
}

impl Claiming {
    /// Makes it.
    pub(super) fn make(&self, log: &mut dyn CommandLog) -> WriteOutcome {
        log.claim(self.seen.as_ref(), &self.new)
    }
}

/// A replica that follows a log: reads it, checks its chain, executes it, and takes over.
#[derive(Debug)]
pub struct Follower<S: Storage> {
    exchange: Exchange<S>,
    /// The present claim, as far as this replica knows.
    seen: Option<Claim>,
    /// The epoch of the claim that was published last; 0 for none.
    published: u64,
    /// The claim that it has made, as long as that may count.
    claimed: Option<Claim>,
    /// Whether it is known where in the log it is.
    is_attached: bool,
    /// The checksum of the last batch.
    previous: u64,
    /// The index and the epoch of the last batch.
    newest: Option<u64>,
    epoch: u64,
    /// The index of a batch of which only the first commands were executed.
    partial: Option<u64>,
    /// The end of the log, as far as it was read or is known to be there.
    end: u64,
    /// Batches that the log has, as far as this replica has read them.
    kept: LogRetention,
    /// Whether the digest of a batch was compared with this replica's own.
    is_compared: bool,
    /// Whether its directory has a note of the log.
    is_noted: bool,
    faults: Faults,
}

/// Checks that a simulation has left out, to see that it finds that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) skips_digest: bool,
}

impl<S: Storage> Follower<S> {
    /// Has an exchange, in which nothing is in flight, follow a log, which it lets have batches of
    /// this number of bytes once it writes it.
    #[must_use]
    pub fn new(exchange: Exchange<S>, kept_bytes_max: usize) -> Self {
        Self::with_faults(exchange, kept_bytes_max, Faults::default())
    }

    pub(super) fn with_faults(
        mut exchange: Exchange<S>,
        kept_bytes_max: usize,
        faults: Faults,
    ) -> Self {
        exchange.begin_to_follow();
        Self {
            exchange,
            seen: None,
            published: 0,
            claimed: None,
            is_attached: false,
            previous: 0,
            newest: None,
            epoch: 0,
            partial: None,
            end: 0,
            kept: LogRetention::new(kept_bytes_max),
            is_compared: false,
            is_noted: false,
            faults,
        }
    }

    /// Returns the exchange, which has executed all that was read.
    #[must_use]
    pub const fn exchange(&self) -> &Exchange<S> {
        &self.exchange
    }

    /// Returns whether the digest of all commands was compared with that of a batch of the log.
    pub(super) const fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// Returns the exchange: for owners that end it.
    #[must_use]
    pub fn into_exchange(self) -> Exchange<S> {
        self.exchange
    }

    pub(super) const fn exchange_mut(&mut self) -> &mut Exchange<S> {
        &mut self.exchange
    }

    #[cfg(test)]
    pub(super) const fn has_part_of_a_batch(&self) -> bool {
        self.partial.is_some()
    }

    /// Returns the present claim, as far as it is known.
    #[must_use]
    pub const fn seen(&self) -> Option<&Claim> {
        self.seen.as_ref()
    }

    /// Reads what is new, and executes it.
    ///
    /// # Errors
    /// See [`HaltReason`]; after an error that [may pass](HaltReason::is_transient), it goes on
    /// where it was.
    pub fn poll(&mut self, log: &mut dyn CommandLog) -> Result<PollOutcome, HaltReason> {
        let read = self.question().ask(log)?;
        self.take(&read)
    }

    /// Returns what it asks the log next.
    pub(super) fn question(&self) -> Question {
        let commands = self.exchange.number();
        Question {
            from: self.partial.unwrap_or(commands),
            commands: (!self.is_attached).then_some(commands),
        }
    }

    /// Returns how many commands the log has, as far as is known: at least that many.
    pub(super) fn end(&self) -> u64 {
        self.end.max(self.exchange.number())
    }

    /// Executes what was read.
    pub(super) fn take(&mut self, Read { tail, last }: &Read) -> Result<PollOutcome, HaltReason> {
        let before = self.exchange.number();
        let Some(claim) = &tail.claim else {
            return match self.is_attached {
                true => Err(self.ahead(0)),
                false => Ok(PollOutcome::default()),
            };
        };
        if !self.is_attached {
            self.attach(claim, tail, last.as_ref())?;
            if self.partial.is_some() {
                // The batch that it has in part begins before what was read.
                let revision = Some(tail.revision);
                return Ok(PollOutcome {
                    revision,
                    ..PollOutcome::default()
                });
            }
        }
        // Only a log that was put back to an earlier state has either of them.
        if tail.newest < self.newest || claim.epoch < self.epoch {
            return Err(self.ahead(tail.newest.unwrap_or(claim.start.commands)));
        }
        let is_own = self.claimed.as_ref() == Some(claim);
        // One that another claim has replaced, or come before, will never count: claims follow each
        // other by a comparison, and epochs only rise.
        self.claimed
            .take_if(|own| !is_own && own.epoch <= claim.epoch);
        self.exchange.be_replica_of(claim);
        self.seen = Some(claim.clone());
        let after = |newest: u64| match tail.batches.last() {
            Some(last) if last.index == newest => {
                newest.saturating_add(count_of(&last.bytes).unwrap_or(1))
            }
            _ => newest + 1,
        };
        self.end = tail.newest.map_or(0, after);
        for stored in &tail.batches {
            self.execute(stored, claim)?;
        }
        let _ = self.exchange.idle()?;
        self.note_log(claim);
        let is_complete = tail.batches.is_empty() && self.partial.is_none();
        let is_at_end = self.partial.is_none() && self.newest == tail.newest;
        if is_complete && !is_own {
            self.follow_claim(claim.epoch);
        }
        Ok(PollOutcome {
            executed: self.exchange.number() - before,
            revision: Some(tail.revision),
            is_complete,
            is_at_end: is_complete || is_at_end,
            may_lead: is_own && is_complete,
        })
    }

    /// Publishes a claim before what was written under it, once.
    fn follow_claim(&mut self, epoch: u64) {
        if epoch > self.published {
            self.published = epoch;
            self.exchange.follow_claim(epoch);
        }
    }

    /// Notes in the directory which log this is, once that is known.
    fn note_log(&mut self, claim: &Claim) {
        if !self.is_noted && self.is_compared {
            // A disk without room for it may have some the next time.
            self.is_noted = note_log(self.storage(), claim.chain_start()).is_ok();
        }
    }

    fn storage(&self) -> &S {
        &self.exchange.snapshots.writer.storage
    }

    fn ahead(&self, end: u64) -> HaltReason {
        let commands = self.exchange.number();
        HaltReason::Ahead { commands, end }
    }

    /// Follows a log with this number from its beginning on.
    fn begin(&mut self, log_number: u64) -> Result<(), HaltReason> {
        // Before a command of this log is in the journal: beside the note of a log of before, it
        // would be one of that, and a copy of a replica there could take its place.
        if log_of(self.storage()).ok().flatten() != Some(log_number) {
            note_log(self.storage(), log_number).map_err(|error| match shortage(&error) {
                Some(_) => HaltReason::NoRoom,
                None => error.into(),
            })?;
        }
        self.previous = log_number;
        (self.is_attached, self.is_noted) = (true, true);
        Ok(())
    }

    /// Finds where in the log the replica is, and compares what both have.
    fn attach(
        &mut self,
        claim: &Claim,
        tail: &Tail,
        last: Option<&StoredBatch>,
    ) -> Result<(), HaltReason> {
        if self.exchange.has_other_limits(&claim.start) {
            return Err(HaltReason::OtherLimits);
        }
        let commands = self.exchange.number();
        let behind = |oldest| HaltReason::Behind { commands, oldest };
        if commands < claim.start.commands {
            return Err(behind(claim.start.commands));
        }
        if commands == claim.start.commands {
            if self.exchange.start_of_log() != claim.start {
                return Err(HaltReason::OtherStart { commands });
            }
            return self.begin(claim.chain_start());
        }
        let (own, log_number) = (log_of(self.storage())?, claim.chain_start());
        if let Some(own) = own.filter(|own| *own != log_number) {
            return Err(HaltReason::OtherLog {
                own,
                log: log_number,
            });
        }
        self.is_noted = own.is_some();
        let oldest = tail.batches.first().map(|stored| stored.index);
        let Some(found) = last else {
            if let Some(first) = tail.batches.first().filter(|first| first.index == commands) {
                // The log has given up those before; its digest says whether they were the same.
                self.previous = read(first)?.head.previous;
                self.is_attached = true;
                return Ok(());
            }
            return Err(match oldest {
                Some(oldest) => behind(oldest),
                // It had one when it was read.
                None if tail.newest.is_some() => {
                    LogError::Silent("batches were given up meanwhile".to_owned()).into()
                }
                None => self.ahead(claim.start.commands),
            });
        };
        let batch = read(found)?;
        if batch.end() < commands {
            return Err(match oldest {
                Some(oldest) if oldest > commands => behind(oldest),
                _ => self.ahead(batch.end()),
            });
        }
        if let Some(number) = self.exchange.first_difference(&batch)? {
            return Err(HaltReason::OtherCommand { number });
        }
        if batch.end() > commands {
            self.partial = Some(found.index);
            self.previous = batch.head.previous;
        } else {
            self.newest = Some(found.index);
            self.previous = batch.checksum;
        }
        self.epoch = batch.head.epoch;
        self.is_attached = true;
        Ok(())
    }

    /// Executes a batch, or what is left of it.
    fn execute(&mut self, stored: &StoredBatch, claim: &Claim) -> Result<(), HaltReason> {
        let batch = read(stored)?;
        let number = self.exchange.number();
        let is_partial = self.partial == Some(stored.index);
        if stored.index > number && !is_partial {
            let (commands, oldest) = (number, stored.index);
            return Err(HaltReason::Behind { commands, oldest });
        }
        if !is_partial {
            self.check(stored.index, &batch.head, claim)?;
        }
        if !is_partial && !self.faults.skips_digest {
            let (own, written) = (self.exchange.digest.value(), batch.head.digest);
            if own != written {
                let index = stored.index;
                return Err(HaltReason::Differs {
                    index,
                    own,
                    written,
                });
            }
            self.is_compared = true;
        }
        self.follow_claim(batch.head.epoch);
        self.partial = Some(stored.index);
        let done = match is_partial {
            true => number - stored.index,
            false => 0,
        };
        let records = batch.records().skip(done as usize);
        match self.exchange.execute_records(records) {
            Ok(()) => {}
            Err(NotExecuted::NoRoom) => return Err(HaltReason::NoRoom),
            Err(NotExecuted::Failed(failed)) => return Err(failed.into()),
            Err(NotExecuted::Record(why)) => return Err(self.refused(why.to_string())),
            Err(NotExecuted::Refused(why)) => return Err(self.refused(why)),
        }
        self.partial = None;
        self.newest = Some(stored.index);
        self.previous = batch.checksum;
        self.epoch = batch.head.epoch;
        let _ = self.kept.push(stored.index, stored.bytes.len());
        Ok(())
    }

    fn refused(&self, why: String) -> HaltReason {
        let number = self.exchange.number();
        HaltReason::Refused { number, why }
    }

    /// Checks that a batch is the one that comes next.
    fn check(&self, index: u64, head: &BatchHead, claim: &Claim) -> Result<(), HaltReason> {
        let number = self.exchange.number();
        let fields = [
            ("index", head.index, index),
            ("number", head.index, number),
            ("previous checksum", head.previous, self.previous),
            // An epoch neither falls nor is above that of the present claim.
            (
                "epoch",
                head.epoch,
                head.epoch.clamp(self.epoch, claim.epoch.max(self.epoch)),
            ),
        ];
        let wrong = fields
            .into_iter()
            .find(|(_, found, expected)| found != expected);
        wrong.map_or(Ok(()), |(what, found, expected)| {
            Err(HaltReason::OutOfPlace {
                index,
                what,
                found,
                expected,
            })
        })
    }

    /// Claims the log, which no living replica seems to have: with a random number, and the name
    /// under which clients find this replica. A look at the log shows whether it was granted.
    pub fn claim(&mut self, log: &mut dyn CommandLog, nonce: u64, holder: &str) -> WriteOutcome {
        let written = self.claiming(nonce, holder).make(log);
        self.note_claim(&written);
        written
    }

    /// Returns the claim to be made, as one that may count from now on.
    pub(super) fn claiming(&mut self, nonce: u64, holder: &str) -> Claiming {
        let seen = self.seen.clone();
        let new = Claim {
            epoch: seen.as_ref().map_or(1, |seen| seen.epoch + 1),
            nonce,
            log: seen.as_ref().map_or(nonce, |seen| seen.log),
            identity: (seen.as_ref()).map_or(self.exchange.identity(), |seen| seen.identity),
            start: match &seen {
                Some(seen) => seen.start,
                None => self.exchange.start_of_log(),
            },
            holder: holder.to_owned(),
        };
        self.claimed = Some(new.clone());
        Claiming { seen, new }
    }

    /// Returns whether the present claim is its own.
    pub(super) fn has_log(&self) -> bool {
        self.claimed.is_some() && self.claimed == self.seen
    }

    /// Returns which log its directory notes.
    pub(super) fn own_log(&self) -> Result<Option<u64>, HaltReason> {
        Ok(log_of(self.storage())?)
    }

    /// Returns whether it has made a claim that may count.
    #[cfg(test)]
    pub(super) const fn is_claiming(&self) -> bool {
        self.claimed.is_some()
    }

    /// Notes the outcome of a claim.
    pub(super) fn note_claim(&mut self, written: &WriteOutcome) {
        if *written == WriteOutcome::Fenced {
            self.claimed = None;
        }
    }

    /// Becomes the primary: [`PollOutcome::may_lead`] was true in the last look at the log. The
    /// exchange writes through the sink that `start` returns.
    pub(super) fn lead(
        &mut self,
        start: impl FnOnce(Sequencer, BatchQueue, LogRetention) -> io::Result<Box<dyn BatchSink>>,
    ) -> Result<(), HaltReason> {
        let claim = self.claimed.take().expect("the log is this replica's");
        let kept = std::mem::replace(&mut self.kept, LogRetention::new(0));
        let queue = BatchQueue::new(claim.epoch, self.exchange.number(), self.previous);
        let sink = start(Sequencer::new(claim.clone(), self.newest), queue, kept);
        let sink = sink.map_err(|error| HaltReason::Thread(error.to_string()))?;
        self.exchange.begin_to_lead(&claim, sink);
        Ok(())
    }
}

fn read(stored: &StoredBatch) -> Result<Batch<'_>, HaltReason> {
    let index = stored.index;
    Batch::read(&stored.bytes).map_err(|why| HaltReason::Batch { index, why })
}
