//! From an id to the slot where the thing lives.
//!
//! *State*: an open-addressing table, linear probing, at most half full. A place holds a slot and
//! 32 bits of the key's hash; the key stays in the thing itself and is read through the caller's
//! `key_of`, but only where those bits agree, so that a look at a place that belongs to another
//! key, a removal and growth touch nothing outside the table.
//! *Why keyed*: ids come from clients. The hash is a folded multiplication with two secret words,
//! so that nobody can choose ids that collide. The secrets are drawn per table; nothing visible
//! depends on them, because no result ever follows the order of the table.
//! *Growing in steps*: a table of twice the size takes over at once, and each later insertion
//! brings eight places of the old one over, so that none waits for them all. Until that is done a
//! key is looked for in both, and what is removed leaves a mark in the old one. Empty places are
//! zeros, since fresh memory from the system is zero without being written.

use std::cell::Cell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::marker::PhantomData;

thread_local! {
    /// What this thread's tables take their secrets from; the system's randomness if it is nothing.
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has tables that this thread makes from now on take the same secrets each time. For counts that
/// must repeat, and for nothing else: whoever knows `seed` can choose ids that collide.
#[doc(hidden)]
pub fn repeat_secrets(seed: u64) {
    SEED.set(Some(seed));
}

fn secrets() -> [u64; 2] {
    let draw = |first: u64, second: u64| [first, second | 1];
    match SEED.get() {
        Some(seed) => {
            let fixed = BuildHasherDefault::<DefaultHasher>::default();
            draw(fixed.hash_one(seed), fixed.hash_one(!seed))
        }
        None => {
            let random = RandomState::new();
            draw(random.hash_one(0_u8), random.hash_one(1_u8))
        }
    }
}

/// A place without a slot. Others hold the slot plus one, and above it the hash.
const EMPTY: u64 = 0;
/// A place of a table that is being left, whose slot was removed.
const GONE: u64 = u32::MAX as u64;
/// At least two, or the new table is half full before the old one is empty.
const PLACES_PER_INSERT: usize = 8;
const PLACES_MIN: usize = 16;

/// What a table can be asked for.
pub(crate) trait Key: Copy + Eq {
    /// A folded product that nobody foresees who does not know the secrets.
    fn hash(self, secrets: [u64; 2]) -> u32;
}

#[inline(always)]
fn fold(one: u64, other: u64) -> u32 {
    let product = u128::from(one) * u128::from(other);
    ((product as u64) ^ ((product >> 64) as u64)) as u32
}

impl Key for i64 {
    #[inline(always)]
    fn hash(self, secrets: [u64; 2]) -> u32 {
        fold(self.cast_unsigned() ^ secrets[0], secrets[1])
    }
}

/// An order's id, and its owner where ids are the owner's alone; zero where they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey {
    pub(crate) owner: i64,
    pub(crate) id: i64,
}

impl Key for OrderKey {
    #[inline(always)]
    fn hash(self, secrets: [u64; 2]) -> u32 {
        let owner = self.owner.cast_unsigned();
        fold(self.id.cast_unsigned() ^ secrets[0], secrets[1] ^ owner)
    }
}

/// Maps keys to slot numbers below `u32::MAX - 1`.
#[derive(Clone, Debug)]
pub(crate) struct Index<K = i64> {
    key: PhantomData<K>,
    secret: [u64; 2],
    places: Box<[u64]>,
    len: usize,
    /// The table that is being left; empty if there is none.
    old: Box<[u64]>,
    /// How many places of `old` were brought over. What they hold is in both tables.
    brought: usize,
}

/// Where a key that was not found may be put, until anything else is put or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacancy {
    place: usize,
    hash: u32,
}

impl<K: Key> Default for Index<K> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

const fn entry(hash: u32, slot: u32) -> u64 {
    (hash as u64) << 32 | (slot + 1) as u64
}

const fn hash_in(entry: u64) -> u32 {
    (entry >> 32) as u32
}

/// Of a place that is neither empty nor gone.
const fn slot_in(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}

