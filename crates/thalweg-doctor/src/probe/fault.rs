//! What a page fault costs on this machine.

use super::usage::Used;
use rustix::time::{ClockId, clock_gettime};

/// Memory that is touched for the first time.
const BYTES: usize = 8 << 20;
/// Fewer faults tell nothing: the kernel gave large pages.
const FAULTS_MIN: u64 = 200;

/// Processor time of this thread: others may have the core meanwhile.
fn own_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds for one page fault that is answered from memory. Takes some milliseconds.
pub(crate) fn cost_s() -> Option<f64> {
    let own = std::process::id().cast_signed();
    let before = Used::of(own)?.faults_minor;
    let began_s = own_s();
    let mut memory = vec![0_u8; BYTES];
    for byte in memory.iter_mut().step_by(rustix::param::page_size()) {
        *byte = 1;
    }
    let took_s = own_s() - began_s;
    std::hint::black_box(&memory);
    let faults = Used::of(own)?.faults_minor.saturating_sub(before);
    (faults >= FAULTS_MIN).then(|| took_s / faults as f64)
}
