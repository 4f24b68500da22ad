//! AVX-512 with its multiply of 64-bit lanes (DQ): many streams or keys in the eight lanes of
//! 512-bit registers. One buffer goes through the hybrid of AVX2, which is as fast (Zen 5: 165 ns
//! for 4 KiB by either; 64 of them together take 39 ns each here).

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm512_add_epi64, _mm512_castsi256_si512, _mm512_inserti64x4,
    _mm512_loadu_si512, _mm512_mullo_epi64, _mm512_rol_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use super::super::lanes::{self, Lanes, Streams};
use super::super::twin::Twin;
use super::super::{Table, hybrid};
use super::avx2::{Products, groups, hash, sectors, stripes};
use super::{has, key_functions};
use crate::accumulator::Stripe;

pub(crate) static AVX512: Table = Table {
    name: "avx512",
    found: || has!("avx512f", "avx512dq", "avx2", "bmi1", "bmi2"),
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
    Twin<Twin<Zmm>>,
    "avx512f,avx512dq,avx2,bmi1,bmi2",
    keys_8 8,
    keys_16 16,
    keys_32 32,
    keys_64 64
);

#[target_feature(enable = "avx512f,avx512dq,avx2,bmi1,bmi2")]
fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    // SAFETY: this function has the features of these lanes and products.
    unsafe {
        lanes::many::<Zmm>(seed, inputs, hashes, |accumulators, rest| {
            hybrid::stripes::<Products<3>>(accumulators, rest);
        });
    }
}

/// Eight words.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

// SAFETY: `read` reads eight words.
unsafe impl Lanes for Zmm {
    const COUNT: usize = 8;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller has the features: so in all functions here.
        Self(unsafe { _mm512_set1_epi64(word as i64) })
    }

    #[inline(always)]
    unsafe fn read(from: *const u8, apart_bytes: usize) -> Self {
        // SAFETY: the caller's promise for each lane; those of 8 bytes follow each other.
        unsafe {
            if apart_bytes == 8 {
                return Self(_mm512_loadu_si512(from.cast()));
            }
            let word = |lane: usize| from.add(lane * apart_bytes).cast::<i64>().read_unaligned();
            let (low, high) = ([0, 1, 2, 3].map(word), [4, 5, 6, 7].map(word));
            Self(_mm512_set_epi64(
                high[3], high[2], high[1], high[0], low[3], low[2], low[1], low[0],
            ))
        }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u64) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn times<const PRIME: u64>(self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm512_mullo_epi64(self.0, _mm512_set1_epi64(PRIME as i64)) })
    }

    #[inline(always)]
    unsafe fn rotate_left<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm512_rol_epi64::<LEFT>(self.0) })
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: as in `splat`.
        Self(unsafe { _mm512_srli_epi64::<BITS>(self.0) })
    }
}

// SAFETY: reads two stripes.
unsafe impl Streams for Zmm {
    #[inline(always)]
    unsafe fn stripes([low, high]: [*const Stripe; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.cast()));
            let high = _mm256_loadu_si256(high.cast());
            Self(_mm512_inserti64x4::<1>(low, high))
        }
    }
}
