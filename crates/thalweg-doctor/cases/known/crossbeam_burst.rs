//! Bursts through crossbeam-channel: 20 senders, one receiver, and for each burst a new bounded
//! channel of 8-byte messages. `burst SLOTS SECONDS [BURSTS [SENDERS]]`
//!
//! `burst 1000000`: PAGE-FAULTS. The channel fills in all of its 1,000,000 slots before the first
//! message: 16 MB of pages, and 400 messages hardly count. From the second burst on, glibc would
//! keep the freed memory, and starting threads would take the time;
//! `MALLOC_MMAP_THRESHOLD_=1048576` lets it give large blocks back, so that each burst meets what
//! the first one of a process meets.
//! `burst 64`: SPIN-STARVES-PEER. 50,000 messages of each sender meet 64 slots: those that wait for
//! room pause in a loop, then yield, then park, beside 19 others and the receiver on two cores.
//!
//! Checked on 2 cores of a virtual machine: `time`, 1.5 s: `burst 1000000` 554,974 minor faults,
//! 1.46 s system and 0.11 s user, 142 bursts, so 3,908 faults each: 16 MB of pages; without the
//! variable 8,053 faults, and `strace -f -c` has the calls of starting threads. `burst 64`: 218
//! faults, 2.73 s user and 0.18 s system; `strace -f -c`: `futex` and `sched_yield` only.
use std::time::{Duration, Instant};

fn burst(slots: usize, senders: u64, messages: u64) -> u64 {
    let (sender, receiver) = crossbeam_channel::bounded::<u64>(slots);
    std::thread::scope(|scope| {
        for first in 0..senders {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..messages {
                    sender.send(first + number).expect("the receiver is there");
                }
            });
        }
        drop(sender);
        receiver.iter().sum()
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let slots = arguments
        .next()
        .map_or(64, |text| text.parse().expect("slots"));
    let seconds = arguments
        .next()
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let most = arguments
        .next()
        .map_or(u64::MAX, |text| text.parse().expect("bursts"));
    let senders = arguments
        .next()
        .map_or(20, |text| text.parse().expect("senders"));
    let messages = if slots > 1_000 { 20 } else { 50_000 };
    let start = Instant::now();
    let (mut bursts, mut sum) = (0, 0);
    while bursts < most && start.elapsed() < Duration::from_secs_f64(seconds) {
        sum += burst(slots, senders, messages);
        bursts += 1;
    }
    println!(
        "{bursts} bursts of {} messages, sum {sum}",
        senders * messages
    );
}
