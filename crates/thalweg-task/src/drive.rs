//! An executor as a future of another runtime.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use thalweg::wait::Entry;

use crate::local_executor::LocalExecutor;

/// Rounds of an executor in one poll of its future.
const ROUNDS: usize = 8;

/// The future of [`LocalExecutor::drive`].
#[must_use = "a future does nothing until it is polled"]
pub struct Drive<'c, S, Z> {
    executor: &'c LocalExecutor,
    sleep: S,
    timer: Option<(Instant, Pin<Box<Z>>)>,
    /// Where it was listed last.
    entry: Option<Entry>,
}

impl LocalExecutor {
    /// Returns a future that runs the executor within another runtime on this thread, such as
    /// tokio's `LocalSet`; it is ready when no task is left. `sleep` returns that runtime's timer
    /// for a time. Use one at a time: events wake only the future that was polled last.
    ///
    /// With tokio, in a task of a `LocalSet` or under its `block_on`:
    /// `executor.drive(|at| tokio::time::sleep_until(at.into())).await`.
    ///
    /// # Panics
    /// The future, as [`run`](Self::run), when it is polled.
    pub fn drive<S, Z>(&self, sleep: S) -> Drive<'_, S, Z>
    where
        S: FnMut(Instant) -> Z,
        Z: Future<Output = ()>,
    {
        Drive {
            executor: self,
            sleep,
            timer: None,
            entry: None,
        }
    }
}

impl<S, Z> Unpin for Drive<'_, S, Z> {}

impl<S, Z> Future for Drive<'_, S, Z>
where
    S: FnMut(Instant) -> Z,
    Z: Future<Output = ()>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.executor.assert_outside("drive");
        let scheduler = this.executor.scheduler();
        scheduler.unwatch();
        for _ in 0..ROUNDS {
            if this.executor.poll() {
                continue;
            }
            if scheduler.task_count() == 0 {
                return Poll::Ready(());
            }
            this.entry = Some(scheduler.watch(context.waker()));
            let is_time = this.poll_timer(context);
            // The clone of a waker, and the runtime's timer, may have woken or ended tasks.
            let is_idle = scheduler.ready() == 0 && scheduler.task_count() > 0;
            if !is_time && is_idle && !scheduler.hub().has_pushed() {
                return Poll::Pending;
            }
            scheduler.unwatch();
        }
        // Others of that runtime have their turn.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S, Z> Drive<'_, S, Z>
where
    S: FnMut(Instant) -> Z,
    Z: Future<Output = ()>,
{
    /// Has the runtime's timer run for the executor's next one; returns whether its time has come.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> bool {
        let Some(next) = self.executor.scheduler().next_expiry() else {
            self.timer = None;
            return false;
        };
        if !matches!(&self.timer, Some((at, _)) if *at == next) {
            self.timer = Some((next, Box::pin((self.sleep)(next))));
        }
        let (_, timer) = self.timer.as_mut().expect("set above");
        let is_time = timer.as_mut().poll(context).is_ready();
        if is_time {
            self.timer = None;
        }
        is_time
    }
}

impl<S, Z> Drop for Drive<'_, S, Z> {
    fn drop(&mut self) {
        let scheduler = self.executor.scheduler();
        if self
            .entry
            .is_some_and(|entry| scheduler.is_watched_by(entry))
        {
            scheduler.unwatch();
        }
    }
}

shown!([S, Z] Drive<'_, S, Z>, "Drive", this, "executor": this.executor);
