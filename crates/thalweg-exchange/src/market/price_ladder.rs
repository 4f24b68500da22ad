//! One side of a book as price levels only: what market data needs and no more.
//!
//! *State*: the levels in the order of their prices, the best one last, in pieces of at most
//! [`PIECE`]. *Rules*: no piece is empty, but for the only one; two neighbours have more than
//! [`MERGED`] levels together, so that the number of levels limits that of the pieces. *Why it
//! works*: a level that comes or goes moves a piece at most, near the best price next to nothing;
//! the list of pieces changes only after a quarter of a piece came or went.

use std::mem;

use crate::book::Level;
use crate::command::Action;

/// Levels of a piece at most: 1.5 KB.
const PIECE: usize = 64;
/// Neighbours with at most this number of levels together become one: three quarters of a piece,
/// so that it takes a quarter of one until a piece that was put together is split, or one that was
/// split is put together.
const MERGED: usize = PIECE / 4 * 3;
/// Pieces that are allocated when one is split.
const ALLOCATED_TOGETHER: usize = 4;

/// Price levels of one side.
///
/// Changing a level costs a binary search; one that comes or goes moves each better one of its
/// piece by 24 bytes. Allocates when a piece is split and there are more levels than there were,
/// [`ALLOCATED_TOGETHER`] pieces at most, until half as many levels again have room: so there is
/// never much to do at once.
#[derive(Clone, Debug)]
pub(super) struct PriceLadder {
    /// Turns prices into keys, which sort the worst price first, without a branch or overflow.
    mask: i64,
    pieces: Vec<Vec<Level>>,
    /// Empty pieces.
    spare: Vec<Vec<Level>>,
    count: usize,
}

const fn empty(price: i64) -> Level {
    Level {
        price,
        volume: 0,
        orders: 0,
    }
}

/// Returns how many pieces this number of levels needs at most: every two neighbours have more than
/// `MERGED` levels; one more while a piece is split.
const fn pieces_of(levels: usize) -> usize {
    2 * (levels / (MERGED + 1)) + 2
}

/// Where in the order a level is, or would be.
#[derive(Clone, Copy, Debug)]
struct Spot {
    piece: usize,
    at: usize,
}

impl PriceLadder {
    pub(super) fn new(side: Action) -> Self {
        Self {
            mask: match side {
                Action::Ask => -1,
                Action::Bid => 0,
            },
            pieces: Vec::new(),
            spare: Vec::new(),
            count: 0,
        }
    }

    #[inline(always)]
    const fn key(&self, price: i64) -> i64 {
        price ^ self.mask
    }

    /// Returns where the level of a price is, or as an error where it would be.
    fn spot(&self, price: i64) -> Result<Spot, Spot> {
        let key = self.key(price);
        let begins = |piece: &Vec<Level>| piece.first().is_some_and(|l| self.key(l.price) <= key);
        // Most of what comes and goes, does so near the best price.
        let piece = match self.pieces.len() {
            0 | 1 => 0,
            count if begins(&self.pieces[count - 1]) => count - 1,
            count => self.pieces[1..count - 1].partition_point(begins),
        };
        let levels = self.pieces.get(piece).map_or(&[][..], |piece| piece);
        let found = match levels.last() {
            Some(best) if self.key(best.price) < key => Err(levels.len()),
            _ => levels.binary_search_by_key(&key, |level| self.key(level.price)),
        };
        let spot = |at| Spot { piece, at };
        found.map(spot).map_err(spot)
    }

    /// Puts a level in its place, or without orders takes it out; returns it as it was.
    pub(super) fn put(&mut self, level: Level) -> Level {
        match (self.spot(level.price), level.orders) {
            (Ok(spot), 0) => self.remove(spot),
            (Ok(spot), _) => mem::replace(&mut self.pieces[spot.piece][spot.at], level),
            (Err(_), 0) => empty(level.price),
            (Err(spot), _) => {
                self.insert(spot, level);
                empty(level.price)
            }
        }
    }

