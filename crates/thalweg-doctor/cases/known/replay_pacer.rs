//! SPIN-BURNS-CPU: replays recorded quotes at the times of the recording, one each 50 µs. Between
//! two of them it looks at the clock in a loop; to apply a quote to the book takes less than 1 µs.
//! It looks like a program that computes, but nearly all of it is waiting.
//!
//! Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 1.45 s
//! user, 0.00 s system, 54 switches; the program's own sum: 1.3 ms of work for 30,000 quotes. `perf
//! record`: 57 % read the clock, 42 % are in the loop around it (`pause`). `strace -c`: no call in
//! the loop.
use std::hint::{black_box, spin_loop};
use std::time::{Duration, Instant};

const BETWEEN: Duration = Duration::from_micros(50);
const LEVELS: usize = 64;

struct Quote {
    price: u64,
    size: u64,
}

/// Puts a quote into the book, which is sorted by price.
fn apply(book: &mut Vec<Quote>, quote: Quote) {
    match book.binary_search_by_key(&quote.price, |level| level.price) {
        Ok(at) => book[at].size += quote.size,
        Err(at) => {
            book.insert(at, quote);
            book.truncate(LEVELS);
        }
    }
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let mut book = Vec::new();
    let (mut due, mut quotes, mut seed) = (start, 0_u64, 1_u64);
    let mut busy = Duration::ZERO;
    while due < end {
        while Instant::now() < due {
            spin_loop();
        }
        let began = Instant::now();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let quote = Quote {
            price: seed >> 54,
            size: seed >> 20 & 0xff,
        };
        apply(black_box(&mut book), quote);
        busy += began.elapsed();
        quotes += 1;
        due += BETWEEN;
    }
    println!("{quotes} quotes, {} µs of work", busy.as_micros());
}
