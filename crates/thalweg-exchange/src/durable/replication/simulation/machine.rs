//! A machine: its disk, and what runs there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use thalweg_journal::SimDisk;

use super::Seeded;
use super::world::SimLog;
use crate::durable::exchange::Exchange;
use crate::durable::published::{Executed, Published};
use crate::durable::record::Origin;
use crate::durable::replication::batch::{Pending, pack};
use crate::durable::replication::follower::{Faults, Follower, Read};
use crate::durable::replication::halt_reason::HaltReason;
use crate::durable::replication::leading::{BatchQueue, BatchSink, Fenced, SealedBatch};
use crate::durable::replication::log::{CommandLog, WriteOutcome};
use crate::durable::replication::sequencer::{Sequencer, Step};
use crate::durable::simulation::options;
use crate::result_code::ResultCode;

/// Bytes of batches that the log keeps.
const KEPT_BYTES: usize = 5 << 10;

/// An outcome that a replica has published.
pub(super) type Outcome = (u64, Origin, ResultCode);

/// The outcomes that a replica publishes.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<Outcome>>>);

impl Recorder {
    fn closure(&self) -> impl FnMut(Published<'_>) + Send + 'static {
        let recorded = Arc::clone(&self.0);
        move |published| {
            let Published::Outcomes(outcomes) = published else {
                return;
            };
            for Executed {
                outcome, origin, ..
            } in outcomes
            {
                let one = (outcome.sequence, origin, outcome.result);
                recorded.lock().expect("no panic").push(one);
            }
        }
    }

    pub(super) fn take(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

/// The place between an exchange and its sequencer.
#[derive(Debug)]
struct Hand {
    queue: BatchQueue,
    /// Batches of a faulty exchange, which were acknowledged before they are written.
    early: VecDeque<SealedBatch>,
    acked: VecDeque<Result<SealedBatch, Fenced>>,
}

#[derive(Debug)]
struct SimSink {
    hand: Arc<Mutex<Hand>>,
    is_early: bool,
}

impl BatchSink for SimSink {
    fn offer(&mut self, pending: &mut Pending) {
        let mut hand = self.hand.lock().expect("no panic");
        hand.queue.push(pending);
        // Some of them, once there are users: else no client sees more than that.
        let index = hand.queue.index();
        if self.is_early && index >= 40 && index.is_multiple_of(4) {
            let batch = hand.queue.seal().expect("something was offered");
            hand.acked.push_back(Ok(batch.clone()));
            hand.early.push_back(batch);
        }
    }

    fn poll(&mut self) -> Result<Option<SealedBatch>, Fenced> {
        self.hand
            .lock()
            .expect("no panic")
            .acked
            .pop_front()
            .transpose()
    }
}

/// A primary, or one that thinks so.
#[derive(Debug)]
pub(super) struct Primary {
    pub(super) exchange: Exchange<SimDisk>,
    pub(super) sequencer: Sequencer,
    hand: Arc<Mutex<Hand>>,
    kept: super::super::log_retention::LogRetention,
    /// The batch that is written, and whether a faulty exchange has acknowledged it.
    in_flight: Option<(SealedBatch, bool)>,
}

impl Primary {
    /// Makes at most one call to the log.
    pub(super) fn write(&mut self, log: &mut SimLog) {
        let mut hand = self.hand.lock().expect("no panic");
        if self.in_flight.is_none() {
            let early = hand.early.pop_front().map(|batch| (batch, true));
            self.in_flight = early.or_else(|| Some((hand.queue.seal()?, false)));
            if let Some((batch, _)) = &self.in_flight {
                // Every second writer is of a version that packs nothing.
                let bytes = match self.sequencer.claim().epoch % 2 {
                    0 => Arc::clone(&batch.bytes),
                    _ => pack(&batch.bytes),
                };
                self.sequencer.begin(batch.index, bytes);
            }
        }
        match self.sequencer.step(log) {
            Step::Idle => {
                if log.heartbeat(self.sequencer.claim()) == WriteOutcome::Fenced {
                    hand.acked.push_back(Err(Fenced));
                }
            }
            Step::Acked => {
                if let Some((batch, false)) = self.in_flight.take() {
                    hand.acked.push_back(Ok(batch));
                }
                let (index, bytes) = self.sequencer.last();
                if let Some(before) = self.kept.push(index, bytes) {
                    let _ = log.delete_before(self.sequencer.claim(), before);
                }
            }
            Step::Fenced => hand.acked.push_back(Err(Fenced)),
            Step::Waiting(_) => {}
        }
    }
}

#[derive(Debug)]
pub(super) enum Role {
    Down,
    /// It follows; with what it has read and not acted upon.
    Follower(Box<Follower<SimDisk>>, Option<Read>),
    Primary(Box<Primary>),
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) disk: SimDisk,
    pub(super) role: Role,
    pub(super) recorder: Recorder,
    pub(super) paused: u64,
    /// Counts its starts: connections are to one of them.
    pub(super) life: u64,
    /// Whether its state was changed, as a faulty machine would.
    pub(super) has_diverged: bool,
}

impl Machine {
    pub(super) fn new(at: usize) -> Self {
        Self {
            name: format!("machine {at}"),
            disk: SimDisk::new(),
            role: Role::Down,
            recorder: Recorder::default(),
            paused: 0,
            life: 0,
            has_diverged: false,
        }
    }

    /// Stops at once: what was not synced may be lost.
    pub(super) fn crash(&mut self, seed: u64) {
        self.role = Role::Down;
        self.disk.restart(seed);
        let _ = self.recorder.take();
        self.has_diverged = false;
    }

    pub(super) fn start(&mut self, seed: u64, seeded: Option<Seeded>) -> Result<(), String> {
        let (disk, publish) = (self.disk.clone(), self.recorder.closure());
        let opened = Exchange::open_in(disk, options(4 << 10), publish);
        let (exchange, _) = match opened.map_err(|error| error.to_string()) {
            // It is tried again.
            Err(text) if text.contains("no storage space") => return Ok(()),
            Err(text) if text.contains("the power is off") => {
                self.crash(seed);
                return Ok(());
            }
            opened => opened?,
        };
        let faults = Faults {
            skips_digest: seeded == Some(Seeded::DivergeUnseen),
        };
        let replica = Follower::with_faults(exchange, KEPT_BYTES, faults);
        self.role = Role::Follower(Box::new(replica), None);
        self.life += 1;
        Ok(())
    }

    /// Becomes the primary.
    pub(super) fn lead(&mut self, seeded: Option<Seeded>) -> Result<(), HaltReason> {
        let Role::Follower(mut replica, _) = std::mem::replace(&mut self.role, Role::Down) else {
            return Ok(());
        };
        let mut parts = None;
        replica.lead(|sequencer, queue, kept| {
            let hand = Arc::new(Mutex::new(Hand {
                queue,
                early: VecDeque::new(),
                acked: VecDeque::new(),
            }));
            parts = Some((sequencer, kept, Arc::clone(&hand)));
            let is_early = seeded == Some(Seeded::AcknowledgeUnwritten);
            Ok(Box::new(SimSink { hand, is_early }))
        })?;
        // Executed as a follower: no client is answered.
        let _ = self.recorder.take();
        let Some((sequencer, kept, hand)) = parts else {
            return Ok(());
        };
        self.role = Role::Primary(Box::new(Primary {
            exchange: replica.into_exchange(),
            sequencer,
            hand,
            kept,
            in_flight: None,
        }));
        Ok(())
    }
}
