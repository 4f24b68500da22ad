//! The keys of tables, and the secrets that keep their hashes from being foreseen.

use std::cell::Cell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};

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
    /// A folded product that cannot be foreseen without the secrets.
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
