//! Rendezvous and select, as a user has them.

mod fairness;
mod rendezvous;
mod select;
mod tasks;
mod threads;

use std::time::Duration;

/// Longer than any test should wait for what does come.
const LONG: Duration = Duration::from_secs(60);
/// Long enough that a thread which waits so long has slept.
const SHORT: Duration = Duration::from_millis(5);

/// Gives other threads time to get where they are going. Nothing depends on it.
fn linger() {
    for _ in 0..2_000 {
        std::thread::yield_now();
    }
}

/// Waits until what another thread does has happened.
fn until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}
