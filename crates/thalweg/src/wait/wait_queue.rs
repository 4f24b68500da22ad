//! The waiters in order of arrival, each with its waker.

use super::let_go;
use crate::ring::sequence::fresh;
use crate::ring::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;

/// The id of one registration of a waiter with a [`Signal`](super::Signal), from
/// [`register`](super::Signal::register) until it is notified or unregistered. No two registrations
/// of a process have the same id, so an old one, or one of another signal, does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "a wait that is not unregistered swallows a notification"]
pub struct Entry {
    /// Not 0, so that no entry at all takes no more memory.
    list: NonZeroU64,
    number: u64,
}

#[derive(Debug)]
pub(crate) struct Wait<E> {
    pub(crate) entry: Entry,
    /// The waker, which a thread that closes the list takes.
    pub(crate) waker: Option<Waker>,
    pub(crate) element: E,
}

/// Waits by rising numbers. The first and the last waiter take the same few steps however many
/// there are; one that leaves from the middle moves those on its shorter side. Allocates only
/// beyond the largest number that ever waited together.
#[derive(Debug)]
pub(crate) struct WaitQueue<E> {
    waits: VecDeque<Wait<E>>,
    /// Distinguishes this list from others.
    list: NonZeroU64,
    /// Waits listed ever; also the number of the last one.
    pub(crate) listed: u64,
}

/// Waits for which there is room without allocating.
const WAITS_MIN: usize = 16;

impl<E> Default for WaitQueue<E> {
    fn default() -> Self {
        Self {
            waits: VecDeque::with_capacity(WAITS_MIN),
            list: NonZeroU64::MIN.saturating_add(fresh()),
            listed: 0,
        }
    }
}

impl<E> WaitQueue<E> {
    pub(crate) fn len(&self) -> usize {
        self.waits.len()
    }

    /// Lists a wait behind all others.
    pub(crate) fn push(&mut self, waker: Option<Waker>, element: E) -> Entry {
        self.listed += 1;
        let entry = Entry {
            list: self.list,
            number: self.listed,
        };
        self.waits.push_back(Wait {
            entry,
            waker,
            element,
        });
        entry
    }

    /// Returns the waiters, in order of arrival.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &Wait<E>> {
        self.waits.iter()
    }

    /// Takes the wait at this place.
    pub(crate) fn take(&mut self, at: usize) -> Option<Wait<E>> {
        self.waits.remove(at)
    }

    fn find(&self, entry: Entry) -> Option<usize> {
        self.waits
            .binary_search_by_key(&entry, |wait| wait.entry)
            .ok()
    }

    /// Takes a wait that leaves; `None` if it was taken.
    pub(crate) fn remove(&mut self, entry: Entry) -> Option<Wait<E>> {
        self.take(self.find(entry)?)
    }

    /// Takes the wakers of all; their waits stay listed.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Option<Waker>> {
        self.waits.iter_mut().map(|wait| wait.waker.take())
    }
}

/// For a task that is polled again: has `waker` woken from now on, if its wait is still in the list
/// that `queue` finds behind the lock; returns whether it is.
pub(crate) fn renew<S, E>(
    state: &Mutex<S>,
    queue: impl Fn(&mut S) -> Option<&mut WaitQueue<E>>,
    entry: Entry,
    waker: &Waker,
) -> bool {
    // Foreign code runs outside of the lock: the clone, and below the drop of the old one.
    let mut new = None;
    let is_listed = loop {
        let mut state = lock(state);
        let Some(queue) = queue(&mut state) else {
            break false;
        };
        let Some(at) = queue.find(entry) else {
            break false;
        };
        let listed = &mut queue.waits[at].waker;
        if new.is_some() {
            std::mem::swap(listed, &mut new);
            break true;
        }
        if listed.as_ref().is_some_and(|old| old.will_wake(waker)) {
            break true;
        }
        drop(state);
        new = Some(waker.clone());
    };
    let_go(new);
    is_listed
}
