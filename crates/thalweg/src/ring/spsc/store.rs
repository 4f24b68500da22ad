//! Where the elements of a ring lie: two storage cores behind one view.
//!
//! *Packed*: elements side by side, one shared index (the tail, in `Shared`) for what is published.
//! ```text
//! tail   | u64 ......................................| one 128-byte line
//! cells  | e0 e1 e2 e3 e4 e5 e6 e7 | e8 e9 ..        | no gaps
//! ```
//! A batch of n elements costs one store of `tail` and moves ⌈n × size / 64⌉ lines, so this core
//! wins throughput. A single hop moves two lines, the tail's and the element's.
//!
//! *Slotted*: the sequence beside the element.
//! ```text
//! slot 0 | sequence u64 | element ........ | 64 bytes, or a multiple for elements over 56 bytes
//! slot 1 | sequence u64 | element ........ |
//! ```
//! Position p is published when its slot's sequence is p + 1; before that it is 0, or p + 1 −
//! slots from the lap before. Only the producer writes a slot, so a hop moves one line, once: the
//! consumer finds the element on the line it was watching, and gives slots back through the shared
//! head, which the producer reads about once a lap. This core wins latency; eight-byte elements
//! take eight times the room.

use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};

use super::super::prefetch::prefetch_for_writing;
use super::super::sync::{AtomicU64, UnsafeCell, order};
use super::Layout;
use super::shared::Shared;

/// Room for one element; which side may touch it, and when, is in the rules of `spsc`.
#[repr(transparent)]
pub(super) struct Cell<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Cell<T> {
    fn empty() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The caller is the producer and has claimed this cell (rule 2).
    #[inline(always)]
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: claimed, so no other thread reads or writes here (rule 2).
        self.0.with_mut(|cell| unsafe { (*cell).write(value) });
    }

    /// # Safety
    /// The cell holds an element that the caller alone may take, and takes once (rules 3 and 4).
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: initialised, and not written again before it is released (rule 3).
        self.0.with(|cell| unsafe { (*cell).assume_init_read() })
    }

    /// # Safety
    /// The cell holds an element, and the caller may take it but does not as long as the reference
    /// lives (rule 3).
    pub(super) unsafe fn peek(&self) -> &T {
        // SAFETY: initialised, and not written again before it is released (rule 3).
        self.0.with(|cell| unsafe { (*cell).assume_init_ref() })
    }
}

/// An element that carries its own sequence.
#[repr(C, align(64))]
pub(super) struct Slot<T> {
    sequence: AtomicU64,
    cell: Cell<T>,
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

/// How far ahead the producer asks for lines, in bytes, in rings that are not larger than
/// `PREFETCHED_BYTES_MAX`: those stay in the consumer's cache from lap to lap, and a store has to
/// wait until the line is taken away from it.
const AHEAD_BYTES: usize = 8 * 64;
const PREFETCHED_BYTES_MAX: usize = 256 * 1024;

/// Where the cells are, which never changes. Each endpoint has its own copy: one load less on the
/// way to each. Valid as long as the allocation (rule 5).
pub(super) struct View<T> {
    /// The cell of the first slot.
    base: *mut u8,
    mask: usize,
    /// From one cell to the next, in bytes.
    stride: usize,
    /// How many cells ahead the producer asks for lines.
    ahead: usize,
    pub(super) is_slotted: bool,
    element: PhantomData<T>,
}

impl<T> View<T> {
    /// Returns a copy of the view, for an endpoint.
    pub(super) fn copied(&self) -> Self {
        Self { ..*self }
    }

    /// Makes room for `slots` elements, a power of two.
    fn new(layout: Layout, slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let (base, stride) = match layout {
            Layout::Packed => {
                let mut cells: Box<[Cell<T>]> = (0..slots).map(|_| Cell::empty()).collect();
                prefault(&mut cells);
                (Box::into_raw(cells).cast::<u8>(), size_of::<Cell<T>>())
            }
            Layout::Slotted => {
                let empty = |_| Slot {
                    sequence: AtomicU64::new(0),
                    cell: Cell::empty(),
                };
                let slots: Box<[Slot<T>]> = (0..slots).map(empty).collect();
                let first = Box::into_raw(slots).cast::<u8>();
                // SAFETY: within the first slot; there is at least one.
                let base = unsafe { first.add(offset_of!(Slot<T>, cell)) };
                (base, size_of::<Slot<T>>())
            }
        };
        let is_slotted = layout == Layout::Slotted;
        let mask = slots - 1;
        let is_small = !is_slotted && mask < PREFETCHED_BYTES_MAX / stride.max(1);
        Self {
            base,
            mask,
            stride,
            // Otherwise the line that is written anyway.
            ahead: if is_small {
                AHEAD_BYTES / stride.max(1)
            } else {
                0
            },
            is_slotted,
            element: PhantomData,
        }
    }

