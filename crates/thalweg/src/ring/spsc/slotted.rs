//! The slotted core: the sequence beside the element.
//!
//! ```text
//! slot 0 | sequence u64 | element ........ | 64 bytes, or a multiple for elements over 56 bytes
//! slot 1 | sequence u64 | element ........ |
//! ```
//! Position p is published when its slot's sequence is p + 1; before that it is 0, or p + 1 −
//! slots from the lap before. Only the producer writes a slot, so a hop moves one line, once: the
//! consumer finds the element on the line it was watching, and gives slots back through the shared
//! head, which the producer reads about once a lap. This core wins latency; eight-byte elements
//! take eight times the room.

use super::super::sync::{AtomicU64, order};
use super::shared::Cell;

#[repr(C, align(64))]
pub(super) struct Slot<T> {
    sequence: AtomicU64,
    pub(super) cell: Cell<T>,
}

impl<T> Slot<T> {
    /// Makes the element at `position` visible.
    #[inline(always)]
    pub(super) fn publish(&self, position: u64) {
        // ORDERING: publish (Release), pairs with the observe in `is_published`.
        self.sequence.store(position + 1, order::publish());
    }

    #[inline(always)]
    pub(super) fn is_published(&self, position: u64) -> bool {
        // ORDERING: observe (Acquire), pairs with the publish in `publish`.
        self.sequence.load(order::observe()) == position + 1
    }
}

/// Elements that carry their own sequence.
pub(super) struct Slotted<T> {
    slots: Box<[Slot<T>]>,
}

impl<T> Slotted<T> {
    pub(super) fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let slot = |_| Slot {
            sequence: AtomicU64::new(0),
            cell: Cell::empty(),
        };
        Self {
            slots: (0..slots).map(slot).collect(),
        }
    }

    pub(super) fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// The first slot, for an endpoint's own copy.
    pub(super) fn base(&self) -> *const Slot<T> {
        self.slots.as_ptr()
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &Slot<T> {
        let index = position as usize & (self.slots.len() - 1);
        // SAFETY: masked with `len - 1`, and `len` is a power of two, so below `len`.
        unsafe { self.slots.get_unchecked(index) }
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        &self.slot(position).cell
    }

    /// Makes the positions from `start` up to `end` visible, one by one in this order.
    #[inline(always)]
    pub(super) fn publish(&self, start: u64, end: u64) {
        for position in start..end {
            self.slot(position).publish(position);
        }
    }

    #[inline(always)]
    fn is_published(&self, position: u64) -> bool {
        self.slot(position).is_published(position)
    }

    /// The position up to which elements are published, looking from `known` no further than `far`.
    #[inline(always)]
    pub(super) fn published(&self, known: u64, far: u64) -> u64 {
        let mut end = known;
        while end < far && self.is_published(end) {
            end += 1;
        }
        end
    }

    /// The same by bisection, for `len`: published positions are a prefix of the `span` after
    /// `start`, and stay published, since only the caller could release them.
    pub(super) fn published_by_bisection(&self, start: u64, span: u64) -> u64 {
        let (mut known, mut beyond) = (start, start + span);
        while known < beyond {
            let middle = known + (beyond - known) / 2;
            if self.is_published(middle) {
                known = middle + 1;
            } else {
                beyond = middle;
            }
        }
        known
    }
}
