//! Ids of tasks: what they name, and where.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::collections::HashSet;
use std::future::pending;

use thalweg_task::{LocalExecutor, Status, TaskError, TaskId, join_any};

#[test]
fn an_id_of_another_core_names_nothing() {
    let (first, second) = (LocalExecutor::new(), LocalExecutor::new());
    let mine = first.spawn(pending::<()>());
    let other = second.spawn(pending::<()>());
    while first.poll() || second.poll() {}
    assert_ne!(mine.id(), other.id());
    assert_eq!(first.handle().status(other.id()), Status::Ended);
    assert_eq!(second.handle().status(other.id()), Status::Waiting);
    assert!(!first.handle().cancel(other.id()), "it is not there");
    assert!(!mine.is_finished(), "the task in the same place goes on");
    assert!(second.handle().cancel(other.id()));
    assert_eq!(second.block_on(other), Err(TaskError::Cancelled));
    // Nor does one of an executor that is gone.
    let id = mine.id();
    drop(first);
    let later = LocalExecutor::new();
    let third = later.spawn(pending::<()>());
    assert!(!later.handle().cancel(id) && !third.is_finished());
    assert_eq!(mine.id(), id, "a task that is over has its id");
}

#[test]
fn tasks_of_several_cores_are_joined_by_their_ids() {
    let executors = [
        LocalExecutor::new(),
        LocalExecutor::new(),
        LocalExecutor::new(),
    ];
    let mut tasks: Vec<_> = executors
        .iter()
        .map(|executor| executor.spawn(async {}))
        .collect();
    let spawned: HashSet<TaskId> = tasks.iter().map(|task| task.id()).collect();
    executors.iter().for_each(LocalExecutor::run);
    let mut joined = HashSet::new();
    while let Some((id, outcome)) = executors[0].block_on(join_any(&mut tasks)) {
        assert_eq!(outcome, Ok(()));
        joined.insert(id);
    }
    assert_eq!((joined.len(), &joined), (3, &spawned));
}

#[test]
fn an_id_shows_its_core_its_place_and_its_generation() {
    let executor = LocalExecutor::new();
    let [first, second] = [(); 2].map(|()| executor.spawn(async {}));
    let core_number = |id: TaskId| id.to_string().split('.').next().unwrap().to_owned();
    let number = core_number(first.id());
    assert_eq!(first.id().to_string(), format!("{number}.0.0"));
    assert_eq!(second.id().to_string(), format!("{number}.1.0"));
    executor.run();
    let again = executor.spawn(async {});
    assert_eq!(again.id().to_string(), format!("{number}.1.1"));
    let other = LocalExecutor::new().spawn(async {});
    assert_ne!(core_number(other.id()), number);
    assert_eq!(size_of::<Option<TaskId>>(), 12);
}
