//! Made-up facts of a run, with every kind of value in them.

use crate::report::facts::Explanation;
use crate::report::facts::*;
use thalweg_measure::histogram::Summary;

/// Returns times around a median.
pub(crate) fn times(p50_ns: u64) -> Distribution {
    let curve = (0..60).map(|i| Point {
        quantile: 1.0 - 0.5_f64.powf(f64::from(i) / 4.0),
        ns: p50_ns + p50_ns * i as u64 * i as u64 / 100,
    });
    Distribution {
        summary: Summary {
            count: 1000,
            mean: p50_ns as f64 * 1.1,
            min: p50_ns / 2,
            p50: p50_ns,
            p90: p50_ns * 2,
            p99: p50_ns * 5,
            p999: p50_ns * 20,
            p9999: p50_ns * 30,
            max: p50_ns * 36,
        },
        curve: curve.collect(),
    }
}

fn breakdown(of: &str, publish_delay: f64) -> Breakdown {
    Breakdown {
        of: of.into(),
        commands: 10,
        end_to_end_ns: publish_delay + 60.0,
        parts: [
            ("waiting to be sent", publish_delay),
            ("waiting for execute", 10.0),
            ("in match", 50.0),
        ]
        .map(|(what, ns)| Part {
            what: what.into(),
            ns,
        })
        .into(),
    }
}

fn latency() -> Latency {
    let batches = Batches {
        mean: 10.0,
        p50: 9,
        p99: 64,
        max: 64,
    };
    let execute = Stage {
        name: "execute".into(),
        part_of: None,
        waited: Some(times(300)),
        served: Some(times(90)),
        batches: Some(batches),
        utilisation: Some(0.25),
    };
    let matching = Stage {
        name: "match".into(),
        part_of: Some("execute"),
        waited: None,
        served: Some(times(200)),
        batches: None,
        utilisation: None,
    };
    let part = |what: &str, ns| SlowPart {
        what: what.into(),
        ns,
    };
    let slow = Slow {
        command: 77,
        kind: "place".into(),
        end_to_end_ns: 1_000_000,
        parts: vec![
            part("in risk", 1_000),
            part("in match", 59_000),
            part("waiting for execute", 940_000),
        ],
    };
    let finished: Vec<u64> = (0..50).map(|i| 900 + (i * 37) % 200).collect();
    Latency {
        elapsed_ns: 8_000_000,
        throughput_per_s: 125_000.0,
        throughput: Throughput {
            interval_ns: 160_000,
            backlog: finished.iter().map(|n| n / 10).collect(),
            p50_ns: finished.iter().map(|n| (n % 7 > 0).then_some(*n)).collect(),
            p99_ns: finished.iter().map(|n| Some(n * 8)).collect(),
            finished,
        },
        rate_reached: Some(false),
        warm_up: Some(times(900)),
        breakdowns: vec![breakdown("p50", 0.0), breakdown("p99", 1_440.0)],
        placement_changes: None,
        placement_change_count: None,
        sampled_every: 32,
        end_to_end: times(600),
        stages: vec![execute, matching],
        slowest: vec![slow],
    }
}

fn explanation() -> Explanation {
    Explanation {
        sentence: "96 % of the p99 is <waiting>.".into(),
        percentile: "p99".into(),
        end_to_end_ns: 3_000,
        most: "waiting to be sent".into(),
        share: 0.96,
    }
}

fn machine() -> Machine {
    Machine {
        processor: Some("Abacus 9000".into()),
        usable_cores: 2,
        thalweg: "0.1.0".into(),
        date: "2026-11-23 05:40 UTC".into(),
        disturbance: Disturbance::default(),
    }
}

/// Returns the whole facts.
pub(crate) fn facts() -> Facts {
    let level = |price_ticks| DepthLevel {
        price_ticks,
        size_lots: 1_500,
        orders: 3,
    };
    let score = Score {
        name: "best_levels".into(),
        label: "rows, best level".into(),
        agree: 999,
        of: 1000,
    };
    Facts {
        version: 3,
        explanation: Some(explanation()),
        machine: machine(),
        input: Input {
            name: "orders.csv".into(),
            format: "orders".into(),
            seed: Some(7),
            rules: "default".into(),
            placement: "threads:2".into(),
            rate_per_s: Some(125_000),
            from: None,
            interrupted: false,
            waited_ns: None,
        },
        commands: Commands {
            total: 1000,
            by_kind: vec![Count::new("place", 600), Count::new("cancel", 400)],
            by_result: vec![Count::new("SUCCESS", 990), Count::new("RISK_NSF", 10)],
        },
        trades: Trades {
            count: 123,
            volume_lots: 4567,
        },
        books: vec![BookDepth {
            symbol: 1,
            bids: vec![level(100), level(99)],
            asks: vec![level(101)],
            bid_levels: 12,
            ask_levels: 1,
        }],
        state_hash: "00000000000000ff".into(),
        journal: None,
        latency: latency(),
        check: Some(Check {
            against: "recorded rows".into(),
            scores: vec![score],
            counts: vec![Count::new("levels_learnt", 30)],
        }),
    }
}
