//! The executor of one thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use thalweg::wait::cores::{PinError, pin_current_thread};
use thalweg::wait::{Pace, WaitMode, block};

use crate::handle::Handle;
use crate::node::{HubRef, Scheduler, Task};
use crate::time::Time;

/// Tasks that are polled before an executor looks at other threads and at the time again.
const BUDGET: usize = 128;

/// The options of a [`LocalExecutor`].
pub struct LocalExecutorBuilder {
    mode: WaitMode,
    budget: usize,
    now: Box<dyn Fn() -> Instant>,
    cores: Vec<usize>,
}

impl LocalExecutorBuilder {
    /// Sets how an idle executor waits; default [`WaitMode::Balanced`].
    pub fn mode(mut self, mode: WaitMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the budget: the number of tasks that are polled before the executor checks wake-ups by
    /// other threads, and the clock, again. The default is 128; 0 counts as 1.
    pub fn budget(mut self, tasks: usize) -> Self {
        self.budget = tasks.max(1);
        self
    }

    /// Sets the clock, such as that of a test. It must not go backwards. A thread that sleeps wakes
    /// up by the system's clock; with another clock, call [`LocalExecutor::poll`].
    pub fn clock(mut self, now: impl Fn() -> Instant + 'static) -> Self {
        self.now = Box::new(now);
        self
    }

    /// Pins the calling thread to these processors, from [`build`](Self::build) on; it stays pinned
    /// when the executor was dropped. With an empty list it is not pinned.
    pub fn pinned(mut self, cores: &[usize]) -> Self {
        self.cores = cores.to_vec();
        self
    }

    /// Returns an executor for the calling thread.
    ///
    /// # Errors
    /// [`PinError`] if the thread can't be kept on the processors that were named.
    pub fn build(self) -> Result<LocalExecutor, PinError> {
        if !self.cores.is_empty() {
            pin_current_thread(&self.cores)?;
        }
        Ok(LocalExecutor {
            scheduler: Scheduler::new(Time::new(self.now)),
            pace: RefCell::new(Pace::new(self.mode)),
            budget: self.budget,
            since_time: Cell::new(0),
            is_polling: Cell::new(false),
        })
    }
}

shown!(
    [] LocalExecutorBuilder, "LocalExecutorBuilder", this,
    "mode": this.mode, "budget": this.budget, "cores": this.cores
);

/// An executor that runs tasks on the thread that made it. Dropping it cancels all of them, with
/// [`TaskError::Cancelled`](crate::TaskError::Cancelled).
///
/// ```
/// use std::time::Duration;
/// use thalweg_task::{LocalExecutor, TaskError};
///
/// let executor = LocalExecutor::new();
/// let handle = executor.handle();
/// let slow = executor.spawn(async move { handle.sleep(Duration::from_secs(3600)).await });
/// let slow = slow.deadline(Duration::from_millis(1));
/// assert_eq!(executor.block_on(slow), Err(TaskError::TimedOut));
/// ```
pub struct LocalExecutor {
    scheduler: Rc<Scheduler>,
    pace: RefCell<Pace>,
    budget: usize,
    /// Tasks polled since the executor looked at the time.
    since_time: Cell<usize>,
    is_polling: Cell<bool>,
}

impl LocalExecutor {
    /// Returns an executor for the calling thread, as [`builder`](Self::builder) makes it by
    /// default.
    pub fn new() -> Self {
        Self::builder()
            .build()
            .expect("only pinning fails, and no core is named")
    }

    /// Returns a builder of an executor with other options.
    pub fn builder() -> LocalExecutorBuilder {
        LocalExecutorBuilder {
            mode: WaitMode::default(),
            budget: BUDGET,
            now: Box::new(Instant::now),
            cores: Vec::new(),
        }
    }

    /// Returns a handle, by which tasks and the rest of this thread use the executor.
    pub fn handle(&self) -> Handle {
        Handle::new(Rc::clone(&self.scheduler))
    }

    /// Spawns a task: see [`Handle::spawn`].
    pub fn spawn<F: Future + 'static>(&self, future: F) -> Task<F::Output> {
        Task::spawn(&self.scheduler, future)
    }

