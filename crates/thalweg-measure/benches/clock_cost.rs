//! What reading the clock and recording a value cost on this machine, in warm loops:
//! `cargo bench -p thalweg-measure --bench clock_cost`.

use std::hint::black_box;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::recorder;
use thalweg_measure::statistics::median;

const CALLS: u64 = 4096;
const ROUNDS: usize = 301;

/// The median over the rounds of nanoseconds per call.
fn cost_ns(mut call: impl FnMut(u64)) -> f64 {
    let clock = Clock::global();
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = clock.ticks();
            (0..CALLS).for_each(&mut call);
            clock.ns(clock.ticks() - begin) as f64 / CALLS as f64
        })
        .collect();
    median(&rounds).unwrap_or(f64::NAN)
}

fn print(what: &str, ns: f64) {
    println!("{what:<22} {ns:8.2} ns");
}

fn main() {
    let begin = std::time::Instant::now();
    let (global, os) = (Clock::global(), Clock::with_os());
    println!(
        "calibrated in {:.2} ms",
        begin.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "source {}, read_cost_ns {:.2}",
        global.source(),
        global.read_cost_ns()
    );
    let mut sink = 0;
    print(
        "read, hardware",
        cost_ns(|_| sink = black_box(global.ticks())),
    );
    print("read, os", cost_ns(|_| sink = black_box(os.ticks())));
    print(
        "ticks to ns",
        cost_ns(|i| sink = black_box(global.ns(black_box(i)))),
    );
    let (writer, reader) = recorder();
    print(
        "record",
        cost_ns(|i| writer.record(black_box(900 + (i & 63)))),
    );
    print(
        "record_n, one value",
        cost_ns(|_| writer.record_n(black_box(1234), 64)),
    );
    let spread = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    print(
        "record_n, 2^20 values",
        cost_ns(|i| writer.record_n(black_box(spread(i)), 64)),
    );
    let mut histogram = reader.snapshot(|ticks| global.ns(ticks));
    print(
        "histogram.record_n",
        cost_ns(|i| histogram.record_n(black_box(spread(i)), 64)),
    );
    let spans: Vec<f64> = (0..101)
        .map(|_| {
            let begin = global.ticks();
            sink = black_box(reader.snapshot(|ticks| global.ns(ticks))).count();
            global.ns(global.ticks() - begin) as f64
        })
        .collect();
    print("snapshot", median(&spans).unwrap_or(f64::NAN));
    black_box(sink);
    let second = global.ticks_from_ns(1_000_000_000);
    let off_ns = global.refined().ns(second) as f64 - global.ns(second) as f64;
    let baseline = begin.elapsed().as_secs_f64();
    println!(
        "rate over {baseline:.1} s against the calibrated one: {:+.3} ppm",
        off_ns / 1e3
    );
}
