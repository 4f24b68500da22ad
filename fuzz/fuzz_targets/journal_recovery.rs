//! Changes to the files of a journal.
#![no_main]

#[path = "../../crates/thalweg-journal/tests/fuzz/recovery.rs"]
mod recovery;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| recovery::check(bytes, fuzz::has_fault()));
