//! Going on after a panic in foreign code; it goes on itself when all is done.

use crate::ring::sync::IS_MODEL;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

/// The first panic of several pieces of work.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Does a piece of work, and gives what it gives. In a model its panic goes on at once: it may
    /// be the model that fails, and then nothing of it can be touched any more.
    pub(crate) fn catch<R>(&mut self, work: impl FnOnce() -> R) -> Option<R> {
        if IS_MODEL {
            return Some(work());
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => Some(result),
            Err(payload) => {
                self.0.get_or_insert(payload);
                None
            }
        }
    }

    /// All is done: the first panic goes on, if there was one.
    pub(crate) fn resume(self) {
        match self.0 {
            // A second panic while the first unwinds would end the process.
            Some(payload) if !std::thread::panicking() => resume_unwind(payload),
            _ => {}
        }
    }
}

/// Wakes. If the waker panics, that goes no further: it has been reported (by the panic hook), and
/// the notifier has no part in it, and may hold an element that must not be lost.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        Panics::default().catch(|| waker.wake());
    }
}
