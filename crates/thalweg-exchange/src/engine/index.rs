//! From an id to the slot where the thing lives.
//!
//! *State*: an open-addressing table, linear probing, little more than half full at most. A bucket
//! holds a slot and 32 bits of the key's hash; the key stays in the thing itself and is read
//! through the caller's `key_of`, but only where those bits agree, so that a look at a bucket that
//! belongs to another key, a removal and growth touch nothing outside the table. *Why keyed*: ids
//! come from clients. The hash is a folded multiplication with two secret words, so that no client
//! can choose ids that collide. The secrets are drawn per table; nothing visible depends on them,
//! because no result ever follows the order of the table. *Growing in steps*: from half full on,
//! each insertion makes some buckets of a table of twice the size. That takes over when it is
//! whole, and each later insertion brings eight buckets of the old one over. Until that is done a
//! key is looked for in both, and what is removed leaves a mark in the old one. Then the old one's
//! memory goes back in steps, too: each page costs the system time.

use crate::engine::slab::make_room;
use crate::ids::SymbolId;
use std::cell::Cell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::marker::PhantomData;

/// A bucket without a slot. Others hold the slot plus one, and above it the hash.
const EMPTY: u64 = 0;
/// A bucket of a table that is being migrated, whose slot was removed.
const GONE: u64 = u32::MAX as u64;
/// The slot of an empty bucket.
const NOWHERE: u32 = u32::MAX;
const BUCKETS_MIN: usize = 16;
/// Buckets that a guess looks at: of eight, most lie in the line of the first.
const GUESSES: usize = 8;

/// Maps keys to slot numbers below `u32::MAX - 1`. Last what only growing needs.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Index<K = i64> {
    key: PhantomData<K>,
    secret: [u64; 2],
    buckets: Box<[u64]>,
    len: usize,
    /// How many keys it takes without growing: half its buckets, or none while another table is
    /// being migrated or given back.
    limit: usize,
    /// The table that is being migrated.
    old: Option<Box<Old>>,
    /// With a limit, what there is of the next table; without, what there still is of the last.
    spare: Vec<u64>,
}

/// A table that is being migrated.
#[derive(Clone, Debug)]
struct Old {
    buckets: Box<[u64]>,
    /// How many buckets were brought over. Their keys are in both tables.
    brought: usize,
}

/// Where a key that was not found may be put, until anything else is put or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacancy {
    bucket: usize,
    hash: u32,
}

/// Where a key was found, until anything is put or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    bucket: usize,
    pub(crate) slot: u32,
}

/// An empty bucket for a key that is not here.
pub(crate) struct NearVacancy<'i> {
    bucket: &'i mut u64,
    len: &'i mut usize,
    hash: u32,
}

impl NearVacancy<'_> {
    /// Puts the key there.
    #[inline(always)]
    pub(crate) const fn fill(self, slot: u32) {
        debug_assert!(slot < u32::MAX - 1);
        *self.bucket = entry(self.hash, slot);
        *self.len += 1;
    }
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

/// Returns the slot of a bucket that is neither empty nor gone.
const fn slot_in(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}

impl<K: Key> Index<K> {
    /// Returns an index that takes `keys` keys without growing.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let buckets = keys.saturating_mul(2).max(BUCKETS_MIN).next_power_of_two();
        Self {
            key: PhantomData,
            secret: secrets(),
            buckets: vec![EMPTY; buckets].into(),
            len: 0,
            limit: buckets / 2,
            old: None,
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: K) -> u32 {
        key.hash(self.secret)
    }

    /// Returns the slot of `key`, if it is here.
    #[inline]
    pub(crate) fn find(&self, key: K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        self.find_by(key, |slot| key_of(slot) == key)
    }

    /// Returns the slot of `key`, where `is_it` says whether the thing in a slot has it.
    #[inline]
    pub(crate) fn find_by(&self, key: K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if let Some(found) = self.near(key, |slot| slot != NOWHERE && is_it(slot)) {
            return Some(found.slot);
        }
        let old = self.old.as_ref()?;
        old.find(self.hash(key), is_it).map(|(_, slot)| slot)
    }

