//! The thread of the sequencer: writes batches and heartbeats, and gives up old batches.
//!
//! Its heartbeats say that the whole replica lives: they end where the owner of the exchange, which
//! is woken for that, does not look for acknowledgements any more, as on a disk that hangs.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::batch::{Pending, pack};
use super::leading::{BatchQueue, BatchSink, Fenced, LogOutage, SealedBatch};
use super::log::{CommandLog, WriteOutcome};
use super::log_retention::LogRetention;
use super::sequencer::{Sequencer, Step};
use crate::durable::options::Wake;

/// How long nothing is written before a heartbeat.
const BEAT: Duration = Duration::from_millis(75);
/// How long it waits before it asks a log again that gave no clear answer.
const AGAIN: Duration = Duration::from_millis(2);

/// How long the owner of an exchange may do nothing, as on a disk that hangs, before the primary
/// stops its heartbeats.
pub const HUNG: Duration = Duration::from_secs(2);

/// How often a page of older batches is counted.
const PAGE_EVERY: Duration = Duration::from_millis(50);

/// How often the position is noted.
pub(super) const NOTE_EVERY: Duration = Duration::from_secs(1);

/// The commands that wait to be written, which both sides share.
#[derive(Debug)]
struct Waiting {
    queue: BatchQueue,
    /// Whether the thread has found nothing, and is to be woken.
    is_idle: bool,
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The findings of each side about the other.
#[derive(Debug, Default)]
struct Health {
    /// How often the owner of the exchange has looked for an acknowledgement.
    polls: AtomicU64,
    /// Whether the thread has ended.
    has_ended: AtomicBool,
    /// Whether the log answers.
    outage: Mutex<Option<LogOutage>>,
}

impl Health {
    /// Sets why the log does not answer. Returns whether it was so before.
    fn set_outage(&self, outage: Option<LogOutage>) -> bool {
        let mut present = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *present, outage).is_some()
    }
}

/// The handle to the thread, which its exchange has.
struct SequencerHandle {
    waiting: Arc<Mutex<Waiting>>,
    /// Says to an idle thread that something waits.
    offers: Sender<()>,
    acks: Receiver<Result<SealedBatch, Fenced>>,
    health: Arc<Health>,
}

impl BatchSink for SequencerHandle {
    fn offer(&mut self, pending: &mut Pending) {
        let mut waiting = lock(&self.waiting);
        waiting.queue.push(pending);
        let was_idle = std::mem::take(&mut waiting.is_idle);
        drop(waiting);
        if was_idle {
            // A thread that is gone has said why.
            let _ = self.offers.send(());
        }
    }

    fn poll(&mut self) -> Result<Option<SealedBatch>, Fenced> {
        // ORDERING: Relaxed, pairs with the load in is_hung(); a counter alone.
        self.health.polls.fetch_add(1, Ordering::Relaxed);
        match self.acks.try_recv() {
            Ok(acked) => acked.map(Some),
            Err(TryRecvError::Empty) if !self.has_ended() => Ok(None),
            // It never ends before this side does, unless it is fenced, it has panicked, or this
            // side has hung for so long that another replica takes over.
            Err(_) => Err(Fenced),
        }
    }

    fn has_ended(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in drop(); a flag alone.
        self.health.has_ended.load(Ordering::Relaxed)
    }

