//! The checks of the fuzz targets `journal_block` and `journal_recovery`, on random bytes that need
//! no fuzzer: they hold, and find their seeded faults.

mod blocks;
mod recovery;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn held(cases: u32, bytes: impl Strategy<Value = Vec<u8>>, check: fn(&[u8])) -> bool {
    let config = ProptestConfig {
        cases: thalweg_testkit::cases(cases),
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let result = runner.run(&bytes, |bytes| {
        check(&bytes);
        Ok(())
    });
    result.is_ok()
}

/// Nearly blocks: few bits set, so that lengths and counts are small.
fn blocks() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0), 2 => 0..4_u8, 1 => any::<u8>()];
    (any::<u8>(), prop::collection::vec(byte, 60..120)).prop_map(|(mode, mut bytes)| {
        bytes.insert(0, mode);
        bytes
    })
}

fn changes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..16)
}

#[test]
fn the_check_of_blocks_holds_and_finds_its_fault() {
    assert!(held(20_000, blocks(), |bytes| blocks::check(bytes, false)));
    assert!(!held(20_000, blocks(), |bytes| blocks::check(bytes, true)));
}

#[test]
fn the_check_of_recovery_holds_and_finds_its_fault() {
    assert!(held(1_500, changes(), |bytes| recovery::check(
        bytes, false
    )));
    assert!(!held(1_500, changes(), |bytes| recovery::check(
        bytes, true
    )));
}
