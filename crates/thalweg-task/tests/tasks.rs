//! Tasks: their ends, ids, deadlines, panics, wakers and executors.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![allow(clippy::waker_clone_wake)] // clones of wakers are what is tested
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_task::{
    Local, LocalExecutor, Status, TaskError, join_all, join_any, join_some, slot, yield_now,
};

fn settle(executor: &LocalExecutor) {
    while executor.poll() {}
}

/// Counts what is alive.
#[derive(Clone)]
struct Alive(Rc<Cell<i64>>);

impl Alive {
    fn new(count: &Rc<Cell<i64>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[test]
fn a_task_gives_its_output() {
    let executor = LocalExecutor::new();
    let text = executor.spawn(async { "done".to_owned() });
    assert!(!text.is_finished());
    assert_eq!(executor.block_on(text), Ok("done".to_owned()));
    executor.run();
}

#[test]
fn a_task_sees_itself_running() {
    let executor = LocalExecutor::new();
    let handle = executor.handle();
    let id = Rc::new(Cell::new(None));
    let within = Rc::clone(&id);
    let task = executor.spawn(async move { handle.status(within.get().expect("set before")) });
    id.set(Some(task.id()));
    assert_eq!(executor.block_on(task), Ok(Status::Running));
}

#[test]
fn a_task_that_cancels_itself_ends_after_its_poll() {
    let executor = LocalExecutor::new();
    let handle = executor.handle();
    let id = Rc::new(Cell::new(None));
    let within = Rc::clone(&id);
    let task = executor.spawn(async move {
        assert!(handle.cancel(within.get().expect("set before")));
        assert!(!handle.cancel(within.get().expect("set before")));
        pending::<()>().await;
    });
    id.set(Some(task.id()));
    assert_eq!(executor.block_on(task), Err(TaskError::Cancelled));

    // One that is over by the end of that poll has its output.
    let handle = executor.handle();
    let id = Rc::new(Cell::new(None));
    let within = Rc::clone(&id);
    let task = executor.spawn(async move { handle.cancel(within.get().expect("set before")) });
    id.set(Some(task.id()));
    assert_eq!(executor.block_on(task), Ok(true));
}

#[test]
fn a_panic_ends_its_task_only() {
    let executor = LocalExecutor::new();
    let text = executor.spawn(async { panic!("number {}", 7) });
    let literal = executor.spawn(async { panic!("a literal") });
    let other = executor.spawn(async { std::panic::panic_any(7_u8) });
    let well = executor.spawn(async { 1 });
    let ((), panicked): ((), fn(&str) -> TaskError) =
        ((), |text| TaskError::Panicked(text.to_owned()));
    assert_eq!(executor.block_on(text), Err::<(), _>(panicked("number 7")));
    assert_eq!(
        executor.block_on(literal),
        Err::<(), _>(panicked("a literal"))
    );
    assert_eq!(
        executor.block_on(other),
        Err::<(), _>(panicked("a value that is no text"))
    );
    assert_eq!(executor.block_on(well), Ok(1));
    let message = TaskError::Panicked("number 7".to_owned()).to_string();
    assert_eq!(message, "the task panicked: number 7");
    assert_eq!(TaskError::Cancelled.to_string(), "the task was cancelled");
    assert_eq!(
        TaskError::TimedOut.to_string(),
        "the task was not over at its deadline"
    );
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on the way out");
    }
}

#[test]
fn a_destructor_that_panics_ends_its_task_only() {
    let executor = LocalExecutor::new();
    let task = executor.spawn(async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    settle(&executor);
    assert!(task.cancel());
    let expected = TaskError::Panicked("on the way out".to_owned());
    assert_eq!(executor.block_on(task), Err(expected.clone()));
    let task = executor.spawn(async {
        let _bomb = Bomb;
    });
    assert_eq!(executor.block_on(task), Err(expected));
    // An output that is not wanted, and a task that the executor ends.
    executor.spawn(async { Bomb }).detach();
    settle(&executor);
    let left = executor.spawn(async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    settle(&executor);
    drop(executor);
    assert!(left.is_finished());
}

#[test]
fn a_core_that_goes_ends_its_tasks() {
    let alive = Rc::new(Cell::new(0));
    let executor = LocalExecutor::new();
    let handle = executor.handle();
    let mut tasks = Vec::new();
    for n in 0..10 {
        let (held, handle) = (Alive::new(&alive), executor.handle());
        tasks.push(executor.spawn(async move {
            let _held = held;
            if n > 4 {
                handle.sleep(Duration::from_secs(3600)).await;
            }
            pending::<()>().await;
        }));
        if n == 7 {
            settle(&executor);
        }
    }
    drop(executor);
    assert_eq!(alive.get(), 0);
    for task in tasks {
        assert!(task.is_finished());
        assert_eq!(futures::executor::block_on(task), Err(TaskError::Cancelled));
    }
    let late = handle.spawn(async { 1 });
    assert_eq!(futures::executor::block_on(late), Err(TaskError::Cancelled));
    assert_eq!(handle.task_count(), 0);
}

#[test]
fn a_core_that_is_dropped_by_its_own_task_ends_after_the_poll() {
    let executor = Rc::new(RefCell::new(Some(LocalExecutor::new())));
    let (tx, mut rx) = slot::<(), Local>();
    let alive = Rc::new(Cell::new(0));
    let (held, within) = (Alive::new(&alive), Rc::clone(&executor));
    let spawned = executor.borrow().as_ref().unwrap().spawn(async move {
        let _held = held;
        rx.recv().await.unwrap();
        drop(within.borrow_mut().take());
        pending::<()>().await;
    });
    settle(executor.borrow().as_ref().unwrap());
    // The executor is not being polled: the task runs within this call.
    assert_eq!(tx.send_now(()), Ok(true));
    assert!(executor.borrow().is_none());
    assert_eq!(alive.get(), 0);
    assert_eq!(
        futures::executor::block_on(spawned),
        Err(TaskError::Cancelled)
    );
}

#[test]
fn wakers_of_a_task_outlive_it_and_its_core() {
    let executor = LocalExecutor::new();
    let kept: Rc<RefCell<Vec<Waker>>> = Rc::default();
    for round in 0..3 {
        let keep = Rc::clone(&kept);
        let task = executor.spawn(poll_fn(move |context: &mut Context<'_>| {
            keep.borrow_mut().push(context.waker().clone());
            Poll::Ready(round)
        }));
        assert_eq!(executor.block_on(task), Ok(round));
    }
    let wakers = kept.take();
    for waker in &wakers {
        waker.wake_by_ref();
    }
    assert!(!executor.poll());
    let threads: Vec<_> = wakers
        .into_iter()
        .map(|waker| {
            std::thread::spawn(move || {
                for _ in 0..100 {
                    waker.clone().wake();
                }
                waker
            })
        })
        .collect();
    settle(&executor);
    drop(executor);
    for thread in threads {
        thread.join().unwrap().wake();
    }
}

#[test]
fn a_waker_is_lent_to_a_scoped_thread() {
    let executor = LocalExecutor::new();
    let task = executor.spawn(async {
        let mut polls = 0;
        poll_fn(move |context: &mut Context<'_>| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(polls);
            }
            let waker: &Waker = context.waker();
            std::thread::scope(|scope| {
                scope.spawn(|| waker.wake_by_ref());
                scope.spawn(|| waker.clone().wake());
            });
            Poll::Pending
        })
        .await
    });
    assert_eq!(executor.block_on(task), Ok(3));
}

