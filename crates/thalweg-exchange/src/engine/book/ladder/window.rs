//! Where the window is.
//!
//! It moves only when a best price is outside, and then only if it is empty or after twice as many
//! commands at far levels as it has levels, and 64. So the cost of a move, at most all its levels
//! out and as many in, is a constant number of operations there per far command. An order does not
//! know its level's slot, so a level moves without its orders.
//!
//! *In steps*: no command waits for a whole move. The window first becomes narrower, from the
//! highest tick down, until nothing is left of it; then it begins anew at its other place, and
//! becomes wider again. Each far order takes it [`STEP`] levels further. It is a window all the
//! while, of the ticks that it has.

use super::super::node::{FEW, NARROW, Node, Nodes, WIDE};
use super::super::occupancy::{NO_TICK, Occupancy};
use super::{Ladder, mask};
use crate::command::Action;

/// Far commands before a window may move, beside one for each level in it, twice.
pub(super) const PATIENCE: u32 = 64;

/// Levels that leave the window at once, or enter it.
pub(super) const STEP: u32 = 64;

/// A narrow window becomes wide when it would have moved so often for far commands.
const MOVES_OF_NARROW: u32 = 8;

impl Ladder {
    /// Makes a window of `ticks` ticks, and room for `orders` orders.
    pub(in crate::engine::book) fn open(&mut self, ticks: u32, orders: usize) {
        self.nodes.open(ticks, orders);
        self.occupied.set_width(ticks);
    }

    /// Makes a part of the levels of a wide window; gives them when there are all.
    pub(in crate::engine::book) fn make_wider(&mut self) -> Option<Nodes> {
        const PART: u32 = WIDE / 4;
        let wide = self.wide.get_or_insert_with(|| Box::new(Nodes::new()));
        wide.open(wide.levels() + PART, FEW);
        (wide.levels() == WIDE)
            .then(|| self.wide.take())
            .flatten()
            .map(|wide| *wide)
    }

    /// An empty window of these levels.
    pub(in crate::engine::book) fn of(nodes: Nodes) -> Self {
        let mut ladder = Self::new();
        ladder.occupied.set_width(nodes.levels());
        ladder.nodes = nodes;
        ladder
    }

    /// The window's first price if this one is in the middle, or as near to it as prices go.
    pub(super) fn base_around(&self, price: i64) -> i64 {
        let ticks = i64::from(self.nodes.levels());
        price.saturating_sub(ticks / 2).min(i64::MAX - (ticks - 1))
    }

    /// Whether the window is narrow, and the book is used so much that it should be wide.
    #[inline]
    pub(in crate::engine::book) const fn wants_width(&self) -> bool {
        let is_used = self.nodes.are_many() || self.impatience >= MOVES_OF_NARROW;
        is_used && self.nodes.levels() == NARROW && !self.is_shut
    }

    /// The price around which the window belongs: of one best price, or between both where they
    /// are not too far apart.
    pub(super) fn center(&self) -> Option<i64> {
        match [Action::Ask, Action::Bid].map(|side| self.best_price(side)) {
            [Some(ask), Some(bid)] if self.fits(bid, ask) => Some(bid + (ask - bid) / 2),
            [Some(one), _] | [None, Some(one)] => Some(one),
            [None, None] => None,
        }
    }

    /// Whether a window around both prices leaves room beyond them.
    fn fits(&self, bid: i64, ask: i64) -> bool {
        let ticks = i128::from(self.nodes.levels());
        i128::from(ask) - i128::from(bid) <= ticks - ticks / 32
    }

    /// Lets the window move to the best prices if one is outside and it would help.
    #[cold]
    pub(super) fn consider_moving(&mut self) {
        self.impatience += u32::from(self.patience == 0);
        self.be_patient();
        if !self.stays(self.occupied.width())
            && let Some(center) = self.center()
        {
            self.move_around(center);
        }
    }

    /// Whether a window of `width` ticks is where it belongs.
    pub(super) fn stays(&self, width: u64) -> bool {
        let is_near = |price| self.offset(price) < width;
        match (self.best_price(Action::Ask), self.best_price(Action::Bid)) {
            (Some(ask), Some(bid)) if self.fits(bid, ask) => is_near(ask) && is_near(bid),
            (Some(ask), Some(bid)) => is_near(ask) || is_near(bid),
            (Some(one), None) | (None, Some(one)) => is_near(one),
            (None, None) => true,
        }
    }

