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

/// The hash of one buffer.
#[inline(always)]
pub(crate) fn hash(seed: u64, data: &[u8]) -> u64 {
    let (whole, tail) = data.as_chunks::<STRIPE_BYTES>();
    let merged = if whole.is_empty() {
        start_short(seed)
    } else {
        let mut accumulators = start(seed);
        stripes(&mut accumulators, whole);
        merge(accumulators)
    };
    finish(merged, data.len() as u64, tail)
}
