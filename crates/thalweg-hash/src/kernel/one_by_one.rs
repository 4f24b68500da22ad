//! Tables without instructions of their own: one input, key or group after the other.

use super::{Group, Sectors, Table, scalar};
use crate::accumulator::{Accumulators, STRIPE_BYTES, Stripe};

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

fn hash(seed: u64, data: &[u8]) -> u64 {
    scalar::hash(seed, data)
}

fn stripes(accumulators: &mut Accumulators, stripes: &[Stripe]) {
    scalar::stripes(accumulators, stripes);
}

fn groups(accumulators: &mut Accumulators, groups: &[&Group]) {
    for group in groups {
        scalar::stripes(accumulators, group.as_chunks::<STRIPE_BYTES>().0);
    }
}

fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    let mut lanes = *accumulators;
    for group in sectors.groups() {
        scalar::stripes(&mut lanes, group.as_chunks::<STRIPE_BYTES>().0);
    }
    *accumulators = lanes;
}

fn many(seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
    for (input, hash) in inputs.iter().zip(hashes) {
        *hash = scalar::hash(seed, input);
    }
}

pub(super) fn keys<const N: usize>(seed: u64, keys: &[[u8; N]], hashes: &mut [u64]) {
    for (key, hash) in keys.iter().zip(hashes) {
        *hash = scalar::hash(seed, key);
    }
}
