//! A 128-bit sum that one thread writes and others read.
//!
//! State: two words. Rules:
//! 1. One thread at a time adds. Where several do all the same, amounts are lost, or 2^64 too much
//!    is counted (an old low word is stored behind a carry), and no more: each leaves the high word
//!    even, so a reader never waits for more than an addition.
//! 2. The high word counts carries twice, and is odd while one moves from the low word to the high
//!    one; a reader that sees it odd or changed looks again. (A sequence lock, as in H.-J. Boehm,
//!    "Can seqlocks get along with programming language memory models?", 2012.)
//!
//! Why it works: every low word after a carry is stored after the Release fence that follows the
//! odd store, so a reader that has seen one finds the high word odd or moved at its second look;
//! and a reader that has seen a moved high word at its first look finds a low word that is at
//! least that new. Without a carry, which is the case for 2^64 ticks, an addition is one plain
//! load and store.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct WideSum {
    low: AtomicU64,
    /// Twice the high word of the sum; odd while a carry is under way.
    high: AtomicU64,
}

impl WideSum {
    pub(super) fn new() -> Self {
        WideSum {
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
        }
    }

    /// Adds, on the one thread that may.
    #[inline]
    pub(super) fn add(&self, amount: u128) {
        // ORDERING: Relaxed, this thread wrote it last (rule 1).
        let before = self.low.load(Ordering::Relaxed);
        let (low, carry) = before.overflowing_add(amount as u64);
        let high = (amount >> 64) as u64 + u64::from(carry);
        if high == 0 {
            // ORDERING: Relaxed, a word of its own; the caller publishes it with its count.
            self.low.store(low, Ordering::Relaxed);
        } else {
            self.carry(low, high);
        }
    }

    #[cold]
    fn carry(&self, low: u64, high: u64) {
        // ORDERING: Relaxed, this thread wrote it last (rule 1).
        let before = self.high.load(Ordering::Relaxed) & !1;
        // ORDERING: Relaxed, kept before the store of `low` by the fence.
        self.high.store(before | 1, Ordering::Relaxed);
        // ORDERING: Release, pairs with the Acquire fence in get(): a thread that reads the new low
        // word sees that the high one is in motion or has moved.
        fence(Ordering::Release);
        // ORDERING: Relaxed, published by the Release below.
        self.low.store(low, Ordering::Relaxed);
        let after = before.wrapping_add(high << 1);
        // ORDERING: Release, pairs with the first Acquire load in get(); publishes `low`.
        self.high.store(after, Ordering::Release);
    }

    /// Returns the sum, exact below 2^127. Repeats its look only while a carry is under way.
    pub(super) fn get(&self) -> u128 {
        loop {
            // ORDERING: Acquire, pairs with the last Release in carry().
            let before = self.high.load(Ordering::Acquire);
            // ORDERING: Relaxed, ordered before the next load by the fence.
            let low = self.low.load(Ordering::Relaxed);
            // ORDERING: Acquire, pairs with the Release fence in carry().
            fence(Ordering::Acquire);
            // ORDERING: Relaxed, ordered by the fence above.
            let after = self.high.load(Ordering::Relaxed);
            if before == after && before & 1 == 0 {
                return u128::from(before >> 1) << 64 | u128::from(low);
            }
            #[cfg(all(loom, test))]
            loom::thread::yield_now();
            #[cfg(not(all(loom, test)))]
            std::hint::spin_loop();
        }
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use loom::sync::Arc;

    /// Against rule 1: two threads add with a carry. A reader that waited for ever would take the
    /// model past its bound of branches.
    #[test]
    fn two_writers_spoil_the_sum_and_no_reader_hangs() {
        loom::model(|| {
            let sum = Arc::new(WideSum::new());
            let other = Arc::clone(&sum);
            let writer = loom::thread::spawn(move || other.add(1 << 64));
            sum.add(1 << 64);
            writer.join().expect("the writer does not panic");
            assert!([1 << 64, 2 << 64].contains(&sum.get()));
        });
    }

    /// RUSTFLAGS="--cfg loom" cargo test -p thalweg-measure --lib models
    #[test]
    fn a_reader_sees_only_sums_that_were() {
        // With a carry first, a carry between, and an addition without one after a carry.
        const AMOUNTS: [u128; 3] = [(1 << 64) - 3, 5, 1 << 10];
        loom::model(|| {
            let sum = Arc::new(WideSum::new());
            let read = Arc::clone(&sum);
            let reader = loom::thread::spawn(move || [read.get(), read.get()]);
            for amount in AMOUNTS {
                sum.add(amount);
            }
            let [first, second] = reader.join().expect("the reader does not panic");
            let sums: Vec<u128> = (0..=AMOUNTS.len())
                .map(|n| AMOUNTS[..n].iter().sum())
                .collect();
            assert!(sums.contains(&first), "{first:#x}");
            assert!(sums.contains(&second), "{second:#x}");
            assert!(first <= second, "{first:#x} then {second:#x}");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_exact(amounts in prop::collection::vec(0..1_u128 << 100, 0..50)) {
            let sum = WideSum::new();
            amounts.iter().for_each(|&amount| sum.add(amount));
            prop_assert_eq!(sum.get(), amounts.iter().sum::<u128>());
        }
    }

    #[test]
    fn readers_never_see_a_torn_sum() {
        const AMOUNT: u128 = (1 << 63) + 1;
        const ADDITIONS: u128 = 500_000;
        let sum = WideSum::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = 0;
                while last < AMOUNT * ADDITIONS {
                    let now = sum.get();
                    assert!(
                        now >= last && now.is_multiple_of(AMOUNT),
                        "{now:#x} after {last:#x}"
                    );
                    last = now;
                }
            });
            (0..ADDITIONS).for_each(|_| sum.add(AMOUNT));
        });
    }
}
