//! A consumer that spins or parks, which changes when it is ready again and what waits then.

use super::{Random, changes};
use crate::bus::{Balance, Facts, Horizons, Reading, Rule};
use proptest::prelude::*;

/// What waking up takes, what a message takes, and how long the replaced strategy sleeps, in ns.
const WAKE_NS: f64 = 5_000.0;
const SERVICE_NS: f64 = 1_000.0;
const SLEEP_NS: f64 = 1_000_000.0;
/// How long spinning may take: two wake-ups.
const BUDGET_NS: u64 = 10_000;

/// How a wait goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Spin,
    Park,
    /// For a fixed time, whatever comes.
    Sleep,
}

/// What a consumer knows where it begins to wait.
#[derive(Debug, Clone, Copy)]
struct Seen {
    now_ns: f64,
    /// Messages that came in all, and that the last wake-up found.
    come: u64,
    found: u64,
    /// From its last message until the next came.
    idle_ns: f64,
}

/// Ways of so many waits, and the latency of half of the messages at most.
fn ways(
    waits: usize,
    mut gap: impl FnMut() -> f64,
    mut choose: impl FnMut(Seen) -> Way,
) -> (Vec<Way>, f64) {
    let mut ways = Vec::new();
    let mut latencies = Vec::new();
    let mut next = gap();
    let mut seen = Seen {
        now_ns: 0.0,
        come: 0,
        found: 0,
        idle_ns: 0.0,
    };
    for _ in 0..waits {
        let way = choose(seen);
        ways.push(way);
        let began = seen.now_ns;
        let mut now = match way {
            Way::Spin => next.max(began),
            Way::Park => next.max(began) + WAKE_NS,
            Way::Sleep => began + SLEEP_NS,
        };
        seen.idle_ns = (next - began).max(0.0);
        seen.found = 0;
        // Works until nothing is left.
        while next <= now {
            let waiting = (now - next).max(0.0);
            latencies.push(waiting);
            seen.come += 1;
            seen.found += 1;
            next += gap();
            now += SERVICE_NS;
        }
        seen.now_ns = now;
    }
    latencies.sort_by(f64::total_cmp);
    (
        ways,
        latencies.get(latencies.len() / 2).copied().unwrap_or(0.0),
    )
}

/// The rule, with the arrival rate of a balance.
fn ours() -> impl FnMut(Seen) -> Way {
    let mut balance = Balance::new(Horizons::default());
    let mut rule = Rule::spin_before_park(BUDGET_NS);
    balance.update(Reading::default());
    move |seen| {
        let reading = Reading {
            at_ns: seen.now_ns as u64,
            issued: seen.come,
            ..Reading::default()
        };
        let facts = Facts {
            cores: 2,
            capacity: 4_096,
            occupancy_percent: 0.0,
            arrival_per_s: balance.update(reading).arrival_per_s,
            service_per_s: 1e9 / SERVICE_NS,
        };
        rule.update(&facts);
        if rule.is_on() { Way::Spin } else { Way::Park }
    }
}

/// Spins where a wake-up found many, sleeps where it found few: which the sleep has brought about.
fn by_depth(seen: Seen) -> Way {
    if seen.found > 4 {
        Way::Spin
    } else {
        Way::Sleep
    }
}

/// By the idle gap that the consumer sees, which is the shorter the later it woke.
fn by_idle_gap(seen: Seen) -> Way {
    if seen.idle_ns <= BUDGET_NS as f64 {
        Way::Spin
    } else {
        Way::Park
    }
}

const WAITS: usize = 10_000;

#[test]
fn going_by_depth_swings() {
    let (ways, half_ns) = ways(WAITS, || 100_000.0, by_depth);
    assert!(changes(&ways) > WAITS / 2, "{}", changes(&ways));
    // Half of the messages wait half a millisecond, for a gap of a tenth.
    assert!((400_000.0..600_000.0).contains(&half_ns), "{half_ns}");
}

#[test]
fn going_by_the_idle_gap_swings() {
    let (ways, _) = ways(WAITS, || 12_000.0, by_idle_gap);
    assert!(changes(&ways) > WAITS / 4, "{}", changes(&ways));
}

#[test]
fn the_rule_chooses_once() {
    for (gap_ns, way) in [
        (2_000.0, Way::Spin),
        (8_000.0, Way::Spin),
        (12_000.0, Way::Park),
        (20_000.0, Way::Park),
        (100_000.0, Way::Park),
        (2_000_000.0, Way::Park),
    ] {
        let (ways, half_ns) = ways(WAITS, || gap_ns, ours());
        assert!(changes(&ways) <= 2, "{gap_ns}: {}", changes(&ways));
        assert_eq!(*ways.last().unwrap(), way, "{gap_ns}");
        assert!(half_ns <= WAKE_NS, "{gap_ns}: {half_ns}");
    }
}

proptest! {
    /// Whatever the mean gap, with messages that come independently.
    #[test]
    fn noise_switches_the_rule_rarely(gap_ns in 1_500.0..100_000.0_f64, seed in 1_u64..1_000) {
        let mut random = Random(seed);
        let (ways, _) = ways(4_000, || random.gap(gap_ns), ours());
        prop_assert!(changes(&ways) <= 4, "{}", changes(&ways));
    }
}
