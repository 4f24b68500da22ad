//! Bytes that are, or nearly are, the whole state of an exchange.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/language.rs"]
mod language;
#[path = "../../crates/thalweg-exchange/tests/fuzz/state.rs"]
mod state;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| state::check(bytes, fuzz::has_fault()));
