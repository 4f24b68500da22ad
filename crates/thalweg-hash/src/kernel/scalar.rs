//! The plain way, without SIMD: what every other kernel is held against.

use super::{Group, Sectors, Table, alone};
use crate::accumulator::{
    Accumulators, STRIPE_BYTES, Stripe, finish, merge, round, start, start_short,
};

/// The table without instructions of its own: one input, key or group after the other.
pub(super) static SCALAR: Table = Table {
    name: "scalar",
    found: || true,
    hash,
    stripes,
    groups,
    sectors,
    many,
    keys_8: keys,
    keys_16: keys,
    keys_32: keys,
    keys_64: keys,
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

fn groups(accumulators: &mut Accumulators, groups: &[&Group]) {
    for group in groups {
        stripes(accumulators, group.as_chunks::<STRIPE_BYTES>().0);
    }
}

fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    let mut lanes = *accumulators;
    for group in sectors.groups() {
        stripes(&mut lanes, group.as_chunks::<STRIPE_BYTES>().0);
    }
    *accumulators = lanes;
}

fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    for (input, out) in inputs.iter().zip(hashes) {
        *out = hash(seed, input);
    }
}

pub(super) fn keys<const N: usize>(seed: u64, keys: &[[u8; N]], hashes: &mut [u64]) {
    for (key, out) in keys.iter().zip(hashes) {
        *out = hash(seed, key);
    }
}
