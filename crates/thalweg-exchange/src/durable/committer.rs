//! Commits: what was appended to the journal becomes durable, on the caller's thread or on one of
//! its own; and the gate, by which the owner learns what came of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg::wait::{EventCount, Pace, WaitMode, block};
use thalweg_journal::{Error as JournalError, Lsn, Shared, Storage};
use thalweg_measure::clock::Clock;

use super::error::{ExchangeError, shortage};
use super::options::Wake;
use super::stats::Meters;
use crate::session::Refusal;

/// How long the owner sleeps at most before it looks again.
const NAP: Duration = Duration::from_millis(1);

/// The pause after each commit of an exchange whose answers wait for no disk of its own.
const PAUSE: Duration = Duration::from_millis(10);

/// The state of commits: by it the owner learns that the disk is full or the exchange has failed.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Why commands that were taken wait for a further segment, as the code of the refusal of new
    /// ones; 0 where they do not.
    lack: AtomicU8,
    /// The owner closes: no thread waits for room any more.
    is_closing: Mutex<bool>,
    closing: Condvar,
    failed: OnceLock<ExchangeError>,
    /// Where the owner waits for a commit.
    moved: EventCount,
}

impl Gate {
    pub(super) fn set_lack(&self, lack: Option<Refusal>) {
        let code = lack.map_or(0, Refusal::code);
        // ORDERING: Relaxed; a flag by which nothing else is read.
        if self.lack.swap(code, Ordering::Relaxed) != code {
            self.moved.notify_one();
        }
    }

    #[inline]
    pub(super) fn lack(&self) -> Option<Refusal> {
        // ORDERING: Relaxed, as in set_lack().
        match self.lack.load(Ordering::Relaxed) {
            0 => None,
            code => Refusal::from_parts(code, 0),
        }
    }

    /// The first reason counts.
    pub(super) fn fail(&self, failed: ExchangeError) {
        let _ = self.failed.set(failed);
        self.moved.notify_one();
    }

    #[inline]
    pub(super) fn failed(&self) -> Option<&ExchangeError> {
        self.failed.get()
    }

    /// Lets the owner look again.
    pub(super) fn notify(&self) {
        self.moved.notify_one();
    }

    pub(super) fn check(&self) -> Result<(), ExchangeError> {
        self.failed().map_or(Ok(()), |failed| Err(failed.clone()))
    }

    pub(super) fn close(&self) {
        *self
            .is_closing
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.closing.notify_all();
    }

    /// Waits for a while, or until the owner closes; gives whether it has.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let is_closing = self
            .is_closing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let woken = self
            .closing
            .wait_timeout_while(is_closing, pause, |is_closing| !*is_closing);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The owner waits until `is_over`, or for a nap.
    pub(super) fn wait(&self, pace: &mut Pace, mut is_over: impl FnMut() -> bool) {
        let deadline = Instant::now().checked_add(NAP);
        let _ = block(&self.moved, pace, deadline, || is_over().then_some(()));
    }
}

/// Returns how the owner waits.
pub(super) fn pace() -> Pace {
    Pace::new(WaitMode::Balanced)
}

/// The result of an attempt to commit.
#[derive(Debug)]
enum Committed {
    /// It is done, or the exchange has failed.
    Yes,
    /// The disk had no room.
    NoRoom(Arc<JournalError>),
}

/// The journal, and how far it is durable.
#[derive(Debug)]
pub(super) struct Committing<S: Storage> {
    pub(super) journal: Shared<[u8], S>,
    pub(super) room_pause: Duration,
    pub(super) gate: Arc<Gate>,
    pub(super) meters: Arc<Meters>,
    /// Commands below this number are durable.
    pub(super) durable: u64,
}

impl<S: Storage> Committing<S> {
    /// Makes the commands below this number durable.
    fn commit(&mut self, end: u64) -> Committed {
        if end <= self.durable || self.gate.failed().is_some() {
            return Committed::Yes;
        }
        let clock = Clock::global();
        let begin = clock.ticks();
        // The command with number n is record n + 1.
        let error = match self.journal.commit(Lsn::new(end)) {
            Ok(_) => {
                // All that came meanwhile is durable as well: the next ones need no commit.
                let durable = self.journal.durable().get().number();
                self.meters
                    .note_commit(durable - self.durable, clock.ticks() - begin);
                self.durable = durable;
                self.gate.set_lack(None);
                return Committed::Yes;
            }
            Err(error) => Arc::new(error),
        };
        let lack = shortage(&error);
        if lack.is_none() {
            self.gate.fail(ExchangeError::Journal(error));
            return Committed::Yes;
        }
        self.gate.set_lack(lack);
        Committed::NoRoom(error)
    }

    /// Waits before the disk is asked for room again; not where the exchange closes.
    fn pause(&self, error: Arc<JournalError>) {
        if self.gate.pause(self.room_pause) {
            self.gate.fail(ExchangeError::NoRoom(error));
        }
    }
}