impl<K: Key> Index<K> {
    /// An index that takes `keys` keys without growing.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let places = keys.saturating_mul(2).max(PLACES_MIN).next_power_of_two();
        Self {
            key: PhantomData,
            secret: secrets(),
            places: vec![EMPTY; places].into(),
            len: 0,
            old: Box::default(),
            brought: 0,
        }
    }

    #[inline]
    fn hash(&self, key: K) -> u32 {
        key.hash(self.secret)
    }

    /// The slot of `key`, if it is here.
    #[inline]
    pub(crate) fn find(&self, key: K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        self.find_by(key, |slot| key_of(slot) == key)
    }

    /// The same where `is_it` says whether what is in a slot is what is looked for.
    #[inline]
    pub(crate) fn find_by(&self, key: K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(key);
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let entry = self.places[place];
            if hash_in(entry) == hash && entry != EMPTY && is_it(slot_in(entry)) {
                return Some(slot_in(entry));
            }
            if entry == EMPTY {
                break;
            }
            place = (place + 1) & mask;
        }
        if self.old.is_empty() {
            return None;
        }
        self.find_old(hash, is_it).map(|(_, slot)| slot)
    }

    /// Where `key` belongs if it is in its first place, without a look at the thing itself: a hint
    /// for who will soon ask for it.
    #[inline]
    pub(crate) fn guess(&self, key: K) -> Option<u32> {
        let hash = self.hash(key);
        let entry = self.places[hash as usize & (self.places.len() - 1)];
        (hash_in(entry) == hash && entry != EMPTY).then(|| slot_in(entry))
    }

    /// The first place at which `key` is looked for.
    #[inline]
    pub(crate) fn first_place(&self, key: K) -> &u64 {
        &self.places[self.hash(key) as usize & (self.places.len() - 1)]
    }

    /// The place in the old table, and the slot.
    #[cold]
    fn find_old(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
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

    /// Where to put `key`; `None` if it is here already. One look-up for both questions.
    #[inline]
    pub(crate) fn vacancy(&mut self, key: K, is_it: impl Fn(u32) -> bool) -> Option<Vacancy> {
        if !self.old.is_empty() {
            self.bring_over();
        }
        if self.len * 2 >= self.places.len() {
            self.grow();
        }
        let hash = self.hash(key);
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let entry = self.places[place];
            if entry == EMPTY {
                break;
            }
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                return None;
            }
            place = (place + 1) & mask;
        }
        let is_old = !self.old.is_empty() && self.find_old(hash, is_it).is_some();
        (!is_old).then_some(Vacancy { place, hash })
    }

    /// Puts the key of a vacancy there.
    #[inline]
    pub(crate) fn fill(&mut self, vacancy: Vacancy, slot: u32) {
        debug_assert!(slot < u32::MAX - 1);
        self.places[vacancy.place] = entry(vacancy.hash, slot);
        self.len += 1;
    }

    /// Adds `key`, which must not be here yet.
    pub(crate) fn insert(&mut self, key: K, slot: u32) {
        debug_assert!(slot < u32::MAX - 1);
        if !self.old.is_empty() {
            self.bring_over();
        }
        if self.len * 2 >= self.places.len() {
            self.grow();
        }
        self.put(entry(self.hash(key), slot));
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, entry: u64) {
        let mask = self.places.len() - 1;
        let mut place = hash_in(entry) as usize & mask;
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
    fn bring_over(&mut self) {
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
        }
    }

    /// Takes `key` out, and closes the gap that it leaves in its probe sequence. `key_of` must
    /// still know the slot.
    #[inline]
    pub(crate) fn remove(&mut self, key: K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        self.remove_by(key, |slot| key_of(slot) == key)
    }

    /// Takes a key out whose slot is known, and closes the gap.
    #[inline]
    pub(crate) fn remove_slot(&mut self, key: K, slot: u32) {
        self.remove_by(key, |other| other == slot);
    }

    #[inline]
    fn remove_by(&mut self, key: K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
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
        let mut gap = hash as usize & mask;
        loop {
            let entry = self.places[gap];
            if entry == EMPTY {
                return found;
            }
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                found = Some(slot_in(entry));
                break;
            }
            gap = (gap + 1) & mask;
        }
        let mut place = (gap + 1) & mask;
        loop {
            let entry = self.places[place];
            if entry == EMPTY {
                break;
            }
            let home = hash_in(entry) as usize & mask;
            // The entry may fill the gap if its home is not between the gap and its place.
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.places[gap] = entry;
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
            .map(slot_in)
    }

    /// How many keys are here.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// True where the table is too large for the nearer caches.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.places.len() > 1 << 15
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_repeat_only_where_that_was_asked_for() {
        assert_ne!(secrets(), secrets());
        let fixed = std::thread::spawn(|| {
            repeat_secrets(7);
            [secrets(), secrets()]
        });
        let fixed = fixed.join().expect("no panic");
        assert_eq!(fixed[0], fixed[1]);
        assert_ne!(secrets(), secrets(), "this thread did not ask");
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0_i64..200), 0..900)) {
            let mut keys: Vec<i64> = Vec::new();
            let mut index = Index::<i64>::default();
            let mut model = BTreeMap::new();
            for (add, key) in steps {
                let key = key.wrapping_mul(0x1_0000_0001) - 5;
                if add && !model.contains_key(&key) {
                    let slot = u32::try_from(keys.len()).unwrap();
                    keys.push(key);
                    if slot % 2 == 0 {
                        index.insert(key, slot);
                    } else {
                        let is_it = |slot: u32| keys[slot as usize] == key;
                        let vacancy = index.vacancy(key, is_it).unwrap();
                        index.fill(vacancy, slot);
                    }
                    model.insert(key, slot);
                } else if !add {
                    let removed = index.remove(key, |slot| keys[slot as usize]);
                    prop_assert_eq!(removed, model.remove(&key));
                }
                prop_assert_eq!(index.len(), model.len());
                for (&key, &slot) in &model {
                    if let Some(guess) = index.guess(key) {
                        prop_assert_eq!(guess, slot);
                    }
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