    pub(super) fn move_around(&mut self, center: i64) {
        self.target = self.base_around(center);
        self.is_leaving = true;
        self.go_on();
    }

    fn be_patient(&mut self) {
        self.patience = PATIENCE + 2 * self.occupied.count();
    }

    /// Whether the window has not yet all its ticks at the place where it belongs.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.is_leaving || self.occupied.width() < self.nodes.levels().into()
    }

    /// Takes the window a step further.
    #[cold]
    pub(super) fn go_on(&mut self) {
        if self.is_leaving {
            if self.is_parked() {
                self.leave_parked();
            } else {
                self.become_narrower();
            }
            if self.occupied.width() > 0 || self.is_parked() {
                return;
            }
            self.base = self.target;
            self.is_leaving = false;
        }
        self.become_wider();
        if !self.is_on_its_way() {
            self.be_patient();
        }
    }

    /// Makes the level of a tick a far one.
    pub(super) fn make_far(&mut self, side: Action, tick: u32) {
        let far = self.add_far(side, self.base + i64::from(tick));
        self.relocate(tick, far);
    }

    /// Gives up the highest ticks: [`STEP`] with orders and a few more.
    fn become_narrower(&mut self) {
        let mut tick = self.occupied.last();
        let (mut gone, mut width) = (0, u32::MAX);
        // A width is a multiple of some ticks: those that leave it together go together, or one
        // would be outside the window at a price that is in it.
        while tick != NO_TICK && (gone < STEP || tick >= width) {
            let head = self.nodes[tick].next;
            self.make_far(self.nodes[head].action, tick);
            self.occupied.remove(tick);
            gone += 1;
            width = Occupancy::width_below(tick);
            tick = self.occupied.down_from(tick);
        }
        let left = if tick == NO_TICK { 0 } else { tick + 1 };
        self.occupied.set_width(Occupancy::width_for(left));
    }

    /// Takes ticks in above those that it has, until it has all or [`STEP`] levels came in.
    fn become_wider(&mut self) {
        let all = self.nodes.levels();
        let mut came = 0;
        while came < STEP && self.occupied.width() < all.into() {
            let first = self.occupied.width() as u32;
            let last = if self.is_any_far_in(first, all) {
                all.min(first + NARROW)
            } else {
                all
            };
            self.occupied.set_width(last);
            for side in [Action::Ask, Action::Bid] {
                if let Some(parked) = &mut self.parked {
                    self.occupied.take(&mut parked[side as usize], first..last);
                }
                self.renew_far_best(side);
                came += self.bring_in(side, first, last);
            }
        }
        if self.occupied.width() == u64::from(all) {
            self.parked = None;
        }
    }

    /// The keys of a side between two ticks, the second excluded.
    fn keys(&self, side: Action, first: u32, end: u32) -> (i64, i64) {
        let ends = [first, end - 1].map(|tick| (self.base + i64::from(tick)) ^ mask(side));
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    pub(super) fn is_any_far_in(&self, first: u32, end: u32) -> bool {
        [Action::Ask, Action::Bid].into_iter().any(|side| {
            let (low, high) = self.keys(side, first, end);
            let next = self.far[side as usize].first_from(low);
            next.is_some_and(|(key, _)| key <= high)
        })
    }

    /// Moves the far levels of these ticks' prices into the window, and says how many.
    fn bring_in(&mut self, side: Action, first: u32, end: u32) -> u32 {
        let (low, high) = self.keys(side, first, end);
        let mut came = 0;
        while let Some((key, level)) = self.far[side as usize].first_from(low)
            && key <= high
        {
            let tick = self.offset(key ^ mask(side)) as u32;
            self.relocate(level, tick);
            self.occupied.insert(tick);
            self.remove_far(side, key, level);
            came += 1;
        }
        came
    }

    /// Gives a level with orders another slot, where no orders are; the old one is left empty.
    fn relocate(&mut self, from: u32, to: u32) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::super::node::NONE;
    use super::*;

    /// Rests an order of this price.
    fn rest(ladder: &mut Ladder, side: Action, price: i64) {
        let slot = ladder.nodes.insert(Node {
            action: side,
            left: 1,
            ..Node::level(NONE, price)
        });
        ladder.append(slot);
    }

    /// How many levels are in the window, where no far one is.
    fn in_window(ladder: &Ladder) -> u32 {
        let width = ladder.occupied.width() as u32;
        assert!(width == 0 || !ladder.is_any_far_in(0, width));
        ladder.occupied.count()
    }

    #[test]
    fn a_window_full_of_levels_moves_to_others_in_steps() {
        let mut ladder = Ladder::new();
        ladder.open(WIDE, 0);
        for price in 0..4_000 {
            rest(&mut ladder, Action::Bid, price);
        }
        let (mut before, mut least) = (in_window(&ladder), u32::MAX);
        let prices = (10_000..14_000).chain(std::iter::repeat_n(13_999, 10_000));
        for price in prices {
            rest(&mut ladder, Action::Bid, price);
            let now = in_window(&ladder);
            assert!(now.abs_diff(before) <= 2 * STEP, "{before}, then {now}");
            (before, least) = (now, least.min(now));
        }
        assert!(least < 100, "{least}");
        assert!(!ladder.is_on_its_way() && before > 2_000, "{before}");
        assert!(ladder.window_level(13_999).is_some());
        let levels = ladder.levels(Action::Bid).map(|level| level.price);
        assert!(levels.eq((10_000..14_000).rev().chain((0..4_000).rev())));
    }

    proptest! {
        /// Levels with gaps of any width, so that a step ends anywhere: no far level is ever where
        /// the window still is, and orders that come and go meanwhile are where they belong.
        #[test]
        fn a_window_of_levels_with_gaps_leaves_them_all_behind(
            gaps in prop::collection::vec(1_i64..12, 65..400),
            is_bid: bool,
            commands in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 1..400),
        ) {
            let side = if is_bid { Action::Bid } else { Action::Ask };
            let mut ladder = Ladder::new();
            ladder.open(WIDE, 0);
            let prices: Vec<i64> = gaps
                .into_iter()
                .scan(0, |price, gap| {
                    *price += gap;
                    Some(*price)
                })
                .collect();
            prices.iter().for_each(|&price| rest(&mut ladder, side, price));
            // Far away, and best.
            let far = if is_bid { 20_000 } else { -20_000 };
            let mut model: BTreeMap<i64, u32> = prices.iter().map(|&price| (price, 1)).collect();
            for (at, kind) in commands {
                let price = match kind {
                    0 => far,
                    _ => prices[at.index(prices.len())],
                };
                if kind < 3 {
                    rest(&mut ladder, side, price);
                    *model.entry(price).or_default() += 1;
                } else if let Some(orders) = model.get_mut(&price) {
                    let level = ladder.level_of(side, price);
                    ladder.remove(ladder.nodes[level].next);
                    *orders -= 1;
                    model.retain(|_, orders| *orders > 0);
                }
                in_window(&ladder);
                let levels = ladder.levels(side).map(|level| (level.price, level.orders));
                let expected = model.iter().map(|(&price, &orders)| (price, u64::from(orders)));
                let expected: Vec<_> = match side {
                    Action::Ask => expected.collect(),
                    Action::Bid => expected.rev().collect(),
                };
                prop_assert_eq!(levels.collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_narrow_window_is_to_become_wide_when_it_is_used_much() {
        let mut ladder = Ladder::new();
        for _ in 0..60 {
            rest(&mut ladder, Action::Ask, 5);
        }
        assert!(!ladder.wants_width() && ladder.nodes.levels() == NARROW);
        for _ in 0..10 {
            rest(&mut ladder, Action::Ask, 5);
        }
        assert!(ladder.wants_width());
        assert!((0..3).all(|_| ladder.make_wider().is_none()));
        let wide = ladder.make_wider().map(Ladder::of);
        assert!(wide.is_some_and(|wide| !wide.wants_width() && wide.nodes.levels() == WIDE));
    }
}
