//! Waiting for several tasks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::TaskError;
use crate::node::{Task, TaskId};

/// The id of a task that has ended, and its result.
pub type Joined<T> = (TaskId, Result<T, TaskError>);

/// Waits for all tasks, and returns their results in the given order. All of them run meanwhile,
/// and an error of one does not end the wait. Not cancel-safe: dropping the future drops the
/// outputs that it has collected; the tasks go on. It costs one wake-up per task at most.
pub async fn join_all<T>(tasks: impl IntoIterator<Item = Task<T>>) -> Vec<Result<T, TaskError>> {
    let tasks = tasks.into_iter();
    let mut outcomes = Vec::with_capacity(tasks.size_hint().0);
    for task in tasks {
        outcomes.push(task.await);
    }
    outcomes
}

/// Waits until a task has ended, and removes it from `tasks`; if several have, the first in the
/// list. Returns `None` if `tasks` is empty. The others go on. Cancel-safe. Each wake-up checks all
/// tasks.
pub async fn join_any<T>(tasks: &mut Vec<Task<T>>) -> Option<Joined<T>> {
    join_some(tasks, 1).await.pop()
}

/// Waits until `count` tasks, or all if there are fewer, have ended; removes them from `tasks`, and
/// returns them in its order. The others go on, and keep their order. Cancel-safe. Each wake-up
/// checks all tasks.
///
/// ```
/// use thalweg_task::{LocalExecutor, join_some, yield_now};
///
/// let executor = LocalExecutor::new();
/// let mut tasks = Vec::new();
/// for n in 0..3 {
///     tasks.push(executor.spawn(async move {
///         for _ in n..3 {
///             yield_now().await;
///         }
///         n
///     }));
/// }
/// let first: Vec<_> = executor.block_on(join_some(&mut tasks, 2));
/// assert_eq!(first.into_iter().map(|(_, outcome)| outcome).collect::<Vec<_>>(), [Ok(1), Ok(2)]);
/// assert_eq!(executor.block_on(join_some(&mut tasks, 2)).len(), 1);
/// ```
pub async fn join_some<T>(tasks: &mut Vec<Task<T>>, count: usize) -> Vec<Joined<T>> {
    let count = count.min(tasks.len());
    poll_fn(|context| {
        let over = tasks.iter().filter(|task| task.is_finished()).count();
        if over < count {
            for task in tasks.iter_mut().filter(|task| !task.is_finished()) {
                let _ = Pin::new(task).poll(context);
            }
            return Poll::Pending;
        }
        Poll::Ready(take(tasks, count, context))
    })
    .await
}

/// Takes the first `count` that are over out of the list.
fn take<T>(tasks: &mut Vec<Task<T>>, count: usize, context: &mut Context<'_>) -> Vec<Joined<T>> {
    let mut joined = Vec::with_capacity(count);
    let over = tasks.extract_if(.., |task| task.is_finished());
    for mut task in over.take(count) {
        if let Poll::Ready(outcome) = Pin::new(&mut task).poll(context) {
            joined.push((task.id(), outcome));
        }
    }
    joined
}
