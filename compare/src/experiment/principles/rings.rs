//! Fifth principle: a ring in the article's shape, with and without each of its optimisations.
//!
//! Plain numbers in atomic slots between one producer and one consumer; no unsafe code, and no
//! claim to be fast: what counts is the difference that one change makes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::place::Line;

/// The two positions, near each other or not.
pub(super) trait Positions: Default + Send + Sync + 'static {
    fn head(&self) -> &AtomicU64;
    fn tail(&self) -> &AtomicU64;
}

/// On one line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Together {
    head: AtomicU64,
    tail: AtomicU64,
}

/// Each on its own.
#[derive(Debug, Default)]
pub(super) struct Apart {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
}

impl Positions for Together {
    fn head(&self) -> &AtomicU64 {
        &self.head
    }
    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }
}

impl Positions for Apart {
    fn head(&self) -> &AtomicU64 {
        &self.head.0
    }
    fn tail(&self) -> &AtomicU64 {
        &self.tail.0
    }
}

#[derive(Debug)]
pub(super) struct Ring<P> {
    positions: P,
    slots: Box<[AtomicU64]>,
}

impl<P: Positions> Ring<P> {
    /// # Panics
    /// If `slots` is no power of two.
    pub(super) fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots");
        let slots = (0..slots).map(|_| AtomicU64::new(0));
        Self {
            positions: P::default(),
            slots: slots.collect(),
        }
    }

    /// The ends. `IS_CACHED`: each looks at the other's position only when the one that it saw last
    /// says full or empty. Otherwise it looks each time.
    pub(super) fn ends<const IS_CACHED: bool>(
        &self,
    ) -> (Producer<'_, P, IS_CACHED>, Consumer<'_, P, IS_CACHED>) {
        let producer = Producer {
            ring: self,
            next: 0,
            head: 0,
        };
        let consumer = Consumer {
            ring: self,
            next: 0,
            tail: 0,
        };
        (producer, consumer)
    }

    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.slots[at as usize & (self.slots.len() - 1)]
    }
}

pub(super) struct Producer<'r, P, const IS_CACHED: bool> {
    ring: &'r Ring<P>,
    next: u64,
    /// The other's position, as last seen.
    head: u64,
}

impl<P: Positions, const IS_CACHED: bool> Producer<'_, P, IS_CACHED> {
    /// Writes up to so many, from `first` on, and publishes them together; says how many.
    #[inline]
    pub(super) fn push(&mut self, first: u64, max: u64) -> u64 {
        let slots = self.ring.slots.len() as u64;
        if !IS_CACHED || self.next - self.head + max > slots {
            // ORDERING: Acquire, pairs with the Release in pop(): its slots have been read.
            self.head = self.ring.positions.head().load(Ordering::Acquire);
        }
        let count = max.min(slots - (self.next - self.head));
        for at in 0..count {
            // ORDERING: Relaxed; published by the store below.
            let slot = self.ring.slot(self.next + at);
            slot.store(first + at, Ordering::Relaxed);
        }
        self.next += count;
        if count > 0 {
            // ORDERING: Release, pairs with the Acquire in pop(): the slots are written.
            let tail = self.ring.positions.tail();
            tail.store(self.next, Ordering::Release);
        }
        count
    }
}

pub(super) struct Consumer<'r, P, const IS_CACHED: bool> {
    ring: &'r Ring<P>,
    next: u64,
    /// The other's position, as last seen.
    tail: u64,
}

impl<P: Positions, const IS_CACHED: bool> Consumer<'_, P, IS_CACHED> {
    /// Takes up to so many, and releases them together; says how many.
    #[inline]
    pub(super) fn pop(&mut self, max: u64, mut each: impl FnMut(u64)) -> u64 {
        if !IS_CACHED || self.tail == self.next {
            // ORDERING: Acquire, pairs with the Release in push(): the slots are written.
            self.tail = self.ring.positions.tail().load(Ordering::Acquire);
        }
        let count = max.min(self.tail - self.next);
        for at in 0..count {
            // ORDERING: Relaxed; written before the tail that was acquired.
            let slot = self.ring.slot(self.next + at);
            each(slot.load(Ordering::Relaxed));
        }
        self.next += count;
        if count > 0 {
            // ORDERING: Release, pairs with the Acquire in push(): the slots have been read.
            let head = self.ring.positions.head();
            head.store(self.next, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order<P: Positions, const IS_CACHED: bool>(batch: u64) {
        let ring = Ring::<P>::new(8);
        let (mut tx, mut rx) = ring.ends::<IS_CACHED>();
        let (mut sent, mut taken) = (0, Vec::new());
        for _ in 0..100 {
            // Until it is full, then until it is empty.
            while tx.push(sent, batch) == batch {
                sent += batch;
            }
            let pushed = sent;
            while rx.pop(batch, |value| taken.push(value)) > 0 {}
            assert!(taken.len() as u64 >= pushed);
            sent = taken.len() as u64;
        }
        assert!(taken.len() >= 700);
        assert!(taken.iter().zip(0..).all(|(&value, at)| value == at));
    }

    #[test]
    fn every_form_keeps_order_and_never_overwrites() {
        for batch in [1, 3, 8] {
            in_order::<Together, false>(batch);
            in_order::<Together, true>(batch);
            in_order::<Apart, false>(batch);
            in_order::<Apart, true>(batch);
        }
    }
}
