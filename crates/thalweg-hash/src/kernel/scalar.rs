//! The plain way, without SIMD: what every other kernel is held against.

use super::alone;
use crate::accumulator::{
    Accumulators, STRIPE_BYTES, Stripe, finish, merge, round, start, start_short,
};

/// Stripes that follow each other into the accumulators.
#[inline(always)]
pub(crate) fn stripes(accumulators: &mut Accumulators, stripes: &[Stripe]) {
    let mut lanes = *accumulators;
    for stripe in stripes {
        let words = stripe.as_chunks::<8>().0;
        for (accumulator, word) in lanes.iter_mut().zip(words) {
            *accumulator = alone(round(*accumulator, u64::from_le_bytes(*word)));
        }
    }
    *accumulators = lanes;
}

/// Returns the hash of one buffer.
#[inline(always)]
pub(crate) fn hash(seed: u64, data: &[u8]) -> u64 {
    if data.len() < STRIPE_BYTES {
        short(seed, data)
    } else {
        long(seed, data)
    }
}

/// Returns the hash of less than a stripe.
#[inline(always)]
pub(crate) fn short(seed: u64, data: &[u8]) -> u64 {
    finish(start_short(seed), data.len() as u64, data)
}

/// Returns the hash of a stripe or more.
#[inline(always)]
pub(crate) fn long(seed: u64, data: &[u8]) -> u64 {
    let (whole, tail) = data.as_chunks::<STRIPE_BYTES>();
    let mut accumulators = start(seed);
    stripes(&mut accumulators, whole);
    finish(merge(accumulators), data.len() as u64, tail)
}
