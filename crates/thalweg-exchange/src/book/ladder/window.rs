//! Where the window is.
//!
//! It moves only when a best price is outside, and then only if it is empty or after twice as many
//! commands at far levels as it has levels, and 64. So the cost of a move, at most 4,096
//! levels out and as many in, is a constant number of operations there per far command. An order
//! does not know its level's slot, so a level moves without its orders.

use super::super::node::{Node, WINDOW};
use super::super::occupancy::{NO_TICK, Occupancy};
use super::{Ladder, mask};
use crate::command::Action;

/// The widest spread over which the window is put in the middle.
const SPREAD_MAX: i128 = 4000;

/// Far commands before a window may move, beside one for each level in it, twice.
pub(super) const PATIENCE: u32 = 64;

/// The window's first price if this one is in the middle, or as near to it as prices go.
pub(super) fn base_around(price: i64) -> i64 {
    let last = i64::MAX - i64::from(WINDOW - 1);
    price.saturating_sub(i64::from(WINDOW / 2)).min(last)
}

impl Ladder {
    /// Makes the window, and room for `orders` orders.
    #[cold]
    pub(in crate::book) fn open(&mut self, orders: usize) {
        self.nodes.open(orders);
        self.occupied = Occupancy::open();
        self.spare = Occupancy::open();
    }

    /// Moves the window to the best prices if one is outside and it would help.
    #[cold]
    pub(super) fn consider_moving(&mut self) {
        self.patience = PATIENCE + 2 * self.occupied.count();
        let is_near = |price| self.offset(price) < self.occupied.width();
        let center = match (self.best_price(Action::Ask), self.best_price(Action::Bid)) {
            (Some(ask), Some(bid)) => {
                let spread = i128::from(ask) - i128::from(bid);
                let fits = spread <= SPREAD_MAX;
                if is_near(ask) && is_near(bid) || !fits && (is_near(ask) || is_near(bid)) {
                    return;
                }
                if fits { bid + (ask - bid) / 2 } else { ask }
            }
            (Some(one), None) | (None, Some(one)) if !is_near(one) => one,
            _ => return,
        };
        self.move_window(base_around(center));
        self.patience = PATIENCE + 2 * self.occupied.count();
    }

    /// Does without the window: all levels are far ones, so each side has its own. Cost: moves at
    /// most 4,096 levels.
    #[cold]
    pub(in crate::book) fn shut(&mut self) {
        self.is_shut = true;
        let old = std::mem::replace(&mut self.occupied, Occupancy::closed());
        let mut tick = old.from(0);
        while tick != NO_TICK {
            let head = self.nodes[tick].next;
            let price = self.base + i64::from(tick);
            let far = self.add_far(self.nodes[head].action, price);
            self.relocate(tick, far);
            tick = if tick + 1 < WINDOW {
                old.from(tick + 1)
            } else {
                NO_TICK
            };
        }
        self.bound = self.far_best;
    }

    /// Has a window again, around the best prices of a book that is not crossed. Cost: as before.
    #[cold]
    pub(in crate::book) fn reopen(&mut self) {
        self.is_shut = false;
        self.bound = self.far_best;
        let best = [Action::Ask, Action::Bid].map(|side| self.best_price(side));
        let center = match best {
            // The first order will open it.
            [None, None] => return,
            [Some(ask), Some(bid)] if i128::from(ask) - i128::from(bid) <= SPREAD_MAX => {
                bid + (ask - bid) / 2
            }
            [Some(one), _] | [None, Some(one)] => one,
        };
        if self.spare.width() == 0 {
            self.spare = Occupancy::open();
        }
        self.occupied = Occupancy::open();
        self.base = base_around(center);
        for side in [Action::Ask, Action::Bid] {
            self.bring_in(side);
        }
        self.patience = PATIENCE + 2 * self.occupied.count();
    }

    /// At most 4,096 levels leave the window, and as many enter it.
    fn move_window(&mut self, base: i64) {
        let spare = std::mem::replace(&mut self.spare, Occupancy::closed());
        let mut old = std::mem::replace(&mut self.occupied, spare);
        let old_base = std::mem::replace(&mut self.base, base);
        // Levels that stay move towards their new ticks in an order in which none is overwritten.
        let (first, upwards) = if base > old_base {
            (old.from(0), true)
        } else {
            (old.down_from(WINDOW - 1), false)
        };
        let mut tick = first;
        while tick != NO_TICK {
            let price = old_base + i64::from(tick);
            let offset = self.offset(price);
            let to = if offset < self.occupied.width() {
                self.occupied.insert(offset as u32);
                offset as u32
            } else {
                let head = self.nodes[tick].next;
                self.add_far(self.nodes[head].action, price)
            };
            self.relocate(tick, to);
            tick = match upwards {
                true if tick + 1 < WINDOW => old.from(tick + 1),
                false if tick > 0 => old.down_from(tick - 1),
                _ => NO_TICK,
            };
        }
        old.clear();
        self.spare = old;
        for side in [Action::Ask, Action::Bid] {
            self.bring_in(side);
        }
    }

    /// Moves the far levels of the window's prices into it.
    fn bring_in(&mut self, side: Action) {
        let ends = [self.base, self.base + i64::from(WINDOW - 1)].map(|price| price ^ mask(side));
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        while let Some((key, level)) = self.far[side as usize].first_from(low)
            && key <= high
        {
            let tick = self.offset(key ^ mask(side)) as u32;
            self.relocate(level, tick);
            self.occupied.insert(tick);
            self.remove_far(side, key, level);
        }
    }

    /// Gives a level with orders another slot, where no orders are; the old one is left empty.
    fn relocate(&mut self, from: u32, to: u32) {
        if from == to {
            return;
        }
        let Node {
            previous,
            next,
            left,
            tag,
            ..
        } = self.nodes[from];
        let old = self.nodes[from].price;
        self.nodes[from] = Node::level(from, old);
        let level = &mut self.nodes[to];
        level.left = left;
        level.tag = tag;
        level.previous = previous;
        level.next = next;
        self.nodes[next].previous = to;
        self.nodes[previous].next = to;
    }
}
