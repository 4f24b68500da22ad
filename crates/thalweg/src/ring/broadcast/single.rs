//! One element on its way through a line of readers.

use super::graph::Access;
use super::{Lent, Reader};
use crate::ring::sync::{UnsafeCell, is_model_over};

/// Not an element: the readers of a line do not all stand at the same one.
pub(super) const NOWHERE: u64 = u64::MAX;

/// Readers before the only element that is there. Takes fewer instructions than `Lead`.
pub(crate) struct Single<'l, T> {
    pub(super) slot: &'l UnsafeCell<T>,
    pub(super) sequence: u64,
    pub(super) readers: &'l mut [Reader<T>],
    /// The line's.
    pub(super) at: &'l mut u64,
}

impl<T> Single<'_, T> {
    /// Calls `work(its mate, sequence, element)` for each reader, and releases it (`EACH`), or all
    /// of them when another thread looks: only where no other thread waits for them.
    ///
    /// # Panics
    /// If there are fewer `mates` than readers.
    #[inline(always)]
    pub(crate) fn lead<const EACH: bool, M>(
        self,
        mates: &mut [M],
        mut work: impl FnMut(&mut M, u64, Lent<'_, T>),
    ) {
        let (slot, sequence) = (self.slot, self.sequence);
        let mates = &mut mates[..self.readers.len()];
        let mut way = Way {
            single: self,
            passed: 0,
        };
        for (reader, mate) in way.single.readers.iter_mut().zip(mates) {
            let mut work = |element: Lent<'_, T>| work(mate, sequence, element);
            match reader.access {
                // SAFETY: as in `Hand::lend`: a closed and level line stood before this element,
                // which is below the first reader's limit, or would be if that had looked since
                // this thread published it (`Line::published`). This reader has not released it.
                Access::Look => slot.with(|slot| work(Lent::Look(unsafe { &*slot }))),
                // SAFETY: as above, and a reader that writes has it alone (rule 3).
                _ => slot.with_mut(|slot| work(Lent::Write(unsafe { &mut *slot }))),
            }
            if EACH {
                reader.release_until(sequence + 1);
            }
            way.passed += 1;
        }
        *way.single.at = sequence + 1;
        std::mem::forget(way);
    }
}

/// How far a [`Single`] has come, for a panic: there is nothing to write down without one.
struct Way<'l, T> {
    single: Single<'l, T>,
    passed: usize,
}

impl<T> Drop for Way<'_, T> {
    #[inline(always)] // else it would be in memory
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        *self.single.at = NOWHERE;
        for (at, reader) in self.single.readers.iter_mut().enumerate() {
            reader.release_until(self.single.sequence + u64::from(at < self.passed));
        }
    }
}