/// How far a thread that commits has come, and how far it is to come.
#[derive(Debug, Default)]
struct Progress {
    /// Commands below this number are to be made durable.
    wanted: AtomicU64,
    /// Commands below this number are durable.
    durable: AtomicU64,
    is_closing: AtomicBool,
    /// Whether there is a pause after each commit.
    is_paced: AtomicBool,
    more: EventCount,
}

impl Progress {
    fn wanted(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in want(): the commands are in the journal.
        self.wanted.load(Ordering::Acquire)
    }

    fn durable(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in run(); what the commit did comes before.
        self.durable.load(Ordering::Acquire)
    }

    fn is_closing(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in drop(); the event count orders it.
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Has the thread make commands below this number durable.
    fn want(&self, end: u64) {
        // ORDERING: Relaxed, as the owner alone stores it.
        if self.wanted.load(Ordering::Relaxed) < end {
            // ORDERING: Release, pairs with the Acquire in wanted().
            self.wanted.store(end, Ordering::Release);
            self.more.notify_one();
        }
    }
}

/// Makes commands durable.
#[derive(Debug)]
pub(super) enum Committer<S: Storage> {
    /// Commits are not waited for.
    None,
    /// The caller waits for the disk.
    Caller(Box<Committing<S>>),
    /// A thread of its own does.
    Thread(CommitThread),
}

impl<S: Storage> Committer<S> {
    /// Starts one, whose commits the caller makes or a thread of its own.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        committing: Committing<S>,
        is_on_caller: bool,
        wake: Wake,
    ) -> std::io::Result<Self> {
        Ok(match is_on_caller {
            true => Self::Caller(Box::new(committing)),
            false => Self::Thread(CommitThread::start(committing, wake)?),
        })
    }

    /// Has a thread that commits pause after each time: nothing waits for it, as where a command
    /// log has all commands. A commit for each batch takes the disk and the processors of others.
    pub(super) fn pace(&self) {
        if let Self::Thread(thread) = self {
            // ORDERING: Relaxed, pairs with the load in run(); a flag alone.
            thread.progress.is_paced.store(true, Ordering::Relaxed);
        }
    }

    /// Makes commands below this number durable, or has that begun. Returns below which number they
    /// are.
    pub(super) fn commit(&mut self, end: u64) -> u64 {
        match self {
            Self::None => end,
            Self::Caller(caller) => {
                if let Committed::NoRoom(error) = caller.commit(end) {
                    caller.pause(error);
                }
                caller.durable
            }
            Self::Thread(thread) => {
                thread.progress.want(end);
                thread.progress.durable()
            }
        }
    }
}

/// A thread that commits.
#[derive(Debug)]
pub(super) struct CommitThread {
    progress: Arc<Progress>,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

impl CommitThread {
    fn start<S: Storage>(mut committing: Committing<S>, wake: Wake) -> std::io::Result<Self> {
        let progress = Arc::new(Progress::default());
        // ORDERING: Relaxed; there is no other thread yet.
        (progress.durable).store(committing.durable, Ordering::Relaxed);
        let gate = Arc::clone(&committing.gate);
        let (shared, notified) = (Arc::clone(&progress), Arc::clone(&gate));
        let run = move || {
            let wake = || {
                notified.notify();
                if let Some(wake) = &wake.0 {
                    wake();
                }
            };
            let ran = catch_unwind(AssertUnwindSafe(|| run(&mut committing, &shared, &wake)));
            if ran.is_err() {
                notified.fail(ExchangeError::Panicked);
                wake();
            }
        };
        let thread = thread::Builder::new().name("commit".into()).spawn(run)?;
        Ok(Self {
            progress,
            gate,
            thread: Some(thread),
        })
    }
}

impl Drop for CommitThread {
    fn drop(&mut self) {
        // It may wait for room.
        self.gate.close();
        // ORDERING: Relaxed, pairs with the load in is_closing(); the event count orders it.
        self.progress.is_closing.store(true, Ordering::Relaxed);
        self.progress.more.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panics are caught.
            let _ = thread.join();
        }
    }
}

/// Commits what is wanted until the exchange is closed.
fn run<S: Storage>(committing: &mut Committing<S>, progress: &Progress, wake: &dyn Fn()) {
    let mut pace = pace();
    loop {
        let _ = block(&progress.more, &mut pace, None, || {
            let is_over = progress.is_closing() || progress.wanted() > progress.durable();
            is_over.then_some(())
        });
        let wanted = progress.wanted();
        if wanted <= progress.durable() {
            return;
        }
        while let Committed::NoRoom(error) = committing.commit(wanted) {
            // New commands are refused meanwhile, which the owner may have to say.
            wake();
            committing.pause(error);
        }
        if committing.gate.failed().is_some() {
            return wake();
        }
        // ORDERING: Release, pairs with the Acquire in durable().
        progress
            .durable
            .store(committing.durable, Ordering::Release);
        wake();
        // ORDERING: Relaxed, pairs with the store in Committer::pace(); a flag alone.
        if progress.is_paced.load(Ordering::Relaxed) {
            // It ends where the exchange closes.
            let _ = committing.gate.pause(PAUSE);
        }
    }
}
