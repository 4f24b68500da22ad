// Parallel encoders with an in-order commit, as in a journal writer: each thread takes a
// ticket, encodes its block, then spins until it is its turn, appends and passes the turn on.
// The thread count comes from a bigger host: 6 encoders on 2 cores. The one whose turn it is
// mostly has no core, for the others burn their slices waiting for it.
// Cause: SPIN-STARVES-PEER.
// check by hand: perf annotate gave 97% at the load of the turn in the spin loop; schedstat gave
// each thread over 90% run delay; 6 threads make 200 to 600 blocks a second, ENCODERS=1 130000.
use std::env;
use std::hint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const ENCODERS_DEFAULT: usize = 6;
const BLOCK: usize = 2048;

struct Journal {
    next_ticket: AtomicU64,
    turn: AtomicU64,
    stop: AtomicBool,
    tail: Mutex<Vec<u8>>, // never contended: only the owner of the turn appends
}

fn encode(ticket: u64, block: &mut [u8; BLOCK]) -> u32 {
    let mut crc = !0u32;
    for (i, b) in block.iter_mut().enumerate() {
        *b = (ticket as u8).wrapping_mul(31).wrapping_add(i as u8);
        crc = (crc ^ *b as u32).wrapping_mul(0x01000193).rotate_left(5);
    }
    crc
}

fn encoder(journal: &Journal) {
    let mut block = [0u8; BLOCK];
    // ORDERING: Relaxed: it orders nothing else, and a late look is one block more.
    while !journal.stop.load(Ordering::Relaxed) {
        // ORDERING: Relaxed: the numbers differ, and publish nothing else.
        let ticket = journal.next_ticket.fetch_add(1, Ordering::Relaxed);
        let crc = encode(ticket, &mut block);
        // ORDERING: Acquire, pairs with the Release at the end of the turn before.
        while journal.turn.load(Ordering::Acquire) != ticket {
            hint::spin_loop();
        }
        {
            let mut tail = journal.tail.lock().expect("nobody panics");
            if tail.len() > 1 << 20 {
                tail.clear();
            }
            tail.extend_from_slice(&crc.to_le_bytes());
            tail.extend_from_slice(&block[..64]);
        }
        // ORDERING: Release, pairs with the Acquire of the next turn.
        journal.turn.store(ticket + 1, Ordering::Release);
    }
}

fn main() {
    let seconds: f64 = env::args().last().and_then(|a| a.parse().ok()).unwrap_or(1.5);
    let encoders = env::var("ENCODERS").ok().and_then(|v| v.parse().ok());
    let encoders = encoders.unwrap_or(ENCODERS_DEFAULT);
    let journal = Journal {
        next_ticket: AtomicU64::new(0),
        turn: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        tail: Mutex::new(Vec::with_capacity(2 << 20)),
    };
    thread::scope(|scope| {
        for _ in 0..encoders {
            scope.spawn(|| encoder(&journal));
        }
        thread::sleep(Duration::from_secs_f64(seconds));
        // ORDERING: Relaxed: as where it is read.
        journal.stop.store(true, Ordering::Relaxed);
    });
    // ORDERING: Relaxed: the threads have ended.
    let done = journal.turn.load(Ordering::Relaxed);
    println!("{done} blocks in order, {:.0} a second", done as f64 / seconds);
}
