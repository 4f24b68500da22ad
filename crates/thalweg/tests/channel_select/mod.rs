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
pub(crate) use crate::channel::watchdog;

use std::thread;
use std::time::Duration;

use watchdog::watched;

/// Longer than any test should wait for what does come.
const LONG: Duration = Duration::from_secs(600);
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