    fn outage(&self) -> Option<LogOutage> {
        let outage = &self.health.outage;
        outage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for SequencerHandle {
    /// Writes no more than the batch that is under way: the exchange may have failed.
    fn drop(&mut self) {
        lock(&self.waiting).queue.clear();
    }
}

/// The state of the thread.
struct SequencerThread {
    log: Box<dyn CommandLog>,
    sequencer: Sequencer,
    waiting: Arc<Mutex<Waiting>>,
    offers: Receiver<()>,
    acks: Sender<Result<SealedBatch, Fenced>>,
    wake: Wake,
    kept: LogRetention,
    older: Option<Older>,
    /// Where others get copies of this replica, until that is noted.
    place: Option<String>,
    noted: Instant,
    health: Arc<Health>,
    /// How often the owner had polled when that was looked at last, and when that had changed.
    polls: (u64, Instant),
    /// When the log answered last.
    answered: Instant,
    woken: Instant,
}

/// Batches that earlier writers have left, while they are counted.
struct Older {
    next: u64,
    before: u64,
    pages: Vec<(u64, usize)>,
    asked: Instant,
}

/// Starts the thread of a writer whose claim was granted, which writes what the queue has. It ends
/// with the exchange, when that hangs, or when another replica has claimed the log. Notes where
/// others get copies of this replica.
pub(super) fn start(
    (log, sequencer, queue): (Box<dyn CommandLog>, Sequencer, BatchQueue),
    (kept, place): (LogRetention, Option<String>),
    wake: Wake,
) -> io::Result<Box<dyn BatchSink>> {
    let (offers, offered) = channel();
    let (acks, acked) = channel();
    let (health, now) = (Arc::<Health>::default(), Instant::now());
    let is_idle = false;
    let waiting = Arc::new(Mutex::new(Waiting { queue, is_idle }));
    let newest = sequencer.newest();
    let state = SequencerThread {
        log,
        sequencer,
        waiting: Arc::clone(&waiting),
        offers: offered,
        acks,
        wake,
        older: Some(Older {
            next: 0,
            before: (kept.first()).unwrap_or_else(|| newest.map_or(0, |newest| newest + 1)),
            pages: Vec::new(),
            asked: now,
        }),
        kept,
        place,
        noted: now,
        health: Arc::clone(&health),
        polls: (0, now),
        answered: now,
        woken: now,
    };
    let thread = thread::Builder::new().name("sequencer".into());
    thread.spawn(move || state.run())?;
    Ok(Box::new(SequencerHandle {
        waiting,
        offers,
        acks: acked,
        health,
    }))
}

impl Drop for SequencerThread {
    /// Has the owner see the end, also that of a thread that panics.
    fn drop(&mut self) {
        // ORDERING: Relaxed, pairs with the load in has_ended(); a flag alone.
        self.health.has_ended.store(true, Ordering::Relaxed);
        self.wake();
    }
}

impl SequencerThread {
    fn run(mut self) {
        loop {
            let goes_on = match self.next_batch() {
                Some(batch) => self.write(batch),
                None => match self.offers.recv_timeout(BEAT) {
                    Ok(()) => continue,
                    Err(RecvTimeoutError::Timeout) => self.send_heartbeat(),
                    Err(RecvTimeoutError::Disconnected) => return,
                },
            };
            if !goes_on {
                return;
            }
            if self.answered.elapsed() < BEAT {
                self.note_position();
                self.count_older();
            }
        }
    }

    /// Returns the next batch; where nothing waits, the exchange is to wake this thread.
    fn next_batch(&self) -> Option<SealedBatch> {
        let mut waiting = lock(&self.waiting);
        let batch = waiting.queue.seal();
        waiting.is_idle = batch.is_none();
        batch
    }

    /// Writes a batch. Returns false where the thread ends.
    fn write(&mut self, batch: SealedBatch) -> bool {
        self.sequencer.begin(batch.index, pack(&batch.bytes));
        loop {
            match self.sequencer.step(&mut *self.log) {
                Step::Acked => {
                    self.log_answers();
                    if !self.answer(Ok(batch)) {
                        return false;
                    }
                    self.delete_old_batches();
                    return true;
                }
                Step::Fenced => {
                    self.answer(Err(Fenced));
                    return false;
                }
                Step::Idle => {}
                Step::Waiting(text) => self.log_is_silent(text),
            }
            // An exchange that is gone waits for no batch.
            let waited = self.offers.recv_timeout(AGAIN);
            if matches!(waited, Err(RecvTimeoutError::Disconnected)) {
                return false;
            }
        }
    }

    /// Notes now and then how far this replica is at least: for when it has stopped.
    fn note_position(&mut self) {
        if self.noted.elapsed() < NOTE_EVERY {
            return;
        }
        self.noted = Instant::now();
        let (holder, log) = (&self.sequencer.claim().holder, &mut self.log);
        (self.place).take_if(|place| log.note_peer(holder, place) == WriteOutcome::Acked);
        let (commands, _) = self.sequencer.last();
        if commands > 0 {
            let _ = log.note_position(holder, commands);
        }
    }

    /// Counts a page of the batches that earlier writers have left, so that they are given up in
    /// their turn.
    fn count_older(&mut self) {
        let Some(older) = &mut self.older else {
            return;
        };
        if older.asked.elapsed() < PAGE_EVERY {
            return;
        }
        older.asked = Instant::now();
        // One that does not answer is asked again the next time.
        let Ok(indices) = self.log.indices(older.next, older.before) else {
            return;
        };
        match (indices.first(), indices.last()) {
            (Some(first), Some(last)) => {
                older.pages.push((*first, indices.len()));
                older.next = last + 1;
            }
            _ => {
                self.kept.add_older(&older.pages);
                self.older = None;
            }
        }
    }

    fn wake(&mut self) {
        self.woken = Instant::now();
        if let Some(wake) = &self.wake.0 {
            wake();
        }
    }

    fn log_answers(&mut self) {
        self.answered = Instant::now();
        if self.health.set_outage(None) {
            self.wake();
        }
    }

    fn log_is_silent(&mut self, text: String) {
        let since = self.answered;
        let was_silent = self.health.set_outage(Some(LogOutage { since, text }));
        if !was_silent || self.woken.elapsed() >= BEAT {
            self.wake();
        }
    }

    /// Returns whether the owner of the exchange, which was woken, has not looked for a long time.
    /// One that cannot be woken looks when it submits, and one that has never looked has not begun.
    fn is_hung(&mut self) -> bool {
        if self.wake.0.is_none() {
            return false;
        }
        // ORDERING: Relaxed, pairs with the addition in poll(); a counter alone.
        let polls = self.health.polls.load(Ordering::Relaxed);
        if polls != self.polls.0 || polls == 0 {
            self.polls = (polls, Instant::now());
        }
        self.wake();
        self.polls.1.elapsed() >= HUNG
    }

    fn answer(&mut self, acked: Result<SealedBatch, Fenced>) -> bool {
        let is_sent = self.acks.send(acked).is_ok();
        self.wake();
        is_sent
    }

    fn send_heartbeat(&mut self) -> bool {
        if self.is_hung() {
            return false;
        }
        match self.log.heartbeat(self.sequencer.claim()) {
            WriteOutcome::Acked => self.log_answers(),
            WriteOutcome::Unknown(text) => self.log_is_silent(text),
            WriteOutcome::Fenced => {
                self.answer(Err(Fenced));
                return false;
            }
        }
        true
    }

    /// Gives up the oldest batches, where there are many.
    fn delete_old_batches(&mut self) {
        let (index, bytes) = self.sequencer.last();
        if let Some(before) = self.kept.push(index, bytes) {
            // Batches that are left are given up the next time.
            let _ = self.log.delete_before(self.sequencer.claim(), before);
        }
    }
}
