//! Many inputs, or many keys of one size, in one call.

use crate::Kernel;

/// Writes the XXH64 of each input into `hashes`, at the same index.
///
/// With AVX-512, eight inputs advance together, each in lanes of its own; lengths may differ.
/// Elsewhere one is hashed after the other: nothing is lost by asking for all at once.
///
/// # Panics
/// There are not as many hashes as inputs.
pub fn xxh64_many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    Kernel::best().xxh64_many(seed, inputs, hashes);
}

/// A key of 8, 16, 32 or 64 bytes. Not to be implemented elsewhere.
pub trait Key: sealed::Sealed {}

mod sealed {
    use crate::Kernel;

    /// The functions of a key, which are known to this crate alone.
    pub trait Sealed: Sized {
        /// The hash of each key; there are as many of both.
        fn hash(kernel: Kernel, seed: u64, keys: &[Self], hashes: &mut [u64]);
    }
}

macro_rules! keys {
    ($($bytes:literal $function:ident),+) => {
        $(
            impl Key for [u8; $bytes] {}

            impl sealed::Sealed for [u8; $bytes] {
                fn hash(kernel: Kernel, seed: u64, keys: &[Self], hashes: &mut [u64]) {
                    assert_eq!(keys.len(), hashes.len(), "a hash for each key");
                    kernel.$function(seed, keys, hashes);
                }
            }
        )+
    };
}
keys!(8 keys_8, 16 keys_16, 32 keys_32, 64 keys_64);

/// Writes the XXH64 of each key into `hashes`, at the same index.
///
/// Several keys are hashed at a time, in the lanes of vectors where there are any. Batches of 16
/// keys and more are worth a call.
///
/// ```
/// use thalweg_hash::{xxh64, xxh64_keys};
///
/// let keys: [[u8; 8]; 3] = [1_u64, 2, 3].map(u64::to_le_bytes);
/// let mut hashes = [0; 3];
/// xxh64_keys(0, &keys, &mut hashes);
/// assert_eq!(hashes[2], xxh64(0, &keys[2]));
/// ```
///
/// # Panics
/// There are not as many hashes as keys.
pub fn xxh64_keys<K: Key>(seed: u64, keys: &[K], hashes: &mut [u64]) {
    Kernel::best().xxh64_keys(seed, keys, hashes);
}

impl Kernel {
    /// Works as [`xxh64_keys`], by this kernel.
    ///
    /// # Panics
    /// There are not as many hashes as keys.
    pub fn xxh64_keys<K: Key>(self, seed: u64, keys: &[K], hashes: &mut [u64]) {
        K::hash(self, seed, keys, hashes);
    }
}
