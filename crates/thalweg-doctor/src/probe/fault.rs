//! What a page fault costs on this machine.

use super::usage::Used;
use std::time::Instant;

/// Memory that is touched for the first time.
const BYTES: usize = 8 << 20;
/// Fewer faults tell nothing: the kernel gave large pages.
const FAULTS_MIN: u64 = 200;

/// Seconds for one page fault that is answered from memory. Takes some milliseconds.
pub(crate) fn cost_s() -> Option<f64> {
    let own = std::process::id().cast_signed();
    let before = Used::of(own)?.faults_minor;
    let began = Instant::now();
    let mut memory = vec![0_u8; BYTES];
    for byte in memory.iter_mut().step_by(rustix::param::page_size()) {
        *byte = 1;
    }
    let took_s = began.elapsed().as_secs_f64();
    std::hint::black_box(&memory);
    let faults = Used::of(own)?.faults_minor.saturating_sub(before);
    (faults >= FAULTS_MIN).then(|| took_s / faults as f64)
}
