//! Waiting for tasks: joins that are dropped and made again, and wakers with a mind of their own.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::FutureExt;
use thalweg_task::{Local, LocalExecutor, SlotSender, Task, join_any, join_some, slot};

/// Tasks that wait for a number each.
fn waiting(executor: &LocalExecutor) -> (Vec<SlotSender<u32, Local>>, Vec<Task<u32>>) {
    let spawn = |_| {
        let (tx, mut rx) = slot::<u32, Local>();
        (tx, executor.spawn(async move { rx.recv().await.unwrap() }))
    };
    let both = (0..5).map(spawn).unzip();
    while executor.poll() {}
    both
}

#[test]
fn a_join_that_is_dropped_has_taken_nothing() {
    let executor = LocalExecutor::new();
    let (senders, mut tasks) = waiting(&executor);
    executor.block_on(async {
        for count in 1..=6 {
            assert!(join_some(&mut tasks, count).now_or_never().is_none());
        }
        assert!(join_some(&mut tasks, 0).await.is_empty());
        for n in [4, 1] {
            assert_eq!(senders[n].send_now(n as u32), Ok(true));
        }
        assert!(join_some(&mut tasks, 3).now_or_never().is_none());
        // Two are over: the first in the list is given, though it was over last.
        assert_eq!(join_any(&mut tasks).await.unwrap().1, Ok(1));
        assert_eq!(join_any(&mut tasks).await.unwrap().1, Ok(4));
        assert!(join_any(&mut tasks).now_or_never().is_none());
        for n in [3, 0, 2] {
            assert_eq!(senders[n].send_now(n as u32), Ok(true));
        }
        let rest = join_some(&mut tasks, 9).await;
        let rest: Vec<_> = rest.into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(rest, [Ok(0), Ok(2), Ok(3)]);
    });
}

std::thread_local! {
    static AT_THE_END: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A waker that, when its last clone is dropped, does what this thread has set.
#[derive(Default)]
struct Last(AtomicBool);

impl Wake for Last {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed: one thread asks.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(end) = AT_THE_END.take() {
            end();
        }
    }
}

#[test]
fn a_task_that_ends_while_it_is_joined_is_ready_or_wakes() {
    let executor = LocalExecutor::new();
    let mut task = executor.spawn(pending::<()>());
    let (handle, id) = (executor.handle(), task.id());
    let waker = Waker::from(Arc::new(Last::default()));
    let mut poll = |waker: &Waker| {
        let polled = Pin::new(&mut task).poll(&mut Context::from_waker(waker));
        (polled.is_ready(), task.is_finished())
    };
    assert_eq!(poll(&waker), (false, false));
    drop(waker);
    AT_THE_END.set(Some(Box::new(move || assert!(handle.cancel(id)))));
    let second = Arc::new(Last::default());
    // The first waker is dropped for this one, and cancels the task.
    let (is_ready, is_over) = poll(&Waker::from(Arc::clone(&second)));
    // ORDERING: Relaxed: one thread asks.
    assert!(is_over && (is_ready || second.0.load(Ordering::Relaxed)));
}
