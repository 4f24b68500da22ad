//! What the rings cost on this machine: `cargo bench -p thalweg --bench ring_speed`.
//!
//! Elements of 8 bytes, rings of 1024. Two threads, pinned to the first two usable cores, that
//! spin; so it needs two cores that nobody else uses. Each figure is the median of several runs,
//! with the best one beside it.

use std::hint::spin_loop;
use std::thread;
use std::time::Instant;

use thalweg::ring::{Consumer, Layout, Producer, spsc};

const CAPACITY: usize = 1024;
const MESSAGES: u64 = 2_000_000;
const ROUND_TRIPS: usize = 30_000;
const RUNS: usize = 15;
const BATCH: usize = 64;

/// One figure: its name, and how to take it once.
type Case = (&'static str, fn(Layout) -> f64);

const CASES: &[Case] = &[
    ("one thread, push then pop, ns", alone),
    ("one at a time, ns a message", one_at_a_time),
    ("batches of 64, ns a message", in_batches),
    ("round trip p50, ns", round_trip),
];

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Slotted];

fn main() {
    // Interleaved, since a virtual machine's cores move closer and apart while this runs.
    let mut figures = vec![[const { Vec::new() }; LAYOUTS.len()]; CASES.len()];
    for _ in 0..RUNS {
        for (row, (_, measure)) in figures.iter_mut().zip(CASES) {
            for (values, layout) in row.iter_mut().zip(LAYOUTS) {
                values.push(measure(layout));
            }
        }
    }
    println!("elements of 8 bytes, capacity {CAPACITY}, {RUNS} runs: median (best)");
    println!("{:32} {:>20} {:>20}", "", "packed", "slotted");
    for (row, (name, _)) in figures.iter_mut().zip(CASES) {
        let cell = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2})", values[RUNS / 2], values[0])
        };
        let [packed, slotted] = row;
        println!("{name:32} {:>20} {:>20}", cell(packed), cell(slotted));
    }
}

fn ring(layout: Layout) -> (Producer<u64>, Consumer<u64>) {
    spsc(CAPACITY, layout).expect("a capacity in range")
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

/// Pins this thread to the `n`-th of the usable cores, if there are that many.
#[cfg(target_os = "linux")]
fn pin(n: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(usable) = sched_getaffinity(None) else {
        return;
    };
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| usable.is_set(core));
    if let Some(core) = cores.nth(n) {
        let mut set = CpuSet::new();
        set.set(core);
        // Without the right to pin, the figures are only noisier.
        let _ = sched_setaffinity(None, &set);
    }
}

fn alone(layout: Layout) -> f64 {
    let (mut tx, mut rx) = ring(layout);
    let start = Instant::now();
    for i in 0..MESSAGES {
        let pushed = tx.try_push(std::hint::black_box(i)).is_ok();
        assert!(pushed && rx.try_pop() == Ok(i), "lost");
    }
    start.elapsed().as_nanos() as f64 / MESSAGES as f64
}

fn one_at_a_time(layout: Layout) -> f64 {
    stream(layout, send_each, receive_each)
}

fn in_batches(layout: Layout) -> f64 {
    stream(layout, send_batches, receive_batches)
}

/// Sends `MESSAGES` numbers from one thread to another; ns per number.
fn stream(layout: Layout, send: fn(Producer<u64>), receive: fn(Consumer<u64>)) -> f64 {
    let (tx, rx) = ring(layout);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            send(tx);
        });
        scope
            .spawn(|| {
                pin(0);
                let start = Instant::now();
                receive(rx);
                start.elapsed().as_nanos() as f64 / MESSAGES as f64
            })
            .join()
            .expect("receiver")
    })
}

fn send_each(mut tx: Producer<u64>) {
    for i in 0..MESSAGES {
        while tx.try_push(i).is_err() {
            spin_loop();
        }
    }
}

fn receive_each(mut rx: Consumer<u64>) {
    for i in 0..MESSAGES {
        let value = loop {
            match rx.try_pop() {
                Ok(value) => break value,
                Err(_) => spin_loop(),
            }
        };
        assert!(value == i, "out of order");
    }
}

fn send_batches(mut tx: Producer<u64>) {
    let mut values = [0; BATCH];
    for start in (0..MESSAGES).step_by(BATCH) {
        values
            .iter_mut()
            .zip(start..)
            .for_each(|(value, i)| *value = i);
        let mut left = &values[..];
        while !left.is_empty() {
            let pushed = tx.push_slice(left);
            left = &left[pushed..];
            if pushed == 0 {
                spin_loop();
            }
        }
    }
}

fn receive_batches(mut rx: Consumer<u64>) {
    let mut next = 0;
    while next < MESSAGES {
        let batch = rx.batch(BATCH);
        if batch.len() == 0 {
            spin_loop();
        }
        for value in batch {
            // Not `assert_eq!`, which would keep the counter in memory.
            assert!(value == next, "out of order");
            next += 1;
        }
    }
}

fn round_trip(layout: Layout) -> f64 {
    let (mut there, mut arrived) = ring(layout);
    let (mut back, mut answered) = ring(layout);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            while !arrived.is_closed() {
                if let Ok(value) = arrived.try_pop() {
                    back.try_push(value).expect("one message at a time");
                }
            }
        });
        scope
            .spawn(move || {
                pin(0);
                let mut times_ns = Vec::with_capacity(ROUND_TRIPS);
                for i in 0..ROUND_TRIPS as u64 {
                    let start = Instant::now();
                    there.try_push(i).expect("one message at a time");
                    while answered.try_pop() != Ok(i) {}
                    times_ns.push(start.elapsed().as_nanos() as f64);
                }
                times_ns.sort_by(f64::total_cmp);
                times_ns[ROUND_TRIPS / 2]
            })
            .join()
            .expect("pinger")
    })
}
