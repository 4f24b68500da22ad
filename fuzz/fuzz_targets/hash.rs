//! Bytes, hashed in every way by every kernel.
#![no_main]

#[path = "../../crates/thalweg-hash/tests/fuzz/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| input::check(bytes, fuzz::has_fault()));
