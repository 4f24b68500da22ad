//! The properties of the fuzz targets (`fuzz/`), on random bytes that need no fuzzer: each property
//! holds, and finds its seeded fault.

pub(crate) use crate::book::plain;

mod engine;
pub(crate) mod frames;
mod language;
mod packed;
pub(crate) use crate::session::samples;
mod seeds;
pub(crate) mod session;
mod state;
mod streams;

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// The target's name, what it checks, and an input to begin with.
type Target = (&'static str, fn(&[u8], bool), fn() -> Vec<u8>);

const TARGETS: [Target; 6] = [
    ("codec", frames::check, seeds::frames),
    ("engine", engine::check, seeds::orders),
    ("packed_batch", packed::check, seeds::packed_batch),
    ("session", session::check, seeds::sessions),
    ("state", state::check, seeds::states),
    ("streams", streams::check, seeds::lines),
];

/// Random bytes, or a piece of a seed with a few bytes changed.
fn input(seed: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let changed = changes.prop_map(move |changes| {
        let mut bytes = seed.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..400), changed]
}

/// `THALWEG_WRITE_SEEDS=1` writes them.
#[test]
fn the_fuzzer_begins_with_these_inputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    if !folder.exists() {
        println!("skipped: no {}", folder.display());
        return;
    }
    for (name, check, seed) in TARGETS {
        let path = folder.join(name).join("good");
        if std::env::var_os("THALWEG_WRITE_SEEDS").is_some() {
            std::fs::write(&path, seed()).expect("the file can be written");
        }
        let bytes = std::fs::read(&path).expect("the file can be read");
        assert!(bytes == seed(), "{name}: write {} again", path.display());
        check(&bytes, false);
    }
}

#[test]
fn the_checks_hold_of_random_bytes() {
    for (name, check, seed) in TARGETS {
        let mut runner = TestRunner::new(ProptestConfig::default());
        let held = runner.run(&input(seed()), |bytes| {
            check(&bytes, false);
            Ok(())
        });
        assert_eq!(held, Ok(()), "{name}");
    }
}

#[test]
fn the_checks_find_their_seeded_faults() {
    for (name, check, seed) in TARGETS {
        let config = ProptestConfig {
            cases: thalweg_testkit::cases(20_000),
            max_shrink_iters: 0,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let found = runner.run(&input(seed()), |bytes| {
            check(&bytes, true);
            Ok(())
        });
        assert!(found.is_err(), "{name}");
    }
}
