//! The order book of one symbol: best price first, then time.
//!
//! *State*: orders and levels in one array of cache lines (`node`), orders found by id through a
//! keyed index, levels by price in a window of ticks or in sorted lists (`ladder`); a level is the
//! sentinel of a circular list of its orders. *Rules*: (1) an order is in the index exactly while
//! it rests or waits, or while it is being moved; (2) a level's volume is the sum of what is left
//! of its orders, none of which has nothing left.
//!
//! *Cost*: a constant, without allocation once there were as many orders, while the price is in the
//! window; outside it a few binary searches. The plain book of the tests (`tests/book`) says what
//! all this must do.
//!
//! Nothing here is checked for 64-bit overflow: the risk check admits only orders for which no sum
//! of sizes can leave 64 bits (see [`crate::risk`]).

mod ahead;
mod amending;
mod aside;
mod auction;
mod crossing;
mod entering;
mod expiry;
mod filling;
mod iceberg;
mod ladder;
mod mass;
mod moving;
mod node;
mod occupancy;
mod owners;
mod placing;
mod post_only;
mod saved;
mod slow_path;
mod stops;
mod taking;
mod view;
mod widening;

use std::mem::offset_of;

use self::aside::{Aside, WAITS};
pub use self::auction::Indicative;
pub(crate) use self::auction::{Lots, Uncrossing, Walk};
use self::ladder::Ladder;
use self::node::{Node, WIDE};
pub(crate) use self::saved::{Outline, Saved, Turns};
pub use self::view::{Level, RestingOrder};
use crate::command::{Action, SymbolSpec, SymbolType};
use crate::engine::index::{Found, Index, OrderKey, Vacancy};
use crate::event::{Event, Events, Reduced, Standing};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// An order book. Read here; changed only through the engine.
///
/// The fields that every command reads lie in four cache lines: with many symbols each of them
/// comes from memory.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Book {
    /// An ask must not be moved under it, nor a bid above its reserve price where `bids_bounded`.
    ask_floor: i64,
    /// All ones where an order's id is its owner's alone, else zero.
    owners: i64,
    /// Only while orders hide lots, expire, or wait.
    aside: Option<Box<Aside>>,
    /// When matching looks for orders that expire.
    due: i64,
    bids_bounded: bool,
    spec: SymbolSpec,
    /// The lowest and the highest price at which a budget order takes, where those are bounded.
    band: (i64, i64),
    index: Index<OrderKey>,
    /// How far from the best opposite price a market order takes.
    protection: i64,
    /// The price of the last trade.
    last: Option<i64>,
    ladder: Ladder,
}

const _: () = assert!(offset_of!(Book, spec) + offset_of!(SymbolSpec, id) < 64);
const _: () = assert!(offset_of!(Book, index).is_multiple_of(64));

impl Book {
    /// A book with room for `orders` resting orders, so that nothing is allocated for them later
    /// at prices in the window. Without, it takes no memory before its first order.
    pub(crate) fn with_capacity(spec: SymbolSpec, rules: &Rules, orders: usize) -> Self {
        let mut ladder = Ladder::new();
        if orders > 0 {
            ladder.open(WIDE, orders);
        }
        let is_pair = spec.symbol_type == SymbolType::CurrencyPair;
        let ask_floor = if is_pair && rules.refuse_moved_ask_under_fee {
            spec.lowest_ask()
        } else {
            i64::MIN
        };
        Self {
            spec,
            ask_floor,
            bids_bounded: is_pair,
            band: (i64::MIN, i64::MAX),
            protection: i64::MAX,
            last: None,
            ladder,
            index: Index::with_capacity(orders),
            owners: if rules.ids_per_user { -1 } else { 0 },
            aside: None,
            due: i64::MAX,
        }
    }

    /// Returns the symbol's terms.
    #[must_use]
    pub const fn spec(&self) -> &SymbolSpec {
        &self.spec
    }

