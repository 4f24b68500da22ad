//! The book of one symbol as far as commands and events tell it.
//!
//! *State*: what is left of every resting order, by id; the levels of both sides. *Rule*: between
//! commands, a level's volume and count are the sums over the orders at its price.

use std::collections::BTreeMap;

use super::Options;
use super::builder::OutOfStep;
use super::message::{
    BestPrices, Body, LevelDelta, OrderChange, OrderReference, Quote, SymbolSequence,
};
use super::price_ladder::PriceLadder;
use super::snapshot::ShownOrder;
use super::tape::Tape;
use crate::book::{Book, Level};
use crate::command::Action;
use crate::command::ConditionalOrder;
use crate::engine::index::{Index, OrderKey};
use crate::engine::slab::Slab;
use crate::event::Removal;
use crate::ids::{OrderId, SymbolId, UserId};

/// A resting order, in 48 bytes.
#[derive(Clone, Copy, Debug)]
struct Shadow {
    key: OrderKey,
    /// What the feed calls it.
    reference: OrderReference,
    price: i64,
    left: i64,
    side: Action,
}

/// What an order is found by: ids of different users may be the same.
pub(super) const fn key(uid: UserId, order: OrderId) -> OrderKey {
    OrderKey {
        owner: uid.0,
        id: order.0,
    }
}

/// A level that the current command changed, as it was before.
#[derive(Clone, Copy, Debug)]
struct Touched {
    side: Action,
    before: Level,
    /// Its place among those that the command touched.
    at: usize,
}

/// What outlives a symbol that is removed: if it is added again, its numbers go on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) sequence: SymbolSequence,
    /// Of the last order that came to rest.
    pub(super) reference: OrderReference,
}

/// One symbol's part of a feed.
#[derive(Clone, Debug)]
pub(super) struct SymbolFeed {
    pub(super) symbol: SymbolId,
    pub(super) numbers: Numbers,
    orders: Slab<Shadow>,
    index: Index<OrderKey>,
    asks: PriceLadder,
    bids: PriceLadder,
    touched: Vec<Touched>,
    /// True where several takers came one after another, or orders were removed, and levels may be
    /// in `touched` twice.
    pub(super) is_chained: bool,
    /// How much stop orders that wait will show at most: nobody is told of them. No id is both
    /// here and among the orders.
    pub(super) waiting: BTreeMap<OrderKey, i64>,
    /// How many lots an order hides, where it does.
    pub(super) hidden: BTreeMap<OrderKey, i64>,
    best: BestPrices,
}

impl SymbolFeed {
    pub(super) fn new(symbol: SymbolId, numbers: Numbers, options: &Options) -> Self {
        Self {
            symbol,
            numbers,
            orders: Slab::default(),
            index: Index::default(),
            asks: PriceLadder::new(Action::Ask, options.levels),
            bids: PriceLadder::new(Action::Bid, options.levels),
            touched: Vec::with_capacity(options.messages),
            is_chained: false,
            waiting: BTreeMap::new(),
            hidden: BTreeMap::new(),
            best: BestPrices::default(),
        }
    }

    /// Learns what rests in a book already.
    pub(super) fn learn(&mut self, book: &Book) {
        for side in [Action::Ask, Action::Bid] {
            for order in book.orders(side) {
                let left = order.size - order.filled - order.hidden;
                let key = key(order.uid, order.order_id);
                self.insert(key, side, order.price, left);
                if order.hidden != 0 {
                    self.hidden.insert(key, order.hidden);
                }
            }
            for at in 0..self.touched.len() {
                let Touched { side, before, .. } = self.touched[at];
                self.ladder_mut(side).settle(before.price);
            }
            self.touched.clear();
        }
        let display = |stop: &ConditionalOrder| stop.display.unwrap_or(i64::MAX);
        let waiting = book.waiting();
        let waiting = waiting.map(|stop| {
            let place = &stop.place;
            (key(place.uid, place.order_id), display(stop))
        });
        self.waiting.extend(waiting);
        self.best = self.best_now();
    }

