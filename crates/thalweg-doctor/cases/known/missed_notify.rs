//! SLEEP-POLLING: a gateway and its engine hand over by a mailbox and a condition variable that
//! nobody notifies: each wait ends when its 1 ms is over. It looks like threads that wake each
//! other by futex, but no futex wakes anybody.
//!
//! Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 1,128 orders (1.3 ms each),
//! 0.04 s of processor time. `strace -f`: 2,357 of 2,358 futex time out, and one wakes (the end).
//! With `notify_one` (`missed_notify notify 1.5`) 22,209 orders.
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CHECK: Duration = Duration::from_millis(1);

/// One place for an order on its way to the engine, or for the answer.
struct Mailbox {
    letter: Mutex<Option<u64>>,
    filled: Condvar,
    /// The check of it: whether `put` tells the other side.
    notify: bool,
}

impl Mailbox {
    fn new(notify: bool) -> Self {
        Self {
            letter: Mutex::new(None),
            filled: Condvar::new(),
            notify,
        }
    }

    fn put(&self, letter: u64) {
        *self.letter.lock().expect("no panic") = Some(letter);
        if self.notify {
            self.filled.notify_one();
        }
    }

    /// The next letter. The time limit makes up for a notification that is lost, as it says.
    fn take(&self) -> u64 {
        let mut letter = self.letter.lock().expect("no panic");
        loop {
            if let Some(letter) = letter.take() {
                return letter;
            }
            (letter, _) = self.filled.wait_timeout(letter, CHECK).expect("no panic");
        }
    }
}

/// Answers each order until one is 0.
fn engine(orders: &Mailbox, answers: &Mailbox) {
    let mut book = 1_u64;
    loop {
        let order = orders.take();
        if order == 0 {
            return;
        }
        for _ in 0..100 {
            book = book.wrapping_mul(order | 1).wrapping_add(order);
        }
        answers.put(book);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let notify = words.len() > 1 && words[0] == "notify";
    let seconds = words
        .last()
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (orders, answers) = (Mailbox::new(notify), Mailbox::new(notify));
    let (mut count, mut sum) = (0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| engine(&orders, &answers));
        while Instant::now() < end {
            count += 1;
            orders.put(count);
            sum ^= answers.take();
        }
        orders.put(0);
    });
    println!("{count} orders, sum {sum}");
}
