//! What the bus costs on this machine: `cargo bench -p thalweg --bench bus_speed`; with a word
//! behind `--`, only the figures with that in their names.
//!
//! Messages of 24 bytes in topics that reject, one inbox. Threads are pinned to the first two
//! usable cores; so it needs two cores that nobody else uses. Each figure is the median of several
//! runs, with the best one beside it.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use thalweg::bus::{Bus, Consumer, Message, Policy, Publisher, TopicId, TopicInfo, Topics};
use thalweg_measure::clock::Clock;

const RUNS: usize = 15;
const STREAM: u64 = 500_000;
const BURST: usize = 512;
const TWO_BURST: usize = 50_000;
const GAP_NS: u64 = 2_000;
const GAPS: usize = 20_000;

#[derive(Clone, Copy)]
enum Market {
    Trade { price: u64, at: u64 },
    Quote { bid: u64 },
}

const fn rejecting(name: &'static str) -> TopicInfo {
    TopicInfo {
        policy: Policy::Reject,
        ..TopicInfo::new(name)
    }
}

impl Message for Market {
    const TOPICS: &'static [TopicInfo] = &[rejecting("market.trade"), rejecting("market.quote")];

    #[inline]
    fn topic(&self) -> TopicId {
        match self {
            Self::Trade { .. } => TopicId::new(0),
            Self::Quote { .. } => TopicId::new(1),
        }
    }
}

const _: () = assert!(size_of::<Market>() == 24);