    /// Returns the slot of `key`, with its bucket; not where the key is in a table that is being
    /// migrated. An empty bucket looks like one of a key without hash: `is_it` may be asked of slot
    /// `u32::MAX`, where nothing is.
    #[inline(always)]
    pub(crate) fn near(&self, key: K, is_it: impl Fn(u32) -> bool) -> Option<Found> {
        let hash = self.hash(key);
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                let slot = slot_in(entry);
                return Some(Found { bucket, slot });
            }
            if entry == EMPTY {
                return None;
            }
            bucket = (bucket + 1) & mask;
        }
    }

    /// Returns where the key with this hash seems to be, without a look at the thing itself: a hint
    /// for who will soon ask for it, right but for keys with the same hash and those far from their
    /// bucket.
    #[inline]
    pub(crate) fn guess(&self, hash: u32) -> Option<u32> {
        let mask = self.buckets.len() - 1;
        for step in 0..GUESSES {
            let entry = self.buckets[(hash as usize + step) & mask];
            if entry == EMPTY {
                break;
            }
            if hash_in(entry) == hash {
                return Some(slot_in(entry));
            }
        }
        None
    }

    /// Returns the first bucket at which the key with this hash is looked for.
    #[inline]
    pub(crate) fn first_bucket(&self, hash: u32) -> &u64 {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    /// Returns where to put `key`; `None` if it is here already. One look-up for both questions.
    #[inline]
    pub(crate) fn vacancy(&mut self, key: K, is_it: impl Fn(u32) -> bool) -> Option<Vacancy> {
        self.make_room();
        let hash = self.hash(key);
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if entry == EMPTY {
                break;
            }
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                return None;
            }
            bucket = (bucket + 1) & mask;
        }
        let old = self.old.as_ref();
        let is_old = old.is_some_and(|old| old.find(hash, is_it).is_some());
        (!is_old).then_some(Vacancy { bucket, hash })
    }

    /// Returns the vacancy for `key` if one look at the table is enough: not where it must grow or
    /// another one is being left, nor where a key has the same bits, which may be this one.
    #[inline(always)]
    pub(crate) fn near_vacancy(&mut self, key: K) -> Option<NearVacancy<'_>> {
        if self.len >= self.limit {
            return None;
        }
        let hash = self.hash(key);
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if entry == EMPTY {
                break;
            }
            if hash_in(entry) == hash {
                return None;
            }
            bucket = (bucket + 1) & mask;
        }
        Some(NearVacancy {
            bucket: &mut self.buckets[bucket],
            len: &mut self.len,
            hash,
        })
    }

    /// Puts the key of a vacancy there.
    #[inline]
    pub(crate) fn fill(&mut self, vacancy: Vacancy, slot: u32) {
        debug_assert!(slot < u32::MAX - 1);
        self.buckets[vacancy.bucket] = entry(vacancy.hash, slot);
        self.len += 1;
    }

    /// Adds `key`, which must not be here yet.
    pub(crate) fn insert(&mut self, key: K, slot: u32) {
        debug_assert!(slot < u32::MAX - 1);
        self.make_room();
        self.put(entry(self.hash(key), slot));
        self.len += 1;
    }

    #[inline]
    fn make_room(&mut self) {
        if self.len >= self.limit {
            self.grow();
        }
    }

    #[inline]
    fn put(&mut self, entry: u64) {
        let mask = self.buckets.len() - 1;
        let mut bucket = hash_in(entry) as usize & mask;
        while self.buckets[bucket] != EMPTY {
            bucket = (bucket + 1) & mask;
        }
        self.buckets[bucket] = entry;
    }

    /// Takes `key` out, and closes the gap that it leaves in its probe sequence. `key_of` must
    /// still know the slot.
    #[inline]
    pub(crate) fn remove(&mut self, key: K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        self.remove_by(key, |slot| key_of(slot) == key)
    }

    /// Takes out what was found, and closes the gap.
    #[inline(always)]
    pub(crate) fn remove_found(&mut self, key: K, found: Found) {
        if self.old.is_none() {
            self.close(found.bucket);
        } else {
            self.remove_left(key, found.slot);
        }
    }

    /// Takes a key out whose slot is known, and closes the gap.
    #[inline(always)]
    pub(crate) fn remove_slot(&mut self, key: K, slot: u32) {
        if self.old.is_some() {
            return self.remove_left(key, slot);
        }
        let hash = self.hash(key);
        let wanted = entry(hash, slot);
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        while self.buckets[bucket] != wanted {
            if self.buckets[bucket] == EMPTY {
                return;
            }
            bucket = (bucket + 1) & mask;
        }
        self.close(bucket);
    }

    /// Empties a bucket, and closes the gap that this leaves in the probe sequence.
    #[inline(always)]
    fn close(&mut self, mut gap: usize) {
        self.len -= 1;
        let buckets = &mut *self.buckets;
        let mask = buckets.len() - 1;
        let mut bucket = (gap + 1) & mask;
        loop {
            let entry = buckets[bucket & mask];
            if entry == EMPTY {
                break;
            }
            let home = hash_in(entry) as usize & mask;
            // The entry may fill the gap if its home is not between the gap and its bucket.
            if (bucket.wrapping_sub(home) & mask) >= (bucket.wrapping_sub(gap) & mask) {
                buckets[gap & mask] = entry;
                gap = bucket;
            }
            bucket = (bucket + 1) & mask;
        }
        buckets[gap & mask] = EMPTY;
    }

    /// Returns every slot, in no meaningful order: sort before use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let old = self.old.iter();
        let old = old.flat_map(|old| &old.buckets[old.brought..]);
        let entries = self.buckets.iter().chain(old).copied();
        entries
            .filter(|&entry| entry != EMPTY && entry != GONE)
            .map(slot_in)
    }

    /// Returns how many keys are here.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns true where the table is too large for the nearer caches.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.buckets.len() > 1 << 15
    }
}

