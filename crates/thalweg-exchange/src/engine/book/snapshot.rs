//! A book in the parts that a state snapshot writes ([`snapshot`](crate::snapshot)), and made again
//! from these.
//!
//! The parts do not include the places of orders: slots, window, far and parked levels and lists of
//! owners, since no result depends on them. Only the sequence of arrivals counts, and only among
//! orders that expire at one time, which is their *turn*, and among stop orders with one trigger,
//! which stand in that order.

use thalweg::ring::prefetch;

use super::Book;
use super::ladder::{Ladder, Level};
use super::orders::{FEW, NARROW, NONE, Node, RestingOrder, Terms, WIDE};
use crate::command::{Action, ConditionalOrder, SymbolSpec};
use crate::engine::index::{Index, OrderKey};
use crate::event::UserHint;
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

/// A book without its orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) band: (i64, i64),
    pub(crate) protection: i64,
    pub(crate) last: Option<i64>,
    pub(crate) is_auction: bool,
    /// Resting and waiting ones.
    pub(crate) orders: usize,
}

/// An item of a visit to a book: a level, and then the orders there.
#[derive(Debug)]
pub(crate) enum Saved<'b> {
    Level(&'b Level),
    Order(&'b RestingOrder),
}

/// The turns of a book's orders among those that expire at the same time, from 0.
#[derive(Debug)]
pub(crate) struct Turns {
    owner_mask: i64,
    turns: Vec<(OrderKey, u32)>,
}

impl Turns {
    /// Returns the turn of an order that expires.
    pub(crate) fn of(&self, uid: UserId, id: OrderId) -> u32 {
        let key = OrderKey {
            owner: uid.0 & self.owner_mask,
            id: id.0,
        };
        let found = self.turns.binary_search_by_key(&key, |&(key, _)| key);
        found.map_or(0, |at| self.turns[at].1)
    }
}

impl Book {
    /// When which order has its turn.
    pub(crate) fn turns(&self) -> Turns {
        let expiries = self.cold.iter().flat_map(|cold| &cold.expiries);
        let (mut last, mut turn) = (None, 0);
        let number = |(&(time, _), &key)| {
            turn = if last == Some(time) { turn + 1 } else { 0 };
            last = Some(time);
            (key, turn)
        };
        let mut turns: Vec<(OrderKey, u32)> = expiries.map(number).collect();
        turns.sort_unstable();
        let owner_mask = self.owner_mask;
        Turns { owner_mask, turns }
    }

    /// Returns how many levels a side has.
    pub(crate) fn count_levels(&self, side: Action) -> usize {
        self.all_levels(side).count()
    }

    fn all_levels(&self, side: Action) -> impl Iterator<Item = (u32, Level)> + '_ {
        self.ladder.levels_between(side, (i64::MIN, i64::MAX))
    }

    /// Visits the levels of a side, best first, and behind each its orders in order of time.
    ///
    /// The queues of some levels at a time are walked through in turn before, so that their orders
    /// come from memory at once. Takes four bytes for each of these.
    pub(crate) fn visit_saved(&self, side: Action, mut visit: impl FnMut(Saved<'_>)) {
        const TOGETHER: usize = 24;
        let mut levels = self.all_levels(side);
        let mut queues: Vec<(u32, Level)> = Vec::with_capacity(TOGETHER);
        let mut slots: [Vec<u32>; TOGETHER] = Default::default();
        loop {
            queues.clear();
            queues.extend(levels.by_ref().take(TOGETHER));
            if queues.is_empty() {
                return;
            }
            self.walk(&queues, &mut slots);
            for ((_, level), slots) in queues.iter().zip(&slots) {
                visit(Saved::Level(level));
                for &slot in slots {
                    visit(Saved::Order(&self.saved_order(slot)));
                }
            }
        }
    }

    /// The slots of the orders of these levels.
    fn walk(&self, levels: &[(u32, Level)], slots: &mut [Vec<u32>]) {
        let nodes = &self.ladder.nodes;
        for (&(level, _), slots) in levels.iter().zip(&mut *slots) {
            slots.clear();
            slots.push(nodes[level].next);
        }
        let mut is_left = true;
        while is_left {
            is_left = false;
            for (&(level, totals), slots) in levels.iter().zip(&mut *slots) {
                if slots.len() as u64 == totals.orders {
                    continue;
                }
                let Some(&last) = slots.last() else { continue };
                let next = nodes[last].next;
                debug_assert_ne!(next, level);
                prefetch(&nodes[next]);
                slots.push(next);
                is_left = true;
            }
        }
    }

    #[inline]
    fn saved_order(&self, slot: u32) -> RestingOrder {
        let order = &self.ladder.nodes[slot];
        if order.marks == 0 {
            order.resting()
        } else {
            self.with_terms(order.resting())
        }
    }

    /// Returns a book without orders, with room for as many as it will have.
    pub(crate) fn outlined(spec: SymbolSpec, rules: &Rules, outline: &Outline) -> Self {
        let mut ladder = Ladder::new();
        if outline.orders > 0 {
            // The first order of all places the window.
            let levels = if outline.orders > FEW { WIDE } else { NARROW };
            ladder.nodes.open(levels, outline.orders.max(FEW));
        }
        let mut book = Self {
            band: outline.band,
            protection: outline.protection,
            last: outline.last,
            ladder,
            index: Index::with_capacity(outline.orders),
            ..Self::with_capacity(spec, rules, 0)
        };
        if outline.is_auction {
            book.start_auction();
        }
        book
    }

    /// Puts an order at the end of its queue; false where an order of its id is here.
    pub(crate) fn restore_resting(
        &mut self,
        order: &RestingOrder,
        turn: u32,
        user: UserHint,
    ) -> bool {
        let key = self.key(order.uid, order.order_id);
        let Some(vacancy) = self.vacancy(key) else {
            return false;
        };
        let slot = self.ladder.nodes.insert(Node {
            uid: order.uid.0,
            id: order.order_id.0,
            reserve_price: order.reserve_price,
            left: order.size - order.filled - order.hidden,
            filled: order.filled,
            tag: user.0,
            action: order.action,
            flags: order.flags,
            ..Node::level(NONE, order.price)
        });
        self.index.fill(vacancy, slot);
        self.ladder.append(slot);
        if order.hidden > 0 || order.good_till.is_some() {
            let terms = Terms {
                arrival: turn.into(),
                display: order.display.unwrap_or_default(),
                hidden: order.hidden,
                price: order.price,
                good_till: order.good_till,
            };
            self.cold_mut().restore_expiry(order.good_till, turn, key);
            self.set_terms(slot, terms);
        }
        true
    }

    /// Lets a stop order wait, behind those with its trigger; false where an order of its id is
    /// here.
    pub(crate) fn restore_waiting(
        &mut self,
        order: &ConditionalOrder,
        (trigger, turn): (i64, u32),
        user: UserHint,
    ) -> bool {
        let place = &order.place;
        let key = self.key(place.uid, place.order_id);
        let Some(vacancy) = self.vacancy(key) else {
            return false;
        };
        let cold = self.cold_mut();
        cold.arrivals = cold.arrivals.max(turn.into());
        let arrival = cold.next_arrival();
        self.add_waiting(order, (trigger, arrival), turn.into(), (user, vacancy));
        true
    }

    /// Returns whether the turns of orders that expire at one time are 0, 1 and so on, of `count`
    /// orders in all.
    pub(crate) fn has_turns(&self, count: usize) -> bool {
        let expiries = self.cold.iter().flat_map(|cold| &cold.expiries);
        let (mut last, mut turn, mut found) = (None, 0, 0);
        for (&(time, given), _) in expiries {
            turn = if last == Some(time) { turn + 1 } else { 0 };
            last = Some(time);
            found += 1;
            if given != turn {
                return false;
            }
        }
        found == count
    }
}
