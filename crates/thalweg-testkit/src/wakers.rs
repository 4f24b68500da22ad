//! Wakers that count or panic, and the smallest executor.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Counts how often it is woken.
#[derive(Debug, Default)]
pub struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        // ORDERING: SeqCst, a test's count.
        self.0.fetch_add(1, SeqCst);
    }
}

impl Alarm {
    /// Returns one that was not woken.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns one that was not woken, and a waker for it.
    #[must_use]
    pub fn pair() -> (Arc<Self>, Waker) {
        let alarm = Self::new();
        (Arc::clone(&alarm), alarm.into())
    }

    /// Returns how often it was woken.
    #[must_use]
    pub fn count(&self) -> usize {
        // ORDERING: SeqCst, a test's count.
        self.0.load(SeqCst)
    }

    /// Polls a future with this as its waker.
    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

/// Polls a future once, with a waker that does nothing.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

/// Returns a waker that panics when it wakes.
#[must_use]
pub fn panicking() -> Waker {
    Arc::new(Panics).into()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}
