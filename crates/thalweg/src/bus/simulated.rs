//! Checks that reserves keep their promise, in simulations of queues in exact arithmetic that know
//! nothing of the formulas: priorities share a queue, and the lower ones take all that they may.

use std::time::Duration;

use crate::bus::{Admission, Burst, Priority, Reserves};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Uniform random numbers from 0 to 1, both excluded.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }
}

const PRIORITIES: usize = Priority::COUNT;

/// The capacity of every queue here: more than any reserve.
const CAPACITY: u64 = 1_000_000;

/// A consumer that is never idle, since lower priorities see to that, and stalls once.
#[derive(Debug, Clone, Copy)]
struct Consumer {
    service_per_s: f64,
    stall_begin_s: f64,
    stall_s: f64,
}

impl Consumer {
    /// Messages that it has served by then.
    fn served(&self, at_s: f64) -> u64 {
        let stalled_s = (at_s - self.stall_begin_s).clamp(0.0, self.stall_s);
        ((at_s - stalled_s) * self.service_per_s) as u64
    }
}

/// Messages lost of each priority, with bursts that begin at their offset. Every priority
/// without a burst fills the queue up to its limit, always.
fn lost(
    bursts: &[Option<Burst>; PRIORITIES],
    offsets_s: [f64; PRIORITIES],
    limits: [u64; PRIORITIES],
    consumer: Consumer,
    until_s: f64,
) -> [u64; PRIORITIES] {
    let mut arrivals = Vec::new();
    for (priority, burst) in bursts.iter().enumerate() {
        let Some(burst) = burst else { continue };
        let mut begin_s = offsets_s[priority];
        while begin_s < until_s {
            let times = (0..burst.messages).map(|n| begin_s + n as f64 / burst.rate_per_s);
            let times = times.filter(|&at_s| at_s >= 0.0);
            arrivals.extend(times.map(|at_s| (at_s, priority)));
            begin_s += burst.period.as_secs_f64();
        }
    }
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = (0..PRIORITIES).filter(|&p| bursts[p].is_none());
    let filled = lowest.map(|p| limits[p]).max().unwrap_or(0);
    let mut lost = [0; PRIORITIES];
    let mut waiting = filled;
    let mut served = 0;
    for (at_s, priority) in arrivals {
        let now = consumer.served(at_s);
        waiting = waiting.saturating_sub(now - served).max(filled);
        served = now;
        if waiting < limits[priority] {
            waiting += 1;
        } else {
            lost[priority] += 1;
        }
    }
    lost
}

#[derive(Debug, Clone)]
struct Case {
    bursts: [Option<Burst>; PRIORITIES],
    consumer: Consumer,
    offsets_s: [f64; PRIORITIES],
}

impl Case {
    fn reserves(&self) -> Reserves {
        let stall = Duration::from_secs_f64(self.consumer.stall_s);
        Reserves::sized(&self.bursts, self.consumer.service_per_s, stall)
            .expect("bursts within the service rate")
    }

    fn lost(&self, reserves: Reserves) -> [u64; PRIORITIES] {
        let limits = Admission::from(reserves)
            .limits(CAPACITY as usize)
            .expect("room for all");
        lost(&self.bursts, self.offsets_s, limits, self.consumer, 3.0)
    }
}

/// Most messages within a time, the first and the last moment included.
fn most_within(burst: &Burst, time_s: f64) -> u64 {
    let period_s = burst.period.as_secs_f64();
    let periods = (time_s / period_s).floor();
    let come = (burst.rate_per_s * (time_s - periods * period_s) + 1e-9) as u64 + 1;
    periods as u64 * burst.messages + burst.messages.min(come)
}

impl Case {
    /// The stall begins at 0, and a burst of each priority ends when most waits.
    fn arrange_the_worst(&mut self) {
        self.consumer.stall_begin_s = 0.0;
        let Consumer {
            service_per_s,
            stall_s,
            ..
        } = self.consumer;
        let bursts: Vec<Burst> = self.bursts.iter().flatten().copied().collect();
        let lasts_s = |burst: &Burst| (burst.messages - 1) as f64 / burst.rate_per_s;
        let waiting = |at_s: f64| {
            let come: u64 = bursts.iter().map(|burst| most_within(burst, at_s)).sum();
            come as f64 - service_per_s * (at_s - stall_s)
        };
        let ends = bursts.iter().flat_map(|burst| {
            let end = move |n| f64::from(n) * burst.period.as_secs_f64() + lasts_s(burst);
            (0..25)
                .map(end)
                .filter(|&end_s| end_s >= stall_s && end_s < 2.5)
        });
        let worst_s = ends
            .chain([stall_s])
            .max_by(|&a, &b| waiting(a).total_cmp(&waiting(b)))
            .unwrap_or(stall_s);
        for (offset_s, burst) in self.offsets_s.iter_mut().zip(&self.bursts) {
            if let Some(burst) = burst {
                let begin_s = worst_s - lasts_s(burst);
                let periods = (begin_s / burst.period.as_secs_f64()).floor();
                // One more: it ends within the stall, and what came before that is not counted.
                *offset_s = begin_s - (periods + 1.0) * burst.period.as_secs_f64();
            }
        }
    }
}