    /// Handles wake-ups by other threads and timers that are due, then polls the tasks that are
    /// ready, each once, up to the budget. It never waits. Returns whether a task was polled, is
    /// ready now, or was ended by its deadline, so `while executor.poll() {}` runs until the
    /// executor is idle.
    ///
    /// Reading the clock costs more than a few polls, so while tasks are ready it is read once per
    /// budget.
    ///
    /// # Panics
    /// If it is called while the executor is polled: in its tasks, and in functions that they call.
    /// In a task that `send_now` resumed outside of a poll, it polls the other tasks.
    pub fn poll(&self) -> bool {
        let was_polling = self.is_polling.replace(true);
        assert!(!was_polling, "{}", within_task("poll"));
        let _polling = Polling(&self.is_polling);
        let scheduler = &*self.scheduler;
        if scheduler.hub().has_pushed() {
            scheduler.take_pushed();
        }
        let is_time = scheduler.ready() == 0 || self.since_time.get() >= self.budget;
        // An end of a task by its deadline counts: it may have been the last.
        let has_expired = is_time && scheduler.expire();
        let ready = scheduler.ready().min(self.budget);
        let since_time = if is_time { 0 } else { self.since_time.get() };
        self.since_time.set(since_time + ready);
        for _ in 0..ready {
            scheduler.run_one();
        }
        has_expired || ready > 0 || scheduler.ready() > 0
    }

    /// Runs tasks until none is left. While none is ready, it waits as its [`WaitMode`] says.
    ///
    /// It does not return while a task waits for an event that never happens;
    /// [`Handle::task_count`] counts the remaining tasks, and a [`deadline`](Task::deadline) ends
    /// one.
    ///
    /// # Panics
    /// In a task of this executor, also in one that `send_now` resumed: that task would wait for
    /// itself.
    pub fn run(&self) {
        self.assert_outside("run");
        while self.scheduler.task_count() > 0 {
            if !self.poll() {
                self.idle();
            }
        }
    }

    /// Runs the executor, and `future` beside its tasks, until `future` is ready; other tasks stay
    /// as they are then. `future` may borrow. It allocates once. It does not return while `future`
    /// waits for an event that never happens.
    ///
    /// # Panics
    /// If `future` does, and as [`run`](Self::run): also where `future` is ready at once.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.assert_outside("block_on");
        let root = Arc::new(Root {
            is_woken: AtomicBool::new(true),
            hub: self.scheduler.hub().clone(),
        });
        let waker = Waker::from(Arc::clone(&root));
        let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
        loop {
            if root.take()
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                return output;
            }
            if !self.poll() && !root.is_woken() {
                self.wait(|| self.scheduler.hub().has_pushed() || root.is_woken());
            }
        }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Refuses what, in a task of this executor, waits for that task.
    pub(crate) fn assert_outside(&self, what: &str) {
        let is_within = self.is_polling.get() || self.scheduler.is_within_task();
        assert!(!is_within, "{}", within_task(what));
    }

    fn idle(&self) {
        self.wait(|| self.scheduler.hub().has_pushed());
    }

    /// Waits for `is_over`, which the hub's event count announces, or for the next timer.
    fn wait(&self, is_over: impl Fn() -> bool) {
        let hub = self.scheduler.hub();
        let until = self.scheduler.next_expiry();
        let mut pace = self.pace.borrow_mut();
        // A time that has come ends it as well.
        let _ = block(&hub.event_count, &mut pace, until, || {
            is_over().then_some(())
        });
    }
}

fn within_task(what: &str) -> String {
    format!(
        "a task of this executor called `LocalExecutor::{what}`, which would wait for it: `.await` \
         instead"
    )
}

/// An executor is being polled; not any more when this is dropped.
struct Polling<'c>(&'c Cell<bool>);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Default for LocalExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        self.scheduler.close();
    }
}

shown!(
    [] LocalExecutor, "LocalExecutor", this,
    "tasks": this.scheduler.task_count(), "ready": this.scheduler.ready()
);

/// The waker of a future that blocks its thread.
struct Root {
    is_woken: AtomicBool,
    hub: HubRef,
}

impl Root {
    fn take(&self) -> bool {
        // ORDERING: Acquire, pairs with the Release in `wake_by_ref`: what the waker did is seen.
        self.is_woken() && self.is_woken.swap(false, Ordering::Acquire)
    }

    fn is_woken(&self) -> bool {
        // ORDERING: Relaxed: `take` looks again.
        self.is_woken.load(Ordering::Relaxed)
    }
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Release, pairs with the Acquire in `take`.
        self.is_woken.store(true, Ordering::Release);
        self.hub.notify();
    }
}
