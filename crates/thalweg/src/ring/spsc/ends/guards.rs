//! The guards that ends lend: room that a producer has claimed and not yet published, and elements
//! that a consumer takes together.

use core::iter::FusedIterator;

use super::{SpscConsumer, SpscProducer};
use crate::ring::panics::drop_each;

/// Publishes what was written, also when the iterator that gave it panics.
pub(super) struct CommitOnDrop<'a, T>(pub(super) SpscClaim<'a, T>);

impl<T> Drop for CommitOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.publish();
    }
}

shown!([T] SpscProducer<T>, "SpscProducer", this,
    "capacity": this.capacity(), "len": this.len(),
    "closed": this.is_closed());

/// Claimed slots of a ring: write, then [`commit`](Self::commit).
///
/// Elements are written in order. `commit` publishes those that were written, and releases the
/// other slots. A claim that is dropped without `commit` publishes nothing and drops the elements
/// that were written into it, so a panic between claim and commit leaves the ring as it was.
///
/// In a packed ring the whole batch becomes visible at once, in a slotted one element by element,
/// in order.
///
/// ```
/// use thalweg::ring::{Layout, spsc};
///
/// let (mut producer, mut consumer) = spsc(8, Layout::Slotted)?;
/// let mut claim = producer.claim(3).expect("an empty ring has room for 3");
/// claim.push(1).expect("room for 3");
/// claim.write(&[2, 3]);
/// assert_eq!(claim.commit(), 3);
/// assert_eq!(consumer.batch(8).collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
#[must_use = "a claim that is not committed publishes nothing"]
pub struct SpscClaim<'a, T> {
    producer: &'a mut SpscProducer<T>,
    len: usize,
    written: usize,
}

impl<'a, T> SpscClaim<'a, T> {
    /// The producer has at least `len` free cells at its tail.
    pub(super) fn new(producer: &'a mut SpscProducer<T>, len: usize) -> Self {
        Self {
            producer,
            len,
            written: 0,
        }
    }

    /// Returns the number of slots that were claimed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is a claim of 0 slots.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many elements can still be written.
    pub fn remaining(&self) -> usize {
        self.len - self.written
    }

    /// Writes the next element.
    ///
    /// # Errors
    /// Returns the element if all claimed slots are written.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.written == self.len {
            return Err(value);
        }
        let position = self.producer.tail + self.written as u64;
        // SAFETY: `written < len`, and the claim's `len` cells are this producer's (rule 2).
        unsafe { self.producer.view.cell(position).write(value) };
        self.written += 1;
        Ok(())
    }

    /// Writes elements from the iterator; returns whether there may be more of them.
    #[inline]
    pub(super) fn fill(&mut self, values: &mut impl Iterator<Item = T>) -> bool {
        let start = self.producer.tail;
        let end = start + self.len as u64;
        // The runs before and behind the end of the array, in a packed ring.
        for _ in 0..2 {
            for cell in self.producer.view.run(start + self.written as u64, end) {
                let Some(value) = values.next() else {
                    return false;
                };
                // SAFETY: within the claim's `len` cells, which are this producer's (rule 2).
                unsafe { cell.write(value) };
                self.written += 1;
            }
        }
        while self.written < self.len {
            let Some(value) = values.next() else {
                return false;
            };
            // There is room: `written < len`.
            let _ = self.push(value);
        }
        values.size_hint().1 != Some(0)
    }

    /// Writes the next elements, as many as the slots that are left, and returns their number.
    pub fn write(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let count = values.len().min(self.remaining());
        let mut position = self.producer.tail + self.written as u64;
        let (end, mut values) = (position + count as u64, &values[..count]);
        // The runs before and behind the end of the array, in a packed ring.
        for _ in 0..2 {
            let cells = self.producer.view.run(position, end);
            for (cell, value) in cells.iter().zip(values) {
                // SAFETY: no more than remain of the claim's cells, which are this producer's
                // (rule 2).
                unsafe { cell.write(*value) };
            }
            position += cells.len() as u64;
            values = &values[cells.len()..];
        }
        for (position, value) in (position..).zip(values) {
            // SAFETY: as above.
            unsafe { self.producer.view.cell(position).write(*value) };
        }
        self.written += count;
        count
    }

    /// Publishes the elements that were written, and returns their number.
    ///
    /// It cannot fail. If the consumer was dropped meanwhile, the elements are dropped with the
    /// ring.
    #[inline]
    pub fn commit(mut self) -> usize {
        self.publish()
    }

    /// Says that this claim may be published though the ring is closed meanwhile. The caller passes
    /// the light barrier, gives the claim up if the ring is closed, and lets go in any case.
    pub(crate) fn hold(&mut self) {
        self.producer.shared().hold(true);
    }

    /// Returns the producer; what was written and not published is dropped with the claim.
    pub(crate) fn producer(&mut self) -> &mut SpscProducer<T> {
        self.producer
    }

    /// Publishes what was written; the claim then has room for what remains.
    #[inline]
    pub(crate) fn publish(&mut self) -> usize {
        let count = self.written;
        if count > 0 {
            let start = self.producer.tail;
            let end = start + count as u64;
            self.producer.shared().publish(start, end);
            self.producer.tail = end;
            self.len -= count;
            self.written = 0;
        }
        count
    }
}