#[test]
fn futures_move_between_cores() {
    let (first, second) = (LocalExecutor::new(), LocalExecutor::new());
    let (tx, mut rx) = slot::<u32, Local>();
    let mut moved: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move { rx.recv().await });
    let began = first.spawn(poll_fn(move |context| {
        assert!(moved.as_mut().poll(context).is_pending());
        Poll::Ready(std::mem::replace(&mut moved, Box::pin(pending())))
    }));
    let moved = first.block_on(began).unwrap();
    let task = second.spawn(moved);
    settle(&second);
    drop(first);
    tx.send(7).unwrap();
    assert_eq!(second.block_on(task), Ok(Ok(7)));
}

#[test]
fn joins_wait_for_as_many_as_they_say() {
    let executor = LocalExecutor::new();
    let spawn = |n: usize| {
        executor.spawn(async move {
            for _ in 0..n {
                yield_now().await;
            }
            n
        })
    };
    let outcomes = executor.block_on(join_all([3, 1, 2].map(spawn)));
    assert_eq!(outcomes, [Ok(3), Ok(1), Ok(2)]);
    let mut tasks: Vec<_> = [5, 1, 9].map(spawn).into();
    let first = executor.block_on(join_any(&mut tasks)).unwrap();
    assert_eq!((first.1, tasks.len()), (Ok(1), 2));
    let more = executor.block_on(join_some(&mut tasks, 7));
    assert_eq!(
        more.into_iter()
            .map(|(_, outcome)| outcome)
            .collect::<Vec<_>>(),
        [Ok(5), Ok(9)]
    );
    assert_eq!(executor.block_on(join_any(&mut tasks)), None);
}

