//! How many messages a consumer takes at once.
//!
//! A batch shares what it costs to take one, but room comes back only behind it. A consumer that
//! takes all that waits finds, after a batch of `n`, what came meanwhile: `λ·(o + c·n)` messages,
//! with `o` for a batch and `c` for a message. That settles at `n* = λ·o / (1 − λ·c)` by itself, as
//! `λ·c < 1`. The largest batch only has to stay above it: it is doubled where more waits, and
//! halved where for some looks less than a quarter waits. Between `n*` and `4·n*` nothing moves, so
//! it cannot swing, and a batch of whatever size never leaves messages behind that it could take
//! without growing first.

/// The largest batch there is.
pub const BATCH_MAX: usize = 256;
/// Looks on end that must find less than a quarter of a batch.
const LOOKS: u32 = 16;

/// The batch size of one consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batching {
    size: usize,
    max: usize,
    looks: u32,
}

impl Batching {
    /// Batches of 1 at first, and of at most a quarter of the capacity or [`BATCH_MAX`]: those in
    /// a batch keep their room.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            size: 1,
            max: (capacity / 4).clamp(1, BATCH_MAX),
            looks: 0,
        }
    }

    /// Before a batch is taken, with what waits: how many to take at most.
    #[inline]
    pub(super) fn look(&mut self, waiting: usize) -> usize {
        if waiting > self.size {
            self.looks = 0;
            self.size = waiting
                .checked_next_power_of_two()
                .map_or(self.max, |size| size.min(self.max));
        } else if waiting.saturating_mul(4) >= self.size {
            self.looks = 0;
        } else {
            self.looks += 1;
            if self.looks == LOOKS {
                self.looks = 0;
                self.size = (self.size / 2).max(1);
            }
        }
        self.size
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_grows_at_once_and_shrinks_later() {
        let mut batching = Batching::new(4_096);
        assert_eq!(
            [0, 1, 2, 3, 1_000].map(|n| batching.look(n)),
            [1, 1, 2, 4, 256]
        );
        assert!((1..LOOKS).all(|_| batching.look(63) == 256));
        assert_eq!(batching.look(63), 128);
        assert_eq!(Batching::new(3).look(100), 1);
    }

    proptest! {
        #[test]
        fn a_batch_is_monotone_and_within_bounds(
            capacity in 0_usize..5_000,
            before in prop::collection::vec(0_usize..5_000, 0..50),
            a in 0_usize..5_000,
            b in 0_usize..5_000,
        ) {
            let mut batching = Batching::new(capacity);
            for waiting in before {
                let size = batching.look(waiting);
                prop_assert!((1..=BATCH_MAX.min(capacity.max(4) / 4)).contains(&size));
            }
            let at = |waiting| batching.clone().look(waiting);
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }
    }
}
