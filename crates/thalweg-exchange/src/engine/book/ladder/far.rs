//! The levels of one side outside the window: their slots in the order of their keys.
//!
//! *State*: entries in ascending order, cut into pieces of at most [`PIECE`]; a bound for each
//! piece, beside one another, so that the search for a piece reads a few lines and not a line of
//! each piece it tries. *Rules*: a bound is not above the keys of its piece, and above those of the
//! piece before; no piece is empty; a piece that falls to [`FEW`] entries is put together with a
//! neighbour if both fit into half a piece. Memory of pieces that are gone is kept for new ones, so
//! nothing is allocated once there were as many.
//!
//! *Cost*: two binary searches; a level that comes or goes moves a piece at most, and now and then
//! the list of pieces.

use super::super::orders::{NONE, Node};
use super::{Ladder, NO_KEY, mask};
use crate::command::Action;

/// Entries of a piece at most: 1 KB.
const PIECE: usize = 64;
/// Pieces made together, so that the most ever needed is passed seldom.
const AT_ONCE: usize = 8;
/// So few are worth a look at the neighbours.
const FEW: usize = PIECE / 4;

type Entry = (i64, u32);

/// A map from keys to slots of levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Far {
    bounds: Vec<i64>,
    pieces: Vec<Vec<Entry>>,
    spare: Vec<Vec<Entry>>,
}

