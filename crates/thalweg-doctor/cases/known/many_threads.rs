//! OVERSUBSCRIBED: four computing threads for each core. They never block; each of them waits for a
//! core three quarters of its time, and answers come four times as late as with a thread a core.
//!
//! Checked on 2 cores of a virtual machine: `/proc/PID/task/*/schedstat` after 1 s: each thread has
//! run for 0.11 to 0.18 s and waited for a core for 0.84 to 0.92 s; `time`: 4 voluntary switches in
//! all.
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

fn compute(end: Instant) -> u64 {
    let mut rounds = 0;
    let mut state = 1u64;
    while Instant::now() < end {
        for _ in 0..100_000 {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
        }
        rounds += 1;
    }
    rounds
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let threads = 4 * thread::available_parallelism().map_or(2, usize::from);
    let workers: Vec<_> = (0..threads)
        .map(|_| thread::spawn(move || compute(end)))
        .collect();
    let rounds = workers
        .into_iter()
        .map(|worker| worker.join().expect("no panic"));
    println!("{} rounds by {threads} threads", rounds.sum::<u64>());
}