    fn insert(&mut self, mut spot: Spot, level: Level) {
        if self.pieces.is_empty() {
            self.begin();
        }
        self.count += 1;
        if self.pieces[spot.piece].len() == PIECE {
            self.split(spot.piece);
            spot = match self.spot(level.price) {
                Ok(spot) | Err(spot) => spot,
            };
        }
        self.pieces[spot.piece].insert(spot.at, level);
    }

    /// Cuts a full piece in two.
    #[cold]
    fn split(&mut self, piece: usize) {
        let wanted = pieces_of(self.count + self.count / 2);
        let missing = wanted.saturating_sub(self.pieces.len() + self.spare.len());
        self.allocate(missing.min(ALLOCATED_TOGETHER));
        let spare = self.spare.pop();
        let mut better = spare.unwrap_or_else(|| Vec::with_capacity(PIECE));
        better.extend(self.pieces[piece].drain(PIECE / 2..));
        self.pieces.insert(piece + 1, better);
        self.merge_around(piece + 1);
        self.merge_around(piece);
    }

    fn remove(&mut self, Spot { piece, at }: Spot) -> Level {
        let level = self.pieces[piece].remove(at);
        self.count -= 1;
        if self.pieces[piece].len() <= MERGED {
            self.merge_around(piece);
        }
        level
    }

    /// Puts a piece together with a neighbour, if they are few enough.
    fn merge_around(&mut self, piece: usize) {
        let fits = |worse: usize| {
            let lengths = |two: &[Vec<Level>]| [two[0].len(), two[1].len()];
            let two = self.pieces.get(worse..worse + 2).map(lengths);
            two.is_some_and(|[a, b]| a == 0 || b == 0 || a + b <= MERGED)
        };
        let before = piece.saturating_sub(1);
        if let Some(worse) = [before, piece].into_iter().find(|worse| fits(*worse)) {
            let mut better = self.pieces.remove(worse + 1);
            self.pieces[worse].append(&mut better);
            self.spare.push(better);
        }
    }

    /// Takes the first piece.
    #[cold]
    fn begin(&mut self) {
        let spare = self.spare.pop();
        let first = spare.unwrap_or_else(|| Vec::with_capacity(PIECE));
        self.pieces.push(first);
    }

    fn allocate(&mut self, pieces: usize) {
        let new = || Vec::with_capacity(PIECE);
        self.spare.extend(std::iter::repeat_with(new).take(pieces));
    }

    pub(super) fn best(&self) -> Option<Level> {
        self.pieces.last()?.last().copied()
    }

    /// Best first.
    pub(super) fn levels(&self) -> impl ExactSizeIterator<Item = Level> + '_ {
        let pieces = self.pieces.iter().rev();
        BestFirst {
            left: self.count,
            levels: pieces.flat_map(|piece| piece.iter().rev().copied()),
        }
    }

    /// Returns whether `price` is as good as `other`, or better.
    pub(super) const fn reaches(&self, price: i64, other: i64) -> bool {
        self.key(price) >= self.key(other)
    }

    pub(super) fn clear(&mut self) {
        let others = 1.min(self.pieces.len())..;
        self.spare.extend(self.pieces.drain(others));
        self.pieces.iter_mut().for_each(Vec::clear);
        self.spare.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }
}

/// Counts what is left of an iterator that cannot.
struct BestFirst<L> {
    left: usize,
    levels: L,
}

impl<L: Iterator<Item = Level>> Iterator for BestFirst<L> {
    type Item = Level;

