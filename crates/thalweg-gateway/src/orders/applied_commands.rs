//! The commands that are applied, and the tasks that wait for one of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio::sync::oneshot;

use crate::lock;

#[derive(Debug, Default)]
struct Waiting {
    /// All commands below this number are applied.
    next: u64,
    /// By the number of the command that is waited for.
    tasks: BTreeMap<u64, Vec<oneshot::Sender<()>>>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct AppliedCommands(Mutex<Waiting>);

impl AppliedCommands {
    /// Returns the number below which all commands are applied.
    pub(super) fn next(&self) -> u64 {
        lock(&self.0).next
    }

    /// Wakes the tasks that wait for commands below a number, and no others.
    pub(super) fn advance(&self, next: u64) {
        let mut waiting = lock(&self.0);
        waiting.next = next;
        let later = waiting.tasks.split_off(&next);
        let reached = std::mem::replace(&mut waiting.tasks, later);
        drop(waiting);
        for task in reached.into_values().flatten() {
            let _ = task.send(());
        }
    }

    /// Waits until a command is applied.
    pub(super) async fn wait_for(&self, number: u64) {
        let reached = {
            let mut waiting = lock(&self.0);
            if waiting.next > number {
                return;
            }
            let (sender, receiver) = oneshot::channel();
            waiting.tasks.entry(number).or_default().push(sender);
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
        let applied = AppliedCommands::default();
        let [mut first, mut second] = [pin!(applied.wait_for(4)), pin!(applied.wait_for(5))];
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        applied.advance(4);
        assert!(first.as_mut().now_or_never().is_none());
        applied.advance(5);
        assert!(first.now_or_never().is_some());
        assert!(second.as_mut().now_or_never().is_none());
        applied.advance(9);
        assert!(second.now_or_never().is_some());
        assert!(applied.wait_for(8).now_or_never().is_some());
        assert!(lock(&applied.0).tasks.is_empty());
    }
}
