//! A core as a future of another executor.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use thalweg_task::{Core, Local, slot};

/// Drives `core` beside `other` till neither goes on; gives whether the drive is over.
fn is_driven_to_the_end(core: Core, other: impl Future<Output = ()> + 'static) -> bool {
    let (mut pool, over) = (LocalPool::new(), Rc::new(Cell::new(false)));
    let told = Rc::clone(&over);
    let drive = async move {
        core.drive(|_| pending()).await;
        told.set(true);
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
    let core = Core::new();
    let task = core.spawn(pending::<()>());
    assert!(is_driven_to_the_end(core, async move {
        assert!(task.cancel());
        pending::<()>().await;
    }));
    let core = Core::new();
    let (task, handle) = (core.spawn(pending::<()>()), core.handle());
    assert!(is_driven_to_the_end(core, async move {
        assert!(handle.cancel(task.id()));
        pending::<()>().await;
    }));
}

#[test]
fn the_last_task_is_resumed_by_others_and_ends() {
    let core = Core::new();
    let (tx, mut rx) = slot::<u32, Local>();
    let task = core.spawn(async move { rx.recv().await });
    assert!(is_driven_to_the_end(core, async move {
        assert_eq!(tx.send_now(1), Ok(true));
        assert!(task.is_finished());
        pending::<()>().await;
    }));
}

#[test]
fn a_task_that_comes_while_it_waits_is_run() {
    let core = Core::new();
    let (task, handle) = (core.spawn(pending::<()>()), core.handle());
    assert!(is_driven_to_the_end(core, async move {
        assert_eq!(handle.spawn(async { 7 }).await, Ok(7));
        assert!(task.cancel());
        pending::<()>().await;
    }));
}