    /// Returns the levels of one side, best first, `depth` at most (`usize::MAX` for all). Cost:
    /// each level a few binary searches.
    pub fn levels(&self, side: Action, depth: usize) -> impl Iterator<Item = Level> + '_ {
        self.ladder.levels(side).take(depth)
    }

    /// Lots and orders of a price, if orders of this side rest there.
    #[inline]
    pub(crate) fn level(&self, side: Action, price: i64) -> Option<(i64, u64)> {
        self.ladder.level(side, price)
    }

    /// Returns the best level of one side.
    #[must_use]
    pub fn best(&self, side: Action) -> Option<Level> {
        self.levels(side, 1).next()
    }

    /// Returns the resting orders of one side, best price first, then in order of time.
    pub fn orders(&self, side: Action) -> impl Iterator<Item = RestingOrder> + '_ {
        let orders = self.ladder.orders(side);
        orders.map(|order| self.completed(order))
    }

    /// Returns a resting order by its owner and its id.
    #[must_use]
    pub fn order(&self, uid: UserId, order_id: OrderId) -> Option<RestingOrder> {
        self.find_resting(uid, order_id)
            .map(|slot| self.completed(self.ladder.nodes[slot].resting()))
    }

    /// Returns the price of the last trade.
    #[must_use]
    pub const fn last_price(&self) -> Option<i64> {
        self.last
    }

    /// Returns how many ticks from the best opposite price a market order takes; `i64::MAX` for no
    /// bound.
    #[must_use]
    pub const fn market_protection(&self) -> i64 {
        self.protection
    }

    /// Returns how many orders rest, both sides together.
    #[must_use]
    pub fn order_count(&self) -> usize {
        let waiting = self.aside.as_ref().map_or(0, |aside| aside.stops.len());
        self.index.len() - waiting
    }

    #[inline]
    pub(crate) const fn is_futures(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::Futures)
    }

    /// How the book stands, for settlement.
    #[inline]
    pub(crate) fn standing(&mut self) -> Standing {
        Standing {
            ask: self.ladder.find_best_price(Action::Ask),
            bid: self.ladder.find_best_price(Action::Bid),
        }
    }

    #[inline]
    const fn key(&self, uid: UserId, order_id: OrderId) -> OrderKey {
        OrderKey {
            owner: uid.0 & self.owners,
            id: order_id.0,
        }
    }

    /// The key of the order in a slot.
    #[inline]
    fn key_at(&self, slot: u32) -> OrderKey {
        self.ladder.nodes[slot].key(self.owners)
    }

    #[inline]
    fn find(&self, key: OrderKey) -> Option<u32> {
        let (nodes, owners) = (&self.ladder.nodes, self.owners);
        self.index.find_by(key, |slot| nodes[slot].is(key, owners))
    }

    /// Room for a new order; `None` where one of its key rests.
    #[inline]
    fn vacancy(&mut self, key: OrderKey) -> Option<Vacancy> {
        let (nodes, owners) = (&self.ladder.nodes, self.owners);
        self.index.vacancy(key, |slot| nodes[slot].is(key, owners))
    }

    /// The slot of an order that rests and belongs to `uid`.
    fn find_resting(&self, uid: UserId, order_id: OrderId) -> Option<u32> {
        let slot = self.find_own(uid, order_id)?;
        (self.ladder.nodes[slot].marks & WAITS == 0).then_some(slot)
    }

    /// The slot of an order that rests or waits and belongs to `uid`.
    #[inline(always)]
    fn find_own(&self, uid: UserId, order_id: OrderId) -> Option<u32> {
        let nodes = &self.ladder.nodes;
        let is_it = move |slot: u32| (nodes[slot].id, nodes[slot].uid) == (order_id.0, uid.0);
        self.index.find_by(self.key(uid, order_id), is_it)
    }

    /// Returns the slot of an order of `uid` with its place in the index, where one look finds it.
    #[inline(always)]
    fn near_own(&self, uid: UserId, order_id: OrderId) -> Option<Found> {
        let nodes = &self.ladder.nodes;
        let is_it = move |slot: u32| {
            let order = nodes.get(slot);
            order.is_some_and(|order| (order.id, order.uid) == (order_id.0, uid.0))
        };
        self.index.near(self.key(uid, order_id), is_it)
    }

    /// Forgets an order that is in no queue any more.
    #[inline]
    fn forget(&mut self, slot: u32) {
        self.index.remove_slot(self.key_at(slot), slot);
        self.free(slot);
    }

    /// Gives back the slot of an order that is not found any more, and shows the order.
    #[inline(always)]
    fn free(&mut self, slot: u32) -> &Node {
        if let Some(owners) = &mut self.ladder.owners {
            owners.note_gone(slot, self.ladder.nodes[slot].uid);
        }
        self.ladder.nodes.free(slot)
    }

    /// Returns where a plain order was found, and how many lots would be taken off it, up to all.
    /// `None` for an order that needs the slow path.
    #[inline(always)]
    pub(crate) fn reducible(
        &self,
        (uid, order_id): (UserId, OrderId),
        by: i64,
    ) -> Option<(Found, Reduced)> {
        let found = self.near_own(uid, order_id)?;
        let order = &self.ladder.nodes[found.slot];
        let reduced = Reduced {
            user: order.user(),
            action: order.action,
            size: by.min(order.left),
            reserve_price: order.reserve_price,
            completed: by >= order.left,
        };
        (order.marks == 0).then_some((found, reduced))
    }

    /// Takes lots off an order, or cancels it, as [`Self::reducible`] returned.
    #[inline(always)]
    pub(crate) fn take_off(&mut self, found: Found, reduced: &Reduced, events: &mut Events) {
        let order = &mut self.ladder.nodes[found.slot];
        let left = order.left - reduced.size;
        events.push_with(|| Event::Reduce {
            order: OrderId(order.id),
            price: order.price,
            size: reduced.size,
            left,
            filled: order.filled,
            completed: reduced.completed,
            bidder_hold_price: reduced.reserve_price,
            action: reduced.action,
        });
        if reduced.completed {
            let (owner, id) = (order.uid, order.id);
            self.index
                .remove_found(self.key(UserId(owner), OrderId(id)), found);
            self.ladder.remove(found.slot);
        } else {
            order.left = left;
            let (side, price) = (order.action, order.price);
            let level = self.ladder.level_of(side, price);
            self.ladder.nodes[level].left -= reduced.size;
        }
    }

    /// Takes `by` lots off an order; all that is left, or more, cancels it.
    #[inline(never)]
    pub(crate) fn reduce(
        &mut self,
        (uid, order_id): (UserId, OrderId),
        by: i64,
        events: &mut Events,
    ) -> ResultCode {
        if by <= 0 {
            return ResultCode::MatchingReduceFailedWrongSize;
        }
        let Some(slot) = self.find_own(uid, order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = &mut self.ladder.nodes[slot];
        let left = order.left;
        if order.marks != 0 || by >= left {
            return self.reduce_slow(slot, by, events);
        }
        order.left -= by;
        let (side, price) = (order.action, order.price);
        events.hint_next(order.user());
        events.push_with(|| Event::Reduce {
            order: order_id,
            price,
            size: by,
            left: left - by,
            filled: order.filled,
            completed: false,
            bidder_hold_price: order.reserve_price,
            action: side,
        });
        let level = self.ladder.level_of(side, price);
        self.ladder.nodes[level].left -= by;
        ResultCode::Success
    }
}
