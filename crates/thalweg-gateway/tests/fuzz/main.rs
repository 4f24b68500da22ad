//! The check of the fuzz target `decimal`, on inputs that need no fuzzer: it holds, and finds its
//! seeded fault.
#![forbid(unsafe_code)]

mod decimals;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg_gateway::decimal;

/// Texts that are decimals, or nearly so, behind the two numbers.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let text = concat!(
        r"[0-9]{1,22}(\.[0-9]{0,22})?|0{0,19}[0-9]{1,3}\.[0-9]{1,3}0{0,19}",
        r"|-?[0-9.eE+N-]{0,12}|\PC{0,4}",
    );
    let units = prop_oneof![any::<i64>(), -1_000..1_000_i64];
    (any::<u8>(), units, text).prop_map(|(places, units, text)| {
        let head = [&[places][..], &units.to_le_bytes()].concat();
        [&head, text.as_bytes()].concat()
    })
}

fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig {
        cases: thalweg_testkit::cases(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    TestRunner::new_with_rng(config, random)
}

#[test]
fn decimals_are_what_another_library_says() {
    let held = runner(5_000).run(&input(), |bytes| {
        decimals::check(&bytes, false);
        Ok(())
    });
    assert_eq!(held, Ok(()));
}

#[test]
fn a_parser_that_rounds_is_found() {
    let held = runner(20_000).run(&input(), |bytes| {
        decimals::check(&bytes, true);
        Ok(())
    });
    assert!(held.is_err(), "the seeded fault was not found");
}
