//! Where the cells of a ring are, as its endpoints keep it.

use std::marker::PhantomData;
use std::mem::offset_of;

use super::super::prefetch::prefetch_for_writing;
use super::packed::Packed;
use super::shared::{Cell, Shared};
use super::slotted::{Slot, Slotted};

/// How far ahead the producer asks for lines, in bytes, in rings that are not larger than
/// `PREFETCHED_BYTES_MAX`: those stay in the consumer's cache from lap to lap, and a store has to
/// wait until the line is taken away from it.
const AHEAD_BYTES: usize = 8 * 64;
const PREFETCHED_BYTES_MAX: usize = 256 * 1024;

/// An endpoint's own copy of where the cells are, which never changes: one load less on the way to
/// each. Valid as long as the allocation (rule 5).
pub(super) struct View<T> {
    /// The cell of the first slot.
    base: *const u8,
    mask: usize,
    /// From one cell to the next, in bytes.
    stride: usize,
    /// How many cells ahead the producer asks for lines.
    ahead: usize,
    is_slotted: bool,
    element: PhantomData<T>,
}

impl<T> View<T> {
    pub(super) fn packed(packed: &Packed<T>) -> Self {
        let stride = size_of::<Cell<T>>();
        let mask = packed.mask();
        let is_small = mask < PREFETCHED_BYTES_MAX / stride.max(1);
        Self {
            base: packed.base().cast(),
            mask,
            stride,
            // Otherwise the line that is written anyway.
            ahead: if is_small {
                AHEAD_BYTES / stride.max(1)
            } else {
                0
            },
            is_slotted: false,
            element: PhantomData,
        }
    }

    pub(super) fn slotted(slotted: &Slotted<T>) -> Self {
        let first = slotted.base().cast::<u8>();
        Self {
            // SAFETY: within the first slot; there is at least one.
            base: unsafe { first.add(offset_of!(Slot<T>, cell)) },
            mask: slotted.mask(),
            stride: size_of::<Slot<T>>(),
            ahead: 0,
            is_slotted: true,
            element: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        let index = position as usize & self.mask;
        // SAFETY: `base` is the first of `mask + 1` cells that are `stride` bytes apart and live as
        // long as the endpoint that holds this (rule 5).
        unsafe { &*self.base.add(index * self.stride).cast::<Cell<T>>() }
    }

    /// In a packed ring, the cells of the positions from `start` up to `end`, as far as they lie
    /// side by side: at least one unless `start` is `end`. In a slotted one, none.
    #[inline(always)]
    pub(super) fn run(&self, start: u64, end: u64) -> &[Cell<T>] {
        if self.is_slotted {
            return &[];
        }
        let index = start as usize & self.mask;
        let count = ((end - start) as usize).min(self.mask + 1 - index);
        // SAFETY: `base` is the first of `mask + 1` cells side by side, which live as long as the
        // endpoint that holds this (rule 5); who may touch what is in them is for the caller.
        unsafe { std::slice::from_raw_parts(self.base.cast::<Cell<T>>().add(index), count) }
    }

    /// Writes the element at `position`, and makes it and all before it visible to the consumer.
    ///
    /// # Safety
    /// The caller is the producer and has claimed that cell (rule 2).
    // A branch for each layout: with the stride, stores would wait for the multiplication.
    #[inline(always)]
    pub(super) unsafe fn put(&self, shared: &Shared<T>, position: u64, value: T) {
        let index = position as usize & self.mask;
        if self.is_slotted {
            // SAFETY: `base` is the cell of the first of `mask + 1` slots, and was made from a
            // pointer to all of them.
            let slot = unsafe {
                let first = self.base.sub(offset_of!(Slot<T>, cell)).cast::<Slot<T>>();
                &*first.add(index)
            };
            // SAFETY: claimed, says the caller (rule 2).
            unsafe { slot.cell.write(value) };
            slot.publish(position);
        } else {
            let first = self.base.cast::<Cell<T>>();
            // SAFETY: one of `mask + 1` cells, and claimed, says the caller (rule 2).
            unsafe { (*first.add(index)).write(value) };
            prefetch_for_writing(first.wrapping_add((index + self.ahead) & self.mask));
            shared.publish_packed(position + 1);
        }
    }
}
