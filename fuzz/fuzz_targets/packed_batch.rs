//! Bytes that are, or nearly are, a packed batch of the command log.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/packed.rs"]
mod packed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packed::check(bytes, fuzz::has_fault()));
