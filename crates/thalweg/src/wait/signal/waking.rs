//! Waking the waiters that were taken off the list.

use super::Signal;
use crate::ring::sync::fault;
use crate::wait::wake;

impl Signal {
    /// Takes up to `wanted` waiters off the list, and wakes each outside of the lock.
    pub(super) fn wake(&self, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.wake_first()).count()
    }

    fn wake_first(&self) -> bool {
        let mut list = self.lock();
        let wakers = list.pop(false);
        let is_woken = wakers.is_some();
        if must_publish(is_woken) {
            self.publish(&list);
        }
        drop(list);
        wakers.into_iter().flatten().for_each(wake);
        is_woken
    }
}

/// Returns whether to signal that the list has changed: only if it has.
pub(super) fn must_publish(is_changed: bool) -> bool {
    is_changed || fault::is("publish_unchanged")
}
