//! XXH64 beside the reference in C: one buffer of any length, protected sectors, and keys.
//!
//! Every call has another seed, and every subject has to return the hashes of the reference.

use std::hash::Hasher;
use std::hint::black_box;
use std::time::Instant;

use thalweg_hash::{Kernel, Stride, xxh64, xxh64_keys, xxh64_strided};
use thalweg_measure::random::SplitMix;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, Subject, Subjects, subject};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hash",
    shows: "XXH64 of short and long buffers, sectors with gaps, keys; beside C",
    peers: &["xxhash-c"],
    notes: "",
    cases,
};

const METRICS: &[Metric] = &[Metric::lower("time", "ns")];
const OURS: &str = "thalweg";
const C: &str = "C xxHash 0.8.3";
/// A ratio that counts as equal: the machine's clock changes by as much.
const NO_WORSE: f64 = 0.97;

/// The sectors of a storage device have 8 protection bytes each.
const SECTORS: Stride = Stride { take: 512, skip: 8 };
/// A call hashes this many keys.
const KEYS: usize = 1024;

/// Returns the lengths of short buffers: all up to two stripes, then every eighth.
fn short_bytes() -> impl Iterator<Item = usize> {
    (0..=64).chain((72..=256).step_by(8))
}

fn cases(settings: &Settings) -> Vec<Case> {
    // Runs are short, so that the machine is in one state during a pair.
    let span_ns = settings.count(3_000_000);
    // Other instruction sets were not measured.
    let [at_512, above] = match Kernel::best().name() {
        "avx512" => [1.25, 1.5],
        "avx2" => [1.2, 1.4],
        _ => [NO_WORSE; 2],
    };
    let short = short_bytes().map(|bytes| (format!("short/{bytes}"), 1, bytes, ONE, NO_WORSE));
    let others = [
        ("one/512B", 1, 512, ONE, at_512),
        ("one/4KiB", 1, 4 << 10, ONE, at_512),
        ("one/64KiB", 1, 64 << 10, ONE, above),
        // An entry has 16 sectors, 512 + 8 bytes each.
        ("scatter/1", 1, 16 * (512 + 8), SCATTER, 1.5),
        ("keys/8B", KEYS, 8, KEYS_8, 4.0),
    ];
    let others = others.map(|(name, inputs, each, ways, least)| {
        let name = name.to_owned();
        (name, inputs, each, ways, least)
    });
    let cases = short
        .chain(others)
        .map(|(name, inputs, each, ways, least)| {
            let (subjects, reference) = ways;
            let load = move || Ok(HashLoad::new(inputs, each, span_ns, reference));
            let case = Case::new(name, "time of one hash", METRICS, subjects(), load);
            case.repeated(41).goal(Goal::ratio([OURS, C], 0, least))
        });
    cases.collect()
}

/// Inputs of one length, and their hashes.
pub struct HashLoad {
    /// The inputs, one after another.
    pub data: Vec<u8>,
    /// An input has this many bytes.
    each: usize,
    calls: u64,
    /// The hashes of the reference with the seed 1.
    expected: Vec<u64>,
}

/// A function that writes the hashes of a load with a seed.
pub type Hash = fn(&HashLoad, u64, &mut [u64]);

impl HashLoad {
    /// Makes inputs of `each` bytes, which the reference has hashed.
    pub fn new(inputs: usize, each: usize, span_ns: u64, reference: Hash) -> Self {
        let mut random = SplitMix::new(64);
        // The buffer does not begin at a page or a line: buffers of programs seldom do.
        let data = (0..inputs * each).map(|_| random.below(256) as u8);
        let work_ns = inputs as u64 * (10 + each as u64 / 10);
        let mut load = Self {
            data: data.collect(),
            each,
            calls: (span_ns / work_ns).max(1),
            expected: Vec::new(),
        };
        let mut expected = vec![0; inputs];
        reference(&load, 1, &mut expected);
        load.expected = expected;
        load
    }

    fn inputs(&self) -> impl Iterator<Item = &[u8]> {
        // Chunks of 0 bytes would be an error; an empty input has no chunk.
        self.data.chunks(self.each.max(1))
    }
}

/// Makes a subject whose hashes are checked.
pub fn job(
    name: &str,
    hash: impl Fn(&HashLoad, u64, &mut [u64]) + Sync + 'static,
) -> Subject<HashLoad> {
    subject(name, move |load: &HashLoad| {
        let mut hashes = vec![0; load.expected.len()];
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
        Ok(Run::of([ns / (load.calls * hashes.len() as u64) as f64]))
    })
}

/// Subjects, and the reference for their hashes. Each subject has a loop of its own around its
/// function.
pub type Ways = (fn() -> Subjects<HashLoad>, Hash);

macro_rules! ways {
    ($($name:ident: $reference:ident, $ours:expr;)*) => {$(
        pub const $name: Ways = (|| vec![job(OURS, $ours), job(C, $reference)], $reference);
    )*};
}

ways! {
    ONE: reference_one, |load, seed, out| out[0] = xxh64(seed, &load.data);
    SCATTER: reference_scatter, |load, seed, out| {
        out[0] = xxh64_strided(seed, load.inputs(), SECTORS);
    };
    KEYS_8: reference_keys, |load, seed, out| {
        xxh64_keys(seed, load.data.as_chunks::<8>().0, out);
    };
}

fn reference_one(load: &HashLoad, seed: u64, out: &mut [u64]) {
    out[0] = xxhash_c::xxh64(&load.data, seed);
}

fn reference_scatter(load: &HashLoad, seed: u64, out: &mut [u64]) {
    let mut state = xxhash_c::XXH64::new(seed);
    for sector in load.data.chunks(520) {
        state.write(&sector[..512]);
    }
    out[0] = state.finish();
}

fn reference_keys(load: &HashLoad, seed: u64, out: &mut [u64]) {
    for (input, hash) in load.inputs().zip(out) {
        *hash = xxhash_c::xxh64(input, seed);
    }
}
