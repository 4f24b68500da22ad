//! Positions in a ring.
//!
//! A position is a 64-bit count of elements since the start; at 10⁹ elements a second it lasts 584
//! years, so it never wraps in practice and no code here handles a wrap. Each shared index sits on
//! a line of its own: 128 bytes, because the adjacent-line prefetcher of x86 pulls lines in pairs.
//!
//! [`fresh`] gives numbers that tie a token to where it came from.

use alloc::vec::Vec;

use super::sync::{AtomicU64, Ordering, fault};

/// How far one side of a ring has come, on its own 128-byte line.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// Reads; the caller names the ordering and its partner.
    #[inline(always)]
    pub(crate) fn load(&self, order: Ordering) -> u64 {
        // ORDERING: chosen and explained by the caller.
        self.0.load(order)
    }

    /// Writes; only the side that owns this index does.
    #[inline(always)]
    pub(crate) fn store(&self, value: u64, order: Ordering) {
        // ORDERING: chosen and explained by the caller.
        self.0.store(value, order);
    }
}

/// A figure that any thread adds to.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    pub(crate) fn add(&self, more: u64) {
        if fault::is("count_torn") {
            // ORDERING: Relaxed; wrong in any case.
            let before = self.0.load(Ordering::Relaxed);
            // ORDERING: Relaxed; wrong in any case.
            return self.0.store(before + more, Ordering::Relaxed);
        }
        // ORDERING: Relaxed; a figure.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, less: u64) {
        // ORDERING: Relaxed; a figure.
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Relaxed; a figure.
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the number that was added since the last call.
    pub(crate) fn take(&self) -> u64 {
        let now = self.get();
        if now == 0 || fault::is("unreported_kept") {
            return now;
        }
        // ORDERING: Relaxed; each is taken once, sooner or later.
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The largest capacity of a ring, in elements.
pub const CAPACITY_MAX: usize = 1 << 30;

/// A capacity that a ring can't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapacityError {
    /// The capacity that was asked for, in elements.
    pub asked: usize,
    /// The memory that can't be had for that, in bytes; 0 where `asked` itself is out of range.
    pub bytes: usize,
}

errors!(CapacityError {
    Self { asked, bytes: 0 } => "ring capacity {asked} is outside 1 to {CAPACITY_MAX} elements";
    Self { asked, bytes } => "there is no memory for {asked} elements, {bytes} bytes";
});

/// Returns the number of slots for `asked` elements: the next power of two, so that a position
/// becomes an index by a mask.
pub(crate) fn slots_for(asked: usize) -> Result<usize, CapacityError> {
    if asked == 0 || asked > CAPACITY_MAX {
        return Err(CapacityError { asked, bytes: 0 });
    }
    Ok(asked.next_power_of_two())
}

/// Checks that there is memory for that many elements in a row, of which the caller `asked` for
/// some. It allocates and frees the memory: an allocation later could report a failure only by
/// ending the process.
pub(crate) fn memory_for<E>(asked: usize, elements: usize) -> Result<(), CapacityError> {
    Vec::<E>::new()
        .try_reserve_exact(elements)
        .map_err(|_| CapacityError {
            asked,
            bytes: elements.saturating_mul(size_of::<E>()),
        })
}

/// Returns a number that this process has not given before. Also in a model, where nothing follows
/// from its value.
#[cfg(feature = "std")]
pub(crate) fn fresh() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    // ORDERING: Relaxed; a counter.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
