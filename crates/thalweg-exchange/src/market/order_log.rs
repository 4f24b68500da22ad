//! The resting orders of one symbol as the feed shows them, for the channel of orders.
//!
//! *State*: reference, price, side and shown lots of every resting order, by owner and id. An order
//! that is moved leaves, takes, and comes back as another one. An order that hides lots is nothing
//! special to the market: when the lots that it shows are filled, it is gone, and when as many
//! again are shown, another order comes; what the messages say of it they could say of plain
//! orders. Hidden lots are not kept: as they go first, a reduced order shows no more than it has
//! left, and an event says how many more are shown later.

use std::collections::BTreeMap;

use super::builder::OutOfStep;
use super::message::{Body, OrderChange, OrderReference};
use super::snapshot::ShownOrder;
use crate::book::Book;
use crate::command::{Action, Command, ConditionalOrder, OrderType, Place};
use crate::engine::index::{Index, OrderKey};
use crate::engine::slab::Slab;
use crate::event::{Event, Removal};
use crate::ids::{OrderId, SymbolId, UserId};

/// A resting order.
#[derive(Clone, Copy, Debug)]
struct Resting {
    key: OrderKey,
    side: Action,
    shown: ShownOrder,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct OrderLog {
    symbol: SymbolId,
    /// That of the last order that came to rest.
    pub(super) last: OrderReference,
    orders: Slab<Resting>,
    index: Index<OrderKey>,
    /// How many lots the waiting stop orders will show, of those that will hide some.
    displays: BTreeMap<OrderKey, i64>,
    /// The trades and changes of the current command.
    bodies: Vec<Body>,
}

/// Ids of different users may be the same.
const fn key(uid: UserId, order: OrderId) -> OrderKey {
    OrderKey {
        owner: uid.0,
        id: order.0,
    }
}

/// The order that takes and may rest, until it rests or is gone.
#[derive(Clone, Copy)]
struct Taker {
    key: OrderKey,
    side: Action,
    price: i64,
    /// Lots that neither traded nor were rejected; of a moved order, only those that it showed.
    left: i64,
    /// Lots that it shows at most when it rests.
    display: i64,
    /// Whether it rested before. Else an order that it meets may have its key, by the reference's
    /// rules.
    is_moved: bool,
}

impl Taker {
    fn new(place: &Place, display: Option<i64>) -> Option<Self> {
        let taker = Self {
            key: key(place.uid, place.order_id),
            side: place.action,
            price: place.price,
            left: place.size,
            display: display.unwrap_or(i64::MAX),
            is_moved: false,
        };
        (place.order_type == OrderType::Gtc).then_some(taker)
    }
}

impl OrderLog {
    /// An empty one, whose references go on after `last`.
    pub(super) fn new(symbol: SymbolId, last: OrderReference) -> Self {
        Self {
            symbol,
            last,
            orders: Slab::default(),
            index: Index::default(),
            displays: BTreeMap::new(),
            bodies: Vec::new(),
        }
    }

    /// Learns what rests in a book already.
    pub(super) fn learn(&mut self, book: &Book) {
        for side in [Action::Ask, Action::Bid] {
            for order in book.orders(side) {
                let left = order.size - order.filled - order.hidden;
                self.insert(key(order.uid, order.order_id), side, (order.price, left));
            }
        }
        book.waiting().for_each(|order| self.note_display(order));
        self.bodies.clear();
    }

    fn note_display(&mut self, order: &ConditionalOrder) {
        if let Some(display) = order.display {
            let key = key(order.place.uid, order.place.order_id);
            self.displays.insert(key, display);
        }
    }

    fn find(&self, key: OrderKey) -> Option<u32> {
        self.index.find(key, |slot| self.orders[slot].key)
    }

    fn slot(&self, key: OrderKey) -> Result<u32, OutOfStep> {
        let (symbol, order) = (self.symbol, OrderId(key.id));
        let unknown = OutOfStep::UnknownOrder { symbol, order };
        self.find(key).ok_or(unknown)
    }

    pub(super) fn reference(&self, uid: UserId, order: OrderId) -> Option<OrderReference> {
        let slot = self.find(key(uid, order))?;
        Some(self.orders[slot].shown.order)
    }

