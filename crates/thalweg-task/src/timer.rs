//! Time for tasks: sleeping, and deadlines.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::node::{Expiry, Scheduler, Waiter};
use crate::wheel::Timer;

impl Scheduler {
    /// Returns when `after` from now is; for ever, which is some 30 years, where the clock can't
    /// say.
    pub(crate) fn after(&self, after: Duration) -> Instant {
        const EVER: Duration = Duration::from_secs(1 << 30);
        let now = self.time.now();
        now.checked_add(after).unwrap_or_else(|| now + EVER)
    }

    #[inline]
    pub(crate) fn expire_at(&self, at: Instant, expiry: Expiry) -> Timer {
        let tick = self.time.tick_after(at);
        let timer = self.wheel.borrow_mut().insert(tick, expiry);
        // Another runtime that drives this executor may have meant to sleep longer.
        self.notify_driver();
        timer
    }

    /// Wakes, and ends, what it is time for; returns whether there was anything.
    pub(crate) fn expire(&self) -> bool {
        if self.wheel.borrow().len() == 0 {
            return false;
        }
        let ticks = self.time.ticks(); // which runs foreign code
        self.wheel.borrow_mut().advance(ticks);
        let mut any = false;
        while let Some(expiry) = { self.wheel.borrow_mut().pop_expired() } {
            any = true;
            match expiry {
                Expiry::Wake(waiter) => waiter.wake(),
                Expiry::End(id) => {
                    if let Some(node) = self.find(id) {
                        node.cancel(true);
                    }
                }
            }
        }
        any
    }

    /// Empties the wheel, which is not advanced any more, and has the sleeps look that others wait
    /// for. The wheel stays: in a new one, those sleeps would name timers that are not theirs.
    pub(crate) fn end_timers(&self) {
        self.time.is_over.set(true);
        self.wheel.borrow_mut().advance(u64::MAX);
        while let Some(expiry) = { self.wheel.borrow_mut().pop_expired() } {
            if let Expiry::Wake(waiter) = expiry {
                waiter.wake();
            }
        }
    }

    /// No timer is before this.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let tick = self.wheel.borrow().next_deadline()?;
        self.time.at(tick)
    }
}

/// The future of [`Handle::sleep`](crate::Handle::sleep). Dropped, it has no timer any more.
///
/// # Panics
/// If it is polled, by another executor, before its time and after its executor is gone.
#[must_use = "a future does nothing until it is polled"]
pub struct Sleep {
    scheduler: Rc<Scheduler>,
    at: Instant,
    timer: Option<Timer>,
}

impl Sleep {
    pub(crate) fn until(scheduler: &Rc<Scheduler>, at: Instant) -> Self {
        let (scheduler, timer) = (Rc::clone(scheduler), None);
        Self {
            scheduler,
            at,
            timer,
        }
    }

    /// Returns the time at which the sleep is over.
    pub fn deadline(&self) -> Instant {
        self.at
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // An executor that is about to go still runs tasks, if another's destructor resumes them.
        if self.scheduler.time.is_over.get() {
            let is_over = self.scheduler.time.now() >= self.at;
            assert!(
                is_over,
                "the executor of this sleep is gone, and with it its timers"
            );
            return Poll::Ready(());
        }
        let Some(timer) = self.timer else {
            // By the time of the last look: the clock costs more than all the rest, and a time that
            // has passed since then is found at the next one.
            if self.at <= self.scheduler.time.last.get() {
                return Poll::Ready(());
            }
            let expiry = Expiry::Wake(Waiter::of(context.waker()));
            if self.scheduler.time.is_over.get() {
                return self.poll(context); // that was foreign code
            }
            self.timer = Some(self.scheduler.expire_at(self.at, expiry));
            return Poll::Pending;
        };
        let same = match self.scheduler.wheel.borrow_mut().get_mut(timer) {
            None => return Poll::Ready(()),
            Some(Expiry::Wake(waiter)) => waiter.is(context.waker()),
            Some(Expiry::End(_)) => unreachable!("the timer is a sleep's"),
        };
        if !same {
            let mut waiter = Waiter::of(context.waker());
            let mut wheel = self.scheduler.wheel.borrow_mut();
            let Some(Expiry::Wake(before)) = wheel.get_mut(timer) else {
                drop(wheel);
                return self.poll(context); // making the waiter, which is foreign code, took time
            };
            std::mem::swap(before, &mut waiter);
            drop(wheel);
            drop(waiter);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            let expiry = self.scheduler.wheel.borrow_mut().cancel(timer);
            drop(expiry);
        }
    }
}

shown!([] Sleep, "Sleep", this, "deadline": this.at);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::future::{Future, pending, poll_fn};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use crate::LocalExecutor;

    /// Timers that are left, after what there is to do has been done.
    fn left(executor: &LocalExecutor) -> usize {
        while executor.poll() {}
        executor.scheduler().wheel.borrow().len()
    }

    #[test]
    fn nothing_leaves_a_timer_behind() {
        let (executor, hour) = (LocalExecutor::new(), Duration::from_secs(3600));
        let handle = executor.handle();
        {
            let mut sleep = pin!(handle.sleep(hour));
            let mut context = Context::from_waker(Waker::noop());
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            assert_eq!(left(&executor), 1);
        }
        assert_eq!(left(&executor), 0, "a sleep was dropped");
        let task = executor
            .spawn(pending::<()>())
            .deadline(hour)
            .deadline(hour);
        assert_eq!(left(&executor), 1, "a deadline was replaced");
        task.cancel();
        assert_eq!(left(&executor), 0, "a task was cancelled");
        let _kept = task.deadline(hour);
        executor.spawn(async {}).deadline(hour).detach();
        assert_eq!(
            left(&executor),
            0,
            "a task ended, or was over before it had a deadline"
        );
        let within = handle.clone();
        let task = executor.spawn(async move { within.timeout(hour, async { 1 }).await });
        assert_eq!(left(&executor), 0, "a future was ready in its time");
        drop(task);
        let within = handle.clone();
        let task = executor.spawn(async move { within.timeout(hour, within.sleep(hour)).await });
        assert_eq!(left(&executor), 2);
        task.cancel();
        assert_eq!(left(&executor), 0, "a task was cancelled in a timeout");
        let task = executor.spawn(async move {
            let mut sleep = pin!(handle.timeout(hour, handle.sleep(hour)));
            poll_fn(|context| {
                assert!(sleep.as_mut().poll(context).is_ready(), "it has an hour");
                Poll::Ready(())
            })
            .await;
        });
        assert_eq!(left(&executor), 0, "a task panicked");
        drop(task);
    }
}
