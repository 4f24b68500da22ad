//! The state that the owner's thread and the thread that commits share.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use thalweg::wait::{EventCount, Mode, Pace, block};

use super::error::Failed;
use crate::session::Refusal;

/// How long the owner sleeps at most before it looks again.
const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Why commands that were taken wait for a further segment, as the code of the refusal of new
    /// ones; 0 where they do not.
    lack: AtomicU8,
    /// The owner closes: no thread waits for room any more.
    is_closing: Mutex<bool>,
    closing: Condvar,
    failed: OnceLock<Failed>,
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
    pub(super) fn fail(&self, failed: Failed) {
        let _ = self.failed.set(failed);
        self.moved.notify_one();
    }

    #[inline]
    pub(super) fn failed(&self) -> Option<&Failed> {
        self.failed.get()
    }

    /// Lets the owner look again.
    pub(super) fn notify(&self) {
        self.moved.notify_one();
    }

    pub(super) fn check(&self) -> Result<(), Failed> {
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

/// How the owner waits.
pub(super) fn pace() -> Pace {
    Pace::new(Mode::Balanced)
}
