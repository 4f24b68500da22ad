//! The commands that are applied, and the tasks that wait for one of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::oneshot;

use super::lock;
use super::session::Executed;
use crate::error::ApiError;

/// The sender of a command's outcome.
type Done = oneshot::Sender<Result<Executed, ApiError>>;

/// Something that waits for a command.
#[derive(Debug)]
enum Waiter {
    Task(oneshot::Sender<()>),
    /// The receiver of a command's outcome: woken once, when its reports are applied.
    Outcome(Done, Executed),
}

impl Waiter {
    fn wake(self) {
        match self {
            Self::Task(task) => _ = task.send(()),
            Self::Outcome(done, executed) => _ = done.send(Ok(executed)),
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    /// All commands below this number are applied.
    next: u64,
    /// By the number of the command that is waited for.
    waiters: BTreeMap<u64, Vec<Waiter>>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Passed(Mutex<Waiting>);

impl Passed {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.0)
    }

    /// Returns the number below which all commands are applied.
    pub(super) fn next(&self) -> u64 {
        self.lock().next
    }

    /// Wakes the tasks that wait for commands below a number, and no others.
    pub(super) fn pass(&self, next: u64) {
        let mut waiting = self.lock();
        waiting.next = next;
        let later = waiting.waiters.split_off(&next);
        let reached = std::mem::replace(&mut waiting.waiters, later);
        drop(waiting);
        reached.into_values().flatten().for_each(Waiter::wake);
    }

    /// Sends an outcome once its command is applied.
    pub(super) fn send(&self, done: Done, executed: Executed) {
        let waiter = Waiter::Outcome(done, executed);
        let mut waiting = self.lock();
        if waiting.next > executed.0 {
            drop(waiting);
            return waiter.wake();
        }
        waiting.waiters.entry(executed.0).or_default().push(waiter);
    }

    /// Waits until a command is applied.
    pub(super) async fn reach(&self, number: u64) {
        let reached = {
            let mut waiting = self.lock();
            if waiting.next > number {
                return;
            }
            let (sender, receiver) = oneshot::channel();
            let waiter = Waiter::Task(sender);
            waiting.waiters.entry(number).or_default().push(waiter);
            receiver
        };
        let _ = reached.await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_task_is_woken_when_its_command_is_applied_and_not_before() {
        let passed = Passed::default();
        let [mut first, mut second] = [pin!(passed.reach(4)), pin!(passed.reach(5))];
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        passed.pass(4);
        assert!(first.as_mut().now_or_never().is_none());
        passed.pass(5);
        assert!(first.now_or_never().is_some());
        assert!(second.as_mut().now_or_never().is_none());
        passed.pass(9);
        assert!(second.now_or_never().is_some());
        assert!(passed.reach(8).now_or_never().is_some());
        assert!(passed.lock().waiters.is_empty());
    }

    #[test]
    fn an_outcome_is_sent_when_its_command_is_applied_and_not_before() {
        let passed = Passed::default();
        let [(first, mut one), (second, mut two)] = [oneshot::channel(), oneshot::channel()];
        let of = |number| (number, thalweg_exchange::ResultCode::Success);
        passed.send(first, of(4));
        assert!(one.try_recv().is_err());
        passed.pass(5);
        assert_eq!(one.try_recv(), Ok(Ok(of(4))));
        passed.send(second, of(4));
        assert_eq!(two.try_recv(), Ok(Ok(of(4))));
        assert!(passed.lock().waiters.is_empty());
    }
}
