//! Many inputs in one call.

use crate::Kernel;

/// Writes the XXH64 of each input into the place of the same number.
///
/// With AVX-512, eight inputs advance together, each in lanes of its own; lengths may differ.
/// Elsewhere one is hashed after the other: nothing is lost by asking for all at once.
///
/// # Panics
/// There are not as many hashes as inputs.
pub fn xxh64_many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    Kernel::best().xxh64_many(seed, inputs, hashes);
}
