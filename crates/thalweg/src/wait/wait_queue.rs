//! The waiters in order of arrival, each with its waker.

use super::let_go;
use crate::ring::sequence::fresh;
use crate::ring::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;

/// The id of one registration of a waiter with an [`EventCount`](super::EventCount), from
/// [`register`](super::EventCount::register) until it is notified or unregistered. No two
/// registrations of a process have the same id, so an old one, or one of another event count, does
/// no harm.
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

/// A queue of waiters by ascending numbers. The first and the last waiter cost the same, however
/// many wait; one that leaves from the middle moves those on its shorter side. It allocates only
/// beyond the largest number that waited at the same time.
#[derive(Debug)]
pub(crate) struct WaitQueue<E> {
    waits: VecDeque<Wait<E>>,
    /// Distinguishes this list from others.
    list: NonZeroU64,
    /// The number of waits that were listed so far, and the number of the last one.
    pub(crate) listed: u64,
}

/// The number of waits for which memory is allocated from the beginning.
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

    /// Appends a wait.
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

    /// Removes the wait at index `at`.
    pub(crate) fn take(&mut self, at: usize) -> Option<Wait<E>> {
        self.waits.remove(at)
    }

    fn find(&self, entry: Entry) -> Option<usize> {
        self.waits
            .binary_search_by_key(&entry, |wait| wait.entry)
            .ok()
    }

    /// Removes the wait of a waiter that leaves; returns `None` if it was notified.
    pub(crate) fn remove(&mut self, entry: Entry) -> Option<Wait<E>> {
        self.take(self.find(entry)?)
    }

    /// Takes the wakers of all waits, which stay listed.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Option<Waker>> {
        self.waits.iter_mut().map(|wait| wait.waker.take())
    }
}

/// Replaces the waker of a task that is polled again, if its wait is still in the queue that
/// `queue` returns from behind the lock; returns whether it is.
pub(crate) fn renew<S, E>(
    state: &Mutex<S>,
    queue: impl Fn(&mut S) -> Option<&mut WaitQueue<E>>,
    entry: Entry,
    waker: &Waker,
) -> bool {
    // User code runs outside of the lock: the clone, and below the drop of the old waker.
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
