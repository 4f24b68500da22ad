//! In which order a select looks at its arms: each time another one, so that those that are ready
//! have equal shares, whatever silent ones are between them.

use crate::ring::sync::IS_MODEL;

/// Arms up to this number come in a permutation of which all are as likely. More of them begin at
/// one chosen at random and go on by a random stride that has no divisor in common with their
/// number: so each of two that are ready is as often the first.
const SHUFFLED_MAX: usize = u64::BITS as usize;

pub(super) struct Turns {
    count: usize,
    given: usize,
    /// For shuffled turns: the arms that were not given yet.
    left: u64,
    random: u64,
    /// For more arms than can be shuffled: the last one, and the step to the next.
    at: usize,
    stride: usize,
}

impl Turns {
    /// Returns all of `count` arms once; in order of their places if `is_biased`.
    #[inline]
    pub(super) fn new(count: usize, is_biased: bool) -> Self {
        // A model tries all orders of threads, and needs the same arms each time.
        let is_random = !is_biased && !IS_MODEL && count > 1;
        let mut turns = Self {
            count,
            given: 0,
            left: u64::MAX,
            random: if is_random { random() } else { 0 },
            at: count - usize::from(count > 0),
            stride: 1,
        };
        if !is_random {
            turns.left = 0;
        } else if count > SHUFFLED_MAX {
            turns.leap();
        }
        turns
    }

    /// Chooses a start and a stride.
    fn leap(&mut self) {
        self.left = 0;
        self.at = self.below(self.count);
        self.stride = 1 + self.below(self.count - 1);
        while !is_coprime(self.stride, self.count) {
            self.stride = 1 + self.below(self.count - 1);
        }
    }

    /// Returns a random number below `count`.
    fn below(&mut self, count: usize) -> usize {
        // The upper half of the product is below `count`.
        let number = ((self.random >> 32) * count as u64) >> 32;
        // The generator and constants of PCG (O'Neill, 2014), of which the upper half is used.
        self.random = (self.random)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        number as usize
    }
}

impl Iterator for Turns {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.given == self.count {
            return None;
        }
        let rest = self.count - self.given;
        self.given += 1;
        if self.left == 0 {
            // In order too, which is a stride of 1 from the last.
            self.at = (self.at + self.stride) % self.count;
            return Some(self.at);
        }
        let mut candidates = self.left;
        for _ in 0..self.below(rest) {
            candidates &= candidates - 1;
        }
        let at = candidates.trailing_zeros();
        self.left ^= 1 << at;
        Some(at as usize)
    }
}

fn is_coprime(mut a: usize, mut b: usize) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

fn random() -> u64 {
    use std::cell::Cell;
    // Not a model's: only that threads begin differently matters.
    use std::sync::atomic::{AtomicU64, Ordering};

    static SEEDS: AtomicU64 = AtomicU64::new(0);
    std::thread_local! {
        // ORDERING: Relaxed; only that no two are equal matters.
        static STATE: Cell<u64> = Cell::new(SEEDS.fetch_add(1 << 32, Ordering::Relaxed));
    }
    // Where the thread is past its last breath, any order will do.
    let step = STATE.try_with(|state| {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let next = state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    });
    step.unwrap_or(0)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_arm_comes_once() {
        for count in (0..70).chain([96, 128, 1_000]) {
            for is_biased in [false, true] {
                let mut order: Vec<_> = Turns::new(count, is_biased).collect();
                assert!(!is_biased || order.iter().copied().eq(0..count));
                order.sort_unstable();
                assert!(order.into_iter().eq(0..count), "of {count}");
            }
        }
    }

    /// Which of the ready ones comes first, how often in a thousand.
    fn shares(count: usize, ready: &[usize]) -> Vec<usize> {
        const ROUNDS: usize = 40_000;
        let mut shares = vec![0; ready.len()];
        for _ in 0..ROUNDS {
            let first = Turns::new(count, false).find_map(|at| ready.iter().position(|r| *r == at));
            shares[first.expect("all come")] += 1;
        }
        shares.iter().map(|share| share * 1_000 / ROUNDS).collect()
    }

    #[test]
    fn those_that_are_ready_have_equal_shares() {
        for (count, ready) in [
            (4, &[1, 2][..]),
            (4, &[0, 1, 2]),
            (64, &[5, 6, 7, 60]),
            (97, &[3, 4]),
        ] {
            let shares = shares(count, ready);
            let fair = 1_000 / ready.len();
            assert!(
                shares.iter().all(|share| share.abs_diff(fair) < 30),
                "{shares:?} of {count}"
            );
        }
    }
}