    pub(super) const fn ladder(&self, side: Action) -> &PriceLadder {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }

    const fn ladder_mut(&mut self, side: Action) -> &mut PriceLadder {
        match side {
            Action::Ask => &mut self.asks,
            Action::Bid => &mut self.bids,
        }
    }

    pub(super) const fn orders(&self) -> usize {
        self.index.len()
    }

    pub(super) fn tell(&mut self, to: &mut Tape, body: Body) {
        to.tell(self.symbol, &mut self.numbers.sequence, body);
    }

    /// The orders of one side as they would be filled: best price first, then by reference, since
    /// each comes to the end of its queue with a new one.
    pub(super) fn resting(&self, side: Action, into: &mut Vec<ShownOrder>) {
        let all = self.index.slots().map(|slot| &self.orders[slot]);
        let own = all.filter(|order| order.side == side);
        into.clear();
        into.extend(own.map(|order| ShownOrder {
            order: order.reference,
            price: order.price,
            left: order.left,
        }));
        into.sort_unstable_by_key(|resting| match side {
            Action::Ask => (resting.price, resting.order),
            Action::Bid => (!resting.price, resting.order),
        });
    }

    pub(super) fn find(&self, order: OrderKey) -> Result<u32, OutOfStep> {
        self.index
            .find(order, |slot| self.orders[slot].key)
            .ok_or_else(|| self.unknown(order))
    }

    pub(super) const fn unknown(&self, order: OrderKey) -> OutOfStep {
        OutOfStep::UnknownOrder {
            symbol: self.symbol,
            order: OrderId(order.id),
        }
    }

    fn change(&mut self, side: Action, price: i64, volume: i64, orders: i64) {
        let before = self.ladder_mut(side).change(price, volume, orders);
        let is_same = |touched: &Touched| touched.side == side && touched.before.price == price;
        // A command touches the makers' levels in the order of their prices, so only the last can
        // come again; and the one that a moved order leaves, which is touched first of all.
        let is_known =
            self.touched.last().is_some_and(is_same) || self.touched.first().is_some_and(is_same);
        if !is_known {
            let at = self.touched.len();
            self.touched.push(Touched { side, before, at });
        }
    }

    /// What the feed calls an order.
    pub(super) fn reference(&self, slot: u32) -> OrderReference {
        self.orders[slot].reference
    }

    /// What the feed calls the next order.
    const fn next_reference(&mut self) -> OrderReference {
        self.numbers.reference.0 += 1;
        self.numbers.reference
    }

    /// An error where there is an order of this id.
    pub(super) fn check_is_new(&self, order: OrderKey) -> Result<(), OutOfStep> {
        if self.waiting.contains_key(&order) || self.find(order).is_ok() {
            return Err(OutOfStep::SecondOrder {
                symbol: self.symbol,
                order: OrderId(order.id),
            });
        }
        Ok(())
    }

    fn insert(&mut self, order: OrderKey, side: Action, price: i64, left: i64) -> OrderReference {
        let reference = self.next_reference();
        let slot = self.orders.insert(Shadow {
            key: order,
            reference,
            price,
            left,
            side,
        });
        self.index.insert(order, slot);
        self.change(side, price, left, 1);
        reference
    }

    /// Takes `size` lots off an order, and the order out of the book if it is `gone`; gives what
    /// is left.
    pub(super) fn lower(&mut self, slot: u32, size: i64, gone: bool) -> i64 {
        let shadow = &mut self.orders[slot];
        shadow.left = shadow.left.wrapping_sub(size);
        let Shadow {
            key,
            price,
            left,
            side,
            ..
        } = *shadow;
        self.change(side, price, size.wrapping_neg(), -i64::from(gone));
        if gone {
            let orders = &self.orders;
            self.index.remove(key, |slot| orders[slot].key);
            self.orders.free(slot);
        }
        left
    }

    pub(super) fn filled(&mut self, slot: u32, size: i64, gone: bool, to: &mut Tape) {
        let order = self.reference(slot);
        let left = self.lower(slot, size, gone);
        self.tell(to, Body::Order(OrderChange::Filled { order, size, left }));
    }

