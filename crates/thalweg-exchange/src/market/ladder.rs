//! One side of a book as price levels only: what market data needs and no more.

use crate::book::Level;
use crate::command::Action;

/// Price levels of one side, the best one last, so that work near the market moves little.
///
/// No allocation while there are not more levels than there were before. Finding a level costs a
/// binary search; one that comes or goes moves every better level by 24 bytes.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    side: Action,
    levels: Vec<Level>,
}

impl Ladder {
    pub(super) fn new(side: Action, levels: usize) -> Self {
        Self {
            side,
            levels: Vec::with_capacity(levels),
        }
    }

    pub(super) const fn side(&self) -> Action {
        self.side
    }

    /// Sorts the worst price first; `!price` turns the order round without overflow.
    const fn key(&self, price: i64) -> i64 {
        match self.side {
            Action::Ask => !price,
            Action::Bid => price,
        }
    }

    fn find(&self, price: i64) -> Result<usize, usize> {
        let key = self.key(price);
        // Most of what happens, happens at the best price.
        match self.levels.last() {
            None => return Err(0),
            Some(best) if best.price == price => return Ok(self.levels.len() - 1),
            Some(best) if self.key(best.price) < key => return Err(self.levels.len()),
            Some(_) => {}
        }
        self.levels
            .binary_search_by_key(&key, |level| self.key(level.price))
    }

    /// The level at `price`; an empty one where there is none.
    pub(super) fn get(&self, price: i64) -> Level {
        self.find(price).map_or_else(
            |_| Level {
                price,
                volume: 0,
                orders: 0,
            },
            |at| self.levels[at],
        )
    }

    /// Adds to the level at `price` (or takes away), and gives it as it was. A level that is left
    /// without orders stays until [`settle`](Self::settle) is called for it.
    pub(super) fn change(&mut self, price: i64, volume: i64, orders: i64) -> Level {
        let at = match self.find(price) {
            Ok(at) => at,
            Err(at) => {
                let empty = Level {
                    price,
                    volume: 0,
                    orders: 0,
                };
                self.levels.insert(at, empty);
                at
            }
        };
        let level = &mut self.levels[at];
        let before = *level;
        // The engine lets no level leave 64 bits; whoever feeds anything else gets no panic here.
        level.volume = level.volume.wrapping_add(volume);
        level.orders = level.orders.wrapping_add_signed(orders);
        before
    }

    /// Puts the level as it is told; without orders, it is gone.
    pub(super) fn put(&mut self, level: Level) {
        match (self.find(level.price), level.orders) {
            (Ok(at), 0) => {
                self.levels.remove(at);
            }
            (Ok(at), _) => self.levels[at] = level,
            (Err(_), 0) => {}
            (Err(at), _) => self.levels.insert(at, level),
        }
    }

    /// The level at `price` after all changes; it is forgotten if no order is left.
    pub(super) fn settle(&mut self, price: i64) -> Level {
        match self.find(price) {
            Ok(at) if self.levels[at].orders == 0 => self.levels.remove(at),
            Ok(at) => self.levels[at],
            Err(_) => self.get(price),
        }
    }

    pub(super) fn best(&self) -> Option<Level> {
        self.levels.last().copied()
    }

    /// Best first.
    pub(super) fn levels(&self) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.levels.iter().rev().copied()
    }

    /// Whether `price` is as good as `other`, or better.
    pub(super) const fn reaches(&self, price: i64, other: i64) -> bool {
        self.key(price) >= self.key(other)
    }

    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(
            ask in any::<bool>(),
            steps in prop::collection::vec((-5..20_i64, 0..3_u64, -9..9_i64), 0..200),
        ) {
            let side = if ask { Action::Ask } else { Action::Bid };
            let mut ladder = Ladder::new(side, 0);
            let mut model = BTreeMap::new();
            for (price, orders, volume) in steps {
                let level = Level { price, volume, orders };
                if volume % 2 == 0 {
                    ladder.put(level);
                } else {
                    let before = ladder.get(price);
                    let more = orders.cast_signed() - before.orders.cast_signed();
                    prop_assert_eq!(ladder.change(price, volume - before.volume, more), before);
                    prop_assert_eq!(ladder.settle(price).orders, orders);
                }
                if orders == 0 {
                    model.remove(&price);
                } else {
                    model.insert(price, level);
                }
                let mut expected: Vec<Level> = model.values().copied().collect();
                if side == Action::Bid {
                    expected.reverse();
                }
                prop_assert_eq!(ladder.best(), expected.first().copied());
                prop_assert_eq!(ladder.levels().collect::<Vec<_>>(), expected);
            }
        }
    }
}