    /// In a slotted ring.
    #[inline(always)]
    fn first_slot(&self) -> *mut Slot<T> {
        (self.base.wrapping_sub(offset_of!(Slot<T>, cell))).cast()
    }

    /// # Safety
    /// The ring is slotted.
    #[inline(always)]
    pub(super) unsafe fn slot(&self, position: u64) -> &Slot<T> {
        let index = position as usize & self.mask;
        // SAFETY: slotted, says the caller: one of `mask + 1` slots, which live as long as the
        // endpoint that holds this (rule 5).
        unsafe { &*self.first_slot().add(index) }
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
        // endpoint that holds this (rule 5); the caller decides which thread may touch their
        // content.
        unsafe { std::slice::from_raw_parts(self.base.cast::<Cell<T>>().add(index), count) }
    }

    /// Writes the element at `position`, and makes it and all before it visible to the consumer.
    ///
    /// # Safety
    /// The caller is the producer and has claimed that cell (rule 2).
    // A branch for each layout: with the stride, stores would wait for the multiplication.
    #[inline(always)]
    pub(super) unsafe fn put(&self, shared: &Shared<T>, position: u64, value: T) {
        if self.is_slotted {
            // SAFETY: just asked.
            let slot = unsafe { self.slot(position) };
            // SAFETY: claimed, says the caller (rule 2).
            unsafe { slot.cell.write(value) };
            slot.publish(position);
        } else {
            let index = position as usize & self.mask;
            let first = self.base.cast::<Cell<T>>();
            // SAFETY: one of `mask + 1` cells, and claimed, says the caller (rule 2).
            unsafe { (*first.add(index)).write(value) };
            prefetch_for_writing(first.wrapping_add((index + self.ahead) & self.mask));
            shared.publish_packed(position + 1);
        }
    }
}

/// The cells of a ring, which go with this. Elements that are in them are not dropped.
pub(super) struct Cells<T>(View<T>);

impl<T> Cells<T> {
    /// Makes room for `slots` elements, a power of two.
    pub(super) fn new(layout: Layout, slots: usize) -> Self {
        Self(View::new(layout, slots))
    }

    #[inline(always)]
    pub(super) fn view(&self) -> &View<T> {
        &self.0
    }
}

impl<T> Drop for Cells<T> {
    fn drop(&mut self) {
        let View { base, mask, .. } = self.0;
        if self.0.is_slotted {
            let slots = std::ptr::slice_from_raw_parts_mut(self.0.first_slot(), mask + 1);
            // SAFETY: made by `View::new` as a box of this number of slots, and no thread uses it
            // any more (rule 5).
            drop(unsafe { Box::from_raw(slots) });
        } else {
            let cells = std::ptr::slice_from_raw_parts_mut(base.cast::<Cell<T>>(), mask + 1);
            // SAFETY: made by `View::new` as a box of this number of cells, and no thread uses it
            // any more (rule 5).
            drop(unsafe { Box::from_raw(cells) });
        }
    }
}

/// Touches every page now, so that the first lap does not pay a page fault per 4 KiB.
#[cfg(not(loom))]
fn prefault<T>(cells: &mut [Cell<T>]) {
    const PAGE_BYTES: usize = 4096;
    let size_bytes = std::mem::size_of_val(cells);
    let start = cells.as_mut_ptr().cast::<u8>();
    for offset in (0..size_bytes).step_by(PAGE_BYTES) {
        // SAFETY: in bounds of a slice that is borrowed mutably, and its cells are empty: any byte
        // is a valid byte of an uninitialised element. Volatile, so that it is not optimised away.
        unsafe { start.add(offset).write_volatile(0) };
    }
}

#[cfg(loom)]
fn prefault<T>(_: &mut [Cell<T>]) {}