impl Far {
    pub(super) const fn new() -> Self {
        Self {
            bounds: Vec::new(),
            pieces: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Returns the piece in which `key` is, or would be.
    fn piece_of(&self, key: i64) -> usize {
        let later = self.bounds.partition_point(|&bound| bound <= key);
        later.saturating_sub(1)
    }

    pub(super) fn get(&self, key: i64) -> Option<u32> {
        let piece = self.pieces.get(self.piece_of(key))?;
        let at = piece.binary_search_by_key(&key, |&(key, _)| key).ok()?;
        Some(piece[at].1)
    }

    /// Returns the first entry whose key is `key` or above.
    pub(super) fn first_from(&self, key: i64) -> Option<Entry> {
        let at = self.piece_of(key);
        let piece = self.pieces.get(at)?;
        let within = piece.partition_point(|&(other, _)| other < key);
        let next = || self.pieces.get(at + 1).and_then(|piece| piece.first());
        piece.get(within).or_else(next).copied()
    }

    pub(super) fn first(&self) -> Option<Entry> {
        self.pieces.first()?.first().copied()
    }

    /// Adds a key that is not there.
    pub(super) fn insert(&mut self, key: i64, slot: u32) {
        if self.pieces.is_empty() {
            let mut piece = self.new_piece();
            piece.push((key, slot));
            self.pieces.push(piece);
            self.bounds.push(key);
            return;
        }
        let mut at = self.piece_of(key);
        if self.pieces[at].len() == PIECE {
            let mut upper = self.new_piece();
            upper.extend(self.pieces[at].drain(PIECE / 2..));
            let first = upper[0].0;
            self.pieces.insert(at + 1, upper);
            self.bounds.insert(at + 1, first);
            at += usize::from(first <= key);
        }
        self.bounds[at] = self.bounds[at].min(key);
        let piece = &mut self.pieces[at];
        let within = piece.partition_point(|&(other, _)| other < key);
        piece.insert(within, (key, slot));
    }

    fn new_piece(&mut self) -> Vec<Entry> {
        if self.spare.is_empty() {
            let room = || Vec::with_capacity(PIECE);
            self.spare
                .extend(std::iter::repeat_with(room).take(AT_ONCE));
        }
        self.spare.pop().expect("there are some now")
    }

    /// Takes a key out, if it is there.
    pub(super) fn remove(&mut self, key: i64) {
        let at = self.piece_of(key);
        let Some(piece) = self.pieces.get_mut(at) else {
            return;
        };
        if let Ok(within) = piece.binary_search_by_key(&key, |&(key, _)| key) {
            piece.remove(within);
            if piece.len() <= FEW {
                self.put_together(at);
            }
        }
    }

    /// Puts a piece of few entries together with a neighbour, if they fit.
    fn put_together(&mut self, at: usize) {
        for (lower, upper) in [(at.wrapping_sub(1), at), (at, at + 1)] {
            let length = |at: usize| self.pieces.get(at).map(Vec::len);
            let (Some(first), Some(second)) = (length(lower), length(upper)) else {
                continue;
            };
            if first + second <= PIECE / 2 {
                self.bounds.remove(upper);
                let mut emptied = self.pieces.remove(upper);
                self.pieces[lower].append(&mut emptied);
                self.keep(emptied);
                return;
            }
        }
        if self.pieces[at].is_empty() {
            self.bounds.remove(at);
            let emptied = self.pieces.remove(at);
            self.keep(emptied);
        }
    }

    /// Keeps the memory of a piece. Both lists together never have more pieces than there were.
    fn keep(&mut self, emptied: Vec<Entry>) {
        self.spare.push(emptied);
    }
}

// Levels outside the window: far ones and parked ones.

impl Ladder {
    #[cold]
    pub(super) fn far_level_of(&self, side: Action, price: i64) -> u32 {
        let offset = self.offset(price);
        if let Some(parked) = &self.parked
            && parked[side as usize].has(offset)
        {
            return offset as u32;
        }
        let key = price ^ mask(side);
        self.far[side as usize].get(key).unwrap_or(NONE)
    }

    /// Makes a far level without orders.
    pub(super) fn add_far(&mut self, side: Action, price: i64) -> u32 {
        let key = price ^ mask(side);
        let level = self.nodes.insert(Node::level(NONE, price));
        self.nodes[level] = Node::level(level, price);
        self.far[side as usize].insert(key, level);
        let best = &mut self.far_best[side as usize];
        *best = (*best).min(key);
        level
    }

    pub(super) fn remove_far(&mut self, side: Action, key: i64, level: u32) {
        self.far[side as usize].remove(key);
        self.nodes.free(level);
        self.note_no_far(side, key);
    }

    /// There is no level outside the window with this key any more.
    fn note_no_far(&mut self, side: Action, key: i64) {
        if self.far_best[side as usize] == key {
            self.renew_far_best(side);
        }
    }

    /// Takes an order off a far level, after its neighbours were linked to each other.
    #[cold]
    #[inline(never)]
    pub(super) fn unlink_far(&mut self, left: i64, (price, side): (i64, Action)) {
        let level = self.far_level_of(side, price);
        let queue = &mut self.nodes[level];
        queue.left -= left;
        queue.tag -= 1;
        if queue.tag == 0 {
            self.close(level, price, side);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn close_outside(&mut self, level: u32, price: i64, side: Action) {
        if level < self.nodes.levels() {
            if let Some(parked) = &mut self.parked {
                parked[side as usize].remove(level);
            }
            self.note_no_far(side, price ^ mask(side));
        } else {
            self.remove_far(side, price ^ mask(side), level);
            self.move_delay = self.move_delay.saturating_sub(1);
        }
    }

    /// Looks for the best key outside the window.
    #[cold]
    pub(super) fn renew_far_best(&mut self, side: Action) {
        let far = self.far[side as usize].first();
        let far = far.map_or(NO_KEY, |(key, _)| key);
        self.far_best[side as usize] = far.min(self.parked_key_from(side, i64::MIN));
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
            steps in prop::collection::vec((0..5_u8, -400_i64..400), 0..2_000),
            extreme in any::<bool>(),
        ) {
            let mut far = Far::new();
            let mut model = BTreeMap::new();
            for (at, (kind, key)) in (0..).zip(steps) {
                let key = match key {
                    -400 if extreme => i64::MIN,
                    399 if extreme => i64::MAX,
                    key => key,
                };
                // Long runs of more insertions than removals, and the other way round.
                if (kind < 4) == (at / 500 % 2 == 0) {
                    model.entry(key).or_insert_with(|| {
                        far.insert(key, at);
                        at
                    });
                } else {
                    far.remove(key);
                    model.remove(&key);
                }
                let pair = |(&key, &slot): (&i64, &u32)| (key, slot);
                prop_assert_eq!(far.get(key), model.get(&key).copied());
                prop_assert_eq!(far.first_from(key), model.range(key..).next().map(pair));
                prop_assert_eq!(far.first(), model.first_key_value().map(pair));
                prop_assert!(far.pieces.iter().all(|piece| (1..=PIECE).contains(&piece.len())));
                let mut bounds = far.bounds.iter().zip(&far.pieces);
                prop_assert!(bounds.all(|(&bound, piece)| bound <= piece[0].0));
            }
            let all: Vec<Entry> = far.pieces.concat();
            prop_assert_eq!(all, Vec::from_iter(model));
        }
    }
}
