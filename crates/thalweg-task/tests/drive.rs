//! An executor as a future of another executor.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use thalweg::wait::WaitMode;
use thalweg_task::{Local, LocalExecutor, slot};

/// Drives `executor` beside `other` till neither goes on; returns whether the drive is over.
fn is_driven_to_the_end(
    executor: LocalExecutor,
    other: impl Future<Output = ()> + 'static,
) -> bool {
    let (mut pool, over) = (LocalPool::new(), Rc::new(Cell::new(false)));
    let flag = Rc::clone(&over);
    let drive = async move {
        executor.drive(|_| pending()).await;
        flag.set(true);
        pending::<()>().await;
    };
    pool.spawner().spawn_local(drive).unwrap();
    pool.run_until_stalled();
    pool.spawner().spawn_local(other).unwrap();
    pool.run_until_stalled();
    over.get()
}

#[test]
fn the_last_task_is_cancelled_by_others() {
    let executor = LocalExecutor::new();
    let task = executor.spawn(pending::<()>());
    assert!(is_driven_to_the_end(executor, async move {
        assert!(task.cancel());
        pending::<()>().await;
    }));
    let executor = LocalExecutor::new();
    let (task, handle) = (executor.spawn(pending::<()>()), executor.handle());
    assert!(is_driven_to_the_end(executor, async move {
        assert!(handle.cancel(task.id()));
        pending::<()>().await;
    }));
}

#[test]
fn the_last_task_is_resumed_by_others_and_ends() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<u32, Local>();
    let task = executor.spawn(async move { rx.recv().await });
    assert!(is_driven_to_the_end(executor, async move {
        assert_eq!(tx.send_now(1), Ok(true));
        assert!(task.is_finished());
        pending::<()>().await;
    }));
}

#[test]
fn a_task_that_comes_while_it_waits_is_run() {
    let executor = LocalExecutor::new();
    let (task, handle) = (executor.spawn(pending::<()>()), executor.handle());
    assert!(is_driven_to_the_end(executor, async move {
        assert_eq!(handle.spawn(async { 7 }).await, Ok(7));
        assert!(task.cancel());
        pending::<()>().await;
    }));
}

#[test]
fn a_drive_that_is_left_pending_takes_no_wake_up_from_a_run() {
    let executor = LocalExecutor::builder()
        .mode(WaitMode::LowPower)
        .build()
        .unwrap();
    for _ in 0..100 {
        let (to, wakers) = std::sync::mpsc::channel::<Waker>();
        let mut polls = 0;
        let task = executor.spawn(poll_fn(move |context| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            to.send(context.waker().clone()).unwrap();
            Poll::Pending
        }));
        let mut drive = Box::pin(executor.drive(|_| pending()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(drive.as_mut().poll(&mut context).is_pending());
        let waker = wakers.recv().unwrap();
        let thread = std::thread::spawn(move || {
            // Time enough for the run to sleep, most often.
            (0..200).for_each(|_| std::thread::yield_now());
            waker.wake();
        });
        executor.run();
        assert!(task.is_finished());
        thread.join().unwrap();
        drop(drive);
    }
}
