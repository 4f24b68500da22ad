//! The thread of the sequencer: writes batches and heartbeats, and gives up old batches.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::kept::Kept;
use super::leading::{Fenced, Outlet};
use super::log::{Claim, CommandLog, Written};
use super::sequencer::{Sequencer, Step};
use crate::durable::options::Wake;

/// How long nothing is written before a heartbeat.
const BEAT: Duration = Duration::from_millis(75);
/// How long it waits before it asks a log again that gave no clear answer.
const AGAIN: Duration = Duration::from_millis(2);

/// How often the position is noted.
pub(super) const NOTE_EVERY: Duration = Duration::from_secs(1);

type Offer = (u64, Arc<Vec<u8>>);

/// The way to the thread.
struct Channels {
    offers: Sender<Offer>,
    acks: Receiver<Result<(), Fenced>>,
}

impl Outlet for Channels {
    fn offer(&mut self, index: u64, batch: Arc<Vec<u8>>) {
        // A thread that is gone has said why.
        let _ = self.offers.send((index, batch));
    }

    fn poll(&mut self) -> Result<bool, Fenced> {
        match self.acks.try_recv() {
            Ok(acked) => acked.map(|()| true),
            Err(TryRecvError::Empty) => Ok(false),
            // It never ends before this side does, unless it is fenced.
            Err(TryRecvError::Disconnected) => Err(Fenced),
        }
    }
}

/// The thread's part.
struct Sequencing {
    log: Box<dyn CommandLog>,
    sequencer: Sequencer,
    offers: Receiver<Offer>,
    acks: Sender<Result<(), Fenced>>,
    wake: Wake,
    kept: Kept,
    noted: Instant,
}

/// Starts the thread under a claim that was granted. It ends with the exchange, or when another
/// replica has claimed the log.
pub(super) fn start(
    log: Box<dyn CommandLog>,
    (claim, newest): (Claim, Option<u64>),
    kept: Kept,
    wake: Wake,
) -> io::Result<Box<dyn Outlet>> {
    let (offers, to_write) = channel();
    let (acks, acked) = channel();
    let sequencing = Sequencing {
        log,
        sequencer: Sequencer::new(claim, newest),
        offers: to_write,
        acks,
        wake,
        kept,
        noted: Instant::now(),
    };
    let thread = thread::Builder::new().name("sequencer".into());
    thread.spawn(move || sequencing.run())?;
    let acks = acked;
    Ok(Box::new(Channels { offers, acks }))
}

impl Sequencing {
    fn run(mut self) {
        loop {
            let goes_on = match self.offers.recv_timeout(BEAT) {
                Ok((index, batch)) => {
                    self.sequencer.begin(index, batch);
                    self.write()
                }
                Err(RecvTimeoutError::Timeout) => self.beat(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !goes_on {
                return;
            }
            self.note_position();
        }
    }

    /// Writes the batch. Returns false where the thread ends.
    fn write(&mut self) -> bool {
        loop {
            match self.sequencer.step(&mut *self.log) {
                Step::Acked => {
                    if !self.answer(Ok(())) {
                        return false;
                    }
                    self.forget();
                    return true;
                }
                Step::Fenced => {
                    self.answer(Err(Fenced));
                    return false;
                }
                Step::Idle | Step::Waiting(_) => {}
            }
            // No batch is offered while one is under way; an exchange that is gone waits for none.
            let waited = self.offers.recv_timeout(AGAIN);
            if matches!(waited, Err(RecvTimeoutError::Disconnected)) {
                return false;
            }
        }
    }

    /// Notes now and then how far this replica is at least: for when it has stopped.
    fn note_position(&mut self) {
        let (commands, _) = self.sequencer.last();
        if commands > 0 && self.noted.elapsed() >= NOTE_EVERY {
            let holder = &self.sequencer.claim().holder;
            let _ = self.log.note_position(holder, commands);
            self.noted = Instant::now();
        }
    }

    fn answer(&mut self, acked: Result<(), Fenced>) -> bool {
        let is_sent = self.acks.send(acked).is_ok();
        if let Some(wake) = &self.wake.0 {
            wake();
        }
        is_sent
    }

    fn beat(&mut self) -> bool {
        if self.log.beat(self.sequencer.claim()) == Written::Fenced {
            self.answer(Err(Fenced));
            return false;
        }
        true
    }

    /// Gives up the oldest batches, where there are many.
    fn forget(&mut self) {
        let (index, bytes) = self.sequencer.last();
        if let Some(before) = self.kept.push(index, bytes) {
            // Batches that are left are given up the next time.
            let _ = self.log.forget(self.sequencer.claim(), before);
        }
    }
}
