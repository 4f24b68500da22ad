//! YIELD-STORM: four threads take turns, and one that has to wait calls `sched_yield` in a loop. A
//! turn is an increment; the cores do little but enter the kernel, find a thread, and leave it.
//!
//! Checked on 2 cores of a virtual machine: `time`: 1,450,541 yields, 1.42 s system and 0.27 s user
//! in 1.5 s (others had part of the two cores), 939,361 involuntary switches; `strace -f -c`:
//! 73,353 of sched_yield, no other in the loop.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const STOP: u64 = u64::MAX;

/// Takes the turns of thread `own` until somebody says stop; how often it yielded.
fn play(turn: &AtomicU64, own: u64, end: Instant) -> u64 {
    let mut yields = 0;
    loop {
        // ORDERING: SeqCst, pairs with the stores below; whose turn it is, and nothing else.
        let seen = turn.load(Ordering::SeqCst);
        if seen == STOP {
            return yields;
        } else if seen % THREADS != own {
            thread::yield_now();
            yields += 1;
        } else {
            let next = if Instant::now() < end { seen + 1 } else { STOP };
            // ORDERING: SeqCst, pairs with the load above; makes it the next one's turn.
            turn.store(next, Ordering::SeqCst);
        }
    }
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let turn = AtomicU64::new(0);
    let yields: u64 = thread::scope(|scope| {
        let start = |own| {
            let turn = &turn;
            scope.spawn(move || play(turn, own, end))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    println!("{yields} yields");
}