// The keys of tables, and the secrets that keep their hashes from being foreseen.

thread_local! {
    /// The seed of this thread's tables; `None` for the system's randomness.
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has tables that this thread makes from now on take the same secrets each time. For counts that
/// must repeat, and for nothing else: a client that knows `seed` can choose ids that collide.
#[doc(hidden)]
pub fn repeat_secrets(seed: u64) {
    SEED.set(Some(seed));
}

pub(super) fn secrets() -> [u64; 2] {
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

/// A key of a table.
pub(crate) trait Key: Copy + Eq {
    /// Returns a folded product that cannot be foreseen without the secrets.
    fn hash(self, secrets: [u64; 2]) -> u32;
}

#[inline(always)]
pub(crate) fn fold(one: u64, other: u64) -> u32 {
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

// A table that grows: another one is made, takes over, and the old one is left, all in steps.

/// A table of this number of buckets is made and filled at once: its 4 KiB take about a
/// microsecond, and a small book is never between two tables.
const SHORT: usize = 512;
/// Buckets that are made at each insertion: what is being migrated is never much more than half
/// full.
const BUCKETS_MADE: usize = 64;
/// Buckets whose memory is given back at each insertion.
const BUCKETS_BACK: usize = 4096;
/// At least two, or the new table is half full before the old one is empty.
const BUCKETS_PER_INSERT: usize = 8;

impl Old {
    /// Returns the bucket of a key in it, and the slot.
    #[cold]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            match self.buckets[bucket] {
                EMPTY => return None,
                entry if entry != GONE && hash_in(entry) == hash && is_it(slot_in(entry)) => {
                    return Some((bucket, slot_in(entry)));
                }
                _ => bucket = (bucket + 1) & mask,
            }
        }
    }
}

