//! From a 64-bit id to the slot where the thing lives.
//!
//! *State*: an open-addressing table of `u32` slots, linear probing, at most half full; the key
//! stays in the thing itself and is read through the caller's `key_of`.
//! *Why keyed*: ids come from clients. The hash is a folded multiplication with two secret words,
//! so that nobody can choose ids that collide. The secrets are drawn per table; nothing visible
//! depends on them, because no result ever follows the order of the table.

use std::hash::{BuildHasher, RandomState};

const EMPTY: u32 = u32::MAX;

/// Maps an `i64` key to a slot number below `u32::MAX`.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    secret: [u64; 2],
    slots: Box<[u32]>,
    len: usize,
}

impl Default for Index {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            secret: [random.hash_one(0_u8), random.hash_one(1_u8) | 1],
            slots: vec![EMPTY; 16].into(),
            len: 0,
        }
    }
}

impl Index {
    fn home(&self, key: i64) -> usize {
        let product = u128::from(key.cast_unsigned() ^ self.secret[0]) * u128::from(self.secret[1]);
        let folded = (product as u64) ^ ((product >> 64) as u64);
        folded as usize & (self.slots.len() - 1)
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }

    /// The slot of `key`, if it is here.
    pub(crate) fn find(&self, key: i64, key_of: impl Fn(u32) -> i64) -> Option<u32> {
        let mut place = self.home(key);
        loop {
            match self.slots[place] {
                EMPTY => return None,
                slot if key_of(slot) == key => return Some(slot),
                _ => place = self.next(place),
            }
        }
    }

    /// Adds `key`, which must not be here yet. `key_of` must know the new slot already.
    pub(crate) fn insert(&mut self, key: i64, slot: u32, key_of: impl Fn(u32) -> i64) {
        if self.len * 2 >= self.slots.len() {
            self.grow(key_of);
        }
        self.put(key, slot);
        self.len += 1;
    }

    fn put(&mut self, key: i64, slot: u32) {
        let mut place = self.home(key);
        while self.slots[place] != EMPTY {
            place = self.next(place);
        }
        self.slots[place] = slot;
    }

    fn grow(&mut self, key_of: impl Fn(u32) -> i64) {
        let doubled = vec![EMPTY; self.slots.len() * 2].into();
        let old = std::mem::replace(&mut self.slots, doubled);
        for &slot in old.iter().filter(|&&slot| slot != EMPTY) {
            self.put(key_of(slot), slot);
        }
    }

    /// Takes `key` out, and closes the gap that it leaves in its probe sequence. `key_of` must
    /// still know the slot.
    pub(crate) fn remove(&mut self, key: i64, key_of: impl Fn(u32) -> i64) -> Option<u32> {
        let mut gap = self.home(key);
        let found = loop {
            match self.slots[gap] {
                EMPTY => return None,
                slot if key_of(slot) == key => break slot,
                _ => gap = self.next(gap),
            }
        };
        let mask = self.slots.len() - 1;
        let mut place = self.next(gap);
        while self.slots[place] != EMPTY {
            let home = self.home(key_of(self.slots[place]));
            // The entry may fill the gap if its home is not between the gap and its place.
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.slots[gap] = self.slots[place];
                gap = place;
            }
            place = self.next(place);
        }
        self.slots[gap] = EMPTY;
        self.len -= 1;
        Some(found)
    }

    /// Every slot, in no meaningful order: sort before use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied().filter(|&slot| slot != EMPTY)
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
        fn agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0_i64..60), 0..400)) {
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
