//! SPIN-STARVES-PEER, if `one_core.sh` starts it: three threads share a spin lock, and hold it for
//! 1 ms of work. When the core is taken from the holder, the others spin through their time slices
//! for a lock that cannot become free before the holder runs again.
//!
//! Checked on 2 cores of a virtual machine that others used too, in 1 s: `perf stat`: 0.95 s user,
//! 328 sections, though 1,000 would fit into the second; `perf annotate`: 67 % of the samples at
//! the `pause`. `schedstat`: each thread has run for a third of the time. `strace -f -c`: no call
//! in the loop.
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 3;

static LOCKED: AtomicBool = AtomicBool::new(false);
static SECTIONS: AtomicU64 = AtomicU64::new(0);

fn lock() {
    // ORDERING: Acquire, pairs with the Release in `unlock`; the new holder sees what the
    // last one wrote.
    while LOCKED.swap(true, Ordering::Acquire) {
        while LOCKED.load(Ordering::Relaxed) {
            spin_loop();
        }
    }
}

fn unlock() {
    // ORDERING: Release, pairs with the Acquire in `lock`.
    LOCKED.store(false, Ordering::Release);
}

fn work(end: Instant) {
    let mut state = 1u64;
    while Instant::now() < end {
        lock();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1) {
            for _ in 0..10_000 {
                state = black_box(
                    state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1),
                );
            }
        }
        // ORDERING: Relaxed; it is read when all threads have ended.
        SECTIONS.fetch_add(1, Ordering::Relaxed);
        unlock();
    }
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let threads: Vec<_> = (0..THREADS)
        .map(|_| thread::spawn(move || work(end)))
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    // ORDERING: Relaxed; the threads have ended.
    println!("{} sections", SECTIONS.load(Ordering::Relaxed));
}
