//! Where stages change hands between the caller and one worker.
//!
//! The worker gives stages back only when they have nothing left to do, so that the caller is not
//! left with events that it would have to run all at once: a last stage may wait for what
//! the caller does between two publishes. For the same reason the caller may withdraw its request.

use super::crew::{Crew, Placed};
use crate::ring::sync::{AtomicU32, Mutex, fault, lock, order};

/// Nothing in the hand-over; the worker has no stages.
pub(super) const EMPTY: u32 = 0;
/// Stages in the hand-over for the worker.
const OFFERED: u32 = 1;
/// The worker has stages.
pub(super) const HELD: u32 = 2;
/// The caller wants them back.
const RECALLED: u32 = 3;
/// Stages in the hand-over for the caller.
const RETURNED: u32 = 4;
/// There will be no more.
const CLOSED: u32 = 5;

/// The caller moves `state` on from `EMPTY`, `HELD` and `RETURNED`, the worker from `OFFERED`; from
/// `RECALLED` both do, under the lock of the tray.
pub(super) struct HandOver<T> {
    state: AtomicU32,
    tray: Mutex<Vec<Placed<T>>>,
}

impl<T> Default for HandOver<T> {
    fn default() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            tray: Mutex::new(Vec::new()),
        }
    }
}

impl<T> HandOver<T> {
    pub(super) fn state(&self) -> u32 {
        // ORDERING: Acquire (order::recalled), pairs with the Release in `set`: a worker that is
        // called sees all that its stages have to do. (The stages are under the tray's lock.)
        self.state.load(order::recalled())
    }

    fn set(&self, state: u32) {
        // ORDERING: Release (order::recall), pairs with the Acquire in `state`.
        self.state.store(state, order::recall());
    }

    /// Returns whether the worker should come to the hand_over.
    pub(super) fn has_news(&self) -> bool {
        matches!(self.state(), OFFERED | RECALLED | CLOSED)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state() == CLOSED
    }

    /// The caller gives stages away. Only where the hand_over is empty.
    pub(super) fn offer(&self, given: Vec<Placed<T>>) {
        *lock(&self.tray) = given;
        self.set(OFFERED);
    }

    /// The caller wants the stages back. Only where the worker has them, or is about to.
    pub(super) fn recall(&self) {
        self.set(RECALLED);
    }

    /// Waits for the stages, for the caller, as long as `go_on` returns `true`; returns whether
    /// they are there.
    pub(super) fn wait(&self, mut go_on: impl FnMut() -> bool) -> bool {
        while self.state() != RETURNED {
            if go_on() {
                continue;
            }
            let _tray = lock(&self.tray);
            if self.state() == RECALLED {
                self.set(HELD);
                return false;
            }
        }
        true
    }

    /// Takes the stages that are back, for the caller.
    pub(super) fn take(&self) -> Vec<Placed<T>> {
        let returned = std::mem::take(&mut *lock(&self.tray));
        self.set(EMPTY);
        returned
    }

    /// Closes the hand_over, for the caller, if it is empty; returns whether it is.
    pub(super) fn close(&self) -> bool {
        let is_empty = self.state() == EMPTY;
        if is_empty {
            self.set(CLOSED);
        }
        is_empty
    }

    /// The worker's visit.
    #[inline]
    pub(super) fn exchange(&self, crew: &mut Crew<T>) {
        match self.state() {
            OFFERED => {
                crew.extend(lock(&self.tray).drain(..));
                self.set(HELD);
            }
            RECALLED if !crew.is_undone() || fault::is("hand_over_undone") => self.give_back(crew),
            _ => {}
        }
    }

    #[cold]
    fn give_back(&self, crew: &mut Crew<T>) {
        let mut tray = lock(&self.tray);
        // The caller may have taken its request back.
        if self.state() == RECALLED {
            crew.flush();
            tray.extend(crew.split_off(0));
            self.set(RETURNED);
        }
    }
}