impl<T> Drop for SpscClaim<'_, T> {
    fn drop(&mut self) {
        let start = self.producer.tail;
        let end = start + core::mem::take(&mut self.written) as u64;
        if !core::mem::needs_drop::<T>() {
            return;
        }
        let shared = self.producer.shared();
        // SAFETY: written through this claim and not published, so it is ours alone, and counted as
        // gone before (rules 2 and 4).
        let take = |position| unsafe { shared.cell(position).take() };
        let mut positions = start..end;
        drop_each(|| positions.next().map(take));
    }
}

shown!([T] SpscClaim<'_, T>, "SpscClaim", this, "len": this.len, "written": this.written);

shown!([T] SpscConsumer<T>, "SpscConsumer", this,
    "capacity": this.capacity(), "len": this.len(),
    "closed": this.is_closed());

/// Elements that are being taken from a ring; see [`SpscConsumer::batch`].
///
/// Forgetting it (`std::mem::forget`) is safe, and leaks the elements that it has not given yet;
/// the room of the batch comes back with the next pop, peek or batch, also if that finds nothing.
// The whole batch is counted as taken when it is made, and what is left is counted back when it is
// dropped: a position in the batch itself can live in a register, one behind the reference is
// stored and loaded again for each element (four cycles of latency, more than all the rest).
#[must_use = "elements are taken only by iterating"]
pub struct SpscBatch<'a, T> {
    pub(super) consumer: &'a mut SpscConsumer<T>,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl<T> Iterator for SpscBatch<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let position = self.next;
        if position == self.end {
            return None;
        }
        self.next = position + 1;
        // SAFETY: seen as published (`end <= seen`), not released, and counted as taken (rules 3
        // and 4).
        Some(unsafe { self.consumer.view.cell(position).take() })
    }

    /// By runs of cells that lie side by side, where they do.
    #[inline]
    fn fold<B, F>(mut self, init: B, mut fold: F) -> B
    where
        F: FnMut(B, T) -> B,
    {
        let mut folded = init;
        // The runs before and behind the end of the array.
        for _ in 0..2 {
            for cell in self.consumer.view.run(self.next, self.end) {
                // Counted as taken before it is, should `fold` panic.
                self.next += 1;
                // SAFETY: as in `next`.
                folded = fold(folded, unsafe { cell.take() });
            }
        }
        // In a slotted ring, all of them.
        for value in self.by_ref() {
            folded = fold(folded, value);
        }
        folded
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for SpscBatch<'_, T> {}
impl<T> FusedIterator for SpscBatch<'_, T> {}

impl<T> Drop for SpscBatch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.consumer.head = self.next;
        self.consumer.shared().release(self.next);
    }
}

shown!([T] SpscBatch<'_, T>, "SpscBatch", this, "left": this.len());