    /// Returns the orders of one side as they would be filled: best price first, then by reference,
    /// since each comes to the end of its queue with a new one.
    pub(super) fn resting(&self, side: Action, into: &mut Vec<ShownOrder>) {
        let all = self.index.slots().map(|slot| &self.orders[slot]);
        into.clear();
        into.extend(all.filter(|order| order.side == side).map(|o| o.shown));
        into.sort_unstable_by_key(|resting| match side {
            Action::Ask => (resting.price, resting.order),
            Action::Bid => (!resting.price, resting.order),
        });
    }

    /// Returns the trades and changes of orders of a command, or of what it did in this book.
    pub(super) fn follow(
        &mut self,
        command: &Command,
        events: &[Event],
    ) -> Result<&[Body], OutOfStep> {
        self.bodies.clear();
        let taker = match *command {
            Command::Place(ref place) => Taker::new(place, None),
            Command::PlaceWith(ref order) if order.trigger.is_none() => {
                Taker::new(&order.place, order.display)
            }
            Command::PlaceWith(ref order) => {
                if !matches!(events.first(), Some(Event::Reject { .. })) {
                    self.note_display(order);
                }
                None
            }
            Command::Cancel { uid, order_id, .. } | Command::Reduce { uid, order_id, .. } => {
                self.reduced(key(uid, order_id), events)?;
                None
            }
            Command::Move {
                uid,
                order_id,
                price,
                ..
            } => self.leave(key(uid, order_id), (price, true))?,
            Command::Amend(ref amend) => {
                let key = key(amend.uid, amend.order_id);
                if self.reduced(key, events)? == Some(0) {
                    None
                } else {
                    self.leave(key, (amend.price, amend.size > amend.size_before))?
                }
            }
            _ => None,
        };
        self.chain(taker, events)?;
        Ok(&self.bodies)
    }

    /// Takes lots off the command's order if the first event says so, and returns how many are
    /// left, hidden ones included.
    fn reduced(&mut self, key: OrderKey, events: &[Event]) -> Result<Option<i64>, OutOfStep> {
        let Some(&Event::Reduce { left, .. }) = events.first() else {
            return Ok(None);
        };
        let slot = self.slot(key)?;
        self.lower(slot, left);
        Ok(Some(left))
    }

    /// Takes out an order that is moved, to take at a price; leaves one in its place that keeps its
    /// price and does not grow.
    fn leave(
        &mut self,
        key: OrderKey,
        (price, is_moved): (i64, bool),
    ) -> Result<Option<Taker>, OutOfStep> {
        let slot = self.slot(key)?;
        let Resting { side, shown, .. } = self.orders[slot];
        if !is_moved && price == shown.price {
            return Ok(None);
        }
        self.lower(slot, 0);
        Ok(Some(Taker {
            key,
            side,
            price,
            left: shown.left,
            display: i64::MAX,
            is_moved: true,
        }))
    }

    /// Follows resting orders; what is left of each taker rests before the next one comes.
    fn chain(&mut self, mut taker: Option<Taker>, events: &[Event]) -> Result<(), OutOfStep> {
        // In an auction, both orders of a trade rest.
        let mut buyer = None;
        for event in events {
            match *event {
                Event::Trade {
                    size,
                    taker_completed,
                    ..
                } => {
                    self.trade(event, buyer)?;
                    lower(&mut taker, size);
                    taker = taker.filter(|_| !taker_completed);
                }
                Event::Reject { size, .. } => lower(&mut taker, size),
                Event::Removed {
                    order,
                    uid,
                    size,
                    left,
                    why,
                    ..
                } => {
                    let key = key(uid, order);
                    if taker.is_some_and(|taker| taker.is_moved && taker.key == key) {
                        // A moved order, which has left already.
                        lower(&mut taker, size);
                        taker = taker.filter(|_| why == Removal::Decremented);
                    } else if let Some(slot) = self.find(key) {
                        self.lower(slot, left);
                    } else if why != Removal::Reduced {
                        self.displays.remove(&key);
                    }
                }
                Event::Triggered { .. } | Event::Uncrossed { .. } => {
                    self.rest(taker.take())?;
                    (taker, buyer) = self.next(event);
                }
                Event::Refilled { order, uid, size } => {
                    let key = key(uid, order);
                    if taker.is_some_and(|taker| taker.is_moved && taker.key == key) {
                        lower(&mut taker, size.wrapping_neg());
                    } else {
                        self.refilled(key, size)?;
                    }
                }
                Event::Reduce { .. } => {}
            }
        }
        self.rest(taker)
    }

