//! From a 64-bit id to the slot where the thing lives.
//!
//! *State*: an open-addressing table of `u32` slots, linear probing, at most half full; the key
//! stays in the thing itself and is read through the caller's `key_of`.
//! *Why keyed*: ids come from clients. The hash is a folded multiplication with two secret words,
//! so that nobody can choose ids that collide. The secrets are drawn per table; nothing visible
//! depends on them, because no result ever follows the order of the table.
//! *Growing in steps*: a table of twice the size takes over at once, and each later insertion
//! brings eight places of the old one over, so that none waits for them all. Until that is done a
//! key is looked for in both, and what is removed leaves a mark in the old one. Empty places are
//! zeros, since fresh memory from the system is zero without being written.

use std::hash::{BuildHasher, RandomState};

/// A place without a slot. Others hold the slot plus one.
const EMPTY: u32 = 0;
/// A place of a table that is being left, whose slot was removed.
const GONE: u32 = u32::MAX;
/// At least two, or the new table is half full before the old one is empty.
const PLACES_PER_INSERT: usize = 8;
const PLACES_MIN: usize = 16;

/// Maps an `i64` key to a slot number below `u32::MAX - 1`.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    secret: [u64; 2],
    places: Box<[u32]>,
    len: usize,
    /// The table that is being left; empty if there is none.
    old: Box<[u32]>,
    /// How many places of `old` were brought over. What they hold is in both tables.
    brought: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Index {
    /// An index that takes `keys` keys without growing.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let random = RandomState::new();
        let places = keys.saturating_mul(2).max(PLACES_MIN).next_power_of_two();
        Self {
            secret: [random.hash_one(0_u8), random.hash_one(1_u8) | 1],
            places: vec![EMPTY; places].into(),
            len: 0,
            old: Box::default(),
            brought: 0,
        }
    }

    #[inline]
    fn hash(&self, key: i64) -> usize {
        let product = u128::from(key.cast_unsigned() ^ self.secret[0]) * u128::from(self.secret[1]);
        let folded = (product as u64) ^ ((product >> 64) as u64);
        folded as usize
    }

    /// The slot of `key`, if it is here.
    #[inline]
    pub(crate) fn find(&self, key: i64, key_of: impl Fn(u32) -> i64) -> Option<u32> {
        let hash = self.hash(key);
        let mask = self.places.len() - 1;
        let mut place = hash & mask;
        loop {
            match self.places[place] {
                EMPTY => break,
                slot if key_of(slot - 1) == key => return Some(slot - 1),
                _ => place = (place + 1) & mask,
            }
        }
        if self.old.is_empty() {
            return None;
        }
        self.find_old(hash, key, key_of).map(|(_, slot)| slot)
    }

    /// The place in the old table, and the slot.
    #[cold]
    fn find_old(&self, hash: usize, key: i64, key_of: impl Fn(u32) -> i64) -> Option<(usize, u32)> {
        let mask = self.old.len() - 1;
        let mut place = hash & mask;
        loop {
            match self.old[place] {
                EMPTY => return None,
                slot if slot != GONE && key_of(slot - 1) == key => return Some((place, slot - 1)),
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Adds `key`, which must not be here yet. `key_of` must know the new slot already.
    #[inline]
    pub(crate) fn insert(&mut self, key: i64, slot: u32, key_of: impl Fn(u32) -> i64) {
        debug_assert!(slot < u32::MAX - 1);
        if !self.old.is_empty() {
            self.bring_over(&key_of);
        }
        if self.len * 2 >= self.places.len() {
            self.grow();
        }
        self.put(key, slot + 1);
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, key: i64, entry: u32) {
        let mask = self.places.len() - 1;
        let mut place = self.hash(key) & mask;
        while self.places[place] != EMPTY {
            place = (place + 1) & mask;
        }
        self.places[place] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        debug_assert!(self.old.is_empty());
        let doubled = vec![EMPTY; self.places.len() * 2].into();
        self.old = std::mem::replace(&mut self.places, doubled);
        self.brought = 0;
    }

    #[cold]
    fn bring_over(&mut self, key_of: impl Fn(u32) -> i64) {
        let end = (self.brought + PLACES_PER_INSERT).min(self.old.len());
        for place in self.brought..end {
            let entry = self.old[place];
            if entry != EMPTY && entry != GONE {
                self.put(key_of(entry - 1), entry);
            }
        }
        self.brought = end;
        if end == self.old.len() {
            self.old = Box::default();
        }
    }

    /// Takes `key` out, and closes the gap that it leaves in its probe sequence. `key_of` must
    /// still know the slot.
    #[inline]
    pub(crate) fn remove(&mut self, key: i64, key_of: impl Fn(u32) -> i64) -> Option<u32> {
        let hash = self.hash(key);
        let mut found = None;
        if !self.old.is_empty()
            && let Some((place, slot)) = self.find_old(hash, key, &key_of)
        {
            self.old[place] = GONE;
            found = Some(slot);
            if place >= self.brought {
                self.len -= 1;
                return found;
            }
        }
        let mask = self.places.len() - 1;
        let mut gap = hash & mask;
        loop {
            match self.places[gap] {
                EMPTY => return found,
                entry if key_of(entry - 1) == key => {
                    found = Some(entry - 1);
                    break;
                }
                _ => gap = (gap + 1) & mask,
            }
        }
        let mut place = (gap + 1) & mask;
        while self.places[place] != EMPTY {
            let home = self.hash(key_of(self.places[place] - 1)) & mask;
            // The entry may fill the gap if its home is not between the gap and its place.
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.places[gap] = self.places[place];
                gap = place;
            }
            place = (place + 1) & mask;
        }
        self.places[gap] = EMPTY;
        self.len -= 1;
        found
    }

    /// Every slot, in no meaningful order: sort before use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let old = self.old.iter().skip(self.brought);
        let entries = self.places.iter().chain(old).copied();
        entries
            .filter(|&entry| entry != EMPTY && entry != GONE)
            .map(|entry| entry - 1)
    }

    /// How many keys are here.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0_i64..200), 0..900)) {
            let mut keys: Vec<i64> = Vec::new();
            let mut index = Index::default();
            let mut model = BTreeMap::new();
            for (add, key) in steps {
                let key = key.wrapping_mul(0x1_0000_0001) - 5;
                if add && !model.contains_key(&key) {
                    let slot = u32::try_from(keys.len()).unwrap();
                    keys.push(key);
                    index.insert(key, slot, |slot| keys[slot as usize]);
                    model.insert(key, slot);
                } else if !add {
                    let removed = index.remove(key, |slot| keys[slot as usize]);
                    prop_assert_eq!(removed, model.remove(&key));
                }
                prop_assert_eq!(index.len(), model.len());
                for (&key, &slot) in &model {
                    prop_assert_eq!(index.find(key, |slot| keys[slot as usize]), Some(slot));
                }
            }
            let mut slots: Vec<u32> = index.slots().collect();
            slots.sort_unstable();
            let mut expected: Vec<u32> = model.values().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(slots, expected);
        }
    }
}
