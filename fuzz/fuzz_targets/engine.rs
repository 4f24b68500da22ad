//! Bytes that stand for commands of the exchange.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/engine.rs"]
mod engine;
#[path = "../../crates/thalweg-exchange/tests/fuzz/language.rs"]
mod language;
#[path = "../../crates/thalweg-exchange/tests/book/plain.rs"]
#[allow(dead_code)] // made for the book's tests; this file needs a part of it
mod plain;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::check(bytes, fuzz::has_fault()));