    /// Returns a stop order that takes, or a buyer's resting order that trades in an auction.
    fn next(&mut self, event: &Event) -> (Option<Taker>, Option<OrderKey>) {
        match *event {
            Event::Triggered {
                order,
                uid,
                action: side,
                price,
                size: left,
                ..
            } => {
                let key = key(uid, order);
                // What may not rest is rejected.
                let taker = Taker {
                    key,
                    side,
                    price,
                    left,
                    display: self.displays.remove(&key).unwrap_or(i64::MAX),
                    is_moved: false,
                };
                (Some(taker), None)
            }
            Event::Uncrossed { order, uid, .. } => (None, Some(key(uid, order))),
            _ => (None, None),
        }
    }

    fn trade(&mut self, event: &Event, buyer: Option<OrderKey>) -> Result<(), OutOfStep> {
        let Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_completed,
            taker_completed,
            taker_action: taker_side,
            ..
        } = *event
        else {
            return Ok(());
        };
        let slot = self.slot(key(maker_uid, maker_order))?;
        self.bodies.push(Body::Trade {
            price,
            size,
            taker_side,
            maker: self.orders[slot].shown.order,
        });
        self.filled(slot, size, maker_completed);
        if let Some(buyer) = buyer {
            let slot = self.slot(buyer)?;
            self.filled(slot, size, taker_completed);
        }
        Ok(())
    }

    fn filled(&mut self, slot: u32, size: i64, is_gone: bool) {
        let shown = &mut self.orders[slot].shown;
        shown.left = shown.left.wrapping_sub(size);
        let ShownOrder { order, left, .. } = *shown;
        self.add(OrderChange::Filled { order, size, left });
        if is_gone {
            self.forget(slot);
        }
    }

    /// Takes lots off an order of which `left` are left, hidden ones included; without any, the
    /// order out.
    fn lower(&mut self, slot: u32, left: i64) {
        let shown = &mut self.orders[slot].shown;
        let (order, by) = (shown.order, shown.left.wrapping_sub(left));
        if left == 0 {
            let left = shown.left;
            self.add(OrderChange::Removed { order, left });
            self.forget(slot);
        } else if by > 0 {
            shown.left = left;
            self.add(OrderChange::Reduced { order, by, left });
        }
    }

    fn add(&mut self, change: OrderChange) {
        self.bodies.push(Body::Order(change));
    }

    fn forget(&mut self, slot: u32) {
        let key = self.orders[slot].key;
        self.index.remove_slot(key, slot);
        self.orders.free(slot);
    }

    /// Shows lots that were hidden: a new order, as far as the market sees.
    fn refilled(&mut self, key: OrderKey, size: i64) -> Result<(), OutOfStep> {
        let slot = self.slot(key)?;
        let Resting { side, shown, .. } = self.orders[slot];
        let left = shown.left.wrapping_add(size);
        let shown = self.added(side, (shown.price, size));
        self.orders[slot].shown = ShownOrder { left, ..shown };
        Ok(())
    }

    /// Lets what is left of a taker stand at the end of its queue, all of it or what it shows.
    fn rest(&mut self, taker: Option<Taker>) -> Result<(), OutOfStep> {
        let Some(taker) = taker.filter(|taker| taker.left != 0) else {
            return Ok(());
        };
        if self.find(taker.key).is_some() {
            let (symbol, order) = (self.symbol, OrderId(taker.key.id));
            return Err(OutOfStep::SecondOrder { symbol, order });
        }
        let lots = taker.left.min(taker.display);
        self.insert(taker.key, taker.side, (taker.price, lots));
        Ok(())
    }

    fn insert(&mut self, key: OrderKey, side: Action, (price, lots): (i64, i64)) {
        let shown = self.added(side, (price, lots));
        let slot = self.orders.insert(Resting { key, side, shown });
        self.index.insert(key, slot);
    }

    /// Adds the message of a new order, and returns what it shows.
    fn added(&mut self, side: Action, (price, size): (i64, i64)) -> ShownOrder {
        self.last.0 += 1;
        let order = self.last;
        self.add(OrderChange::Added {
            order,
            side,
            price,
            size,
        });
        ShownOrder {
            order,
            price,
            left: size,
        }
    }
}

fn lower(taker: &mut Option<Taker>, lots: i64) {
    if let Some(taker) = taker {
        taker.left = taker.left.wrapping_sub(lots);
    }
}
