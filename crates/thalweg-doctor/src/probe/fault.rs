//! Measures the cost of a page fault on this machine.

use super::usage::Used;
use rustix::time::{ClockId, clock_gettime};

/// The amount of memory that is touched for the first time.
const BYTES: usize = 8 << 20;
/// The minimum number of faults; with fewer the kernel used large pages, and there is no result.
const FAULTS_MIN: u64 = 200;

/// Returns the processor time of this thread, as others may have the core meanwhile.
fn own_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the seconds for one page fault that is served from memory. The measurement takes some
/// milliseconds.
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
