//! What is hashed, and by whom.

use std::hash::Hasher;
use std::hint::black_box;
use std::time::Instant;

use thalweg_hash::{Kernel, Key, Stride, xxh64, xxh64_keys, xxh64_many, xxh64_strided};
use thalweg_measure::random::SplitMix;

use super::{C, OURS};
use crate::runner::{Run, Subject, subject};

/// The protected sectors of a storage device.
const SECTORS: Stride = Stride { take: 512, skip: 8 };
const ENTRY_BYTES: usize = 16 * (512 + 8);
/// Buffers and keys that are hashed in one call.
const MANY: usize = 64;
const KEYS: usize = 1024;

pub(super) type Subjects = Vec<Box<dyn Subject<Load>>>;

/// Inputs, each of one length.
pub(super) struct Load {
    data: Vec<u8>,
    /// Bytes of one input.
    each: usize,
    calls: u64,
    /// Times are of one of these.
    hashes: usize,
    /// What the reference gives with the seed 1.
    expected: Vec<u64>,
}

impl Load {
    fn new(inputs: usize, each: usize, hashes: usize, span_ns: u64) -> Self {
        let mut random = SplitMix::new(64);
        // Not at the begin of a page or of a line: buffers of programs seldom are.
        let data = (0..inputs * each).map(|_| random.below(256) as u8);
        let work_ns = inputs as u64 * (10 + each as u64 / 10);
        Self {
            data: data.collect(),
            each,
            calls: (span_ns / work_ns).max(1),
            hashes,
            expected: Vec::new(),
        }
    }

    fn expecting(mut self, hash: impl Fn(&Self, u64, &mut [u64])) -> Self {
        let mut hashes = vec![0; self.hashes];
        hash(&self, 1, &mut hashes);
        self.expected = hashes;
        self
    }

    pub(super) fn one(bytes: usize, span_ns: u64) -> Self {
        Self::new(1, bytes, 1, span_ns).expecting(|load, seed, out| {
            out[0] = xxhash_c::xxh64(&load.data, seed);
        })
    }

    pub(super) fn scatter(entries: usize, span_ns: u64) -> Self {
        let load = Self::new(entries, ENTRY_BYTES, 1, span_ns);
        load.expecting(|load, seed, out| {
            let sectors = load.data.chunks(520);
            let together: Vec<u8> = sectors.flat_map(|s| &s[..512]).copied().collect();
            out[0] = xxhash_c::xxh64(&together, seed);
        })
    }

    pub(super) fn many(bytes: usize, span_ns: u64) -> Self {
        Self::new(MANY, bytes, MANY, span_ns).expecting(reference_each)
    }

    pub(super) fn keys(bytes: usize, span_ns: u64) -> Self {
        Self::new(KEYS, bytes, KEYS, span_ns).expecting(reference_each)
    }

    fn inputs(&self) -> impl Iterator<Item = &[u8]> {
        self.data.chunks(self.each)
    }
}

fn reference_each(load: &Load, seed: u64, out: &mut [u64]) {
    for (input, hash) in load.inputs().zip(out) {
        *hash = xxhash_c::xxh64(input, seed);
    }
}

/// A way to hash a load, with this seed and into these places, whose hashes are checked.
fn job(
    name: impl Into<String>,
    hash: impl Fn(&Load, u64, &mut [u64]) + Sync + 'static,
) -> Box<dyn Subject<Load>> {
    subject(name, move |load: &Load| {
        let mut hashes = vec![0; load.hashes];
        hash(load, 1, &mut hashes);
        if hashes != load.expected {
            return Err("another hash than that of the reference".to_owned());
        }
        Ok(timed(load, &hash))
    })
}

/// The time of a hash.
fn timed(load: &Load, hash: impl Fn(&Load, u64, &mut [u64])) -> Run {
    let mut hashes = vec![0; load.hashes];
    for seed in 0..load.calls / 8 {
        hash(black_box(load), seed, &mut hashes);
        black_box(&mut hashes);
    }
    let begin = Instant::now();
    for seed in 0..load.calls {
        hash(black_box(load), seed, &mut hashes);
        black_box(&mut hashes);
    }
    let ns = begin.elapsed().as_nanos() as f64;
    Run::of(vec![ns / (load.calls * load.hashes as u64) as f64])
}

