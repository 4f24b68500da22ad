//! A task's handle, with the type of what it comes to.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::frame::Outcome;
use super::{DONE, Expiry, NodeRef, OUTPUT, Scheduler, TaskId, WANTED, Waiter, waker};

/// The handle of a spawned task: a future of its result. Dropping it lets the task go on.
///
/// Awaiting it returns `Ok` with the task's output, or a [`TaskError`](crate::TaskError) if the
/// task was cancelled, missed its deadline, or panicked. The output is returned once.
///
/// # Panics
/// If it is polled after it has returned its output; and if a task awaits itself, which would wait
/// for ever. A task that waits for itself through another task, or through a future that polls with
/// a waker of its own (`FuturesUnordered`), is not detected, and waits for ever.
#[must_use = "dropped, a task goes on, but its end goes unnoticed; call `detach()`"]
pub struct Task<T> {
    node: NodeRef,
    output: PhantomData<fn() -> T>,
}

impl<T: 'static> Task<T> {
    pub(crate) fn spawn<F>(scheduler: &Rc<Scheduler>, future: F) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        let node = NodeRef::spawn(scheduler, future);
        if scheduler.is_closed() {
            node.cancel(false);
        } else {
            node.wake();
        }
        let output = PhantomData;
        Self { node, output }
    }
}

impl<T> Task<T> {
    /// Returns the id of the task, which no other of the process has; see [`TaskId`].
    pub fn id(&self) -> TaskId {
        self.node.id()
    }

    /// Returns whether it is over.
    pub fn is_finished(&self) -> bool {
        self.node.has(DONE)
    }

    /// Cancels the task: drops its future, before this returns unless the task is being polled. Its
    /// result is [`TaskError::Cancelled`](crate::TaskError::Cancelled), or `Panicked` if a
    /// destructor panics. Returns whether the task had neither ended nor been cancelled before.
    pub fn cancel(&self) -> bool {
        self.node.cancel(false)
    }

    /// Lets the task go on, and discards its output. Only the panic hook reports a panic of it.
    pub fn detach(self) {}

    /// Ends the task with [`TaskError::TimedOut`](crate::TaskError::TimedOut) if it has not ended
    /// within `after` from now. The last call counts. The task's executor must be polled for that.
    pub fn deadline(self, after: Duration) -> Self {
        let at = self.scheduler().map(|scheduler| scheduler.after(after));
        match at {
            Some(at) => self.deadline_at(at),
            None => self,
        }
    }

    /// Works as [`deadline`](Self::deadline), at a given time.
    pub fn deadline_at(self, at: Instant) -> Self {
        if let Some(scheduler) = self.scheduler() {
            let timer = scheduler.expire_at(at, Expiry::End(self.id()));
            if let Some(before) = self.node.header().timer.replace(Some(timer)) {
                scheduler.wheel.borrow_mut().cancel(before);
            }
        }
        self
    }

    /// Counted, since a clock or a driver may end the task and its executor.
    fn scheduler(&self) -> Option<Rc<Scheduler>> {
        let scheduler = self.node.header().scheduler.as_ptr().cast_const();
        // SAFETY: a task that is not over holds its scheduler, which is an `Rc`'s.
        (!self.is_finished()).then(|| unsafe {
            Rc::increment_strong_count(scheduler);
            Rc::from_raw(scheduler)
        })
    }

    #[cold]
    fn has_given(&self) -> ! {
        panic!("task {} was polled after it gave its output", self.id());
    }

    fn take(&self) -> Option<Outcome<T>> {
        if !self.node.has(OUTPUT) {
            return None;
        }
        self.node.unmark(OUTPUT);
        // SAFETY: it is there, and counts as taken from here on; its type is that of the future
        // that this task was spawned with.
        let outcome = unsafe {
            let output = (self.node.header().body.output)(self.node.0);
            output.cast::<Outcome<T>>().read()
        };
        Some(outcome)
    }
}

impl<T> Future for Task<T> {
    type Output = Outcome<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<T>> {
        if self.is_finished() {
            let outcome = self.take();
            return Poll::Ready(outcome.unwrap_or_else(|| self.has_given()));
        }
        let is_own = waker::is_of(context.waker(), &self.node);
        assert!(!is_own, "task {} awaits itself", self.id());
        let joiner = &self.node.header().joiner;
        let before = joiner.take();
        let is_same = (before.as_ref()).is_some_and(|it| it.is(context.waker()));
        joiner.set(before);
        if is_same {
            return Poll::Pending;
        }
        // Made while the one before is in its place, since that is foreign code.
        let waiter = Waiter::of(context.waker());
        drop(joiner.replace(Some(waiter)));
        if self.is_finished() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.node.unmark(WANTED);
        drop(self.node.header().joiner.take());
        if self.is_finished() {
            self.node.drop_output();
        }
    }
}

shown!([T] Task<T>, "Task", this, "id": this.id(), "is_finished": this.is_finished());
