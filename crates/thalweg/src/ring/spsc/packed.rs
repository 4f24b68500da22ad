//! The packed core: elements side by side, one shared index for what is published.
//!
//! ```text
//! tail   | u64 ......................................| one 128-byte line
//! cells  | e0 e1 e2 e3 e4 e5 e6 e7 | e8 e9 ..        | no gaps
//! ```
//! A batch of n elements costs one store of `tail` and moves ⌈n × size / 64⌉ lines, so this core
//! wins throughput. A single hop moves two lines, the tail's and the element's.

use super::shared::Cell;

/// Elements side by side. The tail that publishes them is in `Shared`, so that an endpoint gets to
/// it without asking which core it is.
pub(super) struct Packed<T> {
    cells: Box<[Cell<T>]>,
}

impl<T> Packed<T> {
    pub(super) fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let mut cells: Box<[Cell<T>]> = (0..slots).map(|_| Cell::empty()).collect();
        prefault(&mut cells);
        Self { cells }
    }

    pub(super) fn mask(&self) -> usize {
        self.cells.len() - 1
    }

    /// The first cell, for an endpoint's own copy.
    pub(super) fn base(&self) -> *const Cell<T> {
        self.cells.as_ptr()
    }

    fn index(&self, position: u64) -> usize {
        // The cast cuts off high bits, which the mask would do as well.
        position as usize & (self.cells.len() - 1)
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        // SAFETY: `index` masks with `len - 1`, and `len` is a power of two, so it is below `len`.
        unsafe { self.cells.get_unchecked(self.index(position)) }
    }

    /// The `count` cells from `position` on, as the run up to the end of the array and the rest.
    pub(super) fn runs(&self, position: u64, count: usize) -> (&[Cell<T>], &[Cell<T>]) {
        let start = self.index(position);
        let first = count.min(self.cells.len() - start);
        (
            &self.cells[start..start + first],
            &self.cells[..count - first],
        )
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