/// One buffer, ours and the reference.
pub(super) fn short() -> Subjects {
    vec![
        job(OURS, |load, seed, out| out[0] = xxh64(seed, &load.data)),
        job(C, |load, seed, out| {
            out[0] = xxhash_c::xxh64(&load.data, seed)
        }),
    ]
}

/// One buffer, everybody.
pub(super) fn one() -> Subjects {
    let mut subjects = short();
    for kernel in Kernel::available() {
        let name = format!("{OURS} kernel {}", kernel.name());
        subjects.push(job(name, move |load, seed, out| {
            out[0] = kernel.xxh64(seed, &load.data);
        }));
    }
    subjects.push(job("xxhash-rust", |load, seed, out| {
        out[0] = xxhash_rust::xxh64::xxh64(&load.data, seed);
    }));
    subjects.push(job("twox-hash", |load, seed, out| {
        out[0] = twox_hash::XxHash64::oneshot(seed, &load.data);
    }));
    // For orientation: its values differ.
    subjects.push(subject("XXH3 in C (another hash)", |load| {
        Ok(timed(load, |load, _, out| {
            out[0] = xxhash_c::xxh3_64(&load.data)
        }))
    }));
    subjects
}

/// Protected sectors. The plain kernel keeps its accumulators in registers over all sectors: that
/// is the fused scalar loop.
pub(super) fn scatter() -> Subjects {
    let strided = |kernel: Kernel| {
        move |load: &Load, seed: u64, out: &mut [u64]| {
            out[0] = kernel.xxh64_strided(seed, load.inputs(), SECTORS);
        }
    };
    vec![
        job(OURS, |load, seed, out| {
            out[0] = xxh64_strided(seed, load.inputs(), SECTORS);
        }),
        job("fused scalar loop", strided(Kernel::SCALAR)),
        job(C, |load, seed, out| {
            let mut state = xxhash_c::XXH64::new(seed);
            for sector in load.inputs().flat_map(|entry| entry.chunks(520)) {
                state.write(&sector[..512]);
            }
            out[0] = state.finish();
        }),
    ]
}

/// One after the other, by our one-shot function.
pub(super) const ONE_BY_ONE: &str = "thalweg one after another";

fn one_by_one() -> Box<dyn Subject<Load>> {
    job(ONE_BY_ONE, |load, seed, out| {
        for (input, hash) in load.inputs().zip(out) {
            *hash = xxh64(seed, input);
        }
    })
}

pub(super) fn many() -> Subjects {
    vec![
        job(OURS, |load, seed, out| {
            let mut inputs = [&[][..]; MANY];
            for (place, input) in inputs.iter_mut().zip(load.inputs()) {
                *place = input;
            }
            xxh64_many(seed, &inputs, out);
        }),
        one_by_one(),
        job(C, reference_each),
    ]
}

pub(super) fn keys<const N: usize>() -> Subjects
where
    [u8; N]: Key,
{
    vec![
        job(OURS, |load, seed, out| {
            xxh64_keys(seed, load.data.as_chunks::<N>().0, out);
        }),
        one_by_one(),
        job(C, reference_each),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gives_the_hashes_of_the_reference() {
        let cases: [(Subjects, Load); 5] = [
            (one(), Load::one(777, 1)),
            (scatter(), Load::scatter(3, 1)),
            (many(), Load::many(100, 1)),
            (keys::<8>(), Load::keys(8, 1)),
            (keys::<64>(), Load::keys(64, 1)),
        ];
        for (subjects, load) in cases {
            for subject in subjects {
                assert!(subject.run(&load).is_ok(), "{}", subject.name());
            }
        }
    }

    #[test]
    fn another_hash_is_refused() {
        let wrong = job("wrong", |load, seed, out| {
            out[0] = xxh64(seed + 1, &load.data)
        });
        let told = wrong.run(&Load::one(40, 1)).unwrap_err();
        assert_eq!(told, "another hash than that of the reference");
    }
}
