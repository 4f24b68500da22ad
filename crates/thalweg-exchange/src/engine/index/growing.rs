//! A table that grows: another one is made, takes over, and the old one is left, all in steps.

use super::{EMPTY, GONE, Index, Key, Old, hash_in, slot_in};
use crate::engine::slab::make_room;

/// A table of this number of places is made and filled at once: its 4 KiB take about a microsecond,
/// and a small book is never between two tables.
const SHORT: usize = 512;
/// Places that are made at each insertion: what is being left is never much more than half full.
const PLACES_MADE: usize = 64;
/// Places whose memory is given back at each insertion.
const PLACES_BACK: usize = 4096;
/// At least two, or the new table is half full before the old one is empty.
const PLACES_PER_INSERT: usize = 8;

impl Old {
    /// The place of a key in it, and the slot.
    #[cold]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.places[place] {
                EMPTY => return None,
                entry if entry != GONE && hash_in(entry) == hash && is_it(slot_in(entry)) => {
                    return Some((place, slot_in(entry)));
                }
                _ => place = (place + 1) & mask,
            }
        }
    }
}

impl<K: Key> Index<K> {
    /// A step to the next table: first it is made, then the old one's places come over, then its
    /// memory is given back.
    #[cold]
    pub(super) fn grow(&mut self) {
        if let Some(old) = self.old.take() {
            self.bring_over(old);
        } else if self.limit == 0 {
            self.give_back();
        } else {
            self.make_next();
        }
    }

    fn make_next(&mut self) {
        let all = 2 * self.places.len();
        if all <= SHORT {
            let next = vec![EMPTY; all].into();
            let last: Box<[u64]> = std::mem::replace(&mut self.places, next);
            let entries = last.iter().filter(|&&entry| entry != EMPTY);
            entries.for_each(|&entry| self.put(entry));
            self.limit = all / 2;
            return;
        }
        if self.spare.is_empty() {
            make_room(&mut self.spare, all);
        }
        let made = all.min(self.spare.len() + PLACES_MADE);
        self.spare.resize(made, EMPTY);
        if made == all {
            let next = std::mem::take(&mut self.spare).into();
            let places = std::mem::replace(&mut self.places, next);
            self.old = Some(Box::new(Old { places, brought: 0 }));
            self.limit = 0;
        }
    }

    fn bring_over(&mut self, mut old: Box<Old>) {
        let end = (old.brought + PLACES_PER_INSERT).min(old.places.len());
        for &entry in &old.places[old.brought..end] {
            if entry != EMPTY && entry != GONE {
                self.put(entry);
            }
        }
        old.brought = end;
        if end == old.places.len() {
            self.spare = old.places.into();
            self.give_back();
        } else {
            self.old = Some(old);
        }
    }

    fn give_back(&mut self) {
        let keep = self.spare.len().saturating_sub(PLACES_BACK);
        self.spare.truncate(keep);
        self.spare.shrink_to_fit();
        if keep == 0 {
            self.limit = self.places.len() / 2;
        }
    }

    /// Takes a key out while another table is being left, and goes a step further.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_left(&mut self, key: K, slot: u32) {
        self.remove_by(key, |other| other == slot);
        if let Some(old) = self.old.take() {
            self.bring_over(old);
        }
    }

    pub(super) fn remove_by(&mut self, key: K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(key);
        let mut found = None;
        if let Some(old) = &mut self.old
            && let Some((place, slot)) = old.find(hash, &is_it)
        {
            old.places[place] = GONE;
            found = Some(slot);
            if place >= old.brought {
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
