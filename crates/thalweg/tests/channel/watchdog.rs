//! A test that hangs says so instead.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// For a hang only: no case comes near it.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs `case` in a thread of its own, and gives what it gives. Panics if that is not done within
/// ten minutes; the thread is left behind then.
pub(crate) fn watched<R: Send + 'static>(case: impl FnOnce() -> R + Send + 'static) -> R {
    watch(Box::new(case))
}

/// Compiled once for all cases, which are many.
fn watch<R: Send + 'static>(case: Box<dyn FnOnce() -> R + Send>) -> R {
    let (done, finished) = channel();
    let thread = thread::current();
    let name = thread.name().unwrap_or("case").to_owned();
    let runner = thread::Builder::new()
        .name(name)
        .spawn(move || _ = done.send(case()))
        .expect("there are threads");
    let outcome = finished.recv_timeout(TIMEOUT);
    if matches!(outcome, Err(RecvTimeoutError::Timeout)) {
        panic!("hangs: not done after {TIMEOUT:?}");
    }
    if let Err(panic) = runner.join() {
        resume_unwind(panic);
    }
    outcome.expect("it sends before it ends")
}
