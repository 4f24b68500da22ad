//! The order book of one symbol: best price first, then time.
//!
//! *State*: orders in a slab, found by id through a keyed index; per side a tree of price levels,
//! each a queue linked through the orders. *Rules*: (1) an order is in the index exactly while it
//! rests, or while it is being moved; (2) a level exists exactly while its queue is not empty;
//! (3) a level's volume is the sum of what is left of its orders.
//!
//! Nothing here is checked for 64-bit overflow: the risk check admits only orders for which no sum
//! of sizes can leave 64 bits (see [`crate::risk`]).

mod side;
mod taking;

use self::side::{NONE, Side};
use crate::command::{Action, OrderType, Place, SymbolSpec, SymbolType};
use crate::event::{Event, Events};
use crate::ids::{OrderId, UserId};
use crate::index::Index;
use crate::result_code::ResultCode;
use crate::rules::Rules;
use crate::slab::Slab;

/// A price level as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: i64,
    /// Lots that rest here.
    pub volume: i64,
    /// How many orders they belong to.
    pub orders: u64,
}

/// A resting order as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// Its id.
    pub order_id: OrderId,
    /// Its owner.
    pub uid: UserId,
    /// Its side.
    pub action: Action,
    /// Its limit price.
    pub price: i64,
    /// Its reserve price, as it was placed.
    pub reserve_price: i64,
    /// Its size in lots, what is filled included.
    pub size: i64,
    /// Lots that are filled.
    pub filled: i64,
}

/// An order in the slab: one cache line.
#[derive(Clone, Copy, Debug)]
struct Order {
    id: i64,
    uid: i64,
    price: i64,
    reserve_price: i64,
    size: i64,
    filled: i64,
    previous: u32,
    next: u32,
    level: u32,
    action: Action,
}

const _: () = assert!(size_of::<Order>() == 64);

impl Order {
    const fn left(&self) -> i64 {
        self.size - self.filled
    }

    const fn resting(&self) -> RestingOrder {
        RestingOrder {
            order_id: OrderId(self.id),
            uid: UserId(self.uid),
            action: self.action,
            price: self.price,
            reserve_price: self.reserve_price,
            size: self.size,
            filled: self.filled,
        }
    }
}

/// An order book. Read here; changed only through the engine.
#[derive(Clone, Debug)]
pub struct Book {
    spec: SymbolSpec,
    orders: Slab<Order>,
    index: Index,
    asks: Side,
    bids: Side,
}

impl Book {
    pub(crate) fn new(spec: SymbolSpec) -> Self {
        Self {
            spec,
            orders: Slab::default(),
            index: Index::default(),
            asks: Side::new(Action::Ask),
            bids: Side::new(Action::Bid),
        }
    }

    /// The symbol's terms.
    #[must_use]
    pub const fn spec(&self) -> &SymbolSpec {
        &self.spec
    }

