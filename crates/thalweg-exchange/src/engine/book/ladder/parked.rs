//! A window that is shut while orders are collected for an auction.
//!
//! Then a bid and an ask may rest at one price, so a tick does not say whose level it is, and both
//! sides must do without the window. Its levels stay where they are: they are *parked*. *Rules*:
//! (1) a parked tick has orders, of the side for which it is parked; (2) no level is parked anew:
//! once its orders are gone, new ones of its price rest at a far level; (3) while a tick is parked,
//! the window is where it was, `base` too, and not wider than up to that tick.
//!
//! *Afterwards* the window becomes wider in steps, as ever (see `window`), and parked levels that
//! it comes to are in it, without being moved: so an auction costs a step only where levels came in
//! it. If the window belongs elsewhere, parked levels become far ones in steps before.

use super::super::occupancy::{NO_TICK, Occupancy};
use super::Ladder;
use super::window::STEP;
use crate::command::Action;

impl Ladder {
    /// Whether levels are left that the window had when it was shut.
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
            Some(_) if self.stays(self.nodes.levels().into()) => self.go_on(),
            Some(center) => self.move_around(center),
        }
    }

    /// Makes [`STEP`] parked levels far ones.
    pub(super) fn leave_parked(&mut self) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::RangeInclusive;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::super::node::{NARROW, NONE, Node, WIDE};
    use super::super::mask;
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

        /// Whether an order of this side would meet one of the other.
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
        assert!(!twin.ladder.is_parked() && !twin.ladder.is_on_its_way());
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
