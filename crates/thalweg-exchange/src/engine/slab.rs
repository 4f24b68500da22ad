//! Storage with stable `u32` slot numbers; freed slots are used again, last freed first.

use std::ops;

/// A list of this number of bytes may be copied when it grows: the time does not matter.
const SHORT_BYTES: usize = 1 << 16;
/// Entries for which a longer list has addresses at once, if they take no more than
/// [`AHEAD_BYTES`].
const AHEAD: usize = if cfg!(unix) { 1 << 24 } else { 1 << 16 };
const AHEAD_BYTES: usize = AHEAD * 64;

/// Makes room for `more` entries, so that a list that may become long is not copied while it does.
///
/// One that will not be short gets addresses for [`AHEAD`] entries: the system backs them with
/// memory page by page, when they are written for the first time. Beyond that, and where it refuses
/// that number of addresses, a list doubles, and is copied as a whole.
#[cold]
#[inline(never)]
pub(crate) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    let wanted = list.len() + more;
    let [short, most] = [SHORT_BYTES, AHEAD_BYTES].map(|bytes| bytes / size_of::<T>().max(1));
    let mut ahead = AHEAD.min(most);
    while wanted > list.capacity().max(short) && ahead >= 2 * wanted {
        if list.try_reserve_exact(ahead - list.len()).is_ok() {
            return;
        }
        ahead /= 4;
    }
    list.reserve(more);
}

/// A growing array of `T` with a free list. Freed slots keep their old value until used again.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Stores `value` and says where.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = value;
            return slot;
        }
        let slot = u32::try_from(self.entries.len())
            .ok()
            .filter(|&slot| slot != u32::MAX)
            .expect("memory for 2^32 - 1 entries runs out before their numbers do");
        if self.entries.len() == self.entries.capacity() {
            make_room(&mut self.entries, 1);
        }
        self.entries.push(value);
        slot
    }

    /// Returns the entry that is or was in a slot, if there is such a slot.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.entries.get(slot)
    }

    /// Returns the entry in a slot, or the one before it was freed; `None` outside of the list.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)
    }

    /// Returns the entry that is or was in a slot, if there is such a slot, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.entries.get_mut(slot)
    }

    /// Gives a slot back. It must not be free already.
    pub(crate) fn free(&mut self, slot: u32) {
        debug_assert!(self.free.len() > 64 || !self.free.contains(&slot));
        self.free.push(slot);
    }
}

impl<T> ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.entries[slot as usize]
    }
}

impl<T> ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.entries[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the most entries that were copied.
    fn copied<const WORDS: usize>() -> usize {
        let mut slab = Slab::<[u64; WORDS]>::default();
        let (mut most, mut room) = (0, 0);
        for at in 0..20_000 {
            slab.insert([at; WORDS]);
            if slab.entries.capacity() != room {
                most = most.max(room);
            }
            room = slab.entries.capacity();
        }
        most
    }

    #[test]
    fn a_long_list_is_not_copied_while_it_grows() {
        let bytes = [
            8 * copied::<1>(),
            64 * copied::<8>(),
            8_000 * copied::<1_000>(),
        ];
        assert!(
            bytes.iter().all(|&bytes| bytes <= SHORT_BYTES),
            "it has addresses at once: {bytes:?}"
        );
    }

    #[test]
    fn slots_are_used_again() {
        const SLOTS: u32 = 10_000;
        let mut slab = Slab::<u64>::default();
        (0..2 * SLOTS).for_each(|at| assert_eq!(slab.insert(at.into()), at));
        (0..SLOTS).for_each(|slot| slab.free(slot));
        let slots: Vec<u32> = (0..10).map(|_| slab.insert(0)).collect();
        assert!(slots.into_iter().rev().eq(SLOTS - 10..SLOTS));
        assert_eq!(slab[SLOTS / 2], u64::from(SLOTS / 2));
    }
}
