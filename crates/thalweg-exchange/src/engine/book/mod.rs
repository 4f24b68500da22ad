//! The order book of one symbol: best price first, then time.
//!
//! *State*: orders and levels in one array of cache lines (`orders`), orders found by id through a
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

mod auction;
mod conditions;
mod entry;
mod fill_or_kill;
mod icebergs;
mod ladder;
mod orders;
mod owners;
mod slot_set;
mod snapshot;
mod stops;
mod taking;

use std::mem::offset_of;

use thalweg::ring::prefetch;

pub use self::auction::Indicative;
pub(crate) use self::auction::{Lots, Uncrossing, Walk};
use self::conditions::ColdState;
use self::ladder::Ladder;
pub use self::ladder::Level;
pub use self::orders::RestingOrder;
use self::orders::{NONE, Node, WAITS, WIDE};
use self::owners::Owners;
pub(crate) use self::snapshot::{Outline, Saved, Turns};
use self::stops::Keys;
use crate::command::{Action, SymbolSpec, SymbolType};
use crate::engine::index::{Found, Index, OrderKey, Vacancy};
use crate::event::{Event, Events, Reduced, TopOfBook};
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
    /// Selects the part of a key that is an owner: all ones where ids of orders are unique by
    /// owner, zero where they are unique in the book.
    owner_mask: i64,
    /// Only while orders hide lots, expire, or wait, and in an auction.
    cold: Option<Box<ColdState>>,
    /// How far from the best opposite price a market order takes.
    protection: i64,
    bids_bounded: bool,
    spec: SymbolSpec,
    /// The lowest and the highest price at which a budget order takes, where those are bounded.
    band: (i64, i64),
    index: Index<OrderKey>,
    /// The price of the last trade.
    last: Option<i64>,
    /// When the first order expires, as far as [`Matching`](crate::matching::Matching) has noted
    /// it.
    noted_expiry: Option<i64>,
    ladder: Ladder,
}

const _: () = assert!(offset_of!(Book, spec) + offset_of!(SymbolSpec, id) < 64);
const _: () = assert!(offset_of!(Book, index).is_multiple_of(64));

impl Book {
    /// Returns a book with room for `orders` resting orders, so that nothing is allocated for them
    /// later at prices in the window. Without, it takes no memory before its first order.
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
            owner_mask: if rules.ids_per_user { -1 } else { 0 },
            cold: None,
            noted_expiry: None,
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

    /// Returns lots and orders of a price, if orders of this side rest there.
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
        orders.map(|order| self.with_terms(order))
    }

    /// Returns a resting order by its owner and its id.
    #[must_use]
    pub fn order(&self, uid: UserId, order_id: OrderId) -> Option<RestingOrder> {
        self.find_resting(uid, order_id)
            .map(|slot| self.with_terms(self.ladder.nodes[slot].resting()))
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
        let waiting = self.cold.as_ref().map_or(0, |cold| cold.stops.len());
        self.index.len() - waiting
    }

    #[inline]
    pub(crate) const fn is_futures(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::Futures)
    }

    /// Returns how the book stands, for settlement.
    #[inline]
    pub(crate) fn top_of_book(&mut self) -> TopOfBook {
        TopOfBook {
            ask: self.ladder.find_best_price(Action::Ask),
            bid: self.ladder.find_best_price(Action::Bid),
        }
    }

    #[inline]
    const fn key(&self, uid: UserId, order_id: OrderId) -> OrderKey {
        OrderKey {
            owner: uid.0 & self.owner_mask,
            id: order_id.0,
        }
    }

    /// Returns the key of the order in a slot.
    #[inline]
    fn key_at(&self, slot: u32) -> OrderKey {
        self.ladder.nodes[slot].key(self.owner_mask)
    }

    #[inline]
    fn find(&self, key: OrderKey) -> Option<u32> {
        let (nodes, owner_mask) = (&self.ladder.nodes, self.owner_mask);
        self.index
            .find_by(key, |slot| nodes[slot].is(key, owner_mask))
    }

    /// Returns room for a new order; `None` where one of its key rests.
    #[inline]
    fn vacancy(&mut self, key: OrderKey) -> Option<Vacancy> {
        let (nodes, owner_mask) = (&self.ladder.nodes, self.owner_mask);
        self.index
            .vacancy(key, |slot| nodes[slot].is(key, owner_mask))
    }

    /// Returns the slot of an order that rests and belongs to `uid`.
    fn find_resting(&self, uid: UserId, order_id: OrderId) -> Option<u32> {
        let slot = self.find_own(uid, order_id)?;
        (self.ladder.nodes[slot].marks & WAITS == 0).then_some(slot)
    }

    /// Returns the slot of an order that rests or waits and belongs to `uid`.
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
        if self.is_uncrossing() {
            return ResultCode::SymbolInAuction;
        }
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

