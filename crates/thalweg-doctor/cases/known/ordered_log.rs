//! YIELD-STORM: six writers append to one log. Each claims a place, fills it in, and calls
//! `sched_yield` until all places before its own are committed. A writer that yields keeps its
//! place meanwhile, so the next ones must yield too, and each record costs a round of all.
//!
//! Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 241,783
//! records, 464,207 switches, 1.26 s system, 0.15 s user. `strace -f`: only sched_yield in the
//! loop. `perf record`: 2 % in `write`. If a mutex guards claim and commit, and nobody yields
//! (`ordered_log mutex 1.5`), 16,947,850 records.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WRITERS: u64 = 6;
const PLACES: u64 = 1 << 12;
const WORDS: usize = 16;

struct Log {
    places: Vec<[AtomicU64; WORDS]>,
    claimed: AtomicU64,
    committed: AtomicU64,
    /// The check of it: writers claim, fill in and commit under a mutex, and nobody yields.
    whole: Option<Mutex<()>>,
}

impl Log {
    fn append(&self, record: &[u64; WORDS]) {
        let _guard = self.whole.as_ref().map(|whole| whole.lock());
        // ORDERING: Relaxed; it only gives out numbers.
        let number = self.claimed.fetch_add(1, Ordering::Relaxed);
        let place = &self.places[(number % PLACES) as usize];
        for (word, value) in place.iter().zip(record) {
            // ORDERING: Relaxed; the Release below publishes it.
            word.store(*value, Ordering::Relaxed);
        }
        // ORDERING: Acquire, pairs with the Release below of the writer before.
        while self.committed.load(Ordering::Acquire) != number {
            thread::yield_now();
        }
        // ORDERING: Release, pairs with the Acquire above of the writer after.
        self.committed.store(number + 1, Ordering::Release);
    }
}

fn write(log: &Log, writer: u64, end: Instant) {
    let mut record = [writer; WORDS];
    while Instant::now() < end {
        // The record is made of what the writer knows: its fields, and a sum over them.
        for round in 0..8 {
            for at in 1..WORDS {
                record[at] = record[at - 1]
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(round);
            }
            record[0] ^= record[WORDS - 1];
        }
        log.append(&record);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mutex = words.len() > 1 && words[0] == "mutex";
    let seconds = words
        .last()
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let log = Log {
        places: (0..PLACES)
            .map(|_| [const { AtomicU64::new(0) }; WORDS])
            .collect(),
        claimed: AtomicU64::new(0),
        committed: AtomicU64::new(0),
        whole: mutex.then(Mutex::default),
    };
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    thread::scope(|scope| {
        let log = &log;
        for writer in 0..WRITERS {
            scope.spawn(move || write(log, writer, end));
        }
    });
    // ORDERING: Relaxed; the writers have ended.
    println!("{} records", log.committed.load(Ordering::Relaxed));
}
