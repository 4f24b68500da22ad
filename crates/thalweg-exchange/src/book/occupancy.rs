//! Which ticks of the window have orders: a bitmap of two levels.

use super::node::WINDOW;

/// No tick.
pub(super) const NO_TICK: u32 = WINDOW;

const WORDS: usize = WINDOW as usize / 64;
const _: () = assert!(WORDS == 64);

/// A set of ticks below [`WINDOW`]. Each operation costs a few instructions.
#[derive(Clone, Debug)]
pub(super) struct Occupancy {
    words: [u64; WORDS],
    /// Bit w: word w is not zero.
    summary: u64,
}

impl Occupancy {
    pub(super) const fn new() -> Self {
        Self {
            words: [0; WORDS],
            summary: 0,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.summary == 0
    }

    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    #[inline]
    pub(super) const fn insert(&mut self, tick: u32) {
        let word = (tick / 64) as usize % WORDS;
        self.words[word] |= 1 << (tick % 64);
        self.summary |= 1 << word;
    }

    #[inline]
    pub(super) const fn remove(&mut self, tick: u32) {
        self.remove_if(1, tick);
    }

    /// Removes a tick if `condition` is 1, or leaves it if 0, without a branch.
    #[inline]
    pub(super) const fn remove_if(&mut self, condition: u64, tick: u32) {
        let word = (tick / 64) as usize % WORDS;
        let rest = self.words[word] & !(condition << (tick % 64));
        self.words[word] = rest;
        self.summary &= !(((rest == 0) as u64) << word);
    }

    /// The lowest tick above `tick`, or [`NO_TICK`].
    #[inline]
    pub(super) const fn above(&self, tick: u32) -> u32 {
        let word = (tick / 64) as usize % WORDS;
        let here = self.words[word] & (!1 << (tick % 64));
        if here != 0 {
            return tick / 64 * 64 + here.trailing_zeros();
        }
        self.lowest_in(self.summary & (!1 << word))
    }

    /// The highest tick below `tick`, or [`NO_TICK`].
    #[inline]
    pub(super) const fn below(&self, tick: u32) -> u32 {
        let word = (tick / 64) as usize % WORDS;
        let here = self.words[word] & !(!0 << (tick % 64));
        if here != 0 {
            return tick / 64 * 64 + here.ilog2();
        }
        self.highest_in(self.summary & !(!0 << word))
    }

    /// The lowest tick, or [`NO_TICK`].
    pub(super) const fn lowest(&self) -> u32 {
        self.lowest_in(self.summary)
    }

    /// The highest tick, or [`NO_TICK`].
    pub(super) const fn highest(&self) -> u32 {
        self.highest_in(self.summary)
    }

    #[inline]
    const fn lowest_in(&self, summary: u64) -> u32 {
        if summary == 0 {
            return NO_TICK;
        }
        let word = summary.trailing_zeros();
        word * 64 + self.words[word as usize].trailing_zeros()
    }

    #[inline]
    const fn highest_in(&self, summary: u64) -> u32 {
        if summary == 0 {
            return NO_TICK;
        }
        let word = summary.ilog2();
        word * 64 + self.words[word as usize].ilog2()
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
