//! Checks of what the formulas and rules promise, in simulations that know nothing of them: queues
//! in exact arithmetic, and loops in which a rule changes what it is fed with.
//!
//! Each loop is also closed with a rule that must swing: one that goes by the depth of the queue,
//! as the adaptive strategy does that these rules replace. So the measure of swinging has something
//! that it must reject.

/// Returns how often adjacent elements differ.
fn changes<T: PartialEq>(series: &[T]) -> usize {
    series.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Uniform random numbers from 0 to 1, both excluded.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Returns a gap between two messages that come independently.
    fn gap(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}

mod batches {
    //! A consumer whose batch size changes what waits, by which it chooses the batch size.

    use super::{Random, changes};
    use crate::bus::BATCH_MAX;
    use crate::bus::consumer::Batching;
    use proptest::prelude::*;

    /// The costs of a batch and of a message, and the time between messages, in ns.
    #[derive(Debug, Clone, Copy)]
    struct Load {
        batch_ns: f64,
        message_ns: f64,
        gap_ns: f64,
    }

    /// Returns the sizes over this number of looks, and the most that waited in the second half.
    fn sizes(
        load: Load,
        looks: usize,
        mut gap: impl FnMut(f64) -> f64,
        mut rule: impl FnMut(usize) -> usize,
    ) -> (Vec<usize>, usize) {
        let (mut now, mut next, mut waiting) = (0.0, 0.0, 0_usize);
        let mut sizes = Vec::new();
        let mut most = 0;
        for look in 0..looks {
            if waiting == 0 {
                now = f64::max(now, next);
            }
            while next <= now {
                waiting += 1;
                next += gap(load.gap_ns);
            }
            if look > looks / 2 {
                most = most.max(waiting);
            }
            let size = rule(waiting);
            sizes.push(size);
            let taken = size.min(waiting);
            waiting -= taken;
            now += load.batch_ns + load.message_ns * taken as f64;
        }
        (sizes, most)
    }

    /// By depth alone: one at a time, and all where many wait.
    fn by_depth(waiting: usize) -> usize {
        if waiting > 64 { BATCH_MAX } else { 1 }
    }

    const LOOKS: usize = 20_000;
    /// A batch costs as much as ten messages, and one message at a time is too slow.
    const LOAD: Load = Load {
        batch_ns: 1_000.0,
        message_ns: 100.0,
        gap_ns: 250.0,
    };

    #[test]
    fn going_by_depth_alone_swings() {
        let (sizes, most) = sizes(LOAD, LOOKS, |gap| gap, by_depth);
        assert!(
            changes(&sizes[LOOKS / 2..]) > LOOKS / 100,
            "{}",
            changes(&sizes)
        );
        // And all messages wait for it: 64 where 8 would do.
        assert!(most > 64);
    }

    #[test]
    fn a_batch_settles_where_it_is_large_enough() {
        let mut batching = Batching::new(4_096);
        let (sizes, most) = sizes(LOAD, LOOKS, |gap| gap, |waiting| batching.look(waiting));
        assert_eq!(changes(&sizes[LOOKS / 10..]), 0);
        // λ·o / (1 − λ·c) = 4 / 0.6 = 6.7.
        assert_eq!(*sizes.last().unwrap(), 8);
        assert!(most <= 8, "{most}");
    }

    /// Messages that come independently, and in flocks: a size changes for what comes, but rarely.
    #[test]
    fn noise_moves_a_batch_rarely() {
        for flock in [1.0, 8.0, 32.0] {
            let mut random = Random(5);
            let mut left = 0.0;
            let gap = |mean: f64| {
                left -= 1.0;
                if left > 0.0 {
                    return 1.0;
                }
                left = flock;
                random.gap(mean * flock)
            };
            let mut batching = Batching::new(4_096);
            let (sizes, _) = sizes(LOAD, LOOKS, gap, |waiting| batching.look(waiting));
            let changed = changes(&sizes[LOOKS / 10..]);
            assert!(changed < LOOKS / 20, "{flock}: {changed}");
        }
    }

    proptest! {
        /// Whatever is below what full batches can carry: the size comes to rest.
        #[test]
        fn a_batch_comes_to_rest(
            batch_ns in 1.0..10_000.0_f64, message_ns in 1.0..1_000.0_f64, slack in 1.02..50.0_f64,
        ) {
            let carried = message_ns + batch_ns / BATCH_MAX as f64;
            let load = Load { batch_ns, message_ns, gap_ns: carried * slack };
            let mut batching = Batching::new(4_096);
            let (sizes, most) = sizes(load, 4_000, |gap| gap, |waiting| batching.look(waiting));
            let end = &sizes[3_000..];
            prop_assert_eq!(changes(end), 0, "{:?}", end);
            prop_assert!(most <= BATCH_MAX);
        }
    }
}

mod priorities {
    //! Priorities that share a queue, the lower of which take all that they may.

    use std::time::Duration;

    use super::Random;
    use crate::bus::{Admission, Burst, Priority, Reserves};

    const PRIORITIES: usize = Priority::COUNT;
    use proptest::prelude::*;

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
}
