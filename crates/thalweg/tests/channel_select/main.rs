//! Rendezvous and select, as a user has them.

#![allow(clippy::unwrap_used)] // cases are tests, though they are not #[test]

mod defects;
mod fairness;
mod lists;
mod peers;
mod rendezvous;
mod select;
mod tasks;
mod threads;
mod timers;

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Longer than any test should wait for what does come.
const LONG: Duration = Duration::from_secs(60);
/// Long enough that a thread which waits so long has slept.
const SHORT: Duration = Duration::from_millis(5);

/// Gives other threads time to get where they are going. Nothing depends on it.
fn linger() {
    for _ in 0..2_000 {
        thread::yield_now();
    }
}

/// Waits until what another thread does has happened.
fn until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        thread::yield_now();
    }
}

/// Runs a case in a thread of its own, and says so if it hangs.
fn watched(case: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel::<()>();
    let runner = thread::spawn(move || {
        let _done = done;
        case();
    });
    let outcome = finished.recv_timeout(LONG);
    assert_ne!(outcome, Err(RecvTimeoutError::Timeout), "it hangs");
    if let Err(panic) = runner.join() {
        resume_unwind(panic);
    }
}
