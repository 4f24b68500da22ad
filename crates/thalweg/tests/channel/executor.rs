//! The smallest executor, and a waker that counts.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

/// Counts how often it is woken.
#[derive(Default)]
pub(crate) struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        // ORDERING: SeqCst, a test's count.
        self.0.fetch_add(1, SeqCst);
    }
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns how often it went off.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: SeqCst, a test's count.
        self.0.load(SeqCst)
    }

    /// Polls a future with this as its waker.
    pub(crate) fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}