// A book that is used more than it was: its window becomes wide.
//
// A venue has many symbols, and few of them are used much. So a book begins with a window of 64
// ticks. It gets one of 4,096 when it has more than 64 orders and far levels, or when orders far
// from the market came often. Levels of the window are the first slots of the nodes, so the few
// orders that there are move to others. This happens once to a book.

impl Book {
    /// At the end of a command that may have made the book larger, or placed an order far away. No
    /// slot from before is valid afterwards.
    #[inline]
    fn widen_if_used(&mut self) {
        if self.ladder.wants_width() {
            self.widen();
        }
    }

    /// In four steps, as a level is 64 bytes that must be written.
    #[cold]
    #[inline(never)]
    fn widen(&mut self) {
        let Some(nodes) = self.ladder.make_wider() else {
            return;
        };
        let orders = self.index.len();
        let mut ladder = Ladder::of(nodes);
        ladder.owners = self.ladder.owners.take().map(|_| Box::<Owners>::default());
        let mut index = Index::with_capacity(2 * orders);
        let old = &self.ladder;
        for side in [Action::Ask, Action::Bid] {
            for slot in old.slots(side) {
                let order = old.nodes[slot];
                let slot = ladder.nodes.insert(order);
                index.insert(order.key(self.owner_mask), slot);
                ladder.append(slot);
            }
        }
        if let Some(cold) = &mut self.cold {
            let to = |slot| {
                let order = old.nodes[slot];
                let slot = ladder.add_unqueued(order);
                index.insert(order.key(self.owner_mask), slot);
                slot
            };
            let slots: Vec<u32> = cold.stops.iter().map(to).collect();
            let keys = Keys {
                nodes: &ladder.nodes,
                owner_mask: self.owner_mask,
                has_prices: self.spec.symbol_type == SymbolType::Futures,
            };
            cold.stops.relocate(&slots, keys);
        }
        self.ladder = ladder;
        self.index = index;
    }
}

// Prefetch: the cache lines of an order, some commands before they are needed.

impl Book {
    /// Returns whether the book is too large for the nearer caches, so that prefetching pays.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.index.is_large()
    }

    /// Prefetches what every command reads of a book: before anything else.
    #[inline]
    pub(crate) fn prefetch_header(&self) {
        prefetch(&self.ask_floor);
        prefetch(&self.index);
        self.ladder.prefetch_header();
    }

    /// Prefetches the bucket of the index where an order's id is looked for, and the level of the
    /// price that it will have: the first step. Returns the hash of the id.
    #[inline]
    pub(crate) fn prefetch_index(&self, uid: UserId, order_id: OrderId, price: Option<i64>) -> u32 {
        let hash = self.index.hash(self.key(uid, order_id));
        prefetch(self.index.first_bucket(hash));
        if let Some(price) = price {
            self.ladder.prefetch_level(price);
        }
        hash
    }

    /// Prefetches the order, and returns the slot in which it seems to be: the second step.
    #[inline]
    pub(crate) fn prefetch_order(&self, hash: u32) -> Option<u32> {
        let slot = self.index.guess(hash)?;
        self.prefetch(slot);
        Some(slot)
    }

    /// Prefetches the orders before and behind it, and the newest one at the price that it will
    /// have: the last step.
    #[inline]
    pub(crate) fn prefetch_neighbours(&self, slot: Option<u32>, price: Option<i64>) {
        let nodes = &self.ladder.nodes;
        if let Some(order) = slot.and_then(|slot| nodes.get(slot)) {
            self.prefetch(order.previous);
            self.prefetch(order.next);
            self.ladder.prefetch_level(order.price);
        }
        if let Some(level) = price.and_then(|price| self.ladder.window_level(price)) {
            self.prefetch(nodes[level].previous);
        }
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        if slot != NONE
            && let Some(node) = self.ladder.nodes.get(slot)
        {
            prefetch(node);
        }
    }
}
