//! FUTEX-PARKING: two producers send single numbers through a queue with one place, made of a
//! mutex and two condition variables. Nobody computes, so nearly every number puts a thread to
//! sleep and wakes another one.
//!
//! Checked on 2 cores of a virtual machine that others used too, in 1 s: `perf stat`: 71,218 items,
//! 154,982 switches (2.2 for an item), 0.79 s system and 0.09 s user. `strace -f -c -w`: 99.5 %
//! futex.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const PRODUCERS: usize = 2;
const PLACES: usize = 1;

#[derive(Default)]
struct Queue {
    items: Mutex<VecDeque<u64>>,
    filled: Condvar,
    emptied: Condvar,
}

impl Queue {
    fn send(&self, item: u64) {
        let items = self.items.lock().expect("no panic");
        let full = |items: &mut VecDeque<u64>| items.len() == PLACES;
        let mut items = self.emptied.wait_while(items, full).expect("no panic");
        items.push_back(item);
        drop(items);
        self.filled.notify_one();
    }

    fn receive(&self) -> u64 {
        let items = self.items.lock().expect("no panic");
        let empty = |items: &mut VecDeque<u64>| items.is_empty();
        let mut items = self.filled.wait_while(items, empty).expect("no panic");
        let item = items.pop_front().expect("not empty");
        drop(items);
        self.emptied.notify_one();
        item
    }
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let queue = Queue::default();
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                while Instant::now() < end {
                    queue.send(1);
                }
                queue.send(0);
            });
        }
        // 0 says that a producer has ended.
        let (mut received, mut ended) = (0, 0);
        while ended < PRODUCERS {
            match queue.receive() {
                0 => ended += 1,
                item => received += item,
            }
        }
        println!("{received} items");
    });
}
