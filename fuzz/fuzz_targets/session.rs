//! Bytes that are, or nearly are, frames of a connection to the exchange.
#![no_main]

#[path = "../../crates/thalweg-exchange/tests/fuzz/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| session::check(bytes, fuzz::has_fault()));
