//! The operations of a thread on its executor.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg::channel::{Receiver, Shape};

use crate::node::{NodeRef, Scheduler, Status, Task, TaskId};
use crate::timer::Sleep;

/// Messages that a task of `spawn_for_each` takes from its ring at a time.
const BATCH: usize = 64;

/// A handle to a [`LocalExecutor`](crate::LocalExecutor), for its tasks and other code on its
/// thread. It is `Clone` and `!Send`: other threads reach tasks by a ring
/// ([`spawn_for_each`](Self::spawn_for_each)), by a slot of the family [`Shared`](crate::Shared),
/// and by wakers. It does not keep the executor alive.
#[derive(Clone)]
pub struct Handle {
    scheduler: Rc<Scheduler>,
}

impl Handle {
    pub(crate) fn new(scheduler: Rc<Scheduler>) -> Self {
        Self { scheduler }
    }

    /// Spawns `future` as a task, which is polled when the executor is polled. Neither `future` nor
    /// its output need be `Send`. If the executor was dropped, `future` is dropped, and the task is
    /// cancelled.
    ///
    /// It allocates nothing if a task of about that size has ended before, and has left the
    /// executor's list of ready tasks (one that is cancelled while it is in the list leaves it at
    /// its turn). A future of more than 8,000 bytes, or aligned to more than 64, is allocated each
    /// time.
    pub fn spawn<F: Future + 'static>(&self, future: F) -> Task<F::Output> {
        Task::spawn(&self.scheduler, future)
    }

    /// Cancels a task; see [`Task::cancel`]. Returns whether it had neither ended nor been
    /// cancelled before, and `false` for a task of another executor.
    pub fn cancel(&self, id: TaskId) -> bool {
        self.scheduler
            .find(id)
            .is_some_and(|node| node.cancel(false))
    }

    /// Returns the present status of a task: [`Status::Ended`] if it is another executor's.
    pub fn status(&self, id: TaskId) -> Status {
        self.scheduler.status(id)
    }

    /// Returns the number of tasks that have not ended.
    pub fn task_count(&self) -> usize {
        self.scheduler.task_count()
    }

    /// Returns the present time, by the executor's clock.
    pub fn now(&self) -> Instant {
        self.scheduler.time.now()
    }

    /// Returns a future that is ready when `time` has passed: never earlier, and later by up to
    /// 16 µs and by the executor's other work, which is up to a budget of polls and what other
    /// timers wake at the same time.
    ///
    /// Costs a read of the clock, which [`sleep_until`](Self::sleep_until) does not, and a timer:
    /// some 15 ns with 10,000 others, and no allocation where as many have been under way before.
    ///
    /// # Panics
    /// The future, if another executor polls it before its time, and after the executor has gone.
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.sleep_until(self.scheduler.after(time))
    }

    /// Returns a future that is ready at the instant `at`; see [`sleep`](Self::sleep).
    ///
    /// # Panics
    /// As [`sleep`](Self::sleep).
    pub fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep::until(&self.scheduler, at)
    }

    /// Limits `future` to this time from now on, whenever it is first polled. It is polled before
    /// the time is looked at. It costs what a [`sleep`](Self::sleep) does.
    ///
    /// # Errors
    /// [`Elapsed`], from the future: it was not ready by then, and is dropped.
    ///
    /// # Panics
    /// As [`sleep`](Self::sleep).
    pub fn timeout<F: Future>(
        &self,
        time: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        let mut sleep = self.sleep(time);
        async move {
            let mut future = pin!(future);
            poll_fn(move |context| {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                Pin::new(&mut sleep).poll(context).map(|()| Err(Elapsed))
            })
            .await
        }
    }

    /// Spawns a task that calls `each` with each message of a channel, in batches: one wake-up
    /// serves all messages that have arrived. After 64 messages other tasks have their turn. The
    /// task ends when the channel is closed and empty; its output is the number of messages.
    ///
    /// `each` cannot wait. It has to deal with each error of a send: a message that comes back as
    /// [`Full`](crate::slot::SendError::Full) and is dropped is lost, and no error reports that.
    /// Where a message may have to wait for its task, receive in a loop of your own, with
    /// [`recv_async`](Receiver::recv_async).
    ///
    /// If `each` panics, the message that it had is gone; and if it panics, or the task is
    /// cancelled, by `each` too, or the executor goes, no further message is handed over. Messages
    /// that are in the channel then are dropped with the receiver, and counted as
    /// [`discarded`](thalweg::channel::Counters::discarded); senders get the error that no receiver
    /// is left.
    ///
    /// ```
    /// use thalweg_task::{LocalExecutor, Local, slot};
    ///
    /// let executor = LocalExecutor::new();
    /// let (mut tx, rx) = thalweg::channel::spsc::<(usize, u64)>(64);
    /// let (mut to, mut tasks) = (Vec::new(), Vec::new());
    /// for _ in 0..3 {
    ///     let (slot_tx, mut slot_rx) = slot::<u64, Local>();
    ///     to.push(slot_tx);
    ///     tasks.push(executor.spawn(async move { slot_rx.recv().await }));
    /// }
    /// let sum = executor.handle().spawn_for_each(rx, move |(task, value)| {
    ///     to[task].send(value).expect("one message a task");
    /// });
    /// let producer = std::thread::spawn(move || (0..3).for_each(|n| tx.send((n, 7)).unwrap()));
    /// assert_eq!(executor.block_on(sum), Ok(3));
    /// for task in tasks {
    ///     assert_eq!(executor.block_on(task), Ok(Ok(7)));
    /// }
    /// producer.join().unwrap();
    /// ```
    pub fn spawn_for_each<T, S>(
        &self,
        mut receiver: Receiver<T, S>,
        mut each: impl FnMut(T) + 'static,
    ) -> Task<u64>
    where
        T: Send + 'static,
        S: Shape + 'static,
    {
        self.spawn(async move {
            let own = poll_fn(|context| Poll::Ready(NodeRef::of(context.waker()))).await;
            let own = own.expect("it is a task of an executor");
            let (mut received, mut left) = (0, BATCH);
            while let Ok(first) = receiver.recv_async().await {
                each(first);
                let mut count = 1;
                // Messages that are not asked for stay in the channel.
                let mut batch = receiver.batch(left - 1);
                while !own.is_to_end()
                    && let Some(message) = batch.next()
                {
                    each(message);
                    count += 1;
                }
                drop(batch);
                received += count as u64;
                left -= count;
                if own.is_to_end() {
                    pending::<()>().await;
                }
                if left == 0 {
                    yield_now().await;
                    left = BATCH;
                }
            }
            received
        })
    }
}

shown!([] Handle, "Handle", this, "task_count": this.task_count());

/// The error of a future that was not ready before its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the future was not ready in its time")]
pub struct Elapsed;

/// Lets the tasks that are ready have their turn first.
pub fn yield_now() -> YieldNow {
    YieldNow { has_yielded: false }
}

/// The future of [`yield_now`].
#[must_use = "a future does nothing until it is polled"]
#[derive(Debug)]
pub struct YieldNow {
    has_yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
