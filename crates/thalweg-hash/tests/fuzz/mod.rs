//! The check of the fuzz target `hash`, on random bytes that need no fuzzer: it holds, and finds
//! its seeded fault.

mod input;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig {
        cases: thalweg_testkit::cases(cases),
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(any::<u8>(), 0..3000),
    ]
}

#[test]
fn the_check_holds_of_random_bytes() {
    let held = runner(2_000).run(&bytes(), |bytes| {
        input::check(&bytes, false);
        Ok(())
    });
    assert_eq!(held, Ok(()));
}

#[test]
fn the_check_finds_its_seeded_fault() {
    let found = runner(2_000).run(&bytes(), |bytes| {
        input::check(&bytes, true);
        Ok(())
    });
    assert!(found.is_err());
}
