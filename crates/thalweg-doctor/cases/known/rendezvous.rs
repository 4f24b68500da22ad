//! FUTEX-PARKING: two threads hand a number to and fro over channels that hold one message. Each
//! has nothing else to do than to wait for the other, so it parks and is woken once a message.
//!
//! Checked on 2 cores of a virtual machine: `time`: 186,604 round trips, 251,131 voluntary
//! switches, 0.91 s system and 0.43 s user in 1.5 s; `strace -f -c -w`: 99.9 % futex.
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let (ask, asked) = sync_channel::<u64>(1);
    let (answer, answered) = sync_channel::<u64>(1);
    let peer = thread::spawn(move || {
        for number in asked {
            if answer.send(number + 1).is_err() {
                return;
            }
        }
    });
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        ask.send(number).expect("the peer is there");
        number = answered.recv().expect("the peer is there");
    }
    drop(ask);
    peer.join().expect("no panic");
    println!("{number} round trips");
}
