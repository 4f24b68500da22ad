//! The window of ticks around the market: where it is, which ticks have orders, how it is shut.
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

use std::ops::Range;

use super::super::orders::{FEW, NARROW, Node, Nodes, WIDE};
use super::super::owners::Owners;
use super::{Ladder, mask};
use crate::command::{Action, Place};
use crate::event::UserHint;

/// Far commands before a window may move, beside one for each level in it, twice.
const MOVE_DELAY_MIN: u32 = 64;

/// Levels that leave the window at once, or enter it.
const STEP: u32 = 64;

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

    /// Returns an empty window of these levels.
    pub(in crate::engine::book) fn of(nodes: Nodes) -> Self {
        let mut ladder = Self::new();
        ladder.occupied.set_width(nodes.levels());
        ladder.nodes = nodes;
        ladder
    }

    /// Returns the window's first price if this one is in the middle, or as near to it as prices
    /// go.
    pub(super) fn base_around(&self, price: i64) -> i64 {
        let ticks = i64::from(self.nodes.levels());
        price.saturating_sub(ticks / 2).min(i64::MAX - (ticks - 1))
    }

    /// Returns whether the window is narrow, and the book is used so much that it should be wide.
    #[inline]
    pub(in crate::engine::book) const fn wants_width(&self) -> bool {
        let is_used = self.nodes.are_many() || self.move_delay_ends >= MOVES_OF_NARROW;
        is_used && self.nodes.levels() == NARROW && !self.is_shut
    }

    /// Returns the price around which the window belongs: of one best price, or between both where
    /// they are not too far apart.
    fn center(&self) -> Option<i64> {
        match [Action::Ask, Action::Bid].map(|side| self.best_price(side)) {
            [Some(ask), Some(bid)] if self.fits(bid, ask) => Some(bid + (ask - bid) / 2),
            [Some(one), _] | [None, Some(one)] => Some(one),
            [None, None] => None,
        }
    }

    /// Returns whether a window around both prices leaves room beyond them.
    fn fits(&self, bid: i64, ask: i64) -> bool {
        let ticks = i128::from(self.nodes.levels());
        i128::from(ask) - i128::from(bid) <= ticks - ticks / 32
    }

    /// Lets the window move to the best prices if one is outside and it would help.
    #[cold]
    pub(super) fn move_if_useful(&mut self) {
        self.move_delay_ends += u32::from(self.move_delay == 0);
        self.reset_move_delay();
        if !self.stays(self.occupied.width())
            && let Some(center) = self.center()
        {
            self.move_around(center);
        }
    }

    /// Returns whether a window of `width` ticks is where it belongs.
    pub(super) fn stays(&self, width: u64) -> bool {
        let is_near = |price| self.offset(price) < width;
        match (self.best_price(Action::Ask), self.best_price(Action::Bid)) {
            (Some(ask), Some(bid)) if self.fits(bid, ask) => is_near(ask) && is_near(bid),
            (Some(ask), Some(bid)) => is_near(ask) || is_near(bid),
            (Some(one), None) | (None, Some(one)) => is_near(one),
            (None, None) => true,
        }
    }

    fn move_around(&mut self, center: i64) {
        self.target = self.base_around(center);
        self.is_leaving = true;
        self.step_move();
    }

    fn reset_move_delay(&mut self) {
        self.move_delay = MOVE_DELAY_MIN + 2 * self.occupied.count();
    }

    /// Returns whether the window has not yet all its ticks at the place where it belongs.
    pub(super) fn is_moving(&self) -> bool {
        self.is_leaving || self.occupied.width() < self.nodes.levels().into()
    }

    /// Takes the window a step further.
    #[cold]
    pub(super) fn step_move(&mut self) {
        if self.is_leaving {
            if self.is_parked() {
                self.leave_parked();
            } else {
                self.narrow_step();
            }
            if self.occupied.width() > 0 || self.is_parked() {
                return;
            }
            self.base = self.target;
            self.is_leaving = false;
        }
        self.widen_step();
        if !self.is_moving() {
            self.reset_move_delay();
        }
    }

    /// Makes the level of a tick a far one.
    fn make_far(&mut self, side: Action, tick: u32) {
        let far = self.add_far(side, self.base + i64::from(tick));
        self.relocate(tick, far);
    }

    /// Gives up the highest ticks: [`STEP`] with orders and a few more.
    fn narrow_step(&mut self) {
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
    fn widen_step(&mut self) {
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

    /// Returns the keys of a side between two ticks, the second excluded.
    fn keys(&self, side: Action, first: u32, end: u32) -> (i64, i64) {
        let ends = [first, end - 1].map(|tick| (self.base + i64::from(tick)) ^ mask(side));
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    fn is_any_far_in(&self, first: u32, end: u32) -> bool {
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

// The spot where a new order can rest at once.

/// A free slot, and the level to whose queue the order in it will belong.
pub(in crate::engine::book) struct Spot<'l> {
    nodes: &'l mut [Node],
    free: &'l mut u32,
    tick: &'l mut u8,
    at: usize,
    bound: &'l mut [i64; 2],
    owners: &'l mut Option<Box<Owners>>,
}

impl Spot<'_> {
    #[inline(always)]
    pub(in crate::engine::book) const fn slot(&self) -> u32 {
        *self.free
    }

    /// Puts a new order there.
    #[inline(always)]
    pub(in crate::engine::book) fn put(self, place: &Place, user: UserHint) {
        let slot = *self.free;
        *self.tick = 1;
        let level = &mut self.nodes[self.at];
        level.left += place.size;
        level.tag += 1;
        let last = std::mem::replace(&mut level.previous, slot);
        self.nodes[last as usize].next = slot;
        let node = &mut self.nodes[slot as usize];
        *self.free = node.next;
        *node = Node {
            previous: last,
            next: self.at as u32,
            ..Node::new(place, user)
        };
        let bound = &mut self.bound[place.action as usize];
        *bound = (*bound).min(place.price ^ mask(place.action));
        if let Some(owners) = self.owners {
            owners.note_queued(slot, place.uid.0, place.flags);
        }
    }
}

impl Ladder {
    /// Returns where a new order can be put at the end of the queue of a price in the window;
    /// `None` where there is no such level, or no slot is free.
    #[inline(always)]
    pub(in crate::engine::book) fn spot(&mut self, price: i64) -> Option<Spot<'_>> {
        let at = self.offset(price) as usize;
        let (nodes, free) = self.nodes.with_free();
        let tick = self.occupied.as_mut_slice().get_mut(at)?;
        if *free as usize >= nodes.len() || at >= nodes.len() {
            return None;
        }
        Some(Spot {
            nodes,
            free,
            tick,
            at,
            bound: &mut self.bound,
            owners: &mut self.owners,
        })
    }
}

// The window is shut while orders are collected for an auction.
//
// Then a bid and an ask may rest at one price, so a tick does not say whose level it is, and both
// sides must do without the window. Its levels stay where they are: they are *parked*. *Rules*:
// (1) a parked tick has orders, of the side for which it is parked; (2) no level is parked anew:
// once its orders are gone, new ones of its price rest at a far level; (3) while a tick is parked,
// the window is where it was, `base` too, and not wider than up to that tick.
//
// *Afterwards* the window becomes wider in steps, as ever (see above), and parked levels that
// it comes to are in it, without being moved: so an auction costs a step only where levels came in
// it. If the window belongs elsewhere, parked levels become far ones in steps before.

impl Ladder {
    /// Returns whether levels are left that the window had when it was shut.
    #[inline]
    pub(super) const fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// Does without the window: each side has levels of its own, new ones are far ones, and those
    /// of the window are parked.
    #[cold]
    pub(in crate::engine::book) fn shut(&mut self) {
        self.is_shut = true;
        self.is_leaving = false;
        let width = self.occupied.width() as u32;
        // The book is not crossed yet, so what is below the best ask are bids.
        let first_ask = match self.best_price(Action::Ask) {
            Some(ask) if ask < self.base => 0,
            Some(ask) => self.offset(ask).min(width.into()) as u32,
            None => width,
        };
        let [asks, bids] = &mut **self
            .parked
            .get_or_insert_with(|| Box::new([Occupancy::closed(), Occupancy::closed()]));
        for (parked, ticks) in [(asks, first_ask..width), (bids, 0..first_ask)] {
            parked.set_width(self.nodes.levels());
            parked.take(&mut self.occupied, ticks);
        }
        self.occupied.set_width(0);
        for side in [Action::Ask, Action::Bid] {
            self.renew_far_best(side);
        }
    }

    /// Has a window again, of a book that is not crossed: where it was, or around the best prices.
    #[cold]
    pub(in crate::engine::book) fn reopen(&mut self) {
        self.is_shut = false;
        self.bound = [Action::Ask, Action::Bid].map(|side| self.best_key(side));
        match self.center() {
            // The first order will open it.
            None => self.parked = None,
            Some(_) if self.stays(self.nodes.levels().into()) => self.step_move(),
            Some(center) => self.move_around(center),
        }
    }

    /// Makes [`STEP`] parked levels far ones.
    fn leave_parked(&mut self) {
        let Some(mut parked) = self.parked.take() else {
            return;
        };
        let (mut gone, mut is_left) = (0, false);
        for side in [Action::Ask, Action::Bid] {
            let ticks = &mut parked[side as usize];
            let mut tick = ticks.last();
            while tick != NO_TICK && gone < STEP {
                self.make_far(side, tick);
                ticks.remove(tick);
                ticks.set_width(Occupancy::width_for(tick));
                tick = ticks.last();
                gone += 1;
            }
            is_left |= tick != NO_TICK;
        }
        self.parked = is_left.then_some(parked);
    }
}

// The occupancy of the window: a byte for each tick, whether it has orders.
//
// Bytes and not bits: a move sets one and clears one, which with bits costs ten instructions more.
// The search for the next one reads eight at a time, and is rare.

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
    const fn width_for(ticks: u32) -> u32 {
        ticks.next_multiple_of(WORD as u32)
    }

    /// Returns the greatest width without a tick.
    const fn width_below(tick: u32) -> u32 {
        tick - tick % WORD as u32
    }

    /// Sets the number of ticks. No tick that goes has orders.
    pub(super) fn set_width(&mut self, width: u32) {
        debug_assert!(width.is_multiple_of(WORD as u32) && width <= WIDE);
        self.ticks.resize(width as usize, 0);
    }

    /// Returns one byte per tick.
    #[inline]
    pub(super) const fn as_mut_slice(&mut self) -> &mut [u8] {
        self.ticks.as_mut_slice()
    }

    /// Returns how many ticks there are.
    #[inline]
    pub(super) const fn width(&self) -> u64 {
        self.ticks.len() as u64
    }

    /// Returns a tick's entry; `None` outside the window.
    #[inline]
    pub(super) fn tick(&self, tick: u64) -> Option<&u8> {
        self.ticks.get(usize::try_from(tick).ok()?)
    }

    /// Returns whether there are orders at a tick; at none outside the window.
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

    /// Returns the eight ticks of a word, the lowest in the lowest byte.
    fn word(&self, word: usize) -> u64 {
        let bytes = self.ticks.get(word * WORD..(word + 1) * WORD);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// Returns the lowest tick from `tick` upwards, or [`NO_TICK`].
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

    /// Returns the highest tick, or [`NO_TICK`].
    pub(super) fn last(&self) -> u32 {
        self.down_from((self.ticks.len() as u32).saturating_sub(1))
    }

    /// Returns the highest tick from `tick` downwards, or [`NO_TICK`].
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::super::orders::NONE;
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

    /// Returns how many levels are in the window, where no far one is.
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
        assert!(!ladder.is_moving() && before > 2_000, "{before}");
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

#[cfg(test)]
mod parked_tests {
    use std::collections::BTreeMap;
    use std::ops::RangeInclusive;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::super::orders::{NARROW, NONE, Node, WIDE};
    use super::*;
    use crate::engine::book::Level;

    const SIDES: [Action; 2] = [Action::Ask, Action::Bid];

    /// A ladder, and how many orders of one lot each key of each side has.
    struct Twin {
        ladder: Ladder,
        model: [BTreeMap<i64, u64>; 2],
        is_shut: bool,
    }

    impl Twin {
        fn rest(&mut self, side: Action, price: i64) {
            let slot = self.ladder.nodes.insert(Node {
                action: side,
                left: 1,
                ..Node::level(NONE, price)
            });
            self.ladder.append(slot);
            let orders = self.model[side as usize].entry(price ^ mask(side));
            *orders.or_default() += 1;
        }

        /// Takes the first order of a price out, by one way or another.
        fn remove(&mut self, side: Action, price: i64, way: u8) {
            let level = self.ladder.level_of(side, price);
            let head = self.ladder.nodes[level].next;
            match way {
                0 => self.ladder.remove(head),
                1 => {
                    self.ladder.unlink(head);
                    self.ladder.nodes.free(head);
                }
                _ => {
                    let next = self.ladder.nodes[head].next;
                    self.ladder.cut(level, (next, 1), 1, (price, side));
                }
            }
            let model = &mut self.model[side as usize];
            let orders = model.get_mut(&(price ^ mask(side))).expect("it rests");
            *orders -= 1;
            model.retain(|_, orders| *orders > 0);
        }

        fn best(&self, side: Action) -> Option<i64> {
            let first = self.model[side as usize].first_key_value();
            first.map(|(key, _)| key ^ mask(side))
        }

        /// Returns whether an order of this side would meet one of the other.
        fn crosses(&self, side: Action, price: i64) -> bool {
            let other = side.opposite();
            let best = self.best(other).map(|best| best ^ mask(other));
            best.is_some_and(|best| best <= price ^ mask(other))
        }

        fn shut(&mut self) {
            self.ladder.shut();
            self.is_shut = true;
        }

        /// The best of both sides trade until the book is not crossed.
        fn uncross(&mut self) {
            while let Some(ask) = self.best(Action::Ask)
                && let Some(bid) = self.best(Action::Bid).filter(|&bid| bid >= ask)
            {
                assert_eq!(self.ladder.find_best_price(Action::Ask), Some(ask));
                assert_eq!(self.ladder.find_best_price(Action::Bid), Some(bid));
                self.remove(Action::Ask, ask, 2);
                self.remove(Action::Bid, bid, 1);
            }
            self.ladder.reopen();
            self.is_shut = false;
        }

        fn check(&mut self, band: RangeInclusive<i64>) {
            let ladder = &self.ladder;
            for side in SIDES {
                let level = |(&key, &orders): (&i64, &u64)| Level {
                    price: key ^ mask(side),
                    volume: orders.cast_signed(),
                    orders,
                };
                let expected: Vec<Level> = self.model[side as usize].iter().map(level).collect();
                assert_eq!(ladder.levels(side).collect::<Vec<_>>(), expected);
                let outside: Vec<i64> = ladder
                    .slots_outside(side, (*band.start(), *band.end()))
                    .map(|slot| ladder.nodes[slot].price)
                    .collect();
                let prices = expected.iter().flat_map(|level| {
                    std::iter::repeat_n(level.price, level.orders.try_into().expect("few"))
                });
                let prices: Vec<i64> = prices.filter(|price| !band.contains(price)).collect();
                assert_eq!(outside, prices, "{side:?} outside {band:?}");
                let closed = Occupancy::closed();
                let parked = ladder.parked.as_ref();
                let parked = parked.map_or(&closed, |parked| &parked[side as usize]);
                for tick in (0..parked.width()).filter(|&tick| parked.has(tick)) {
                    assert!(tick >= ladder.occupied.width(), "parked in the window");
                    let price = ladder.base + tick.cast_signed();
                    let key = price ^ mask(side);
                    assert!(
                        self.model[side as usize].contains_key(&key),
                        "nothing parked"
                    );
                    let far = ladder.far[side as usize].get(key);
                    assert_eq!(far, None, "a far level beside a parked one");
                }
            }
            let width = ladder.occupied.width() as u32;
            assert!(width == 0 || !self.is_shut);
            assert!(width == 0 || !ladder.is_any_far_in(0, width));
            for side in SIDES {
                let best = self.best(side);
                assert_eq!(self.ladder.best_price(side), best);
                assert_eq!(self.ladder.find_best_price(side), best);
            }
        }
    }

    fn ends() -> impl Strategy<Value = i64> {
        prop_oneof![
            6 => Just(10_000),
            1 => Just(i64::MIN),
            1 => Just(i64::MAX - 6_000),
            1 => Just(i64::MAX - 700),
        ]
    }

    /// A command: what, at which price, and how.
    type Step = (u8, Index, u8);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec((0..40_u8, any::<Index>(), 0..3_u8), 1..300)
    }

    proptest! {
        /// Levels with gaps of any width, auctions that begin and end while the window is anywhere
        /// on its way, orders that cross while it is shut and come and go after it: each order is
        /// where it belongs, and nothing else.
        #[test]
        fn auctions_leave_every_level_where_its_orders_are_found(
            start in ends(),
            gaps in prop::collection::vec(1_i64..24, 65..350),
            middle: Index,
            is_wide: bool,
            late in 0..6_usize,
            steps in steps(),
        ) {
            let mut ladder = Ladder::new();
            ladder.open(if is_wide { WIDE } else { NARROW }, 0);
            let mut twin = Twin { ladder, model: Default::default(), is_shut: false };
            let price_from = |price: &mut i64, gap: i64| {
                *price = price.saturating_add(gap);
                Some(*price)
            };
            let mut prices: Vec<i64> = gaps.into_iter().scan(start, |at, gap| price_from(at, gap))
                .collect();
            prices.dedup();
            let middle = middle.index(prices.len());
            // Far away, so that the window leaves.
            let far = [start.wrapping_add(40_000), start.wrapping_sub(40_000)];
            // Some come in an auction, so that the window must take them in between others.
            for is_late in [false, true] {
                for (at, &price) in prices.iter().enumerate() {
                    if (at % 5 < late) == is_late {
                        twin.rest(if at < middle { Action::Bid } else { Action::Ask }, price);
                    }
                }
                if late > 0 && !is_late {
                    twin.shut();
                }
            }
            if late > 0 {
                twin.uncross();
            }
            for (kind, index, way) in steps {
                let at = index.index(prices.len());
                let price = match kind {
                    0 => far[usize::from(way % 2)],
                    _ => prices[at],
                };
                // Mostly where it does not cross.
                let own_side = if at < middle { Action::Bid } else { Action::Ask };
                let side = if kind % 4 == 1 { own_side.opposite() } else { own_side };
                match kind {
                    0..24 if twin.is_shut || !twin.crosses(side, price) => twin.rest(side, price),
                    0..36 if twin.model[side as usize].contains_key(&(price ^ mask(side))) => {
                        twin.remove(side, price, way);
                    }
                    36..38 if !twin.is_shut => twin.shut(),
                    38..40 if twin.is_shut => twin.uncross(),
                    _ => {}
                }
                let end = prices[(at + prices.len() / 3).min(prices.len() - 1)];
                twin.check(prices[at]..=end.max(prices[at]));
            }
        }
    }

    /// Rests orders of every price of a window of 4,000 levels, and begins an auction.
    fn collecting() -> Twin {
        let mut ladder = Ladder::new();
        ladder.open(WIDE, 0);
        let model = Default::default();
        let mut twin = Twin {
            ladder,
            model,
            is_shut: false,
        };
        (50..2_000).for_each(|price| twin.rest(Action::Bid, price));
        (2_000..4_050).for_each(|price| twin.rest(Action::Ask, price));
        twin.shut();
        twin
    }

    fn parked(twin: &Twin) -> u32 {
        let parked = twin.ladder.parked.iter().flat_map(|parked| parked.iter());
        parked.map(Occupancy::count).sum()
    }

    #[test]
    fn an_auction_moves_no_level_that_stays() {
        let mut twin = collecting();
        let first = twin.ladder.nodes.as_mut_slice().len();
        assert_eq!((parked(&twin), twin.ladder.occupied.width()), (4_000, 0));
        twin.rest(Action::Bid, 2_010);
        twin.check(0..=9_999);
        twin.uncross();
        // The level of the bid was new, and nothing else.
        assert!(twin.ladder.nodes.as_mut_slice().len() <= first + 32);
        assert!(!twin.ladder.is_parked() && !twin.ladder.is_moving());
        assert_eq!(twin.ladder.occupied.count(), 3_999);
        twin.check(100..=2_500);
    }

    #[test]
    fn a_window_that_belongs_elsewhere_leaves_its_parked_levels_in_steps() {
        let mut twin = collecting();
        for price in 2_000..4_050 {
            twin.remove(Action::Ask, price, 0);
        }
        twin.rest(Action::Bid, 20_000);
        twin.uncross();
        let mut left = parked(&twin);
        assert!(left >= 1_950 - STEP, "{left}");
        while left > 0 {
            twin.rest(Action::Bid, 20_000);
            assert!(left - parked(&twin) <= STEP);
            assert!(parked(&twin) < left || left < STEP);
            left = parked(&twin);
        }
        assert!(twin.ladder.window_level(20_000).is_some());
        twin.check(100..=2_500);
    }
}

#[cfg(test)]
mod occupancy_tests {
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
