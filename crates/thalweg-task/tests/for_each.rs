//! `spawn_for_each`: which task has a turn while messages come.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use thalweg_task::{LocalExecutor, TaskError, yield_now};

/// Each message brings the next, so the channel is never empty when the task checks it.
#[test]
fn others_have_their_turn_after_64_messages() {
    const MESSAGES: u64 = 10_000;
    let executor = LocalExecutor::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u64>(4);
    tx.send(0).unwrap();
    let sender = Rc::new(RefCell::new(Some(tx)));
    let (seen, again) = (Rc::new(Cell::new(0)), Rc::clone(&sender));
    let within = Rc::clone(&seen);
    let task = executor.handle().spawn_for_each(rx, move |n| {
        assert_eq!(n, within.get());
        within.set(n + 1);
        if n + 1 < MESSAGES {
            let mut sender = again.borrow_mut();
            sender.as_mut().unwrap().try_send(n + 1).unwrap();
        } else {
            again.borrow_mut().take();
        }
    });
    let other = executor.spawn(async move {
        let mut before = 0;
        while before < MESSAGES {
            let now = seen.get();
            assert!(now - before <= 64, "{} without a turn", now - before);
            before = now;
            yield_now().await;
        }
    });
    assert_eq!(executor.block_on(task), Ok(MESSAGES));
    assert_eq!(executor.block_on(other), Ok(()));
}

#[test]
fn a_handler_that_panics_ends_the_task_and_the_channel() {
    let executor = LocalExecutor::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u32>(8);
    let task = executor
        .handle()
        .spawn_for_each(rx, |n| assert!(n != 2, "not this one"));
    (0..4).for_each(|n| tx.send(n).unwrap());
    let expected = TaskError::Panicked("not this one".to_owned());
    assert_eq!(executor.block_on(task), Err(expected));
    assert!(tx.send(9).is_err(), "no receiver is left");
    let counters = tx.counters();
    assert_eq!((counters.received, counters.discarded), (3, 1));
}

#[test]
fn a_handler_that_cancels_its_task_gets_no_more() {
    let executor = LocalExecutor::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u64>(128);
    tx.send_many(0..100).unwrap();
    let (had, own) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (within, id, handle) = (Rc::clone(&had), Rc::clone(&own), executor.handle());
    let task = executor.handle().spawn_for_each(rx, move |n| {
        within.set(n + 1);
        if n + 1 == 10 {
            assert!(handle.cancel(id.get().unwrap()));
        }
    });
    own.set(Some(task.id()));
    assert_eq!(executor.block_on(task), Err(TaskError::Cancelled));
    let counters = tx.counters();
    assert_eq!(
        (had.get(), counters.received, counters.discarded),
        (10, 10, 90)
    );
    assert!(tx.send(100).is_err(), "no receiver is left");
}

#[test]
fn a_core_that_goes_discards_what_its_tasks_have_not_taken() {
    let executor = LocalExecutor::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u64>(128);
    tx.send_many(0..100).unwrap();
    let task = executor.handle().spawn_for_each(rx, |_| ());
    assert!(executor.poll());
    assert_eq!(
        tx.counters().received,
        64,
        "after which others have their turn"
    );
    drop(executor);
    assert_eq!(futures::executor::block_on(task), Err(TaskError::Cancelled));
    assert_eq!(tx.counters().discarded, 36);
    assert!(tx.send(100).is_err(), "no receiver is left");
}
