//! One side of a book as price levels only: what market data needs and no more.
//!
//! *State*: the levels in slots; the slots in the order of their prices, the best one last, in
//! pieces of at most [`PIECE`]; for each piece a bound, which is not above its keys and above those
//! of the piece before; slots by a hash of their price, as far as there is a place for them.
//! *Rules*: no piece is empty, but for the only one; two neighbours have more than [`MERGED`]
//! levels together, so that the number of levels limits that of the pieces; a place names no slot
//! that is free. *Why it works*: a level that stays is found by its place, one that comes or goes
//! moves a piece at most, near the best price next to nothing; the list of pieces changes only
//! after a quarter of a piece came or went.

use crate::book::Level;
use crate::command::Action;

/// Levels of a piece at most: 1 KB.
const PIECE: usize = 64;
/// Neighbours with so many levels together become one: three quarters of a piece, so that it takes
/// a quarter of one until a piece that was put together is split, or one that was split is put
/// together.
const MERGED: usize = PIECE / 4 * 3;
/// Places of slots by price, a power of two: 2 KB.
const PLACES: usize = 512;
/// A place without a slot.
const NONE: u32 = u32::MAX;

/// Price levels of one side.
///
/// Changing a level costs a look-up; where its place is taken by another one, a binary search, as
/// for a level that comes or goes, and that moves 16 bytes for each better one of its piece.
/// Allocates only when there are more levels than ever before; then half as many again have room.
#[derive(Clone, Debug)]
pub(super) struct PriceLadder {
    side: Action,
    levels: Vec<Level>,
    free: Vec<u32>,
    places: Box<[u32; PLACES]>,
    pieces: Vec<Vec<Rung>>,
    bounds: Vec<i64>,
    /// Empty pieces.
    spare: Vec<Vec<Rung>>,
    count: usize,
    /// So many levels need no allocation.
    room: usize,
}

/// A level in the order of prices.
#[derive(Clone, Copy, Debug)]
struct Rung {
    key: i64,
    slot: u32,
}

const fn empty(price: i64) -> Level {
    Level {
        price,
        volume: 0,
        orders: 0,
    }
}

/// Where in the order a level is, or would be.
#[derive(Clone, Copy, Debug)]
struct Spot {
    piece: usize,
    at: usize,
}

/// Which place a price may have. Whoever chooses prices that share one makes them be searched for.
#[inline]
const fn place(price: i64) -> usize {
    const SHIFT: u32 = u64::BITS - PLACES.ilog2();
    (price.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> SHIFT) as usize
}

impl PriceLadder {
    pub(super) fn new(side: Action, levels: usize) -> Self {
        let mut ladder = Self {
            side,
            levels: Vec::new(),
            free: Vec::new(),
            places: Box::new([NONE; PLACES]),
            pieces: Vec::new(),
            bounds: Vec::new(),
            spare: Vec::new(),
            count: 0,
            room: 0,
        };
        if levels > 0 {
            ladder.make_room(levels);
        }
        ladder
    }

    /// Sorts the worst price first; `!price` turns the order round without overflow.
    const fn key(&self, price: i64) -> i64 {
        match self.side {
            Action::Ask => !price,
            Action::Bid => price,
        }
    }

    /// The slot of a price's level.
    #[inline]
    fn find(&mut self, price: i64) -> Option<u32> {
        let slot = self.places[place(price)];
        match self.levels.get(slot as usize) {
            Some(level) if level.price == price => Some(slot),
            _ => self.search(price),
        }
    }

