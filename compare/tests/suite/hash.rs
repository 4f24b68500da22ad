//! XXH64 equals the reference in C for a million random inputs, cut, strided and batched at random.

use std::hash::Hasher;

use thalweg_hash::{Kernel, Stride, Xxh64, xxh64};
use thalweg_measure::random::SplitMix;

const ROUNDS: usize = 1_000_000;
const LENGTH_MAX: u64 = 4096;
const ALIGNMENTS: u64 = 64;

fn below(random: &mut SplitMix, limit: u64) -> usize {
    random.below(limit) as usize
}

fn noise(random: &mut SplitMix, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// Hashes each input with the default kernel and with another one in turn, whole, in two pieces,
/// and strided.
#[test]
fn a_million_random_inputs() {
    let mut random = SplitMix::new(0x5EED);
    let data = noise(&mut random, (LENGTH_MAX + ALIGNMENTS) as usize);
    let kernels: Vec<Kernel> = Kernel::available().collect();
    for round in 0..ROUNDS {
        let from = below(&mut random, ALIGNMENTS);
        // Half of the inputs are short: the branches are in the tails.
        let limit = if round % 2 == 0 { 300 } else { LENGTH_MAX + 1 };
        let length = below(&mut random, limit);
        let seed = random.below(u64::MAX);
        let input = &data[from..from + length];
        let expected = xxhash_c::xxh64(input, seed);
        let case = || format!("{length} bytes at {from}, seed {seed:#x}");
        assert_eq!(xxh64(seed, input), expected, "{}", case());
        let kernel = kernels[round % kernels.len()];
        assert_eq!(kernel.xxh64(seed, input), expected, "{kernel:?} {}", case());
        let (left, right) = input.split_at(below(&mut random, length as u64 + 1));
        let mut stream = Xxh64::with_kernel(kernel, seed);
        stream.update(left);
        stream.update(right);
        assert_eq!(
            stream.digest(),
            expected,
            "{kernel:?} {} at {}",
            case(),
            left.len()
        );
        let all = Stride {
            take: 1 + below(&mut random, 700),
            skip: 0,
        };
        let got = kernel.xxh64_strided(seed, [left, right], all);
        assert_eq!(got, expected, "{kernel:?} {} at {}", case(), left.len());
    }
}

/// Compares strides with the reference, which gets the parts that are taken.
#[test]
fn random_strides() {
    let mut random = SplitMix::new(0xCAFE);
    let data = noise(&mut random, 20_000);
    for _ in 0..20_000 {
        let stride = Stride {
            take: match random.below(3) {
                0 => 128 * (1 + below(&mut random, 8)),
                1 => 512,
                _ => 1 + below(&mut random, 900),
            },
            skip: below(&mut random, 70),
        };
        let input = &data[below(&mut random, 9_000)..][..below(&mut random, 9_000)];
        let mut reference = xxhash_c::XXH64::new(3);
        for sector in input.chunks(stride.take + stride.skip) {
            reference.write(&sector[..stride.take.min(sector.len())]);
        }
        let cut = below(&mut random, input.len() as u64 + 1);
        let pieces: [&[u8]; 2] = input.split_at(cut).into();
        for kernel in Kernel::available() {
            let got = kernel.xxh64_strided(3, pieces, stride);
            assert_eq!(got, reference.finish(), "{kernel:?} {stride} cut at {cut}");
        }
    }
}

/// Hashes inputs of different lengths in one call.
#[test]
fn random_batches() {
    let mut random = SplitMix::new(0xBEEF);
    let data = noise(&mut random, 5_000);
    for _ in 0..2_000 {
        let count = below(&mut random, 40);
        let inputs: Vec<&[u8]> = (0..count)
            .map(|_| &data[below(&mut random, 900)..][..below(&mut random, 4_000)])
            .collect();
        let expected: Vec<u64> = inputs
            .iter()
            .map(|input| xxhash_c::xxh64(input, 9))
            .collect();
        for kernel in Kernel::available() {
            let mut hashes = vec![0; count];
            kernel.xxh64_many(9, &inputs, &mut hashes);
            assert_eq!(hashes, expected, "{kernel:?}");
        }
    }
}