    /// The levels of one side, best first, `depth` at most (`usize::MAX` for all).
    pub fn levels(&self, side: Action, depth: usize) -> impl Iterator<Item = Level> + '_ {
        self.side(side).levels().take(depth)
    }

    /// The best level of one side.
    #[must_use]
    pub fn best(&self, side: Action) -> Option<Level> {
        self.levels(side, 1).next()
    }

    /// The resting orders of one side, best price first, then in order of time.
    pub fn orders(&self, side: Action) -> impl Iterator<Item = RestingOrder> + '_ {
        self.side(side).orders(&self.orders)
    }

    /// A resting order by its id.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<RestingOrder> {
        self.find(order_id).map(|slot| self.orders[slot].resting())
    }

    /// How many orders rest, both sides together.
    #[must_use]
    pub const fn order_count(&self) -> usize {
        self.index.len()
    }

    const fn side(&self, action: Action) -> &Side {
        match action {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }

    fn find(&self, order_id: OrderId) -> Option<u32> {
        self.index.find(order_id.0, |slot| self.orders[slot].id)
    }

    /// The slot of an order that rests and belongs to `uid`.
    fn find_own(&self, uid: UserId, order_id: OrderId) -> Option<u32> {
        self.find(order_id)
            .filter(|&slot| self.orders[slot].uid == uid.0)
    }

    fn append(&mut self, slot: u32) {
        let side = match self.orders[slot].action {
            Action::Ask => &mut self.asks,
            Action::Bid => &mut self.bids,
        };
        side.append(&mut self.orders, slot);
    }

    fn unlink(&mut self, slot: u32) {
        let side = match self.orders[slot].action {
            Action::Ask => &mut self.asks,
            Action::Bid => &mut self.bids,
        };
        side.unlink(&mut self.orders, slot);
    }

    /// Forgets an order that is in no queue any more.
    fn forget(&mut self, slot: u32) {
        let orders = &self.orders;
        self.index.remove(orders[slot].id, |slot| orders[slot].id);
        self.orders.free(slot);
    }

    /// Executes a new order that the risk check let pass.
    pub(crate) fn place(&mut self, place: &Place, events: &mut Events) {
        match place.order_type {
            OrderType::Gtc => self.place_gtc(place, events),
            OrderType::Ioc => {
                let left = self.take_new(place, Some(place.price), events);
                reject(place, left, events);
            }
            OrderType::FokBudget => self.place_fok_budget(place, events),
            // Quirk of the reference: rejected whole. Mended rules refuse these in the risk check.
            OrderType::Fok | OrderType::IocBudget => reject_always(place, place.size, events),
        }
    }

    fn place_gtc(&mut self, place: &Place, events: &mut Events) {
        let left = self.take_new(place, Some(place.price), events);
        if left == 0 {
            return;
        }
        if self.find(place.order_id).is_some() {
            reject_always(place, left, events);
            return;
        }
        let slot = self.orders.insert(Order {
            id: place.order_id.0,
            uid: place.uid.0,
            price: place.price,
            reserve_price: place.reserve_price,
            size: place.size,
            filled: place.size - left,
            previous: NONE,
            next: NONE,
            level: NONE,
            action: place.action,
        });
        let orders = &self.orders;
        self.index
            .insert(place.order_id.0, slot, |slot| orders[slot].id);
        self.append(slot);
    }

    fn place_fok_budget(&mut self, place: &Place, events: &mut Events) {
        let budget = i128::from(place.price);
        let cost = self.side(place.action.opposite()).cost(place.size);
        let fits = cost.is_some_and(|cost| match place.action {
            Action::Bid => cost <= budget,
            Action::Ask => cost >= budget,
        });
        if fits {
            self.take_new(place, None, events);
        } else {
            reject_always(place, place.size, events);
        }
    }

    /// Takes what is left of an order out of the book.
    pub(crate) fn cancel(
        &mut self,
        uid: UserId,
        order_id: OrderId,
        events: &mut Events,
    ) -> ResultCode {
        self.reduce(uid, order_id, i64::MAX, events)
    }

    /// Takes `by` lots off an order; all that is left, or more, cancels it.
    pub(crate) fn reduce(
        &mut self,
        uid: UserId,
        order_id: OrderId,
        by: i64,
        events: &mut Events,
    ) -> ResultCode {
        if by <= 0 {
            return ResultCode::MatchingReduceFailedWrongSize;
        }
        let Some(slot) = self.find_own(uid, order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = self.orders[slot];
        let size = order.left().min(by);
        let completed = size == order.left();
        if completed {
            self.unlink(slot);
            self.forget(slot);
        } else {
            self.orders[slot].size -= size;
            let side = match order.action {
                Action::Ask => &mut self.asks,
                Action::Bid => &mut self.bids,
            };
            side.queue_mut(order.level).volume -= size;
        }
        events.push(Event::Reduce {
            price: order.price,
            size,
            completed,
            bidder_hold_price: order.reserve_price,
            action: order.action,
        });
        ResultCode::Success
    }

    /// Gives an order another price: it matches as a taker, and what is left rests at the tail.
    /// `checked` is what the risk check said; it counts only if there is such an order.
    pub(crate) fn move_order(
        &mut self,
        (uid, order_id): (UserId, OrderId),
        price: i64,
        checked: ResultCode,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Some(slot) = self.find_own(uid, order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        if checked.is_refusal() {
            return checked;
        }
        if let Err(code) = self.check_move(&self.orders[slot], price, rules) {
            return code;
        }
        self.unlink(slot);
        self.orders[slot].price = price;
        self.take_moved(slot, events);
        if self.orders[slot].left() == 0 {
            self.forget(slot);
        } else {
            self.append(slot);
        }
        ResultCode::Success
    }

    fn check_move(&self, order: &Order, price: i64, rules: &Rules) -> Result<(), ResultCode> {
        if self.spec.symbol_type != SymbolType::CurrencyPair {
            return Ok(());
        }
        match order.action {
            Action::Bid if price > order.reserve_price => {
                Err(ResultCode::MatchingMoveFailedPriceOverRiskLimit)
            }
            Action::Ask if rules.refuse_moved_ask_under_fee && !self.spec.covers_fee(price) => {
                Err(ResultCode::MatchingMoveFailedPriceLowerThanFee)
            }
            _ => Ok(()),
        }
    }
}

/// Rejects what is left, if anything is.
fn reject(place: &Place, left: i64, events: &mut Events) {
    if left != 0 {
        reject_always(place, left, events);
    }
}

/// Rejects `size` lots, even none: the reference tells of a budget order of no size, too.
fn reject_always(place: &Place, size: i64, events: &mut Events) {
    events.push_first(Event::Reject {
        price: place.price,
        size,
        bidder_hold_price: place.reserve_price,
    });
}
