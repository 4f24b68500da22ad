//! Text that is, or nearly is, a recorded stream or a load stream.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/streams.rs"]
mod streams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| streams::check(bytes, fuzz::has_fault()));
