//! Where elements were lost, for the receiver to report.
//!
//! A gap lies before a position: its number of elements was lost there. Senders note gaps in
//! ascending order; the receiver of the element at that position or behind it takes the note. Only
//! channels that drop the newest element have notes. Where the oldest is dropped, a single receiver
//! sees the gap in the positions themselves, and several share one count of what is yet to be
//! reported.

use std::collections::VecDeque;
use std::ops::Range;

use crate::ring::CapacityError;
use crate::ring::sequence::memory_for;
use crate::ring::sync::{AtomicU64, Mutex, Ordering, lock};

/// No note at all.
const NONE: u64 = u64::MAX;

pub(super) struct Gaps {
    /// The position of the oldest note, to be read without the lock.
    first: AtomicU64,
    /// Each position with the elements lost before it, ascending; at most one per position that is
    /// not yet reported, so that capacity + 2 bounds it where there is one receiver.
    notes: Mutex<VecDeque<(u64, u64)>>,
}

/// Notes for a store that allocates as it grows.
impl Default for Gaps {
    fn default() -> Self {
        Self {
            first: AtomicU64::new(NONE),
            notes: Mutex::default(),
        }
    }
}

impl Gaps {
    /// Notes for a store of `capacity` elements, without allocating later.
    pub(super) fn new(capacity: usize) -> Result<Self, CapacityError> {
        // One more for the element that a receiver has taken and not yet asked about.
        memory_for::<(u64, u64)>(capacity, capacity + 2)?;
        let gaps = Self::default();
        lock(&gaps.notes).reserve_exact(capacity + 2);
        Ok(gaps)
    }

    /// Notes that one element was lost that would have come before `position`, asked for under the
    /// lock so that notes of several senders ascend.
    #[cold]
    pub(super) fn note(&self, position: impl FnOnce() -> u64) {
        let mut notes = lock(&self.notes);
        self.write(&mut notes, position(), 1);
    }

    fn write(&self, notes: &mut VecDeque<(u64, u64)>, position: u64, more: u64) {
        match notes.back_mut() {
            Some((last, lost)) if *last >= position => *lost += more,
            _ => notes.push_back((position, more)),
        }
        // ORDERING: Relaxed; the notes are behind the lock, and a receiver that has an element this
        // thread publishes later sees this by that.
        self.first.store(notes[0].0, Ordering::Relaxed);
    }

    /// The room at `positions` goes back by `give_back`, and elements may come there: notes behind
    /// it move before it.
    #[cold]
    pub(super) fn withdraw(&self, positions: Range<u64>, give_back: impl FnOnce()) {
        let mut notes = lock(&self.notes);
        let mut lost = 0;
        while let Some(&(before, count)) = notes.back()
            && positions.start < before
            && before <= positions.end
        {
            lost += count;
            notes.pop_back();
        }
        if lost > 0 {
            self.write(&mut notes, positions.start, lost);
        }
        give_back();
    }

    /// Returns the number of elements lost before the one at `position`, as far as they were not
    /// reported yet.
    #[inline]
    pub(super) fn take(&self, position: u64) -> u64 {
        // ORDERING: Relaxed, as in `note`.
        if self.first.load(Ordering::Relaxed) > position {
            return 0;
        }
        self.take_notes(position)
    }

    #[cold]
    fn take_notes(&self, position: u64) -> u64 {
        let mut notes = lock(&self.notes);
        let mut lost = 0;
        while let Some(&(before, count)) = notes.front()
            && before <= position
        {
            lost += count;
            notes.pop_front();
        }
        let first = notes.front().map_or(NONE, |&(before, _)| before);
        // ORDERING: Relaxed; under the lock.
        self.first.store(first, Ordering::Relaxed);
        lost
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_reported_once_with_the_first_element_behind_it() {
        let gaps = Gaps::new(4).unwrap();
        assert_eq!(gaps.take(0), 0);
        gaps.note(|| 2);
        gaps.note(|| 2);
        gaps.note(|| 5);
        assert_eq!(gaps.take(1), 0);
        assert_eq!(gaps.take(3), 2);
        assert_eq!(gaps.take(4), 0);
        assert_eq!(gaps.take(5), 1);
        assert_eq!(gaps.take(u64::MAX - 1), 0);
    }
}
