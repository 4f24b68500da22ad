//! AVX2: four words a vector, no multiply of 64-bit lanes. With BMI2, whose rotate leaves the
//! flags alone: the older one waits for the flags of another accumulator's addition.

use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_loadu_si256,
    _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi64x,
    _mm256_slli_epi64, _mm256_srl_epi64, _mm256_srli_epi64, _mm256_store_si256,
    _mm256_storeu_si256, _mm256_xor_si256,
};

use super::super::lanes::{self, Lanes};
use super::super::twin::Twin;
use super::super::{Group, Sectors, Table, hybrid};
#[cfg(not(miri))]
use super::turning;
use super::{has, key_functions};
use crate::accumulator::{Accumulators, PRIME_2, Stripe};

pub(crate) static AVX2: Table = Table {
    name: "avx2",
    found: || has!("avx2", "bmi1", "bmi2"),
    hash,
    stripes,
    groups,
    sectors,
    many,
    keys_8,
    keys_16,
    keys_32,
    keys_64,
};

key_functions!(
    Twin<Twin<Avx2>>,
    "avx2,bmi1,bmi2",
    keys_8 8,
    keys_16 16,
    keys_32 32,
    keys_64 64
);

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn hash(seed: u64, data: &[u8]) -> u64 {
    // SAFETY: this function has the features of these products; so have the next ones.
    unsafe { hybrid::hash::<Products<0>>(seed, data) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn stripes(accumulators: &mut Accumulators, stripes: &[Stripe]) {
    // SAFETY: as in `hash`.
    unsafe { hybrid::stripes::<Products<1>>(accumulators, stripes) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn groups(accumulators: &mut Accumulators, groups: &[&Group]) {
    // SAFETY: as in `hash`.
    unsafe { hybrid::groups::<Products<2>>(accumulators, groups.iter().copied()) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    // SAFETY: as in `hash`.
    unsafe { <Products<2> as hybrid::Products>::sectors(accumulators, sectors) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    for (input, place) in inputs.iter().zip(hashes) {
        *place = hash(seed, input);
    }
}

/// Four words.
#[derive(Clone, Copy)]
struct Avx2(__m256i);

/// Word × prime from 32-bit halves: of the high halves' product nothing is left in 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn times(words: __m256i, prime: u64) -> __m256i {
    let low_prime = _mm256_set1_epi64x(i64::from(prime as u32));
    let high_prime = _mm256_set1_epi64x((prime >> 32) as i64);
    let high = _mm256_srli_epi64::<32>(words);
    let cross = _mm256_add_epi64(
        _mm256_mul_epu32(words, high_prime),
        _mm256_mul_epu32(high, low_prime),
    );
    let low = _mm256_mul_epu32(words, low_prime);
    _mm256_add_epi64(low, _mm256_slli_epi64::<32>(cross))
}

/// Multiplies with one multiply of 32-bit lanes for both cross products: one multiply and one shift
/// less. Fast on AMD, as fast as [`times`] on Intel.
#[inline]
#[target_feature(enable = "avx2")]
fn times_in_halves(words: __m256i, prime: u64) -> __m256i {
    let low_prime = _mm256_set1_epi64x(i64::from(prime as u32));
    let swapped_prime = _mm256_set1_epi64x(prime.rotate_left(32) as i64);
    let high_half = _mm256_set1_epi64x(!0 << 32);
    let cross = _mm256_mullo_epi32(words, swapped_prime);
    let low = _mm256_mul_epu32(words, low_prime);
    let one = _mm256_slli_epi64::<32>(cross);
    let other = _mm256_and_si256(cross, high_half);
    _mm256_add_epi64(_mm256_add_epi64(low, one), other)
}

/// The products, and the loop over them. `USE` is another one for each function: the loop is copied
/// into its function only if no other function has it, and a call costs 8 ns at 512 bytes.
pub(super) struct Products<const USE: u8>;

// SAFETY: one vector of four words is written.
unsafe impl<const USE: u8> hybrid::Products for Products<USE> {
    #[inline(always)]
    unsafe fn write(stripe: &Stripe, slot: *mut u64) {
        // SAFETY: a vector is as long as the stripe and the slot, and the slot is aligned.
        unsafe {
            let words = _mm256_loadu_si256(stripe.as_ptr().cast());
            _mm256_store_si256(slot.cast(), times(words, PRIME_2));
        }
    }

    #[cfg(not(miri))]
    #[inline(always)]
    unsafe fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
        // SAFETY: the caller has the features.
        unsafe { turning::sectors::<Self>(accumulators, sectors) };
    }
}

// SAFETY: `read` reads four words.
unsafe impl Lanes for Avx2 {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller has AVX2: so in all functions here.
        Self(unsafe { _mm256_set1_epi64x(word as i64) })
    }

    #[inline(always)]
    unsafe fn read(from: *const u8, apart_bytes: usize) -> Self {
        // SAFETY: the caller's promise for each lane; those of 8 bytes follow each other.
        unsafe {
            if apart_bytes == 8 {
                return Self(_mm256_loadu_si256(from.cast()));
            }
            let word = |lane: usize| from.add(lane * apart_bytes).cast::<i64>().read_unaligned();
            Self(_mm256_set_epi64x(word(3), word(2), word(1), word(0)))
        }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u64) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm256_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn times<const PRIME: u64>(self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { times_in_halves(self.0, PRIME) })
    }

    #[inline(always)]
    unsafe fn rotate_left<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: as in `splat`.
        unsafe {
            let up = _mm256_slli_epi64::<LEFT>(self.0);
            Self(_mm256_or_si256(up, _mm256_srli_epi64::<RIGHT>(self.0)))
        }
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: as in `splat`. The count is known to the compiler, whatever its type.
        Self(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(BITS as i32)) })
    }
}
