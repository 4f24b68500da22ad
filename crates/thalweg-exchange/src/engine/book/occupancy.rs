//! Which ticks of the window have orders: a byte each.
//!
//! Bytes and not bits: a move sets one and clears one, which with bits costs ten instructions more.
//! The search for the next one reads eight at a time, and is rare.

use std::ops::Range;

use super::node::WIDE;

/// No tick.
pub(super) const NO_TICK: u32 = WIDE;

const WORD: usize = 8;
const _: () = assert!((WIDE as usize).is_multiple_of(WORD));

/// A set of ticks below a width of at most [`WIDE`], a multiple of eight. Adding and removing cost
/// an instruction or two, the next one a step per eight ticks.
#[derive(Clone, Debug)]
pub(super) struct Occupancy {
    /// 1 where there are orders, else 0.
    ticks: Vec<u8>,
}

impl Occupancy {
    /// Without room for any tick, and without memory.
    pub(super) const fn closed() -> Self {
        Self { ticks: Vec::new() }
    }

    /// Returns the least width with this number of ticks.
    pub(super) const fn width_for(ticks: u32) -> u32 {
        ticks.next_multiple_of(WORD as u32)
    }

    /// The greatest width without a tick.
    pub(super) const fn width_below(tick: u32) -> u32 {
        tick - tick % WORD as u32
    }

    /// Sets the number of ticks. No tick that goes has orders.
    pub(super) fn set_width(&mut self, width: u32) {
        debug_assert!(width.is_multiple_of(WORD as u32) && width <= WIDE);
        self.ticks.resize(width as usize, 0);
    }

    /// One byte per tick.
    #[inline]
    pub(super) const fn as_mut_slice(&mut self) -> &mut [u8] {
        self.ticks.as_mut_slice()
    }

    /// How many ticks there are.
    #[inline]
    pub(super) const fn width(&self) -> u64 {
        self.ticks.len() as u64
    }

    /// Returns a tick's entry; `None` outside the window.
    #[inline]
    pub(super) fn tick(&self, tick: u64) -> Option<&u8> {
        self.ticks.get(usize::try_from(tick).ok()?)
    }

    /// Whether there are orders at a tick; at none outside the window.
    #[inline]
    pub(super) fn has(&self, tick: u64) -> bool {
        self.tick(tick).is_some_and(|&tick| tick != 0)
    }

    pub(super) fn count(&self) -> u32 {
        self.ticks.iter().map(|&tick| u32::from(tick)).sum()
    }

    #[inline]
    pub(super) fn insert(&mut self, tick: u32) {
        self.ticks[tick as usize] = 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, tick: u32) {
        self.ticks[tick as usize] = 0;
    }

    /// Takes these ticks from another set, which has none of them where it is closed.
    pub(super) fn take(&mut self, from: &mut Self, ticks: Range<u32>) {
        let ticks = ticks.start as usize..ticks.end as usize;
        let Some(from) = from.ticks.get_mut(ticks.clone()) else {
            return;
        };
        for (tick, from) in self.ticks[ticks].iter_mut().zip(from) {
            *tick |= std::mem::take(from);
        }
    }

    /// The eight ticks of a word, the lowest in the lowest byte.
    fn word(&self, word: usize) -> u64 {
        let bytes = self.ticks.get(word * WORD..(word + 1) * WORD);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// The lowest tick from `tick` upwards, or [`NO_TICK`].
    pub(super) fn from(&self, tick: u32) -> u32 {
        let words = self.ticks.len() / WORD;
        let mut word = tick as usize / WORD;
        let mut bits = self.word(word) & (!0 << (tick % 8 * 8));
        while bits == 0 {
            word += 1;
            if word >= words {
                return NO_TICK;
            }
            bits = self.word(word);
        }
        (word * WORD) as u32 + bits.trailing_zeros() / 8
    }

    /// The highest tick, or [`NO_TICK`].
    pub(super) fn last(&self) -> u32 {
        self.down_from((self.ticks.len() as u32).saturating_sub(1))
    }

    /// The highest tick from `tick` downwards, or [`NO_TICK`].
    pub(super) fn down_from(&self, tick: u32) -> u32 {
        let mut word = tick as usize / WORD;
        let mut bits = self.word(word) & (!0 >> (56 - tick % 8 * 8));
        while bits == 0 {
            if word == 0 {
                return NO_TICK;
            }
            word -= 1;
            bits = self.word(word);
        }
        (word * WORD) as u32 + bits.ilog2() / 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((any::<bool>(), 0..WIDE), 0..300)) {
            let mut ticks = Occupancy::closed();
            ticks.set_width(WIDE);
            let mut model = BTreeSet::new();
            for (add, tick) in steps {
                if add {
                    ticks.insert(tick);
                    model.insert(tick);
                } else {
                    let tick = model.range(tick..).next().copied().unwrap_or(tick);
                    ticks.remove(tick);
                    model.remove(&tick);
                }
                let from = model.range(tick..).next().copied();
                let down = model.range(..=tick).next_back().copied();
                prop_assert_eq!(ticks.from(tick), from.unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.down_from(tick), down.unwrap_or(NO_TICK));
                prop_assert_eq!(ticks.count() as usize, model.len());
            }
        }
    }

    #[test]
    fn a_closed_window_has_no_ticks() {
        let ticks = Occupancy::closed();
        assert_eq!((ticks.from(7), ticks.down_from(7)), (NO_TICK, NO_TICK));
        assert_eq!((ticks.width(), ticks.count()), (0, 0));
    }
}
