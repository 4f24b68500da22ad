//! Decimals of the gateway, parsed and printed.
#![no_main]

// The file alone, since the crate around it has a runtime and a web server, which would be built.
#[path = "../../crates/thalweg-gateway/src/decimal.rs"]
mod decimal;
#[path = "../../crates/thalweg-gateway/tests/fuzz/decimals.rs"]
mod decimals;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decimals::check(bytes, fuzz::has_fault()));