    /// Puts an order at the end of the queue of its price.
    pub(super) fn show(
        &mut self,
        order: OrderKey,
        side: Action,
        price: i64,
        size: i64,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        self.check_is_new(order)?;
        let order = self.insert(order, side, price, size);
        let added = OrderChange::Added {
            order,
            side,
            price,
            size,
        };
        self.tell(to, Body::Order(added));
        Ok(())
    }

    /// Side and price of an order.
    pub(super) fn place_of(&self, slot: u32) -> (Action, i64) {
        (self.orders[slot].side, self.orders[slot].price)
    }

    /// An order leaves with all its lots, those that it hides too; gives how many it showed.
    pub(super) fn withdraw(&mut self, order: OrderKey, slot: u32, to: &mut Tape) -> i64 {
        self.hidden.remove(&order);
        let left = self.orders[slot].left;
        let order = self.reference(slot);
        self.lower(slot, left, true);
        self.tell(to, Body::Order(OrderChange::Removed { order, left }));
        left
    }

    /// An order was taken out by something else than its owner's cancel of a resting order; or it
    /// is a stop order that waited, or still waits, and was never shown.
    pub(super) fn removed(
        &mut self,
        order: OrderKey,
        why: Removal,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let waited = match why {
            Removal::Reduced => self.waiting.contains_key(&order),
            _ => self.waiting.remove(&order).is_some(),
        };
        if !waited {
            let slot = self.find(order)?;
            self.withdraw(order, slot, to);
        }
        Ok(())
    }

    /// Lots that were hidden are shown: a new order, as far as the market sees.
    pub(super) fn refilled(
        &mut self,
        order: OrderKey,
        size: i64,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let slot = self.find(order)?;
        self.unhide(order, size);
        let order = self.next_reference();
        let shadow = &mut self.orders[slot];
        shadow.reference = order;
        shadow.left = shadow.left.wrapping_add(size);
        let Shadow { price, side, .. } = *shadow;
        self.change(side, price, size, 0);
        let added = OrderChange::Added {
            order,
            side,
            price,
            size,
        };
        self.tell(to, Body::Order(added));
        Ok(())
    }

    /// So many lots of an order are hidden no more; gives how many were, `size` at most.
    pub(super) fn unhide(&mut self, order: OrderKey, size: i64) -> i64 {
        let Some(hidden) = self.hidden.get_mut(&order) else {
            return 0;
        };
        let lots = size.min(*hidden);
        *hidden = hidden.wrapping_sub(lots);
        if *hidden == 0 {
            self.hidden.remove(&order);
        }
        lots
    }

    /// After the command: levels that are not as they were, and the best prices.
    pub(super) fn finish(&mut self, to: &mut Tape) {
        if std::mem::take(&mut self.is_chained) {
            // Of each level, how it was at first.
            let key = |touched: &Touched| (touched.side, touched.before.price);
            self.touched.sort_unstable_by_key(|t| (key(t), t.at));
            self.touched.dedup_by_key(|touched| key(touched));
        }
        for at in 0..self.touched.len() {
            let Touched { side, before, .. } = self.touched[at];
            let after = self.ladder_mut(side).settle(before.price);
            if after != before {
                let delta = LevelDelta {
                    side,
                    price: after.price,
                    volume: after.volume,
                    orders: after.orders,
                };
                self.tell(to, Body::Level(delta));
            }
        }
        if !self.touched.is_empty() {
            self.touched.clear();
            let best = self.best_now();
            if best != self.best {
                self.best = best;
                self.tell(to, Body::Best(best));
            }
        }
    }

    fn best_now(&self) -> BestPrices {
        let quote = |ladder: &PriceLadder| {
            ladder
                .best()
                .map(|Level { price, volume, .. }| Quote { price, volume })
        };
        BestPrices {
            ask: quote(&self.asks),
            bid: quote(&self.bids),
        }
    }

    pub(super) const fn best(&self) -> BestPrices {
        self.best
    }
}