    fn search(&mut self, price: i64) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let Spot { piece, at } = self.spot(price).ok()?;
        let slot = self.pieces[piece][at].slot;
        self.places[place(price)] = slot;
        Some(slot)
    }

    /// `Err` where the level would be. There must be a piece.
    fn spot(&self, price: i64) -> Result<Spot, Spot> {
        let key = self.key(price);
        let last = self.pieces.len() - 1;
        // Most of what comes and goes, does so near the best price.
        let piece = if key >= self.bounds[last] {
            last
        } else {
            self.bounds[1..last].partition_point(|bound| *bound <= key)
        };
        let rungs = &self.pieces[piece];
        let found = match rungs.last() {
            Some(best) if best.key < key => Err(rungs.len()),
            _ => rungs.binary_search_by_key(&key, |rung| rung.key),
        };
        let spot = |at| Spot { piece, at };
        found.map(spot).map_err(spot)
    }

    /// Adds to the level at `price` (or takes away), and gives it as it was. A level that is left
    /// without orders stays until [`settle`](Self::settle) is called for it.
    pub(super) fn change(&mut self, price: i64, volume: i64, orders: i64) -> Level {
        let found = self.find(price);
        let slot = found.unwrap_or_else(|| self.insert(empty(price)));
        let level = &mut self.levels[slot as usize];
        let before = *level;
        // The engine lets no level leave 64 bits; whoever feeds anything else gets no panic here.
        level.volume = level.volume.wrapping_add(volume);
        level.orders = level.orders.wrapping_add_signed(orders);
        before
    }

    /// Puts the level as it is told; without orders, it is gone.
    pub(super) fn put(&mut self, level: Level) {
        match (self.find(level.price), level.orders) {
            (Some(slot), 0) => self.remove(slot),
            (Some(slot), _) => self.levels[slot as usize] = level,
            (None, 0) => {}
            (None, _) => {
                self.insert(level);
            }
        }
    }

    /// The level at `price` after all changes; it is forgotten if no order is left.
    pub(super) fn settle(&mut self, price: i64) -> Level {
        let Some(slot) = self.find(price) else {
            return empty(price);
        };
        let level = self.levels[slot as usize];
        if level.orders == 0 {
            self.remove(slot);
        }
        level
    }

    /// Adds a level that is not there yet; gives its slot.
    fn insert(&mut self, level: Level) -> u32 {
        if self.count == self.room {
            self.make_room(self.count + self.count / 2 + PIECE);
        }
        self.count += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.levels.push(level);
            u32::try_from(self.levels.len() - 1).expect("memory runs out before levels do")
        });
        self.levels[slot as usize] = level;
        self.places[place(level.price)] = slot;
        let mut spot = self.spot_of(level.price);
        if self.pieces[spot.piece].len() == PIECE {
            self.split(spot.piece);
            spot = self.spot_of(level.price);
        }
        let key = self.key(level.price);
        self.pieces[spot.piece].insert(spot.at, Rung { key, slot });
        slot
    }

    fn spot_of(&self, price: i64) -> Spot {
        match self.spot(price) {
            Ok(spot) | Err(spot) => spot,
        }
    }

    /// Cuts a full piece in two.
    #[cold]
    fn split(&mut self, piece: usize) {
        // There is a spare one, as `make_room` has counted.
        let spare = self.spare.pop();
        let mut better = spare.unwrap_or_else(|| Vec::with_capacity(PIECE));
        better.extend(self.pieces[piece].drain(PIECE / 2..));
        self.bounds.insert(piece + 1, better[0].key);
        self.pieces.insert(piece + 1, better);
        self.merge_around(piece + 1);
        self.merge_around(piece);
    }

    fn remove(&mut self, slot: u32) {
        let price = self.levels[slot as usize].price;
        let place = &mut self.places[place(price)];
        if *place == slot {
            *place = NONE;
        }
        let Spot { piece, at } = self.spot_of(price);
        self.free.push(slot);
        self.count -= 1;
        self.pieces[piece].remove(at);
        if self.pieces[piece].len() <= MERGED {
            self.merge_around(piece);
        }
    }

    /// Puts a piece together with a neighbour, if they are few enough.
    fn merge_around(&mut self, piece: usize) {
        let fits = |worse: usize| {
            let lengths = |two: &[Vec<Rung>]| [two[0].len(), two[1].len()];
            let two = self.pieces.get(worse..worse + 2).map(lengths);
            two.is_some_and(|[a, b]| a == 0 || b == 0 || a + b <= MERGED)
        };
        let before = piece.saturating_sub(1);
        if let Some(worse) = [before, piece].into_iter().find(|worse| fits(*worse)) {
            let mut better = self.pieces.remove(worse + 1);
            self.bounds.remove(worse + 1);
            self.pieces[worse].append(&mut better);
            self.spare.push(better);
        }
    }

    /// Memory for so many levels, more than now.
    #[cold]
    fn make_room(&mut self, levels: usize) {
        self.levels.reserve_exact(levels - self.levels.len());
        self.free.reserve_exact(levels - self.free.len());
        // Every two neighbours have more than `MERGED` levels; one more while a piece is split.
        let pieces = 2 * (levels / (MERGED + 1)) + 2;
        self.pieces.reserve(pieces - self.pieces.len());
        self.bounds.reserve(pieces - self.bounds.len());
        self.spare.reserve(pieces - self.spare.len());
        while self.pieces.len() + self.spare.len() < pieces {
            self.spare.push(Vec::with_capacity(PIECE));
        }
        if self.pieces.is_empty() {
            self.pieces.extend(self.spare.pop());
            // No key is below it, whatever comes and goes.
            self.bounds.push(i64::MIN);
        }
        self.room = levels;
    }

    pub(super) fn best(&self) -> Option<Level> {
        let best = self.pieces.last()?.last()?;
        Some(self.levels[best.slot as usize])
    }

    /// Best first.
    pub(super) fn levels(&self) -> impl ExactSizeIterator<Item = Level> + '_ {
        let rungs = self
            .pieces
            .iter()
            .rev()
            .flat_map(|piece| piece.iter().rev());
        BestFirst {
            left: self.count,
            levels: rungs.map(|rung| self.levels[rung.slot as usize]),
        }
    }

    /// Whether `price` is as good as `other`, or better.
    pub(super) const fn reaches(&self, price: i64, other: i64) -> bool {
        self.key(price) >= self.key(other)
    }

    pub(super) fn clear(&mut self) {
        while self.pieces.len() > 1 {
            self.spare.extend(self.pieces.pop());
            self.bounds.pop();
        }
        self.pieces.iter_mut().for_each(Vec::clear);
        self.spare.iter_mut().for_each(Vec::clear);
        self.levels.clear();
        self.free.clear();
        self.places.fill(NONE);
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

    fn get(ladder: &PriceLadder, price: i64) -> Level {
        let found = ladder.levels().find(|level| level.price == price);
        found.unwrap_or(empty(price))
    }

    /// The rules of the module.
    fn check(ladder: &PriceLadder) {
        let pieces = &ladder.pieces;
        let all: Vec<Rung> = pieces.concat();
        assert!(all.is_sorted_by(|a, b| a.key < b.key));
        let few = |two: &[Vec<Rung>]| two[0].len() + two[1].len() <= MERGED;
        assert!(!pieces.windows(2).any(few));
        assert_eq!(ladder.bounds.len(), pieces.len());
        for (at, piece) in pieces.iter().enumerate() {
            assert!(piece.len() <= PIECE && (!piece.is_empty() || pieces.len() == 1));
            assert!(piece.iter().all(|rung| rung.key >= ladder.bounds[at]));
            assert!(at == 0 || pieces[at - 1].last().unwrap().key < ladder.bounds[at]);
        }
        let price = |slot: u32| ladder.levels[slot as usize].price;
        assert!(
            all.iter()
                .all(|rung| rung.key == ladder.key(price(rung.slot)))
        );
        assert_eq!(all.len(), ladder.count);
        assert_eq!(ladder.levels.len() - ladder.free.len(), ladder.count);
        for (at, &slot) in ladder
            .places
            .iter()
            .enumerate()
            .filter(|(_, slot)| **slot != NONE)
        {
            assert!(place(price(slot)) == at && !ladder.free.contains(&slot));
        }
        let memory = pieces.iter().chain(&ladder.spare);
        assert!(memory.into_iter().all(|piece| piece.capacity() == PIECE));
    }

    /// Levels come and go in `range`, and are as in a map.
    fn follow(
        ask: bool,
        range: i64,
        steps: Vec<(i64, u64, i64)>,
    ) -> Result<PriceLadder, TestCaseError> {
        let side = if ask { Action::Ask } else { Action::Bid };
        let mut ladder = PriceLadder::new(side, 0);
        let mut model = BTreeMap::new();
        for (at, (price, orders, volume)) in steps.into_iter().enumerate() {
            let price = price % range;
            let level = Level {
                price,
                volume,
                orders,
            };
            if volume % 2 == 0 {
                ladder.put(level);
            } else {
                let before = get(&ladder, price);
                let more = orders.cast_signed() - before.orders.cast_signed();
                let volume = volume - before.volume;
                prop_assert_eq!(ladder.change(price, volume, more), before);
                prop_assert_eq!(ladder.settle(price).orders, orders);
            }
            if orders == 0 {
                model.remove(&price);
            } else {
                model.insert(price, level);
            }
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
        #![proptest_config(ProptestConfig::with_cases(64))]

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
        let mut ladder = PriceLadder::new(Action::Bid, 0);
        let level = |price| Level {
            price,
            volume: 1,
            orders: 1,
        };
        let gone = |price| Level {
            orders: 0,
            ..level(price)
        };
        (0..10_000).for_each(|price| ladder.put(level(price)));
        let memory = |ladder: &PriceLadder| ladder.pieces.len() + ladder.spare.len();
        let before = memory(&ladder);
        // Thinned out where they were, then as many elsewhere, from both ends.
        for price in 0..10_000 {
            if price % 5 != 0 {
                ladder.put(gone(price));
            }
        }
        check(&ladder);
        (20_000..24_000).for_each(|price| ladder.put(level(price)));
        (-4_000..0).rev().for_each(|price| ladder.put(level(price)));
        check(&ladder);
        assert_eq!((memory(&ladder), ladder.levels().len()), (before, 10_000));
        ladder.clear();
        check(&ladder);
        assert_eq!((memory(&ladder), ladder.best()), (before, None));
        ladder.put(level(i64::MIN));
        assert_eq!(get(&ladder, i64::MIN), level(i64::MIN));
    }
}