/// Bursts of the highest priorities that together take up to nine tenths of the service.
fn cases() -> impl Strategy<Value = Case> {
    (1_u64..u64::MAX, 1_usize..4, 0.1..0.9_f64, 0.0..1.0_f64).prop_map(
        |(seed, guaranteed, load, stall_s)| {
            let mut random = Random(seed);
            let mut bursts = [None; PRIORITIES];
            let mut offsets_s = [0.0; PRIORITIES];
            let mut mean_per_s = 0.0;
            for priority in PRIORITIES - guaranteed..PRIORITIES {
                let messages = 1 + (random.next() * 200.0) as u64;
                let period_s = 0.1 + random.next() * 0.4;
                let burst = Burst {
                    messages,
                    rate_per_s: messages as f64 / period_s * (1.1 + random.next() * 100.0),
                    period: Duration::from_secs_f64(period_s),
                };
                mean_per_s += burst.mean_per_s();
                bursts[priority] = Some(burst);
                offsets_s[priority] = random.next() * period_s;
            }
            let consumer = Consumer {
                service_per_s: mean_per_s / load,
                stall_begin_s: random.next(),
                stall_s,
            };
            Case {
                bursts,
                consumer,
                offsets_s,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Whenever bursts and the stall come, no priority with a reserve loses anything.
    #[test]
    fn a_reserve_keeps_what_it_guarantees(case in cases()) {
        prop_assert_eq!(case.lost(case.reserves()), [0; PRIORITIES]);
    }

    /// With all at the worst moment, a reserve that is smaller by a message for each priority
    /// and three loses: it is not larger than it needs to be.
    #[test]
    fn a_smaller_reserve_loses(mut case in cases(), which in 0_usize..PRIORITIES) {
        let mut reserves = case.reserves();
        let slack = PRIORITIES as u64 + 3;
        let which = PRIORITIES - 1 - which % case.bursts.iter().flatten().count();
        prop_assume!(reserves.elements[which] > slack);
        reserves.elements[which] -= slack;
        // Those below may take all up to the limit under it, as if they had no bursts.
        let limits = Admission::from(reserves).limits(CAPACITY as usize).unwrap();
        case.bursts[..which].fill(None);
        case.arrange_the_worst();
        let lost = lost(&case.bursts, case.offsets_s, limits, case.consumer, 3.0);
        prop_assert!(lost[which] > 0, "{:?} {:?}", reserves, lost);
    }
}

/// 300,000 messages of mixed priorities into 131,072 slots while no consumer serves: a share of
/// the capacity loses messages of high priority, a reserve sized from the burst does not.
#[test]
fn a_share_loses_where_a_reserve_does_not() {
    let minute = Duration::from_secs(60);
    let burst = |messages| {
        Some(Burst {
            messages,
            rate_per_s: 3e6,
            period: minute,
        })
    };
    // A fifth of the messages is high; a fiftieth is critical, and comes when those have.
    let offsets_s = [0.0, 0.0, 0.0, 0.02];
    let bursts = [None, None, burst(60_000), burst(6_000)];
    let consumer = Consumer {
        service_per_s: 1e6,
        stall_begin_s: 0.0,
        stall_s: 1.0,
    };
    let lost_with = |limits| lost(&bursts, offsets_s, limits, consumer, 1.0);
    let share = [60, 80, 99, 100].map(|percent| 131_072 * percent / 100);
    assert_eq!(lost_with(share), [0, 0, 35_096, 4_689]);
    let reserves = Reserves::sized(&bursts, 1e6, Duration::from_secs(1)).unwrap();
    let limits = Admission::from(reserves).limits(131_072).unwrap();
    assert_eq!(lost_with(limits), [0; PRIORITIES]);
}
