//! Ordered sets of orders: their slots, sorted by a key that each order's node holds.
//!
//! *State*: the slots in ascending order of their keys, in pieces of at most [`PIECE`]; a tree
//! finds a piece by its bound. Keys are read from the nodes through the caller's `key_of`, so a
//! slot takes 6 to 12 bytes, and 20 at most, where a tree of keys takes 30 to 60. *Rules*: (1) no
//! two slots have one key, and no key changes while its slot is here; (2) a bound is not above the
//! keys of its piece, and above those of the piece before; (3) no piece is empty; (4) a piece that
//! falls to [`FEW`] slots is put together with a neighbour if both fit into half a piece.
//!
//! *Cost*: a search in the tree, and a look at six nodes; a slot that comes or goes moves 256 bytes
//! at most.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Slots of a piece at most.
const PIECE: usize = 64;
/// A piece of this number of slots is put together with a neighbour, if it can be.
const FEW: usize = PIECE / 4;

/// A set of slots; `K` is the type of their keys.
#[derive(Clone, Debug)]
pub(super) struct SlotSet<K>(BTreeMap<K, Vec<u32>>);

impl<K> Default for SlotSet<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> SlotSet<K> {
    /// Returns the first slot, if `is_within` is true of a key that is not above its own.
    pub(super) fn first(&self, is_within: impl Fn(K) -> bool) -> Option<u32> {
        let (&bound, piece) = self.0.first_key_value()?;
        if is_within(bound) {
            piece.first().copied()
        } else {
            None
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.values().flatten().copied()
    }

    /// Returns the slots from a key on.
    pub(super) fn from(&self, key: K, key_of: impl Fn(u32) -> K) -> impl Iterator<Item = u32> + '_ {
        let within = self.0.range(..=key).next_back().map(|(_, piece)| {
            let at = piece.partition_point(|&slot| key_of(slot) < key);
            &piece[at..]
        });
        let above = self.0.range((Bound::Excluded(key), Bound::Unbounded));
        let above = above.flat_map(|(_, piece)| piece);
        within.unwrap_or_default().iter().chain(above).copied()
    }

    /// Adds a slot, whose key is not here yet.
    pub(super) fn insert(&mut self, slot: u32, key_of: impl Fn(u32) -> K) {
        let key = key_of(slot);
        let Some((&bound, piece)) = self.0.range_mut(..=key).next_back() else {
            // The first piece has room, or another one is first from now on.
            let first = self.0.first_entry();
            let first = first.filter(|first| first.get().len() < PIECE);
            let mut piece = first.map_or_else(Vec::new, |first| first.remove());
            piece.insert(0, slot);
            self.0.insert(key, piece);
            return;
        };
        let at = piece.partition_point(|&other| key_of(other) < key);
        if piece.len() < PIECE {
            piece.insert(at, slot);
        } else {
            self.split(bound, (at, slot), key_of);
        }
    }

    /// Cuts a full piece in two, to which a slot is added.
    #[cold]
    fn split(&mut self, bound: K, (at, slot): (usize, u32), key_of: impl Fn(u32) -> K) {
        let last = self.0.last_entry().expect("a piece is full");
        // Slots that come in ascending order leave full pieces behind.
        let is_end = at == PIECE && *last.key() == bound;
        let piece = self.0.get_mut(&bound).expect("this piece is full");
        let mut upper = piece.split_off(if is_end { PIECE } else { PIECE / 2 });
        match at.checked_sub(piece.len()) {
            Some(at) => upper.insert(at, slot),
            None => piece.insert(at, slot),
        }
        self.0.insert(key_of(upper[0]), upper);
    }

    /// Takes a slot out, if it is here.
    pub(super) fn remove(&mut self, slot: u32, key_of: impl Fn(u32) -> K) {
        let key = key_of(slot);
        let Some((&bound, piece)) = self.0.range_mut(..=key).next_back() else {
            return;
        };
        if let Ok(at) = piece.binary_search_by_key(&key, |&slot| key_of(slot)) {
            piece.remove(at);
            if piece.len() <= FEW {
                self.put_together(bound);
            }
        }
    }

    /// Puts a piece of few slots together with a neighbour, if they fit.
    #[cold]
    fn put_together(&mut self, bound: K) {
        let bound_of = |(&bound, _): (&K, &Vec<u32>)| bound;
        let above = (Bound::Excluded(bound), Bound::Unbounded);
        let neighbours = [
            self.0.range(..bound).next_back().map(bound_of),
            self.0.range(above).next().map(bound_of),
        ];
        let [before, after] = neighbours.map(|neighbour| neighbour.unwrap_or(bound));
        for (lower, upper) in [(before, bound), (bound, after)] {
            if lower < upper && self.0[&lower].len() + self.0[&upper].len() <= PIECE / 2 {
                let piece = self.0.remove(&upper).expect("a neighbour is here");
                let lower = self.0.get_mut(&lower).expect("a neighbour is here");
                lower.extend(piece);
                return;
            }
        }
        if self.0[&bound].is_empty() {
            self.0.remove(&bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_tree(
            steps in prop::collection::vec((0..5_u8, 0..400_i64), 0..2_000),
            order in 0..3_u8,
        ) {
            let mut keys: Vec<i64> = Vec::new();
            let mut set = SlotSet::default();
            let mut model = BTreeMap::new();
            for (at, (kind, key)) in (0_u32..).zip(steps) {
                // Ascending, descending, or anywhere.
                let key = match order {
                    0 => i64::from(at / 2),
                    1 => -i64::from(at / 2),
                    _ => key,
                };
                keys.push(key);
                let key_of = |slot: u32| keys[slot as usize];
                // Long runs of more insertions than removals, and the other way round.
                let adds = (kind < 4) == (at / 500 % 2 == 0);
                if adds && !model.contains_key(&key) {
                    set.insert(at, key_of);
                    model.insert(key, at);
                } else if !adds {
                    let near = model.range(key..).next().or(model.first_key_value());
                    let near = near.map_or(at, |(_, &slot)| slot);
                    set.remove(near, key_of);
                    model.remove(&key_of(near));
                }
                let some = model.range(key..).map(|(_, &slot)| slot).take(3);
                prop_assert!(set.from(key, key_of).take(3).eq(some));
                prop_assert_eq!(set.first(|_| true), model.values().next().copied());
                let found = set.first(|bound| bound <= key);
                let first = model.first_key_value().filter(|&(&first, _)| first <= key);
                prop_assert!(first.is_none_or(|(_, &slot)| found == Some(slot)));
            }
            prop_assert!(set.iter().eq(model.values().copied()));
            let key_of = |slot: u32| keys[slot as usize];
            let mut last = i64::MIN;
            let mut few = false;
            for (&bound, piece) in &set.0 {
                prop_assert!((1..=PIECE).contains(&piece.len()));
                prop_assert!(last < bound && bound <= key_of(piece[0]));
                last = key_of(piece[piece.len() - 1]);
                // One of two neighbours has more than a few.
                prop_assert!(!(few && piece.len() <= FEW));
                few = piece.len() <= FEW;
            }
        }
    }
}
