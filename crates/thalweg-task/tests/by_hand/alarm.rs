//! A waker that panics, and a future that is polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use thalweg_testkit::wakers::Alarm;

/// A waker that panics when the last of it is dropped.
pub(crate) struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a waker's destructor");
    }
}

pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A future that is polled by hand, and whether it was woken since.
pub(crate) struct Polled<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    alarm: Arc<Alarm>,
    heard: usize,
}

impl<T> Polled<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self {
            future: Box::pin(future),
            alarm: Arc::default(),
            heard: 0,
        }
    }

    /// Returns whether it was woken since it was polled.
    pub(crate) fn is_notified(&self) -> bool {
        self.alarm.count() != self.heard
    }

    /// Returns whether it was notified, and counts all rings so far as heard.
    pub(crate) fn heeds(&mut self) -> bool {
        let is_notified = self.is_notified();
        self.heard = self.alarm.count();
        is_notified
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.heard = self.alarm.count();
        self.alarm.poll(&mut self.future)
    }

    /// It goes to another task: polled with another waker, and the old one counts no more.
    pub(crate) fn moves(&mut self) -> Poll<T> {
        self.alarm = Arc::default();
        self.poll()
    }
}
