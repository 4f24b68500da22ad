//! The book of one symbol as far as commands and events tell it.
//!
//! *State*: what is left of every resting order, by id; the levels of both sides. *Rule*: between
//! commands, a level's volume and count are the sums over the orders at its price.

use std::collections::BTreeMap;

use super::builder::OutOfStep;
use super::message::{
    BestPrices, Body, LevelDelta, OrderChange, OrderReference, Quote, SymbolSequence,
};
use super::price_ladder::PriceLadder;
use super::tape::Tape;
use super::{Channels, Options};
use crate::book::{Book, Level};
use crate::command::Action;
use crate::event::Removal;
use crate::ids::{OrderId, SymbolId, UserId};
use crate::index::{Index, OrderKey};
use crate::order_terms::ConditionalOrder;
use crate::slab::Slab;

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

/// Of the command under way: its number, and where its messages go.
pub(super) struct Telling<'t> {
    pub(super) command: u64,
    pub(super) tape: &'t mut Tape,
    pub(super) channels: Channels,
}

/// One symbol's part of a feed.
#[derive(Clone, Debug)]
pub(super) struct SymbolFeed {
    pub(super) symbol: SymbolId,
    pub(super) sequence: SymbolSequence,
    /// Of the last order that came to rest.
    reference: OrderReference,
    /// False after a reset or a removal, until the symbol is added again.
    pub(super) is_listed: bool,
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
    pub(super) fn new(symbol: SymbolId, options: &Options) -> Self {
        Self {
            symbol,
            sequence: SymbolSequence(0),
            reference: OrderReference::default(),
            is_listed: true,
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
                self.add(key, side, order.price, left);
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

    pub(super) fn tell(&mut self, to: &mut Telling<'_>, body: Body) {
        let wanted = match body {
            Body::Trade { .. } => to.channels.trades,
            Body::Order(_) => to.channels.orders,
            Body::Level(_) => to.channels.levels,
            Body::Best(_) => to.channels.best,
            Body::Cleared => true,
        };
        if wanted {
            to.tape
                .push(to.command, self.symbol, &mut self.sequence, body);
        }
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
        // come again; and two of the taker's own side, which a move touches first of all.
        let is_known =
            self.touched.last().is_some_and(is_same) || self.touched.iter().take(2).any(is_same);
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
        self.reference.0 += 1;
        self.reference
    }

    fn add(&mut self, order: OrderKey, side: Action, price: i64, left: i64) -> OrderReference {
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

    pub(super) fn filled(&mut self, slot: u32, size: i64, gone: bool, to: &mut Telling<'_>) {
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
        to: &mut Telling<'_>,
    ) {
        let order = self.add(order, side, price, size);
        let added = OrderChange::Added {
            order,
            side,
            price,
            size,
        };
        self.tell(to, Body::Order(added));
    }

    /// Side and price of an order.
    pub(super) fn place_of(&self, slot: u32) -> (Action, i64) {
        (self.orders[slot].side, self.orders[slot].price)
    }

    /// Gives an order another price; gives what is left of it.
    pub(super) fn reprice(&mut self, slot: u32, price: i64) -> i64 {
        let shadow = &mut self.orders[slot];
        let old = std::mem::replace(&mut shadow.price, price);
        let Shadow { left, side, .. } = *shadow;
        self.change(side, old, left.wrapping_neg(), -1);
        self.change(side, price, left, 1);
        left
    }

    /// An order leaves with all its lots, those that it hides too; gives how many it showed.
    pub(super) fn withdraw(&mut self, order: OrderKey, slot: u32, to: &mut Telling<'_>) -> i64 {
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
        to: &mut Telling<'_>,
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
        to: &mut Telling<'_>,
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
        *hidden -= lots;
        if *hidden == 0 {
            self.hidden.remove(&order);
        }
        lots
    }

    /// After the command: levels that are not as they were, and the best prices.
    pub(super) fn finish(&mut self, to: &mut Telling<'_>) {
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

    pub(super) fn clear(&mut self, to: &mut Telling<'_>) {
        self.is_listed = false;
        self.orders = Slab::default();
        self.index = Index::default();
        self.asks.clear();
        self.bids.clear();
        self.touched.clear();
        self.is_chained = false;
        self.waiting.clear();
        self.hidden.clear();
        self.best = BestPrices::default();
        self.tell(to, Body::Cleared);
    }
}
