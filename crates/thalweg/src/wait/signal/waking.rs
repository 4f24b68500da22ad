//! Waking those who were taken off the list.

use super::Signal;
use crate::ring::sync::fault;
use crate::wait::wake;
use std::task::Waker;

/// Wakers that are taken off the list under one lock.
const BATCH: usize = 8;

impl Signal {
    /// Takes up to `wanted` waiters off the list, and wakes them outside of the lock.
    pub(super) fn wake(&self, wanted: usize) -> usize {
        let mut woken = 0;
        while woken < wanted {
            let mut batch: [Option<Waker>; BATCH] = [const { None }; BATCH];
            let taken = self.take(&mut batch, wanted - woken);
            batch.into_iter().for_each(wake);
            woken += taken;
            if taken == 0 {
                break;
            }
        }
        woken
    }

    fn take(&self, batch: &mut [Option<Waker>], wanted: usize) -> usize {
        let mut list = self.lock();
        let mut taken = 0;
        for place in batch.iter_mut().take(wanted) {
            *place = list.pop(false);
            if place.is_none() {
                break;
            }
            taken += 1;
        }
        if is_told(taken > 0) {
            self.tell(&list);
        }
        taken
    }
}

/// Whether to tell that the list has changed: only if it has.
pub(super) fn is_told(is_changed: bool) -> bool {
    is_changed || fault::is("told_unchanged")
}
