//! A core of `thalweg-task` as a future of tokio's, on one thread with tokio's own tasks.
//!
//! Wherever a case says that the core is idle, nothing but what the case does next can wake it: a
//! wake-up that is lost leaves the case hanging.

use std::cell::Cell;
use std::future::{Future, pending};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_task::{
    Handle, Local, LocalExecutor, Shared, Status, TaskError, TaskId, slot, yield_now,
};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs a case on a thread of tokio's, in a `LocalSet`.
fn in_tokio<F: Future>(case: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_time().build();
    LocalSet::new().block_on(&runtime.expect("a runtime of one thread"), case)
}

async fn drive(core: &LocalExecutor) {
    core.drive(|at| tokio::time::sleep_until(at.into())).await;
}

/// Lets the core run until this task of it waits. Then all of it does, if it is the only one: this
/// is called in tasks of tokio's, which run only while the core does not.
async fn idle(handle: &Handle, task: TaskId) {
    while handle.status(task) != Status::Waiting {
        tokio::task::yield_now().await;
    }
}

#[test]
fn timers_of_both_wake_tasks_of_the_core() {
    in_tokio(async {
        let (core, begin) = (LocalExecutor::new(), Instant::now());
        let handle = core.handle();
        let own = core.spawn(async move { handle.sleep(2 * MS).await });
        let foreign = core.spawn(tokio::time::sleep(3 * MS));
        let late = core.spawn(pending::<()>()).deadline(4 * MS);
        drive(&core).await;
        assert!(begin.elapsed() >= 4 * MS);
        assert_eq!((own.await, foreign.await), (Ok(()), Ok(())));
        assert_eq!(late.await, Err(TaskError::TimedOut));
    });
}

#[test]
fn another_thread_wakes_an_idle_core() {
    const ROUNDS: u64 = 200;
    in_tokio(async {
        let core = LocalExecutor::new();
        let handle = core.handle();
        let (tx, mut rx) = slot::<u64, Shared>();
        let (received, mut rounds) = tokio::sync::mpsc::unbounded_channel();
        let sum = core.spawn(async move {
            let mut sum = 0;
            for _ in 0..ROUNDS {
                received.send(()).expect("the other task counts");
                sum += rx.recv().await.expect("the thread sends");
            }
            sum
        });
        let (go, orders) = mpsc::channel();
        let id = sum.id();
        spawn_local(async move {
            while rounds.recv().await.is_some() {
                idle(&handle, id).await;
                go.send(()).expect("the thread waits");
            }
        });
        let sender = thread::spawn(move || {
            (1..=ROUNDS).for_each(|value| {
                orders.recv().expect("an order for each");
                tx.send(value)
                    .expect("the slot is empty: its receiver waits");
            });
            tx
        });
        drive(&core).await;
        assert_eq!(sum.await, Ok(ROUNDS * (ROUNDS + 1) / 2));
        sender.join().expect("it does not panic");
    });
}

#[test]
fn a_task_of_tokio_sends_while_the_core_is_idle() {
    for is_now in [false, true] {
        in_tokio(async {
            let core = LocalExecutor::new();
            let (handle, (tx, mut rx), (reply, mut answers)) =
                (core.handle(), slot::<u64, Local>(), slot::<u64, Local>());
            let squares = core.spawn(async move {
                while let Ok(value) = rx.recv().await {
                    reply.send(value * value).expect("each is taken");
                }
            });
            let id = squares.id();
            let asks = spawn_local(async move {
                for value in 0..200 {
                    idle(&handle, id).await;
                    if is_now {
                        assert_eq!(tx.send_now(value), Ok(true));
                        assert_eq!(answers.try_recv(), Ok(value * value));
                    } else {
                        tx.send(value).expect("the slot is empty");
                        // Here a slot wakes a task of tokio's.
                        assert_eq!(answers.recv().await, Ok(value * value));
                    }
                }
            });
            drive(&core).await; // until the other task drops its end
            asks.await.expect("it does not panic");
            assert_eq!(squares.await, Ok(()));
        });
    }
}

