//! How far apart producers publish where a queue fills.
//!
//! From half a limit on, producers keep a gap; at the limit it is without end. In between, all of
//! them together are let through at `C·room / over`: the service rate `C`, times what is left up to
//! the limit, over what is used above half of it. So a queue that is filled faster than it is
//! emptied settles where both are the same, at three quarters of the limit, whatever the arrival
//! rate; and if `C` was measured wrong by a factor `k`, at a share of `1/(1 + k)` of the band from
//! the limit. The gap begins at nothing, so that there is no step that could make it swing. The
//! queue comes to that point from below, without turning back, as long as a producer looks again
//! before consumers have taken `(limit/2) / (1 + P/C)²` messages (one over the slope of the law
//! where it lets the arrival rate `P` through): one that keeps a long gap looks in between.

use std::num::NonZeroU64;

/// What a producer does before it publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// Nothing: there is room.
    Free,
    /// Publishes no sooner than so many ns after the last time.
    Gap(u64),
    /// Waits for room, or is refused: the limit is reached.
    Hold,
}

/// What all producers of an inbox are told; see [`Builder::slowing`](super::Builder::slowing).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slowing {
    /// ns that the consumers need for a message, for each producer.
    share_ns: NonZeroU64,
}

/// Elements below which a producer is free, whose messages are admitted below `limit`.
pub(super) fn free_limit(limit: u64) -> u64 {
    (limit / 2 + 1).min(limit)
}

impl Slowing {
    /// For a measured service rate and so many producers; `None` where that is not a rate.
    pub fn new(service_per_s: f64, producers: usize) -> Option<Self> {
        if !(service_per_s.is_finite() && service_per_s > 0.0) {
            return None;
        }
        let share_ns = producers.max(1) as f64 * 1e9 / service_per_s;
        let share_ns = NonZeroU64::new(share_ns.round() as u64).unwrap_or(NonZeroU64::MIN);
        Some(Self { share_ns })
    }

    /// As [`share_ns`](Self::share_ns) gives it; `None` for 0.
    pub(super) fn of_share(share_ns: u64) -> Option<Self> {
        NonZeroU64::new(share_ns).map(|share_ns| Self { share_ns })
    }

    /// The gap at three quarters of a limit, in ns: what consumers need for a message, for each
    /// producer.
    pub fn share_ns(&self) -> u64 {
        self.share_ns.get()
    }

    /// What a producer does that finds so many waiting, whose messages are admitted below `limit`.
    /// Never less the more wait.
    #[inline]
    pub fn slow(&self, waiting: u64, limit: u64) -> Slow {
        let begin = limit / 2;
        if waiting >= limit {
            return Slow::Hold;
        }
        if waiting <= begin {
            return Slow::Free;
        }
        let over = u128::from(waiting - begin);
        let room = u128::from(limit - waiting);
        let gap_ns = u128::from(self.share_ns.get()) * over / room;
        Slow::Gap(u64::try_from(gap_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_gap_is_a_share_of_the_service_at_three_quarters() {
        let slowing = Slowing::new(1e6, 4).unwrap();
        let at = |waiting| slowing.slow(waiting, 1_000);
        assert_eq!([0, 500].map(at), [Slow::Free; 2]);
        assert_eq!(at(501), Slow::Gap(8));
        assert_eq!(at(750), Slow::Gap(4_000));
        assert_eq!(at(999), Slow::Gap(4_000 * 499));
        assert_eq!([1_000, 2_000].map(at), [Slow::Hold; 2]);
    }

    #[test]
    fn without_a_rate_there_is_no_gap() {
        let refused = [0.0, -1.0, f64::NAN, f64::INFINITY].map(|rate| Slowing::new(rate, 1));
        assert_eq!(refused, [None; 4]);
        assert_eq!(Slowing::new(1.0, 1).unwrap().slow(0, 0), Slow::Hold);
    }

    proptest! {
        #[test]
        fn the_gap_grows_with_what_waits(
            rate in 1e-9..1e12_f64, limit: u64, a: u64, b: u64, producers in 1_usize..1_000,
        ) {
            let slowing = Slowing::new(rate, producers).unwrap();
            let ns = |waiting| match slowing.slow(waiting, limit) {
                Slow::Free => 0,
                Slow::Gap(ns) => u128::from(ns),
                Slow::Hold => u128::MAX,
            };
            prop_assert!(ns(a.min(b)) <= ns(a.max(b)));
        }
    }
}
