//! From a symbol's id to the slot where the symbol lives.

use crate::engine::index::Index;
use crate::ids::SymbolId;

/// Symbols with ids from zero to below this are found in a list, without a hash: at most 256 KiB.
const SMALL_IDS: usize = 65_536;

/// Symbols of which what is read by every command still lies in a near cache.
const MANY: usize = 256;

/// No symbol has this slot.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Maps symbol ids to slot numbers, as far as [`Index`] takes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolIndex {
    /// The slots of symbols with small ids; [`NO_SLOT`] where there is none.
    small: Vec<u32>,
    index: Index,
}

impl SymbolIndex {
    /// Returns the slot of `symbol`, if it is here. `id_of` returns the symbol in a slot.
    #[inline]
    pub(crate) fn find(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> Option<u32> {
        match self.slot(symbol, id_of) {
            NO_SLOT => None,
            slot => Some(slot),
        }
    }

    /// Returns the slot of `symbol`, or [`NO_SLOT`], which is outside of every list: fewer
    /// instructions for a caller that looks there next.
    #[inline]
    pub(crate) fn slot(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> u32 {
        match self.near(symbol).unwrap_or(NO_SLOT) {
            NO_SLOT => self.find_any(symbol, id_of).unwrap_or(NO_SLOT),
            slot => slot,
        }
    }

    /// The slot of `symbol` if its id is small; [`NO_SLOT`] or nothing where it is not here.
    #[inline(always)]
    pub(crate) fn near(&self, symbol: SymbolId) -> Option<u32> {
        self.small.get(symbol.0 as usize).copied()
    }

    #[cold]
    fn find_any(&self, symbol: SymbolId, id_of: impl Fn(u32) -> SymbolId) -> Option<u32> {
        self.index
            .find(i64::from(symbol.0), |slot| i64::from(id_of(slot).0))
    }

    /// Adds `symbol`, which must not be here yet.
    pub(crate) fn insert(&mut self, symbol: SymbolId, slot: u32) {
        if let Some(id) = usize::try_from(symbol.0).ok().filter(|&id| id < SMALL_IDS) {
            if id >= self.small.len() {
                self.small.resize(id + 1, NO_SLOT);
            }
            self.small[id] = slot;
        }
        self.index.insert(i64::from(symbol.0), slot);
    }

    /// Takes `symbol` out, and gives its slot. `id_of` must still know it.
    pub(crate) fn remove(
        &mut self,
        symbol: SymbolId,
        id_of: impl Fn(u32) -> SymbolId,
    ) -> Option<u32> {
        if let Some(slot) = self.small.get_mut(symbol.0 as usize) {
            *slot = NO_SLOT;
        }
        self.index
            .remove(i64::from(symbol.0), |slot| i64::from(id_of(slot).0))
    }

    /// Whether there are more symbols than the nearer caches can hold the data of.
    #[inline]
    pub(crate) const fn are_many(&self) -> bool {
        self.index.len() > MANY
    }

    /// Every slot, in no meaningful order: sort before use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.slots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_small_large_and_negative_ids() {
        let ids = [0, 7, 65_535, 65_536, i32::MAX, -1, i32::MIN].map(SymbolId);
        let id_of = |slot: u32| ids[slot as usize];
        let mut index = SymbolIndex::default();
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.find(id, id_of), None);
            index.insert(id, slot);
        }
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.find(id, id_of), Some(slot));
        }
        assert_eq!(index.find(SymbolId(8), id_of), None);
        assert_eq!(index.find(SymbolId(-2), id_of), None);
        for (slot, &id) in (0..).zip(&ids) {
            assert_eq!(index.remove(id, id_of), Some(slot));
            assert_eq!(index.find(id, id_of), None);
            assert_eq!(index.remove(id, id_of), None);
        }
        assert_eq!(index.slots().count(), 0);
        index.insert(ids[1], 1);
        assert_eq!(index.find(ids[1], id_of), Some(1));
    }
}