/// A clock that stands until it is moved.
fn hand_driven() -> (LocalExecutor, Rc<Cell<Instant>>) {
    let now = Rc::new(Cell::new(Instant::now()));
    let read = Rc::clone(&now);
    let executor = LocalExecutor::builder()
        .clock(move || read.get())
        .build()
        .unwrap();
    (executor, now)
}

#[test]
fn a_timeout_drops_what_was_late() {
    let (executor, now) = hand_driven();
    let alive = Rc::new(Cell::new(0));
    let (held, handle) = (Alive::new(&alive), executor.handle());
    let task = executor.spawn(async move {
        let late = handle.timeout(Duration::from_secs(1), async move {
            let _held = held;
            pending::<()>().await;
        });
        let late = late.await;
        (late, handle.timeout(Duration::ZERO, async { 5 }).await)
    });
    settle(&executor);
    assert_eq!(alive.get(), 1);
    now.set(now.get() + Duration::from_secs(2));
    settle(&executor);
    assert_eq!(alive.get(), 0);
    let (late, soon) = executor.block_on(task).unwrap();
    assert_eq!(
        late.unwrap_err().to_string(),
        "the future was not ready in its time"
    );
    assert_eq!(soon, Ok(5));
}

#[test]
fn a_sleeping_core_wakes_by_its_timer() {
    let executor = LocalExecutor::new();
    let handle = executor.handle();
    let (time, begin) = (Duration::from_millis(3), Instant::now());
    executor
        .spawn(async move { handle.sleep(time).await })
        .detach();
    executor.run();
    assert!(begin.elapsed() >= time);
}

#[test]
fn each_message_reaches_its_task() {
    let executor = LocalExecutor::new();
    let (mut tx, rx) = thalweg::channel::spsc::<(usize, u64)>(128);
    let sums: Vec<Rc<Cell<u64>>> = (0..16).map(|_| Rc::default()).collect();
    let mut slots = Vec::new();
    for sum in &sums {
        let (slot_tx, mut slot_rx) = slot::<u64, Local>();
        let sum = Rc::clone(sum);
        executor
            .spawn(async move {
                while let Ok(value) = slot_rx.recv().await {
                    sum.set(sum.get() + value);
                }
            })
            .detach();
        slots.push(slot_tx);
    }
    let fed = executor.handle().spawn_for_each(rx, move |(task, value)| {
        slots[task]
            .send_now(value)
            .expect("it runs, and takes the value");
    });
    settle(&executor);
    let producer = std::thread::spawn(move || {
        for n in 0..16_000_u64 {
            tx.send(((n % 16) as usize, n))
                .expect("its receiver is there");
        }
    });
    assert_eq!(executor.block_on(fed), Ok(16_000));
    producer.join().unwrap();
    for (task, sum) in sums.iter().enumerate() {
        assert_eq!(
            sum.get(),
            (0..16_000).filter(|n| n % 16 == task as u64).sum::<u64>()
        );
    }
}
