//! Bytes that are, or nearly are, frames of the exchange's wire form.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frames::check(bytes, fuzz::has_fault()));
