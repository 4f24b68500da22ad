//! A table that grows: another one takes over, and the old one is left in steps.

use super::{EMPTY, GONE, Index, Key, hash_in, slot_in};

/// At least two, or the new table is half full before the old one is empty.
const PLACES_PER_INSERT: usize = 8;

impl<K: Key> Index<K> {
    /// The place in the old table, and the slot.
    #[cold]
    pub(super) fn find_old(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.old.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.old[place] {
                EMPTY => return None,
                entry if entry != GONE && hash_in(entry) == hash && is_it(slot_in(entry)) => {
                    return Some((place, slot_in(entry)));
                }
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[cold]
    pub(super) fn grow(&mut self) {
        debug_assert!(self.old.is_empty());
        let doubled = vec![EMPTY; self.places.len() * 2].into();
        self.old = std::mem::replace(&mut self.places, doubled);
        self.brought = 0;
        self.limit = 0;
    }

    #[cold]
    pub(super) fn bring_over(&mut self) {
        let end = (self.brought + PLACES_PER_INSERT).min(self.old.len());
        for place in self.brought..end {
            let entry = self.old[place];
            if entry != EMPTY && entry != GONE {
                self.put(entry);
            }
        }
        self.brought = end;
        if end == self.old.len() {
            self.old = Box::default();
            self.limit = self.places.len() / 2;
        }
    }

    /// The same while another table is being left.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_left(&mut self, key: K, slot: u32) {
        self.remove_by(key, |other| other == slot);
    }

    pub(super) fn remove_by(&mut self, key: K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(key);
        let mut found = None;
        if !self.old.is_empty()
            && let Some((place, slot)) = self.find_old(hash, &is_it)
        {
            self.old[place] = GONE;
            found = Some(slot);
            if place >= self.brought {
                self.len -= 1;
                return found;
            }
        }
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let entry = self.places[place];
            if entry == EMPTY {
                return found;
            }
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                self.close(place);
                return Some(slot_in(entry));
            }
            place = (place + 1) & mask;
        }
    }
}
