//! Every kernel, and the model of eight lanes, against the scalar one.

use super::lanes::model::Model;
use super::lanes::{Lanes, keys, many};
use super::twin::Twin;
use super::{Group, Kernel, scalar};
use crate::accumulator::{STRIPE_BYTES, start};

/// Bytes without a pattern, the same ones every time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn one_buffer_of_every_length_at_every_alignment() {
    let data = noise(1200);
    for kernel in Kernel::available() {
        for bytes in 0..1100 {
            let from = bytes % 67;
            let data = &data[from..from + bytes];
            for seed in [0, 1, u64::MAX] {
                let expected = scalar::hash(seed, data);
                assert_eq!(kernel.xxh64(seed, data), expected, "{kernel:?} {bytes}");
            }
        }
    }
}

#[test]
fn stripes_and_groups_give_the_same_accumulators() {
    let data = noise(64 * STRIPE_BYTES + 5);
    for kernel in Kernel::available() {
        for stripes in 0..64 {
            let bytes = &data[stripes % 5..][..stripes * STRIPE_BYTES];
            let bytes = bytes.as_chunks().0;
            let (mut expected, mut got) = (start(9), start(9));
            scalar::stripes(&mut expected, bytes);
            kernel.stripes(&mut got, bytes);
            assert_eq!(got, expected, "{kernel:?} {stripes}");

            let groups = bytes.as_flattened().as_chunks().0;
            let groups: Vec<&Group> = groups.iter().rev().collect();
            let (mut expected, mut got) = (start(3), start(3));
            for group in &groups {
                scalar::stripes(&mut expected, group.as_chunks().0);
            }
            kernel.groups(&mut got, &groups);
            assert_eq!(got, expected, "{kernel:?} {stripes}");
        }
    }
}

/// Inputs of lengths that end at different times.
fn ragged(data: &[u8], count: usize, longest: usize) -> Vec<&[u8]> {
    let lengths = (0..count).map(|at| (at * 7919 + at * at * 31) % (longest + 1));
    lengths
        .enumerate()
        .map(|(at, bytes)| &data[at % 13..at % 13 + bytes])
        .collect()
}

#[test]
fn many_inputs_of_any_lengths() {
    let data = noise(3000);
    for kernel in Kernel::available() {
        for count in (0..20).chain([64, 200]) {
            for longest in [0, 31, 100, 2000] {
                let inputs = ragged(&data, count, longest);
                let mut hashes = vec![0; count];
                kernel.xxh64_many(5, &inputs, &mut hashes);
                let expected: Vec<u64> = inputs.iter().map(|i| scalar::hash(5, i)).collect();
                assert_eq!(hashes, expected, "{kernel:?} {count} {longest}");
            }
        }
    }
}

fn many_of_a_model<const COUNT: usize>() {
    let data = noise(3000);
    for count in (0..20).chain([64, 200]) {
        for longest in [31, 100, 2000] {
            let inputs = ragged(&data, count, longest);
            let mut hashes = vec![0; count];
            // SAFETY: the model needs no features.
            unsafe { many::<Model<COUNT>>(5, &inputs, &mut hashes, scalar::stripes) };
            let expected: Vec<u64> = inputs.iter().map(|i| scalar::hash(5, i)).collect();
            assert_eq!(hashes, expected, "{count} {longest}");
        }
    }
}

#[test]
fn many_inputs_in_lanes_of_any_width() {
    many_of_a_model::<4>();
    many_of_a_model::<8>();
}

fn some_keys<const N: usize>() -> Vec<[u8; N]> {
    noise(N * 100).as_chunks().0.to_vec()
}

fn keys_of_a_size<const N: usize>(hash: impl Fn(u64, &[[u8; N]], &mut [u64])) {
    let all = some_keys::<N>();
    for count in 0..all.len() {
        let mut hashes = vec![0; count];
        hash(11, &all[..count], &mut hashes);
        let expected: Vec<u64> = all[..count].iter().map(|k| scalar::hash(11, k)).collect();
        assert_eq!(hashes, expected, "{count} keys of {N} bytes");
    }
}

#[test]
fn keys_of_every_size_and_count() {
    for kernel in Kernel::available() {
        keys_of_a_size::<8>(|seed, keys, hashes| kernel.xxh64_keys(seed, keys, hashes));
        keys_of_a_size::<16>(|seed, keys, hashes| kernel.xxh64_keys(seed, keys, hashes));
        keys_of_a_size::<32>(|seed, keys, hashes| kernel.xxh64_keys(seed, keys, hashes));
        keys_of_a_size::<64>(|seed, keys, hashes| kernel.xxh64_keys(seed, keys, hashes));
    }
}

fn keys_of_a_model<L: Lanes>() {
    macro_rules! of_size {
        ($($bytes:literal),+) => {
            // SAFETY: the model needs no features.
            $(keys_of_a_size::<$bytes>(|seed, all, hashes| unsafe {
                keys::<L, $bytes>(seed, all, hashes);
            });)+
        };
    }
    of_size!(8, 16, 32, 64);
}

#[test]
fn keys_in_lanes_of_any_width() {
    keys_of_a_model::<Model<4>>();
    keys_of_a_model::<Model<8>>();
    keys_of_a_model::<Twin<Model<4>>>();
    keys_of_a_model::<Twin<Twin<Model<8>>>>();
}

#[test]
fn the_best_kernel_is_the_first_that_is_there() {
    let first = Kernel::available().next().expect("the scalar one is there");
    assert_eq!(Kernel::best().name(), first.name());
    assert_eq!(Kernel::best().name(), first.name(), "also when remembered");
    assert!(Kernel::available().any(|kernel| kernel.name() == "scalar"));
    let names: Vec<&str> = Kernel::available().map(Kernel::name).collect();
    println!("kernels here: {}", names.join(", "));
}
