//! Foreign code where it may do harm: clocks, and destructors of wakers, that end tasks and
//! executors.
#![allow(clippy::waker_clone_wake)] // clones of wakers are what is tested

use std::cell::{Cell, RefCell};
use std::future::{Future, Pending, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use super::alarm::Bomb;
use thalweg_task::{LocalExecutor, Task, TaskError};
use thalweg_testkit::wakers::Alarm;

/// The timer of a runtime that is never needed.
fn never(_: Instant) -> Pending<()> {
    pending()
}

#[test]
fn a_core_ends_its_tasks_though_a_drivers_waker_panics() {
    let executor = LocalExecutor::new();
    let wakers = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&wakers);
    let task: Task<()> = executor.spawn(poll_fn(move |context| {
        *kept.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    }));
    let mut drive = executor.drive(never);
    let bomb = Waker::from(Arc::new(Bomb));
    let polled = Pin::new(&mut drive).poll(&mut Context::from_waker(&bomb));
    assert!(polled.is_pending());
    let waker = wakers.lock().unwrap().clone().unwrap();
    // The event count's clone of the driver's waker is used up.
    std::thread::spawn(move || waker.wake()).join().unwrap();
    std::mem::forget(drive);
    drop(bomb);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(executor)));
    assert!(task.is_finished());
    drop(wakers);
    drop(task);
}

#[test]
fn a_clock_may_drop_its_core() {
    let held: Rc<RefCell<Option<LocalExecutor>>> = Rc::default();
    let (executor, text) = (Rc::clone(&held), "read after that".to_owned());
    let ends = Rc::new(Cell::new(false));
    let end = Rc::clone(&ends);
    let now = Instant::now();
    let clock = move || {
        if end.get() {
            drop(executor.borrow_mut().take());
        }
        assert_eq!(text, "read after that");
        now
    };
    *held.borrow_mut() = Some(LocalExecutor::builder().clock(clock).build().unwrap());
    let task = held.borrow().as_ref().unwrap().spawn(pending::<()>());
    ends.set(true);
    let task = task.deadline(Duration::from_secs(1));
    assert!(task.is_finished());
}

/// Ends a task when it is dropped, on the task's own thread.
struct EndsTask;

std::thread_local! {
    static TO_END: RefCell<Option<(thalweg_task::Handle, thalweg_task::TaskId)>> =
        const { RefCell::new(None) };
}

impl Wake for EndsTask {
    fn wake(self: Arc<Self>) {}
}

impl Drop for EndsTask {
    fn drop(&mut self) {
        if let Some((handle, id)) = TO_END.take() {
            handle.cancel(id);
        }
    }
}

#[test]
fn a_task_that_ends_while_another_begins_to_wait_is_ready_or_wakes() {
    let executor = LocalExecutor::new();
    let mut task = pin!(executor.spawn(pending::<()>()));
    TO_END.set(Some((executor.handle(), task.id())));
    let waker = Waker::from(Arc::new(EndsTask));
    assert!(
        task.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    let (woken, waker) = Alarm::pair();
    let mut context = Context::from_waker(&waker);
    let polled = task.as_mut().poll(&mut context);
    assert!(task.is_finished());
    if polled.is_pending() {
        assert!(woken.count() > 0);
        let polled = task.as_mut().poll(&mut context);
        assert_eq!(polled, Poll::Ready(Err(TaskError::Cancelled)));
    }
}
