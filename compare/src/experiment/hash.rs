//! XXH64 beside the reference in C: one buffer of any length, protected sectors, many buffers, and
//! keys.
//!
//! Every subject is called with another seed each time, and has to give what the reference gives.

use std::hash::Hasher;
use std::hint::black_box;
use std::time::Instant;

use thalweg_hash::{Kernel, Stride, xxh64, xxh64_keys, xxh64_many, xxh64_strided};
use thalweg_measure::random::SplitMix;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, Subject, Subjects, subject};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hash",
    shows: "XXH64 of short and long buffers, sectors with gaps, many buffers, keys; beside C",
    peers: &["xxhash-c"],
    notes: "",
    cases,
};

const METRICS: &[Metric] = &[Metric::lower("time", "ns")];
const OURS: &str = "thalweg";
const C: &str = "C xxHash 0.8.3";
/// No worse: what a change of the machine's clock takes is allowed for.
const NO_WORSE: f64 = 0.97;

/// The protected sectors of a storage device.
const SECTORS: Stride = Stride { take: 512, skip: 8 };
const ENTRY_BYTES: usize = 16 * (512 + 8);
/// Buffers and keys that are hashed in one call.
const MANY: usize = 64;
const KEYS: usize = 1024;

/// Lengths of short buffers: all up to two stripes, then every eighth.
fn short_bytes() -> impl Iterator<Item = usize> {
    (0..=64).chain((72..=256).step_by(8))
}

fn cases(settings: &Settings) -> Vec<Case> {
    // Short, so that a pair is of the same moment.
    let span_ns = settings.count(3_000_000);
    // Nothing is promised of machines that nobody measured.
    let [at_512, above, many] = match Kernel::best().name() {
        "avx512" => [1.25, 1.5, 2.0],
        "avx2" => [1.2, 1.4, NO_WORSE],
        _ => [NO_WORSE; 3],
    };
    type Row = (
        String,
        fn() -> Subjects<Load>,
        fn(usize, u64) -> Load,
        usize,
        f64,
    );
    let short = short_bytes()
        .map(|bytes| -> Row { (format!("short/{bytes}"), one, Load::one, bytes, NO_WORSE) });
    let others: [Row; 7] = [
        ("one/512B".into(), one, Load::one, 512, at_512),
        ("one/4KiB".into(), one, Load::one, 4 << 10, at_512),
        ("one/64KiB".into(), one, Load::one, 64 << 10, above),
        ("one/1MiB".into(), one, Load::one, 1 << 20, above),
        // Entries of 16 sectors, 512 + 8 bytes each.
        ("scatter/1".into(), scatter, Load::scatter, 1, 1.5),
        (
            "many/512B".into(),
            || each(ours_many),
            Load::many,
            512,
            many,
        ),
        ("keys/8B".into(), || each(ours_keys), Load::keys, 8, 4.0),
    ];
    let cases = short
        .chain(others)
        .map(|(name, subjects, load, size, least)| {
            let load = move || Ok(load(size, span_ns));
            let case = Case::new(name, "time of one hash", METRICS, subjects(), load);
            case.repeated(41).goal(Goal::ratio([OURS, C], 0, least))
        });
    cases.collect()
}

/// Inputs, each of one length.
struct Load {
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

    fn one(bytes: usize, span_ns: u64) -> Self {
        Self::new(1, bytes, 1, span_ns).expecting(reference_one)
    }

    fn scatter(entries: usize, span_ns: u64) -> Self {
        let load = Self::new(entries, ENTRY_BYTES, 1, span_ns);
        load.expecting(|load, seed, out| {
            let sectors = load.data.chunks(520);
            let together: Vec<u8> = sectors.flat_map(|s| &s[..512]).copied().collect();
            out[0] = xxhash_c::xxh64(&together, seed);
        })
    }

    fn many(bytes: usize, span_ns: u64) -> Self {
        Self::new(MANY, bytes, MANY, span_ns).expecting(reference_each)
    }

    fn keys(bytes: usize, span_ns: u64) -> Self {
        Self::new(KEYS, bytes, KEYS, span_ns).expecting(reference_each)
    }

    fn inputs(&self) -> impl Iterator<Item = &[u8]> {
        self.data.chunks(self.each)
    }
}

fn reference_one(load: &Load, seed: u64, out: &mut [u64]) {
    out[0] = xxhash_c::xxh64(&load.data, seed);
}

fn reference_each(load: &Load, seed: u64, out: &mut [u64]) {
    for (input, hash) in load.inputs().zip(out) {
        *hash = xxhash_c::xxh64(input, seed);
    }
}

/// A way to hash a load, with this seed and into these places, whose hashes are checked.
fn job(
    name: &str,
    hash: impl Fn(&Load, u64, &mut [u64]) + Sync + 'static,
) -> Box<dyn Subject<Load>> {
    subject(name, move |load: &Load| {
        let mut hashes = vec![0; load.hashes];
        hash(load, 1, &mut hashes);
        if hashes != load.expected {
            return Err("another hash than that of the reference".to_owned());
        }
        let mut run = |calls: u64| {
            for seed in 0..calls {
                hash(black_box(load), seed, &mut hashes);
                black_box(&mut hashes);
            }
        };
        run(load.calls / 8);
        let begin = Instant::now();
        run(load.calls);
        let ns = begin.elapsed().as_nanos() as f64;
        Ok(Run::of([ns / (load.calls * load.hashes as u64) as f64]))
    })
}

fn one() -> Subjects<Load> {
    let ours = |load: &Load, seed: u64, out: &mut [u64]| out[0] = xxh64(seed, &load.data);
    vec![job(OURS, ours), job(C, reference_one)]
}

fn scatter() -> Subjects<Load> {
    vec![
        job(OURS, |load, seed, out| {
            out[0] = xxh64_strided(seed, load.inputs(), SECTORS);
        }),
        job(C, |load, seed, out| {
            let mut state = xxhash_c::XXH64::new(seed);
            for sector in load.inputs().flat_map(|entry| entry.chunks(520)) {
                state.write(&sector[..512]);
            }
            out[0] = state.finish();
        }),
    ]
}

fn ours_many(load: &Load, seed: u64, out: &mut [u64]) {
    let mut inputs = [&[][..]; MANY];
    for (place, input) in inputs.iter_mut().zip(load.inputs()) {
        *place = input;
    }
    xxh64_many(seed, &inputs, out);
}

fn ours_keys(load: &Load, seed: u64, out: &mut [u64]) {
    xxh64_keys(seed, load.data.as_chunks::<8>().0, out);
}

fn each(ours: fn(&Load, u64, &mut [u64])) -> Subjects<Load> {
    vec![job(OURS, ours), job(C, reference_each)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_hash_is_refused() {
        let wrong = job("wrong", |load, seed, out| {
            out[0] = xxh64(seed + 1, &load.data)
        });
        let why = wrong.run(&Load::one(40, 1)).unwrap_err();
        assert_eq!(why, "another hash than that of the reference");
    }
}
