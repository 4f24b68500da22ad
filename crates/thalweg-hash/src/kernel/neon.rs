//! NEON, which every 64-bit ARM processor has.
//!
//! There is no multiply of 64-bit lanes, so products come from 32-bit halves, six instructions for
//! two words. Cores with one scalar multiplier gain; those with two are bound by the chain anyway
//! and lose nothing. This is reckoned: no such machine was available, the tests run in an emulator.

use core::arch::aarch64::{
    vdup_n_u32, vdupq_n_u64, vld1q_u8, vmlal_u32, vmovn_u64, vmulq_u32, vpaddlq_u32,
    vreinterpretq_u32_u8, vreinterpretq_u32_u64, vreinterpretq_u64_u8, vrev64q_u32, vshlq_n_u64,
    vst1q_u64,
};

use super::scalar;
use super::{Group, Sectors, Table, hybrid};
use crate::accumulator::{Accumulators, PRIME_2, Stripe};

pub(super) static NEON: Table = Table {
    name: "neon",
    found,
    hash,
    stripes,
    groups,
    sectors,
    many,
    keys_8: scalar::keys,
    keys_16: scalar::keys,
    keys_32: scalar::keys,
    keys_64: scalar::keys,
};

fn found() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_aarch64_feature_detected!("neon");
    #[cfg(not(feature = "std"))]
    return cfg!(target_feature = "neon");
}

struct Neon;

// SAFETY: two vectors of two words are written.
unsafe impl hybrid::Products for Neon {
    #[inline(always)]
    unsafe fn write(stripe: &Stripe, slot: *mut u64) {
        for half in 0..2 {
            // SAFETY: both halves are inside of the stripe and of the slot.
            unsafe {
                let words = vld1q_u8(stripe.as_ptr().add(16 * half));
                // High × low prime and low × high prime, of which 32 bits matter. In halves of 32
                // bits: of products of 64 the compiler would see that, take the 64-bit multiply
                // instead, which vectors do not have, and do it in scalar registers.
                let swapped = vrev64q_u32(vreinterpretq_u32_u8(words));
                let cross = vmulq_u32(swapped, vreinterpretq_u32_u64(vdupq_n_u64(PRIME_2)));
                let cross = vshlq_n_u64::<32>(vpaddlq_u32(cross));
                let low = vmovn_u64(vreinterpretq_u64_u8(words));
                let products = vmlal_u32(cross, low, vdup_n_u32(PRIME_2 as u32));
                vst1q_u64(slot.add(2 * half), products);
            }
        }
    }
}

#[target_feature(enable = "neon")]
fn hash(seed: u64, data: &[u8]) -> u64 {
    // SAFETY: this function has the feature.
    unsafe { hybrid::hash::<Neon>(seed, data) }
}

#[target_feature(enable = "neon")]
fn stripes(accumulators: &mut Accumulators, stripes: &[Stripe]) {
    // SAFETY: this function has the feature.
    unsafe { hybrid::stripes::<Neon>(accumulators, stripes) }
}

#[target_feature(enable = "neon")]
fn groups(accumulators: &mut Accumulators, groups: &[&Group]) {
    // SAFETY: this function has the feature.
    unsafe { hybrid::groups::<Neon>(accumulators, groups.iter().copied()) }
}

#[target_feature(enable = "neon")]
fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    // SAFETY: this function has the feature.
    unsafe { <Neon as hybrid::Products>::sectors(accumulators, sectors) }
}

#[target_feature(enable = "neon")]
fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    for (input, hash) in inputs.iter().zip(hashes) {
        // SAFETY: this function has the feature.
        *hash = unsafe { hybrid::hash::<Neon>(seed, input) };
    }
}
