//! A test that hangs says so instead.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `case` in a thread of its own, and panics if that is not done within a minute. The thread
/// is left behind then.
pub(crate) fn watched(case: fn()) {
    let (done, finished) = channel();
    let thread = thread::current();
    let name = thread.name().unwrap_or("case").to_owned();
    let runner = thread::Builder::new()
        .name(name)
        .spawn(move || {
            // Dropped at the end, also by a panic.
            let _done = done;
            case();
        })
        .unwrap();
    let outcome: Result<(), _> = finished.recv_timeout(PATIENCE);
    if outcome == Err(RecvTimeoutError::Timeout) {
        panic!("hangs: not done after {PATIENCE:?}");
    }
    if let Err(panic) = runner.join() {
        resume_unwind(panic);
    }
}
