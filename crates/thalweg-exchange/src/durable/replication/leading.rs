//! The part that an exchange has in replication: it follows the log, or writes it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::batch::{BatchHead, Pending};
use crate::command::Command;
use crate::digest::Digest;
use crate::event::Events;
use crate::result_code::ResultCode;

/// A batch that is on its way into the log, or there.
#[derive(Clone, Debug)]
pub(in crate::durable) struct SealedBatch {
    /// The number of its first command.
    pub(in crate::durable) index: u64,
    /// The number of the command after its last.
    pub(in crate::durable) end: u64,
    pub(in crate::durable) bytes: Arc<Vec<u8>>,
}

/// Commands that wait to be written into the log, and the place of the next batch in the chain.
///
/// The exchange adds commands. The sequencer makes a batch of them as soon as the batch before is
/// in the log: it does not wait for the exchange.
#[derive(Debug)]
pub(in crate::durable) struct BatchQueue {
    pending: Pending,
    epoch: u64,
    /// The number of the first command of the next batch.
    index: u64,
    /// The checksum of the batch before.
    previous: u64,
}

impl BatchQueue {
    pub(super) fn new(epoch: u64, index: u64, previous: u64) -> Self {
        Self {
            pending: Pending::default(),
            epoch,
            index,
            previous,
        }
    }

    /// Takes all that is pending.
    pub(super) fn push(&mut self, pending: &mut Pending) {
        self.pending.append(pending);
    }

    /// Returns the number of the first command of the next batch.
    #[cfg(test)]
    pub(super) const fn index(&self) -> u64 {
        self.index
    }

    /// Gives up what waits.
    pub(super) fn clear(&mut self) {
        self.pending = Pending::default();
    }

    /// Makes the next batch, if something waits.
    pub(super) fn seal(&mut self) -> Option<SealedBatch> {
        let digest = self.pending.digest()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let head = BatchHead {
            epoch: self.epoch,
            index: self.index,
            previous: self.previous,
            digest,
            time: now.map_or(0, |now| now.as_millis() as i64),
        };
        let (bytes, checksum, end) = self.pending.seal(head);
        (self.previous, self.index) = (checksum, end);
        Some(SealedBatch {
            index: head.index,
            end,
            bytes: Arc::new(bytes),
        })
    }
}

/// The way from an exchange to the sequencer that writes its batches.
pub(in crate::durable) trait BatchSink: Send {
    /// Hands all over that is pending.
    fn offer(&mut self, pending: &mut Pending);

    /// Returns the next batch that was acknowledged, once.
    ///
    /// # Errors
    /// Another replica has claimed the log.
    fn poll(&mut self) -> Result<Option<SealedBatch>, Fenced>;

    /// Returns whether nothing is written any more: another replica takes over.
    fn has_ended(&self) -> bool {
        false
    }

    /// Returns why the log does not answer, where it does not.
    fn outage(&self) -> Option<LogOutage> {
        None
    }
}

/// A log does not answer.
#[derive(Clone, Debug)]
pub(in crate::durable) struct LogOutage {
    /// When it answered last.
    pub(in crate::durable) since: Instant,
    /// The last error.
    pub(in crate::durable) text: String,
}

/// Another replica has claimed the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::durable) struct Fenced;

/// The sink of an exchange that writes no more.
struct ClosedSink;

impl BatchSink for ClosedSink {
    fn offer(&mut self, _: &mut Pending) {}

    fn poll(&mut self) -> Result<Option<SealedBatch>, Fenced> {
        Err(Fenced)
    }

    fn has_ended(&self) -> bool {
        true
    }
}

/// The state of an exchange that writes the log.
pub(in crate::durable) struct Leading {
    sink: Box<dyn BatchSink>,
    epoch: u64,
    /// Commands that were not handed over yet.
    pub(in crate::durable) pending: Pending,
    /// The digest of all commands that were executed.
    executed: Digest,
    /// Commands below this number are handed over.
    offered: u64,
    /// Since when the log has acknowledged nothing of them, where it has not all.
    since: Instant,
    /// Commands below this number are in the log, and in the journal.
    pub(in crate::durable) acked: u64,
}

impl Leading {
    /// `executed` is the digest of all commands so far, which are in the log.
    pub(in crate::durable) fn new(sink: Box<dyn BatchSink>, epoch: u64, executed: Digest) -> Self {
        Self {
            sink,
            epoch,
            pending: Pending::default(),
            executed,
            offered: executed.outcomes(),
            since: Instant::now(),
            acked: executed.outcomes(),
        }
    }

    pub(in crate::durable) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Notes that the next command was executed.
    #[inline]
    pub(in crate::durable) fn note_executed(
        &mut self,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        self.pending.note_executed(self.executed.value());
        self.executed.fold(command, result, events);
    }

    /// Returns the next batch that was acknowledged.
    pub(in crate::durable) fn take_acked(&mut self) -> Result<Option<Arc<Vec<u8>>>, Fenced> {
        // Also where nothing is under way: another claim stops the writer at once.
        let Some(batch) = self.sink.poll()? else {
            return Ok(None);
        };
        (self.acked, self.since) = (batch.end, Instant::now());
        Ok(Some(batch.bytes))
    }

    pub(in crate::durable) fn has_ended(&self) -> bool {
        self.sink.has_ended()
    }

    pub(in crate::durable) fn outage(&self) -> Option<LogOutage> {
        self.sink.outage()
    }

    /// Gives the way to the log up, so that heartbeats end, and another replica takes over.
    pub(in crate::durable) fn end(&mut self) {
        self.sink = Box::new(ClosedSink);
    }

    /// Returns for how long the log has acknowledged nothing of what was handed over.
    pub(in crate::durable) fn waits_for(&self) -> Duration {
        match self.acked < self.offered {
            true => self.since.elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Hands over what was executed.
    pub(in crate::durable) fn hand_over(&mut self) {
        let executed = self.executed.outcomes();
        if self.offered == executed {
            return;
        }
        if self.acked == self.offered {
            self.since = Instant::now();
        }
        self.offered = executed;
        self.sink.offer(&mut self.pending);
    }
}

/// The part that an exchange has in replication.
#[derive(Default)]
pub(in crate::durable) enum Replication {
    /// It is on one machine: commands are acknowledged when the journal is durable.
    #[default]
    Alone,
    /// It executes what is in the log.
    Following,
    /// It writes the log: commands are acknowledged when the log has them, and then journaled.
    Leading(Box<Leading>),
}

#[cfg(test)]
mod tests {
    use super::super::batch::{BATCH_BYTES, Batch};
    use super::*;

    #[test]
    fn each_batch_of_a_long_queue_has_the_digest_before_its_first_command() {
        let (mut queue, mut pending) = (BatchQueue::new(1, 10, 3), Pending::default());
        for digest in 7..10 {
            pending.push_with(BATCH_BYTES - 100, |out| out.fill(1));
            pending.note_executed(digest);
        }
        queue.push(&mut pending);
        let mut previous = 3;
        for (digest, index) in (7..10).zip(10..) {
            let sealed = queue.seal().expect("it waits");
            let batch = Batch::read(&sealed.bytes).expect("it is whole");
            assert_eq!((batch.head.digest, batch.head.index), (digest, index));
            assert_eq!((batch.head.previous, sealed.end), (previous, index + 1));
            previous = batch.checksum;
        }
        assert!(queue.seal().is_none() && pending.digest().is_none());
    }
}
