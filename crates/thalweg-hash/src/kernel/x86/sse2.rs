//! SSE2, which every x86-64 processor has. Two words a vector, and no multiply of 64-bit lanes:
//! slower than the scalar kernel for short input, about as fast from 4 KiB on (on some processors
//! faster; `docs/notes/results-hash.md`). It is never picked, and kept for the comparison.

use core::arch::x86_64::{
    _mm_add_epi64, _mm_loadu_si128, _mm_mul_epu32, _mm_set1_epi64x, _mm_slli_epi64, _mm_srli_epi64,
    _mm_store_si128,
};

use super::super::{Group, Sectors, Table, hybrid, one_by_one};
use super::hybrid_functions;
use crate::accumulator::{Accumulators, PRIME_2, Stripe};

pub(crate) static SSE2: Table = Table {
    name: "sse2",
    found: || true,
    hash,
    stripes,
    groups,
    sectors,
    many,
    keys_8: one_by_one::keys,
    keys_16: one_by_one::keys,
    keys_32: one_by_one::keys,
    keys_64: one_by_one::keys,
};

hybrid_functions!(Sse2, "sse2");

struct Sse2;

// SAFETY: two vectors of two words are written.
unsafe impl hybrid::Products for Sse2 {
    #[inline(always)]
    unsafe fn write(stripe: &Stripe, slot: *mut u64) {
        for half in 0..2 {
            // SAFETY: both halves are inside of the stripe and of the slot, and of the slot they
            // are aligned.
            unsafe {
                let low_prime = _mm_set1_epi64x(i64::from(PRIME_2 as u32));
                let high_prime = _mm_set1_epi64x((PRIME_2 >> 32) as i64);
                let low = _mm_loadu_si128(stripe.as_ptr().add(16 * half).cast());
                let high = _mm_srli_epi64::<32>(low);
                let cross = _mm_add_epi64(
                    _mm_mul_epu32(low, high_prime),
                    _mm_mul_epu32(high, low_prime),
                );
                let cross = _mm_slli_epi64::<32>(cross);
                let products = _mm_add_epi64(_mm_mul_epu32(low, low_prime), cross);
                _mm_store_si128(slot.add(2 * half).cast(), products);
            }
        }
    }
}

#[target_feature(enable = "sse2")]
fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    for (input, hash) in inputs.iter().zip(hashes) {
        // SAFETY: this function has the feature.
        *hash = unsafe { hybrid::hash::<Sse2>(seed, input) };
    }
}
