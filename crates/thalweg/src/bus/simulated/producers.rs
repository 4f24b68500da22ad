//! Producers that keep a gap by what waits, which their gap changes.

use super::swings;
use crate::bus::{Slow, Slowing};
use proptest::prelude::*;

/// The queue's limit, and what its consumer needs for a message, in ns.
const LIMIT: u64 = 4_096;
const SERVICE_NS: u64 = 1_000;

#[derive(Debug, Clone, Copy)]
struct Producers {
    count: usize,
    /// How far apart each wants to publish.
    gap_ns: u64,
    /// How long a gap may be until a producer looks again.
    look_ns: u64,
}

/// What waits, looked at every 100 services, and how often a producer found no room.
fn depths(
    producers: Producers,
    services: u64,
    mut slow: impl FnMut(u64) -> Slow,
) -> (Vec<f64>, u64) {
    let mut waiting = 0_u64;
    let mut held = 0;
    let mut depths = Vec::new();
    // When each last published, and when it looks again.
    let mut last = vec![0_u64; producers.count];
    let mut look: Vec<u64> = (0..producers.count as u64).collect();
    for service in 1..=services {
        let until = service * SERVICE_NS;
        while let Some(which) = (0..producers.count).min_by_key(|&which| look[which])
            && look[which] < until
        {
            let now = look[which];
            let wanted = last[which] + producers.gap_ns;
            let free = match slow(waiting) {
                Slow::Free => wanted,
                Slow::Gap(ns) => wanted.max(last[which].saturating_add(ns)),
                Slow::Hold => {
                    held += 1;
                    look[which] = now + SERVICE_NS;
                    continue;
                }
            };
            if free <= now {
                waiting += 1;
                last[which] = now;
                look[which] = now + 1;
            } else {
                look[which] = free.min(now + producers.look_ns);
            }
        }
        waiting = waiting.saturating_sub(1);
        if service % 100 == 0 {
            depths.push(waiting as f64);
        }
    }
    (depths, held)
}

/// Twice as much as is served, by four producers.
const TWICE: Producers = Producers {
    count: 4,
    gap_ns: 2 * SERVICE_NS,
    look_ns: 50_000,
};

#[test]
fn producers_that_are_slowed_by_a_step_swing() {
    // Nothing below 60 %, and a gap of 64 services from there on, which lasts.
    let slow = |waiting| match waiting * 100 >= LIMIT * 60 {
        true => Slow::Gap(1_000 * SERVICE_NS),
        false => Slow::Free,
    };
    let lasting = Producers {
        look_ns: 1_000 * SERVICE_NS,
        ..TWICE
    };
    let (depths, _) = depths(lasting, 200_000, slow);
    assert!(
        swings(&depths[1_000..], 200.0) > 20,
        "{}",
        swings(&depths, 200.0)
    );
}

#[test]
fn producers_come_to_the_service_rate_smoothly() {
    let slowing = Slowing::new(1e6, TWICE.count).unwrap();
    let (depths, held) = depths(TWICE, 200_000, |waiting| slowing.slow(waiting, LIMIT));
    assert_eq!((swings(&depths, 20.0), held), (0, 0));
    // Three quarters of the limit.
    assert!(
        depths[1_000..]
            .iter()
            .all(|depth| (depth - 3_072.0).abs() < 40.0)
    );
}

#[test]
fn producers_that_are_slower_than_the_consumer_are_not_slowed() {
    let slower = Producers {
        gap_ns: 5 * SERVICE_NS,
        ..TWICE
    };
    let slowing = Slowing::new(1e6, slower.count).unwrap();
    let (depths, held) = depths(slower, 20_000, |waiting| slowing.slow(waiting, LIMIT));
    assert!(depths.iter().all(|&depth| depth <= 4.0));
    assert_eq!(held, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever comes, and with a service rate that is measured wrong by a factor of two: what
    /// waits settles within the band, at the place that the law says, and does not swing.
    #[test]
    fn the_depth_settles(count in 1_usize..12, times in 1.3..20.0_f64, wrong in 0.5..2.0_f64) {
        let producers = Producers {
            count,
            gap_ns: (SERVICE_NS as f64 * count as f64 / times) as u64,
            look_ns: SERVICE_NS,
        };
        let slowing = Slowing::new(1e6 * wrong, count).unwrap();
        let (depths, held) = depths(producers, 60_000, |waiting| slowing.slow(waiting, LIMIT));
        prop_assert_eq!(held, 0);
        prop_assert_eq!(swings(&depths, 60.0), 0);
        let room = LIMIT as f64 / 2.0 / (1.0 + wrong);
        let end = LIMIT as f64 - depths[depths.len() - 1];
        prop_assert!((end / room - 1.0).abs() < 0.06, "{} {}", end, room);
    }
}
