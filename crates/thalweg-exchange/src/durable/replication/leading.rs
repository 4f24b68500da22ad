//! The part that an exchange has in replication: it follows the log, or writes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{BatchHead, Pending};

/// The way from an exchange to the sequencer that writes its batches.
pub(in crate::durable) trait Outlet: Send {
    /// Hands a batch over. There is none under way.
    fn offer(&mut self, index: u64, batch: Arc<Vec<u8>>);

    /// Returns whether the batch that was offered last was acknowledged, once.
    ///
    /// # Errors
    /// Another replica has claimed the log.
    fn poll(&mut self) -> Result<bool, Fenced>;

    /// Returns whether nothing is written any more: another replica takes over.
    fn has_ended(&self) -> bool {
        false
    }

    /// Returns why the log does not answer, where it does not.
    fn trouble(&self) -> Option<Trouble> {
        None
    }
}

/// A log does not answer.
#[derive(Clone, Debug)]
pub(in crate::durable) struct Trouble {
    /// When it answered last.
    pub(in crate::durable) since: Instant,
    /// The last error.
    pub(in crate::durable) text: String,
}

/// Another replica has claimed the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::durable) struct Fenced;

/// The way of an exchange that writes no more.
struct Gone;

impl Outlet for Gone {
    fn offer(&mut self, _: u64, _: Arc<Vec<u8>>) {}

    fn poll(&mut self) -> Result<bool, Fenced> {
        Err(Fenced)
    }

    fn has_ended(&self) -> bool {
        true
    }
}

/// A batch that is on its way into the log.
#[derive(Debug)]
struct UnderWay {
    bytes: Arc<Vec<u8>>,
    checksum: u64,
    /// The number of the command after its last.
    end: u64,
    since: Instant,
}

/// The state of an exchange that writes the log.
pub(in crate::durable) struct Leading {
    outlet: Box<dyn Outlet>,
    epoch: u64,
    /// Records that are in no batch yet.
    pub(in crate::durable) pending: Pending,
    under_way: Option<UnderWay>,
    /// The checksum of the last batch in the log.
    previous: u64,
    /// Commands below this number are in the log, and in the journal.
    pub(in crate::durable) acked: u64,
}

impl Leading {
    pub(in crate::durable) fn new(
        outlet: Box<dyn Outlet>,
        epoch: u64,
        previous: u64,
        acked: u64,
    ) -> Self {
        Self {
            outlet,
            epoch,
            pending: Pending::default(),
            under_way: None,
            previous,
            acked,
        }
    }

    pub(in crate::durable) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes the batch under way, if it was acknowledged.
    pub(in crate::durable) fn take_acked(&mut self) -> Result<Option<Arc<Vec<u8>>>, Fenced> {
        // Also where nothing is under way: another claim stops the writer at once.
        if !self.outlet.poll()? {
            return Ok(None);
        }
        Ok(self.under_way.take().map(|under_way| {
            self.previous = under_way.checksum;
            self.acked = under_way.end;
            under_way.bytes
        }))
    }

    pub(in crate::durable) fn has_ended(&self) -> bool {
        self.outlet.has_ended()
    }

    pub(in crate::durable) fn trouble(&self) -> Option<Trouble> {
        self.outlet.trouble()
    }

    /// Gives the way to the log up, so that heartbeats end, and another replica takes over.
    pub(in crate::durable) fn end(&mut self) {
        self.outlet = Box::new(Gone);
    }

    /// Returns for how long a batch has been under way.
    pub(in crate::durable) fn waits_for(&self) -> Duration {
        let under_way = self.under_way.as_ref();
        under_way.map_or(Duration::ZERO, |under_way| under_way.since.elapsed())
    }

    /// Whether commands wait for a batch of theirs, and none is under way.
    pub(in crate::durable) const fn is_due(&self) -> bool {
        self.under_way.is_none() && self.pending.count() > 0
    }

    /// Hands the next batch over, before which the digest has this value.
    pub(in crate::durable) fn hand_over(&mut self, digest: u64, time: i64) {
        let head = BatchHead {
            epoch: self.epoch,
            index: self.acked,
            previous: self.previous,
            digest,
            time,
        };
        let (bytes, checksum, end) = self.pending.seal(head);
        let bytes = Arc::new(bytes);
        self.outlet.offer(self.acked, Arc::clone(&bytes));
        self.under_way = Some(UnderWay {
            bytes,
            checksum,
            end,
            since: Instant::now(),
        });
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
