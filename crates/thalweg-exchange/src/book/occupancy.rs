//! Which ticks of the window have orders: a bitmap.

use super::node::WINDOW;

/// No tick.
pub(super) const NO_TICK: u32 = WINDOW;

const WORDS: usize = WINDOW as usize / 64;
const _: () = assert!(WORDS == 64);

/// A set of ticks below [`WINDOW`]. Adding, removing and the next one nearby cost a few
/// instructions; the next one far away, a step per 64 ticks.
#[derive(Clone, Debug)]
pub(super) struct Occupancy {
    words: [u64; WORDS],
}

impl Occupancy {
    pub(super) const fn new() -> Self {
        Self { words: [0; WORDS] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    #[inline]
    pub(super) const fn insert(&mut self, tick: u32) {
        self.words[(tick / 64) as usize % WORDS] |= 1 << (tick % 64);
    }

    #[inline]
    pub(super) const fn remove(&mut self, tick: u32) {
        self.remove_if(1, tick);
    }

    /// Removes a tick if `condition` is 1, or leaves it if 0, without a branch.
    #[inline]
    pub(super) const fn remove_if(&mut self, condition: u64, tick: u32) {
        self.words[(tick / 64) as usize % WORDS] &= !(condition << (tick % 64));
    }

    /// The lowest tick above `tick`, or [`NO_TICK`].
    #[inline]
    pub(super) const fn above(&self, tick: u32) -> u32 {
        let word = (tick / 64) as usize % WORDS;
        self.first_up(word, self.words[word] & (!1 << (tick % 64)))
    }

    /// The highest tick below `tick`, or [`NO_TICK`].
    #[inline]
    pub(super) const fn below(&self, tick: u32) -> u32 {
        let word = (tick / 64) as usize % WORDS;
        self.first_down(word, self.words[word] & !(!0 << (tick % 64)))
    }

    /// The lowest tick, or [`NO_TICK`].
    pub(super) const fn lowest(&self) -> u32 {
        self.first_up(0, self.words[0])
    }

    /// The highest tick, or [`NO_TICK`].
    pub(super) const fn highest(&self) -> u32 {
        self.first_down(WORDS - 1, self.words[WORDS - 1])
    }

    /// The lowest of `bits`, which are of this word, or else of the words above it.
    #[inline]
    const fn first_up(&self, mut word: usize, mut bits: u64) -> u32 {
        while bits == 0 {
            word += 1;
            if word >= WORDS {
                return NO_TICK;
            }
            bits = self.words[word];
        }
        word as u32 * 64 + bits.trailing_zeros()
    }

    /// The highest of `bits`, which are of this word, or else of the words below it.
    #[inline]
    const fn first_down(&self, mut word: usize, mut bits: u64) -> u32 {
        while bits == 0 {
            if word == 0 {
                return NO_TICK;
            }
            word -= 1;
            bits = self.words[word];
        }
        word as u32 * 64 + bits.ilog2()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((any::<bool>(), 0..WINDOW), 0..300)) {
            let mut ticks = Occupancy::new();
            let mut model = BTreeSet::new();
            for (add, tick) in steps {
                if add {
                    ticks.insert(tick);
                    model.insert(tick);
                } else {
                    let tick = model.range(tick..).next().copied().unwrap_or(tick);
                    ticks.remove_if(0, tick);
                    ticks.remove(tick);
                    model.remove(&tick);
                }
                let above = model.range(tick + 1..).next().copied();
                let below = model.range(..tick).next_back().copied();
                prop_assert_eq!(ticks.above(tick), above.unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.below(tick), below.unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.lowest(), model.first().copied().unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.highest(), model.last().copied().unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.count() as usize, model.len());
                prop_assert_eq!(ticks.is_empty(), model.is_empty());
            }
        }
    }
}
