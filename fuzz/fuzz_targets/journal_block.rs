//! Bytes that are, or nearly are, a block of a journal.
#![no_main]

#[path = "../../crates/thalweg-journal/tests/fuzz/blocks.rs"]
mod blocks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| blocks::check(bytes, fuzz::has_fault()));
