//! Code that the fuzz targets share.

#![forbid(unsafe_code)]

use std::env;
use std::sync::OnceLock;

/// Returns whether the target has its seeded fault, which it must then find: whether
/// `THALWEG_FUZZ_FAULT` is set. One build serves both runs.
pub fn has_fault() -> bool {
    static FAULT: OnceLock<bool> = OnceLock::new();
    *FAULT.get_or_init(|| env::var_os("THALWEG_FUZZ_FAULT").is_some())
}