#[test]
fn an_idle_core_hears_of_earlier_times_and_new_tasks() {
    in_tokio(async {
        let core = LocalExecutor::new();
        let handle = core.handle();
        let sleeps = handle.clone();
        let long = core.spawn(async move { sleeps.sleep(HOUR).await });
        let id = long.id();
        let earlier = spawn_local(async move {
            idle(&handle, id).await;
            // A timer that is set here, outside of the core, and waited for here.
            handle.sleep(MS).await;
            idle(&handle, id).await;
            let begins = handle.spawn(async { 7 });
            assert_eq!(begins.await, Ok(7));
            idle(&handle, id).await;
            let late = handle.spawn(pending::<()>()).deadline(MS);
            assert_eq!(late.await, Err(TaskError::TimedOut));
            idle(&handle, id).await;
            assert!(handle.cancel(id));
        });
        drive(&core).await;
        earlier.await.expect("it does not panic");
        assert_eq!(long.await, Err(TaskError::Cancelled));
    });
}

#[test]
fn a_drive_ends_with_the_last_task_wherever_that_ends() {
    for is_cancelled in [false, true] {
        in_tokio(async {
            let core = LocalExecutor::new();
            let handle = core.handle();
            let (tx, mut rx) = slot::<u64, Local>();
            let task = core.spawn(async move { rx.recv().await });
            let id = task.id();
            let ends = spawn_local(async move {
                idle(&handle, id).await;
                if is_cancelled {
                    assert!(handle.cancel(id));
                } else {
                    assert_eq!(tx.send_now(7), Ok(true));
                }
                tx
            });
            drive(&core).await;
            let tx = ends.await.expect("it does not panic");
            let outcome = task.await;
            assert_eq!(
                outcome == Err(TaskError::Cancelled),
                is_cancelled,
                "{outcome:?}"
            );
            drop(tx);
        });
    }
}

#[test]
fn what_wakes_tasks_while_nobody_drives_is_not_lost() {
    in_tokio(async {
        let core = LocalExecutor::new();
        let handle = core.handle();
        let (tx, mut rx) = slot::<u64, Shared>();
        let task = core.spawn(async move {
            let first = rx.recv().await.expect("sent by a thread");
            handle.sleep(MS).await;
            first + rx.recv().await.expect("sent from here")
        });
        for round in 0..3 {
            tokio::select! {
                biased;
                () = drive(&core) => panic!("the task waits for a value"),
                () = tokio::time::sleep(2 * MS) => {}
            }
            assert!(!task.is_finished());
            if round == 0 {
                let tx = &tx;
                thread::scope(|scope| scope.spawn(move || tx.send(40)).join().is_ok());
            }
        }
        tx.send(2).expect("the task waits for it");
        drive(&core).await;
        assert_eq!(task.await, Ok(42));
    });
}

#[test]
fn a_busy_core_lets_others_have_their_turn() {
    in_tokio(async {
        let core = LocalExecutor::new();
        let is_enough = Rc::new(Cell::new(false));
        let within = Rc::clone(&is_enough);
        let busy = core.spawn(async move {
            while !within.get() {
                yield_now().await;
            }
        });
        spawn_local(async move {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            is_enough.set(true);
        });
        drive(&core).await;
        assert_eq!(busy.await, Ok(()));
    });
}

#[test]
fn a_core_that_goes_tells_those_who_wait_for_its_tasks() {
    in_tokio(async {
        let core = LocalExecutor::new();
        let task = core.spawn(pending::<()>());
        let (handle, id) = (core.handle(), task.id());
        let driven = spawn_local(async move { drive(&core).await });
        let waits = spawn_local(task);
        idle(&handle, id).await;
        driven.abort(); // and the core with it
        assert_eq!(waits.await.expect("no panic"), Err(TaskError::Cancelled));
    });
}