impl<K: Key> Index<K> {
    /// A step to the next table: first it is made, then the old one's buckets come over, then its
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
        let all = 2 * self.buckets.len();
        if all <= SHORT {
            let next = vec![EMPTY; all].into();
            let last: Box<[u64]> = std::mem::replace(&mut self.buckets, next);
            let entries = last.iter().filter(|&&entry| entry != EMPTY);
            entries.for_each(|&entry| self.put(entry));
            self.limit = all / 2;
            return;
        }
        if self.spare.is_empty() {
            make_room(&mut self.spare, all);
        }
        let made = all.min(self.spare.len() + BUCKETS_MADE);
        self.spare.resize(made, EMPTY);
        if made == all {
            let next = std::mem::take(&mut self.spare).into();
            let buckets = std::mem::replace(&mut self.buckets, next);
            self.old = Some(Box::new(Old {
                buckets,
                brought: 0,
            }));
            self.limit = 0;
        }
    }

    fn bring_over(&mut self, mut old: Box<Old>) {
        let end = (old.brought + BUCKETS_PER_INSERT).min(old.buckets.len());
        for &entry in &old.buckets[old.brought..end] {
            if entry != EMPTY && entry != GONE {
                self.put(entry);
            }
        }
        old.brought = end;
        if end == old.buckets.len() {
            self.spare = old.buckets.into();
            self.give_back();
        } else {
            self.old = Some(old);
        }
    }

    fn give_back(&mut self) {
        let keep = self.spare.len().saturating_sub(BUCKETS_BACK);
        self.spare.truncate(keep);
        self.spare.shrink_to_fit();
        if keep == 0 {
            self.limit = self.buckets.len() / 2;
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
            && let Some((bucket, slot)) = old.find(hash, &is_it)
        {
            old.buckets[bucket] = GONE;
            found = Some(slot);
            if bucket >= old.brought {
                self.len -= 1;
                return found;
            }
        }
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if entry == EMPTY {
                return found;
            }
            if hash_in(entry) == hash && is_it(slot_in(entry)) {
                self.close(bucket);
                return Some(slot_in(entry));
            }
            bucket = (bucket + 1) & mask;
        }
    }
}

/// Symbols with ids from zero to below this are found in a list, without a hash: at most 256 KiB.
const SMALL_IDS: usize = 65_536;

/// Symbols of which what is read by every command still lies in a near cache.
const MANY: usize = 256;

/// No symbol has this slot.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Maps symbol ids to slot numbers, as far as [`Index`] takes them: small ids by a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolIndex {
    /// The slots of symbols with small ids; [`NO_SLOT`] where there is none.
    small: Vec<u32>,
    index: Index,
}

