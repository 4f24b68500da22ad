//! The journal stage: makes commands durable before the publish stage behind it has them, itself or
//! by a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg::pipeline::{Flow, Stopped};
use thalweg::wait::{Signal, block};
use thalweg_journal::{Lsn, Shared, Storage};
use thalweg_measure::clock::Clock;

use super::error::{Failed, shortage};
use super::faults::{Faults, Seeded};
use super::gate::{Gate, pace};
use super::options::SyncMode;
use super::stats::Meters;

pub(super) struct Committing<S: Storage> {
    pub(super) journal: Shared<[u8], S>,
    pub(super) sync: SyncMode,
    pub(super) room_pause: Duration,
    pub(super) gate: Arc<Gate>,
    pub(super) meters: Arc<Meters>,
    pub(super) faults: Faults,
    /// Commands below this number are durable.
    pub(super) durable: u64,
}

impl<S: Storage> Committing<S> {
    /// Makes the commands below this number durable. After a failure they pass, and the publish
    /// stage discards them.
    pub(super) fn commit(&mut self, end: u64) -> Flow {
        let is_trusted = self.sync == SyncMode::Never || self.faults.has(Seeded::PublishUnsynced);
        if end <= self.durable || is_trusted || self.gate.failed().is_some() {
            return Flow::Next;
        }
        let clock = Clock::global();
        let begin = clock.ticks();
        // The command with number n is record n + 1.
        let error = match self.journal.commit(Lsn::new(end)) {
            Ok(_) => {
                // All that came meanwhile is durable as well: the next chunks need no commit.
                let durable = self.journal.durable().get().number();
                self.meters
                    .note_commit(durable - self.durable, clock.ticks() - begin);
                self.durable = durable;
                self.gate.set_lack(None);
                return Flow::Next;
            }
            Err(error) => Arc::new(error),
        };
        let lack = shortage(&error);
        if lack.is_none() {
            self.gate.fail(Failed::Journal(error));
            return Flow::Next;
        }
        self.gate.set_lack(lack);
        if self.gate.pause(self.room_pause) {
            self.gate.fail(Failed::NoRoom(error));
            return Flow::Next;
        }
        // It may be the owner's thread, which has to refuse commands meanwhile.
        Flow::Retry
    }
}

/// What the journal stage and the committer's thread share.
#[derive(Debug, Default)]
struct Progress {
    /// Commands below this number are to be made durable.
    wanted: AtomicU64,
    /// Commands below this number are durable, or pass after a failure.
    durable: AtomicU64,
    is_closing: AtomicBool,
    more: Signal,
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
        // ORDERING: Relaxed, pairs with the store in drop(); the signal orders it.
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Has the thread make commands below this number durable.
    fn want(&self, end: u64) {
        // ORDERING: Relaxed, as the journal stage alone stores it.
        if self.wanted.load(Ordering::Relaxed) < end {
            // ORDERING: Release, pairs with the Acquire in wanted().
            self.wanted.store(end, Ordering::Release);
            self.more.notify_one();
        }
    }
}

/// A thread that commits, so that the journal stage does not wait.
#[derive(Debug)]
pub(super) struct CommitThread {
    progress: Arc<Progress>,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

impl CommitThread {
    /// Starts the thread, and returns it with what the journal stage does.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start<S: Storage>(
        mut committing: Committing<S>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<(Self, impl FnMut(u64) -> Flow + Send + 'static)> {
        let progress = Arc::new(Progress::default());
        // ORDERING: Relaxed; there is no other thread yet.
        (progress.durable).store(committing.durable, Ordering::Relaxed);
        let (gate, sync) = (Arc::clone(&committing.gate), committing.sync);
        let (shared, failing) = (Arc::clone(&progress), Arc::clone(&gate));
        let run = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| run(&mut committing, &shared, &*wake)));
            if ran.is_err() {
                failing.fail(Failed::Stage(Stopped { failure: None }));
                wake();
            }
        };
        let thread = thread::Builder::new().name("commit".into()).spawn(run)?;
        let (asked, failed) = (Arc::clone(&progress), Arc::clone(&gate));
        let commit = move |end| {
            if sync == SyncMode::Never || asked.durable() >= end || failed.failed().is_some() {
                return Flow::Next;
            }
            asked.want(end);
            Flow::Retry
        };
        let thread = Self {
            progress,
            gate,
            thread: Some(thread),
        };
        Ok((thread, commit))
    }
}

impl Drop for CommitThread {
    fn drop(&mut self) {
        self.gate.close();
        // ORDERING: Relaxed, pairs with the load in is_closing(); the signal orders it.
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
        while committing.commit(wanted) == Flow::Retry {
            // New commands are refused meanwhile, which the owner may have to say.
            wake();
        }
        // ORDERING: Release, pairs with the Acquire in durable().
        let durable = committing.durable.max(wanted);
        progress.durable.store(durable, Ordering::Release);
        committing.gate.notify();
        wake();
    }
}
