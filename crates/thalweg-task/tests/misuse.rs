//! Calls that would wait for themselves: they panic, and do not hang.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use thalweg_task::fiber::{StackOptions, StackPool};
use thalweg_task::{Local, LocalExecutor, SlotSender, Status, Task, TaskError, slot};

fn refused<T>(what: &str) -> Result<T, TaskError> {
    let text =
        format!("a task of this executor called `LocalExecutor::{what}`, which would wait for it");
    Err(TaskError::Panicked(text + ": `.await` instead"))
}

/// An executor, and what its tasks reach it by.
fn shared() -> (Rc<LocalExecutor>, Weak<LocalExecutor>) {
    let executor = Rc::new(LocalExecutor::new());
    let within = Rc::downgrade(&executor);
    (executor, within)
}

/// A task that waits, then does something with its executor; and the other end of its slot.
fn waiting<T: 'static, F>(executor: &Rc<LocalExecutor>, then: F) -> (SlotSender<(), Local>, Task<T>)
where
    F: AsyncFnOnce(Rc<LocalExecutor>) -> T + 'static,
{
    let (tx, mut rx) = slot::<(), Local>();
    let within = Rc::downgrade(executor);
    let task = executor.spawn(async move {
        rx.recv().await.unwrap();
        then(within.upgrade().unwrap()).await
    });
    while executor.poll() {}
    (tx, task)
}

#[test]
fn a_task_that_was_resumed_does_not_wait_for_itself() {
    let (executor, _) = shared();
    let (tx, runs) = waiting(&executor, async |executor| executor.run());
    assert_eq!(tx.send_now(()), Ok(true));
    assert_eq!(executor.block_on(runs), refused("run"));
    let (tx, blocks) = waiting(&executor, async |executor| executor.block_on(ready(1)));
    assert_eq!(tx.send_now(()), Ok(true));
    assert_eq!(executor.block_on(blocks), refused("block_on"));
    let (tx, drives) = waiting(&executor, async |executor| {
        executor.drive(|_| pending()).await
    });
    assert_eq!(tx.send_now(()), Ok(true));
    assert_eq!(executor.block_on(drives), refused("drive"));
    // Nothing is left of it: outside of tasks all of them work.
    executor.run();
    assert_eq!(executor.block_on(ready(1)), 1);
}

#[test]
fn a_fiber_that_was_resumed_does_not_wait_for_itself() {
    let (executor, within) = shared();
    let stacks = StackPool::new(StackOptions::default()).unwrap();
    let (tx, mut rx) = slot::<(), Local>();
    let fiber = stacks.fiber(move |ctx| {
        rx.recv_fiber(ctx).unwrap();
        within.upgrade().unwrap().run();
    });
    let task = executor.spawn(fiber.unwrap());
    while executor.poll() {}
    assert_eq!(tx.send_now(()), Ok(true));
    assert_eq!(executor.block_on(task), refused("run"));
}

#[test]
fn a_task_that_is_polled_does_not_wait_for_itself() {
    fn outcome<T: 'static, F>(
        call: impl FnOnce(Rc<LocalExecutor>) -> F + 'static,
    ) -> Result<T, TaskError>
    where
        F: Future<Output = T>,
    {
        let (executor, within) = shared();
        let task = executor.spawn(async move { call(within.upgrade().unwrap()).await });
        executor.block_on(task)
    }
    assert_eq!(outcome(async |executor| executor.poll()), refused("poll"));
    assert_eq!(outcome(async |executor| executor.run()), refused("run"));
    let drives = async |executor: Rc<LocalExecutor>| executor.drive(|_| pending()).await;
    assert_eq!(outcome(drives), refused("drive"));
    // Where the future is ready at once, nothing would have to wait, but it is refused as well.
    let blocks = async |executor: Rc<LocalExecutor>| executor.block_on(ready(1));
    assert_eq!(outcome(blocks), refused("block_on"));
}

/// Runs the executor when it is dropped.
struct Runs(Weak<LocalExecutor>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.upgrade().unwrap().run();
    }
}

#[test]
fn a_destructor_does_not_wait_for_its_task() {
    let (executor, within) = shared();
    let runs = Runs(within);
    let task = executor.spawn(async move {
        let _runs = runs;
        pending::<()>().await;
    });
    while executor.poll() {}
    assert!(task.cancel());
    assert_eq!(executor.block_on(task), refused("run"));
}

#[test]
fn a_task_may_run_another_core() {
    let (executor, ran) = (Rc::new(LocalExecutor::new()), Rc::new(Cell::new(0)));
    let (tx, task) = {
        let ran = Rc::clone(&ran);
        waiting(&executor, async move |_| {
            let other = LocalExecutor::new();
            let within = Rc::clone(&ran);
            other.spawn(async move { within.set(1) }).detach();
            other.run();
            ran.get() + other.block_on(ready(1))
        })
    };
    assert_eq!(tx.send_now(()), Ok(true));
    assert_eq!(executor.block_on(task), Ok(2));
}

#[test]
fn a_task_does_not_await_itself() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<Task<()>, Local>();
    let text = Rc::new(RefCell::new(String::new()));
    let message = Rc::clone(&text);
    let task = executor.spawn(async move {
        let mut own = rx.recv().await.unwrap();
        let mut poll = |context: &mut Context<'_>| {
            let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut own).poll(context)));
            polled.err()
        };
        let payload = poll_fn(|context| Poll::Ready(poll(context))).await;
        *message.borrow_mut() = *payload.unwrap().downcast::<String>().unwrap();
    });
    let id = task.id();
    while executor.poll() {}
    assert_eq!(tx.send_now(task).ok(), Some(true));
    assert_eq!(*text.borrow(), format!("task {id} awaits itself"));
    assert_eq!(executor.handle().status(id), Status::Ended);
    // Nothing is left to run, with the panic caught or not.
    let (tx, mut rx) = slot::<Task<()>, Local>();
    let task = executor.spawn(async move { rx.recv().await.unwrap().await.unwrap() });
    while executor.poll() {}
    assert_eq!(tx.send_now(task).ok(), Some(true));
    executor.run();
}

#[test]
fn a_task_gives_its_output_once() {
    let executor = LocalExecutor::new();
    let mut task = executor.spawn(async { 7 });
    assert_eq!(executor.block_on(&mut task), Ok(7));
    let payload = catch_unwind(AssertUnwindSafe(|| executor.block_on(&mut task))).unwrap_err();
    let text = format!("task {} was polled after it gave its output", task.id());
    assert_eq!(*payload.downcast::<String>().unwrap(), text);
}
