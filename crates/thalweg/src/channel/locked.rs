//! A queue behind a lock, that grows in segments up to a limit.
//!
//! For channels without a fixed size. The lock is a futex (the standard library's), so that a
//! thread that waits for a preempted holder sleeps and the holder runs: no spinning, and no
//! inversion of priorities. It is held for one push or pop, some 20 ns, or for a slice. Growth
//! allocates a segment and copies nothing; the last emptied one is kept for the next.

use std::collections::VecDeque;

use crate::ring::sync::{AtomicU64, Mutex, Ordering, fault, lock};
use crate::ring::{PopError, PushError};

/// Elements in a segment.
const SEGMENT: usize = 512;

/// Elements are moved under the lock, not dropped: nothing of the user's runs there.
struct State<T> {
    /// Never empty; only the last takes elements, only the first gives them.
    segments: VecDeque<VecDeque<T>>,
    spare: Option<VecDeque<T>>,
    pushed: u64,
    popped: u64,
    is_closed: bool,
}

pub(super) struct Locked<T> {
    state: Mutex<State<T>>,
    /// Elements in the queue; to be read without the lock.
    len: AtomicU64,
    limit: usize,
}

impl<T> Locked<T> {
    pub(super) fn new(limit: usize) -> Self {
        let first = VecDeque::with_capacity(limit.min(SEGMENT));
        Self {
            state: Mutex::new(State {
                segments: VecDeque::from([first]),
                spare: None,
                pushed: 0,
                popped: 0,
                is_closed: false,
            }),
            len: AtomicU64::new(0),
            limit,
        }
    }

    /// Only under the lock.
    fn set_len(&self, elements: usize) {
        // ORDERING: Relaxed; the elements are behind the lock, and a thread that sleeps is woken by
        // an event count.
        self.len.store(elements as u64, Ordering::Relaxed);
    }

    pub(super) fn try_push(&self, value: T) -> Result<(), PushError<T>> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(PushError::Closed(value));
        }
        let len = self.len();
        if len >= self.limit {
            return Err(PushError::Full(value));
        }
        state.push(value);
        self.set_len(len + 1);
        Ok(())
    }

    pub(super) fn try_pop(&self) -> Result<T, PopError> {
        self.try_pop_at().map(|(_, value)| value)
    }

    pub(super) fn try_pop_at(&self) -> Result<(u64, T), PopError> {
        let mut state = lock(&self.state);
        match state.pop() {
            Some(found) => {
                self.set_len(self.len() - 1);
                Ok(found)
            }
            None if state.is_closed => Err(PopError::Closed),
            None => Err(PopError::Empty),
        }
    }

    pub(super) fn close(&self) {
        if fault::is("locked_close") {
            return;
        }
        lock(&self.state).is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    pub(super) fn len(&self) -> usize {
        // ORDERING: Relaxed, as in `set_len`.
        self.len.load(Ordering::Relaxed) as usize
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    pub(super) fn capacity(&self) -> usize {
        self.limit
    }

    pub(super) fn popped(&self) -> u64 {
        lock(&self.state).popped
    }

    pub(super) fn pushed(&self) -> u64 {
        lock(&self.state).pushed
    }
}

impl<T> State<T> {
    fn push(&mut self, value: T) {
        let last = self.segments.back_mut();
        let last = match last {
            Some(last) if last.len() < last.capacity() => last,
            _ => {
                let fresh = self.spare.take();
                let fresh = fresh.unwrap_or_else(|| VecDeque::with_capacity(SEGMENT));
                self.segments.push_back(fresh);
                self.segments.back_mut().expect("pushed just now")
            }
        };
        last.push_back(value);
        self.pushed += 1;
    }

    fn pop(&mut self) -> Option<(u64, T)> {
        let first = self.segments.front_mut()?;
        let value = first.pop_front()?;
        if first.is_empty() && self.segments.len() > 1 {
            self.spare = self.segments.pop_front();
        }
        let position = self.popped;
        self.popped += 1;
        Some((position, value))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_grows_in_order_up_to_the_limit() {
        let store = Locked::new(3 * SEGMENT);
        (0..3 * SEGMENT).for_each(|n| store.try_push(n).unwrap());
        assert!(matches!(store.try_push(0), Err(PushError::Full(0))));
        for n in 0..3 * SEGMENT {
            assert_eq!(store.try_pop_at(), Ok((n as u64, n)));
        }
        assert_eq!(store.try_pop(), Err(PopError::Empty));
        store.close();
        assert_eq!(store.try_pop(), Err(PopError::Closed));
        assert!(matches!(store.try_push(0), Err(PushError::Closed(0))));
    }
}