    fn next(&mut self) -> Option<Level> {
        let level = self.levels.next()?;
        self.left -= 1;
        Some(level)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<L: Iterator<Item = Level>> ExactSizeIterator for BestFirst<L> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The rules of the module.
    fn check(ladder: &PriceLadder) {
        let pieces = &ladder.pieces;
        let all: Vec<Level> = pieces.concat();
        assert!(all.is_sorted_by(|a, b| ladder.key(a.price) < ladder.key(b.price)));
        let few = |two: &[Vec<Level>]| two[0].len() + two[1].len() <= MERGED;
        assert!(!pieces.windows(2).any(few));
        let is_full = |piece: &Vec<Level>| !piece.is_empty() || pieces.len() == 1;
        assert!(pieces.iter().all(is_full));
        assert_eq!(all.len(), ladder.count);
        let mut memory = pieces.iter().chain(&ladder.spare);
        assert!(memory.all(|piece| piece.capacity() == PIECE));
    }

    /// Levels come and go in `range`, and are as in a map.
    fn follow(
        ask: bool,
        range: i64,
        steps: Vec<(i64, u64, i64)>,
    ) -> Result<PriceLadder, TestCaseError> {
        let side = if ask { Action::Ask } else { Action::Bid };
        let mut ladder = PriceLadder::new(side);
        let mut model = BTreeMap::new();
        for (at, (price, orders, volume)) in steps.into_iter().enumerate() {
            let price = price % range;
            let level = Level {
                price,
                volume,
                orders,
            };
            let before = match orders {
                0 => model.remove(&price),
                _ => model.insert(price, level),
            };
            prop_assert_eq!(ladder.put(level), before.unwrap_or(empty(price)));
            let best = match side {
                Action::Ask => model.first_key_value(),
                Action::Bid => model.last_key_value(),
            };
            prop_assert_eq!(ladder.best(), best.map(|(_, level)| *level));
            if at % 16 == 0 {
                check(&ladder);
                let mut expected: Vec<Level> = model.values().copied().collect();
                if side == Action::Bid {
                    expected.reverse();
                }
                prop_assert_eq!(ladder.levels().len(), expected.len());
                prop_assert_eq!(ladder.levels().collect::<Vec<_>>(), expected);
            }
        }
        Ok(ladder)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(64)))]

        #[test]
        fn a_few_levels_agree_with_a_map(
            ask in any::<bool>(),
            steps in prop::collection::vec((-50..50_i64, 0..3_u64, -9..9_i64), 0..200),
        ) {
            follow(ask, 20, steps)?;
        }

        #[test]
        fn many_levels_agree_with_a_map(
            ask in any::<bool>(),
            come in prop::collection::vec((any::<i64>(), 0..9_u64, -9..9_i64), 0..1500),
            go in prop::collection::vec((any::<i64>(), 0..2_u64, -9..9_i64), 0..1500),
        ) {
            follow(ask, 600, come.into_iter().chain(go).collect())?;
        }
    }

    #[test]
    fn what_grew_and_shrank_has_memory_for_as_much_again() {
        let mut ladder = PriceLadder::new(Action::Bid);
        let level = |price| Level {
            price,
            volume: 1,
            orders: 1,
        };
        let gone = |price| Level {
            orders: 0,
            ..level(price)
        };
        for price in 0..10_000 {
            ladder.put(level(price));
        }
        let memory = |ladder: &PriceLadder| ladder.pieces.len() + ladder.spare.len();
        let before = memory(&ladder);
        // Thinned out where they were, then as many elsewhere, from both ends.
        for price in 0..10_000 {
            if price % 5 != 0 {
                ladder.put(gone(price));
            }
        }
        check(&ladder);
        for price in (20_000..24_000).chain((-4_000..0).rev()) {
            ladder.put(level(price));
        }
        check(&ladder);
        assert_eq!((memory(&ladder), ladder.levels().len()), (before, 10_000));
        ladder.clear();
        check(&ladder);
        assert_eq!((memory(&ladder), ladder.best()), (before, None));
        ladder.put(level(i64::MIN));
        assert_eq!(ladder.best(), Some(level(i64::MIN)));
    }

    #[test]
    fn a_level_that_comes_allocates_little_whatever_the_others_are() {
        let level = |price| Level {
            price,
            volume: 1,
            orders: 1,
        };
        let mut ladder = PriceLadder::new(Action::Ask);
        let memory = |ladder: &PriceLadder| ladder.pieces.len() + ladder.spare.len();
        let mut before = memory(&ladder);
        for price in 0..100_000_i64 {
            // In the midst as well as at the end.
            ladder.put(level(price * 7_919 % 100_003));
            let now = memory(&ladder);
            assert!(now - before <= ALLOCATED_TOGETHER, "{before} {now}");
            before = now;
        }
        check(&ladder);
        // No more than half as many levels again need.
        assert!(
            before <= pieces_of(ladder.count + ladder.count / 2),
            "{before}"
        );
    }
}
