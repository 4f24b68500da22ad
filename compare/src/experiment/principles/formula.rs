//! How many slots a queue needs: the article's rule, ours, and what really happens, in virtual
//! time.

/// A burst, and who takes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    /// Messages of the burst, *B*.
    pub(super) messages: u64,
    /// Time between two of them; *P* is one in this time.
    pub(super) gap_ns: u64,
    /// What the consumer takes for one; *C* is one in this time.
    pub(super) service_ns: u64,
    /// How long the consumer is away, from the beginning of the burst.
    pub(super) stall_ns: u64,
}

impl Burst {
    /// `B·(1 − C/P) + P·t_stall`, rounded up, and never more than the burst. It is enough wherever
    /// the backlog of a burst is gone before the next one.
    pub(super) fn slots(&self) -> u64 {
        let rest = self.messages as f64 * (1.0 - self.gap_ns as f64 / self.service_ns as f64);
        let stalled = self.stall_ns as f64 / self.gap_ns as f64;
        ((rest.max(0.0) + stalled).ceil() as u64).clamp(1, self.messages)
    }

    /// The simple rule: mean arrival rate less service rate, times the period; 0 where the mean is
    /// below. It knows nothing of what arrives within a period.
    pub(super) fn slots_by_mean(&self, period_ns: u64) -> u64 {
        let served = period_ns / self.service_ns;
        self.messages.saturating_sub(served)
    }

    /// Whether the backlog is gone before the next burst: `B ≤ C·T`.
    pub(super) fn is_stable(&self, period_ns: u64) -> bool {
        self.messages <= period_ns / self.service_ns
    }

    /// Messages of a burst that find `slots` taken. A slot is free when its message is taken.
    pub(super) fn lost(&self, slots: u64) -> u64 {
        let (mut waiting, mut free_ns, mut lost) = (0, self.stall_ns, 0);
        for number in 0..self.messages {
            let now = number * self.gap_ns;
            while waiting > 0 && free_ns <= now {
                waiting -= 1;
                free_ns += self.service_ns;
            }
            if waiting == slots {
                lost += 1;
                continue;
            }
            if waiting == 0 {
                free_ns = free_ns.max(now);
            }
            waiting += 1;
        }
        lost
    }

    /// As a part of the burst.
    pub(super) fn lost_share(&self, slots: u64) -> f64 {
        self.lost(slots) as f64 / self.messages as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_measure::random::SplitMix;

    /// 10,000 messages in a millisecond, once a second, to a consumer that is away for it.
    const STOPPED: Burst = Burst {
        messages: 10_000,
        gap_ns: 100,
        service_ns: 50_000,
        stall_ns: 1_000_000,
    };
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn the_rule_by_means_asks_for_nothing_where_4096_slots_lose_59_percent() {
        assert!(STOPPED.is_stable(SECOND_NS));
        assert_eq!(STOPPED.slots_by_mean(SECOND_NS), 0);
        assert_eq!(STOPPED.lost(4096), 5_904);
        assert_eq!((STOPPED.lost_share(4096) * 100.0).round(), 59.0);
        assert_eq!(STOPPED.slots(), 10_000);
        assert_eq!(STOPPED.lost(10_000), 0);
        assert!(STOPPED.lost(9_900) > 0);
    }

    #[test]
    fn without_a_stall_the_formula_is_exact_but_for_a_slot() {
        let burst = Burst {
            messages: 10_000,
            gap_ns: 200,
            service_ns: 1_000,
            stall_ns: 0,
        };
        assert_eq!(burst.slots(), 8_000);
        assert_eq!(burst.lost(8_000), 0);
        assert!(burst.lost(7_998) > 0);
    }

    #[test]
    fn a_consumer_that_is_faster_needs_one_slot_and_an_unstable_load_is_told() {
        let burst = Burst {
            messages: 1_000,
            gap_ns: 200,
            service_ns: 100,
            stall_ns: 0,
        };
        assert_eq!(burst.slots(), 1);
        assert_eq!(burst.lost(1), 0);
        assert!(!burst.is_stable(99_999) && burst.is_stable(100_000));
        assert_eq!(burst.slots_by_mean(50_000), 500);
    }

    #[test]
    fn what_the_formula_asks_for_always_suffices() {
        let mut random = SplitMix::new(17);
        for _ in 0..2_000 {
            let burst = Burst {
                messages: 1 + random.below(3_000),
                gap_ns: 1 + random.below(500),
                service_ns: 1 + random.below(2_000),
                stall_ns: random.below(100_000),
            };
            assert_eq!(burst.lost(burst.slots()), 0, "{burst:?}");
        }
    }
}