impl SymbolIndex {
    /// Returns the slot of `symbol`, if it is here. `id_of` returns the symbol in a slot.
    #[inline]
    pub(crate) fn find(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> Option<u32> {
        match self.slot(symbol, id_of) {
            NO_SLOT => None,
            slot => Some(slot),
        }
    }

    /// Returns the slot of `symbol`, or [`NO_SLOT`], which is outside of every list: fewer
    /// instructions for a caller that looks there next.
    #[inline]
    pub(crate) fn slot(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> u32 {
        match self.near(symbol).unwrap_or(NO_SLOT) {
            NO_SLOT => self.find_any(symbol, id_of).unwrap_or(NO_SLOT),
            slot => slot,
        }
    }

    /// Returns the slot of `symbol` if its id is small; [`NO_SLOT`] or nothing where it is not
    /// here.
    #[inline(always)]
    pub(crate) fn near(&self, symbol: SymbolId) -> Option<u32> {
        self.small.get(symbol.0 as usize).copied()
    }

    #[cold]
    fn find_any(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> Option<u32> {
        self.index
            .find(i64::from(symbol.0), |slot| i64::from(id_of(slot).0))
    }

    /// Adds `symbol`, which must not be here yet.
    pub(crate) fn insert(&mut self, symbol: SymbolId, slot: u32) {
        if let Some(id) = usize::try_from(symbol.0).ok().filter(|&id| id < SMALL_IDS) {
            if id >= self.small.len() {
                self.small.resize(id + 1, NO_SLOT);
            }
            self.small[id] = slot;
        }
        self.index.insert(i64::from(symbol.0), slot);
    }

    /// Takes `symbol` out, and gives its slot. `id_of` must still know it.
    pub(crate) fn remove(
        &mut self,
        symbol: SymbolId,
        id_of: impl Fn(u32) -> SymbolId,
    ) -> Option<u32> {
        if let Some(slot) = self.small.get_mut(symbol.0 as usize) {
            *slot = NO_SLOT;
        }
        self.index
            .remove(i64::from(symbol.0), |slot| i64::from(id_of(slot).0))
    }

    /// Returns whether there are more symbols than the nearer caches can hold the data of.
    #[inline]
    pub(crate) const fn are_many(&self) -> bool {
        self.index.len() > MANY
    }

    /// Returns every slot, in no meaningful order: sort before use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.slots()
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

    #[test]
    fn a_table_grows_in_steps_while_keys_come_and_go() {
        const KEYS: u32 = 60_000;
        let mut index = Index::<i64>::default();
        let key_of = |slot: u32| i64::from(slot) << 20;
        let (mut first, mut largest) = (0, 0);
        for slot in 0..KEYS {
            let before = index.spare.len();
            index.insert(key_of(slot), slot);
            largest = largest.max(index.buckets.len());
            let (made, given) = (
                index.spare.len() > before + 64,
                index.spare.len() + 4096 < before,
            );
            // Otherwise the next table took over, or the last one was left.
            assert!(
                !(made || given) || index.limit == 0,
                "{before}, {}",
                index.spare.len()
            );
            if slot % 3 == 2 {
                assert_eq!(index.remove(key_of(first), key_of), Some(first));
                first += 1;
            }
            for known in [first, (slot + first) / 2, slot] {
                assert_eq!(index.find(key_of(known), key_of), Some(known));
            }
            assert!(first == 0 || index.find(key_of(first - 1), key_of).is_none());
            assert!(index.len() * 5 < index.buckets.len() * 3 + 64, "too full");
        }
        let mut slots: Vec<u32> = index.slots().collect();
        slots.sort_unstable();
        assert_eq!(slots, (first..KEYS).collect::<Vec<_>>());
        assert!(largest >= 1 << 16);
    }

    /// A key whose hash is nothing, as that of an empty bucket.
    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Hashless(i64);

    impl Key for Hashless {
        fn hash(self, _: [u64; 2]) -> u32 {
            0
        }
    }

    #[test]
    fn a_key_without_hash_is_not_found_in_an_empty_place() {
        let mut keys = Vec::new();
        let mut index = Index::<Hashless>::default();
        for key in (0..40).map(Hashless) {
            assert_eq!(index.find(key, |slot| keys[slot as usize]), None);
            let is_it = |slot: u32| keys.get(slot as usize) == Some(&key);
            assert!(index.near(key, is_it).is_none());
            index.insert(key, keys.len() as u32);
            keys.push(key);
        }
        for key in &keys {
            let is_it = |slot: u32| keys.get(slot as usize) == Some(key);
            assert_eq!(index.find_by(*key, is_it), Some(key.0 as u32));
            assert_eq!(
                index.remove(*key, |slot| keys[slot as usize]),
                Some(key.0 as u32)
            );
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(
            first in 0_i64..700,
            steps in prop::collection::vec((any::<bool>(), 0_i64..900), 0..900),
        ) {
            let mut keys: Vec<i64> = Vec::new();
            let mut index = Index::<i64>::default();
            let mut model = BTreeMap::new();
            let first = (0..first).map(|key| (true, key));
            for (step, (add, key)) in first.chain(steps).enumerate() {
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
                // All of them now and then, else what is near the key in the model.
                let near = if step % 64 == 0 { i64::MIN.. } else { key.. };
                let count = if step % 64 == 0 { usize::MAX } else { 3 };
                for (&key, &slot) in model.range(near).take(count) {
                    if let Some(guess) = index.guess(index.hash(key)) {
                        // Keys with the same hash are the caller's to tell apart.
                        if guess != slot {
                            let guessed = keys[guess as usize];
                            prop_assert_eq!(index.hash(guessed), index.hash(key));
                        }
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

    #[test]
    fn finds_small_large_and_negative_ids() {
        let ids = [0, 7, 65_535, 65_536, i32::MAX, -1, i32::MIN].map(SymbolId);
        let id_of = |slot: u32| ids[slot as usize];
        let mut index = SymbolIndex::default();
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.find(id, id_of), None);
            index.insert(id, slot);
        }
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.find(id, id_of), Some(slot));
        }
        assert_eq!(index.find(SymbolId(8), id_of), None);
        assert_eq!(index.find(SymbolId(-2), id_of), None);
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.remove(id, id_of), Some(slot));
            assert_eq!(index.find(id, id_of), None);
            assert_eq!(index.remove(id, id_of), None);
        }
        assert_eq!(index.slots().count(), 0);
        index.insert(ids[1], 1);
        assert_eq!(index.find(ids[1], id_of), Some(1));
    }
}