/// One figure: its name, and how to take it once.
type Case = (&'static str, fn() -> f64);

const CASES: &[Case] = &[
    ("publish, one thread, ns", || publish_alone(1_024, 0)),
    ("publish, one thread, 131,072 places, ns", || {
        publish_alone(131_072, 0)
    }),
    ("publish, taken on another core, ns", || {
        publish_alone(1_024, 1)
    }),
    ("publish and receive, one thread, ns", publish_and_receive),
    ("one to one, two cores, ns a message", one_to_one),
    ("two publishers, ns a message", two_publishers),
    ("end to end p50, 2 us gaps, ns", || end_to_end(0.5)),
    ("end to end p99, 2 us gaps, ns", || end_to_end(0.99)),
];

fn main() {
    pin(0);
    let asked = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let is_asked = |(name, _): &&Case| asked.as_ref().is_none_or(|word| name.contains(word));
    let cases: Vec<&Case> = CASES.iter().filter(is_asked).collect();
    // Interleaved, since a virtual machine's cores move closer and apart while this runs.
    let mut figures = vec![Vec::new(); cases.len()];
    for _ in 0..RUNS {
        for (values, (_, measure)) in figures.iter_mut().zip(&cases) {
            values.push(measure());
        }
    }
    let clock = Clock::global();
    println!("messages of 24 bytes, {RUNS} runs: median (best)");
    println!(
        "a read of the clock: {:?}, {:.1} ns",
        clock.source(),
        clock.read_cost_ns()
    );
    for (values, (name, _)) in figures.iter_mut().zip(cases) {
        values.sort_by(f64::total_cmp);
        println!("{name:40} {:8.2} ({:.2})", values[RUNS / 2], values[0]);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

/// Pins this thread to the `n`-th of the usable cores, if there are that many.
#[cfg(target_os = "linux")]
fn pin(n: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::OnceLock;
    static USABLE: OnceLock<CpuSet> = OnceLock::new();
    let usable = USABLE.get_or_init(|| sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()));
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| usable.is_set(core));
    if let Some(core) = cores.nth(n) {
        let mut set = CpuSet::new();
        set.set(core);
        // Without the right to pin, the figures are only noisier.
        let _ = sched_setaffinity(None, &set);
    }
}

fn ends(capacity: usize) -> (Bus<Market>, Publisher<Market>, Consumer<Market>) {
    let bus = Bus::builder().capacity(capacity);
    let bus = bus.build().expect("a capacity in range");
    let rx = bus.subscribe(Topics::ALL).expect("an open bus");
    let tx = bus.publisher("bench").expect("an open bus");
    (bus, tx, rx)
}

fn message(n: u64) -> Market {
    match n % 2 {
        0 => Market::Trade { price: n, at: 0 },
        _ => Market::Quote { bid: n },
    }
}

fn value(message: Market) -> u64 {
    match message {
        Market::Trade { price, .. } => price,
        Market::Quote { bid } => bid,
    }
}

fn drain(rx: &mut Consumer<Market>) -> usize {
    rx.recv_each(usize::MAX, |got| {
        black_box(value(got.message));
    })
}

/// Bursts that are taken afterwards by a thread on this core.
fn publish_alone(capacity: usize, core: usize) -> f64 {
    let (_bus, mut tx, mut rx) = ends(capacity);
    let (mut spent_ns, mut published) = (0, 0);
    for _ in 0..400 {
        let start = Instant::now();
        for n in 0..BURST as u64 {
            published += tx.publish(message(n)).unwrap_or(0);
        }
        spent_ns += start.elapsed().as_nanos();
        let take = || {
            pin(core);
            drain(&mut rx)
        };
        let taken = thread::scope(|scope| scope.spawn(take).join());
        assert_eq!(taken.expect("no panic"), BURST);
    }
    spent_ns as f64 / published as f64
}

fn publish_and_receive() -> f64 {
    let (_bus, mut tx, mut rx) = ends(1024);
    let start = Instant::now();
    let mut sum = 0;
    for n in 0..STREAM / 4 {
        let _ = tx.publish(message(n));
        sum += rx.try_recv().map_or(0, |got| value(got.message));
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / (STREAM / 4) as f64
}

fn one_to_one() -> f64 {
    let (_bus, mut tx, mut rx) = ends(1024);
    let receiving = thread::spawn(move || {
        pin(1);
        let mut taken = 0;
        while taken < STREAM as usize {
            taken += rx
                .wait_each(64, |got| {
                    black_box(value(got.message));
                })
                .unwrap_or(0);
        }
    });
    let start = Instant::now();
    for n in 0..STREAM {
        while tx.publish(message(n)).is_err() {
            spin_loop();
        }
    }
    receiving.join().expect("no panic");
    start.elapsed().as_nanos() as f64 / STREAM as f64
}

fn two_publishers() -> f64 {
    let (bus, tx, rx) = ends(4 * TWO_BURST);
    let ready = Barrier::new(2);
    let publish = |mut tx: Publisher<Market>, core: usize| {
        pin(core);
        ready.wait();
        let start = Instant::now();
        for n in 0..TWO_BURST as u64 {
            let _ = tx.publish(message(n));
        }
        (start, Instant::now())
    };
    let other = bus.publisher("other").expect("an open bus");
    let (a, b) = thread::scope(|scope| {
        let other = scope.spawn(|| publish(other, 1));
        let own = publish(tx, 0);
        (own, other.join().expect("no panic"))
    });
    assert_eq!(rx.service().waiting, 2 * TWO_BURST as u64);
    // They start apart, and one may wait for the other: from the first start to the last end.
    let spent = a.1.max(b.1) - a.0.min(b.0);
    spent.as_nanos() as f64 / (2 * TWO_BURST) as f64
}

fn end_to_end(quantile: f64) -> f64 {
    let (_bus, mut tx, mut rx) = ends(1024);
    let clock = Clock::global();
    let receiving = thread::spawn(move || {
        pin(1);
        let mut latencies = Vec::with_capacity(GAPS);
        while latencies.len() < GAPS {
            if let Ok(got) = rx.try_recv()
                && let Market::Trade { at, .. } = got.message
            {
                latencies.push(clock.ticks().saturating_sub(at));
            }
        }
        latencies.sort_unstable();
        clock.ns(latencies[(GAPS as f64 * quantile) as usize]) as f64
    });
    let gap = clock.ticks_from_ns(GAP_NS);
    let mut next = clock.ticks() + 100 * gap;
    for n in 0..GAPS as u64 {
        while clock.ticks() < next {
            spin_loop();
        }
        next += gap;
        let at = clock.ticks();
        while tx.publish(Market::Trade { price: n, at }).is_err() {}
    }
    receiving.join().expect("no panic")
}
