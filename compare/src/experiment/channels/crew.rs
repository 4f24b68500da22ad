//! Many threads, of two kinds.

use std::thread::ScopedJoinHandle;

/// What one thread does.
pub(in crate::experiment) type Job<'a, T> = Box<dyn FnOnce() -> T + Send + 'a>;

/// Starts the receivers, then the senders, waits for all, and returns what each said.
pub(in crate::experiment) fn run<S: Send, R: Send>(
    senders: Vec<Job<'_, S>>,
    receivers: Vec<Job<'_, R>>,
) -> (Vec<S>, Vec<R>) {
    std::thread::scope(|scope| {
        let receivers: Vec<_> = receivers.into_iter().map(|job| scope.spawn(job)).collect();
        let senders: Vec<_> = senders.into_iter().map(|job| scope.spawn(job)).collect();
        (join(senders), join(receivers))
    })
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, T>>) -> Vec<T> {
    let join = |thread: ScopedJoinHandle<'_, T>| match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    threads.into_iter().map(join).collect()
}
