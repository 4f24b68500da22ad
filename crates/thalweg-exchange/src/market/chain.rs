//! What one command's events do to a book, taker by taker.
//!
//! An order that is moved leaves, takes, and comes back as another one. An order that hides lots is
//! nothing special to the market: when what it shows is filled, it is gone, and when as much again
//! is shown, another order comes; what the messages say of it they could say of plain orders.

use super::builder::OutOfStep;
use super::message::{Body, OrderChange};
use super::shadow::{SymbolFeed, key};
use super::tape::Tape;
use crate::command::ConditionalOrder;
use crate::command::{Action, Amend, OrderType, Place};
use crate::engine::index::OrderKey;
use crate::event::{Event, Removal};

/// The order that takes, until it rests or is gone.
#[derive(Clone, Copy)]
pub(super) struct Taker {
    order: OrderKey,
    side: Action,
    price: i64,
    /// Lots that neither traded nor were rejected so far.
    left: i64,
    /// Lots that it shows at most when it rests.
    display: i64,
    /// Whether what is left may rest.
    rests: bool,
    /// It takes in an auction, and rests meanwhile.
    stays: bool,
    /// Of one that rested before and was moved: the lots that it showed, less those that it took.
    showed: Option<i64>,
}

impl Taker {
    fn new(place: &Place, display: i64) -> Self {
        Self {
            order: key(place.uid, place.order_id),
            side: place.action,
            price: place.price,
            left: place.size,
            display,
            rests: place.order_type == OrderType::Gtc,
            stays: false,
            showed: None,
        }
    }
}

impl SymbolFeed {
    pub(super) fn place(
        &mut self,
        place: &Place,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        self.chain(Some(Taker::new(place, i64::MAX)), events, to)
    }

    /// A stop order is nobody's business before it is triggered.
    pub(super) fn place_with(
        &mut self,
        order: &ConditionalOrder,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let display = order.display.unwrap_or(i64::MAX);
        if order.trigger.is_none() {
            let taker = Taker::new(&order.place, display);
            return self.chain(Some(taker), events, to);
        }
        if !matches!(events.first(), Some(Event::Reject { .. })) {
            let order = key(order.place.uid, order.place.order_id);
            self.check_is_new(order)?;
            self.waiting.insert(order, display);
        }
        // It may be triggered at once.
        self.chain(None, events, to)
    }

    /// An order leaves, with `more` lots than it had, and takes at another price.
    pub(super) fn move_order(
        &mut self,
        order: OrderKey,
        price: i64,
        more: i64,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let slot = self.find(order)?;
        let (side, _) = self.place_of(slot);
        let hidden = self.hidden.remove(&order).unwrap_or(0);
        let shown = self.withdraw(order, slot, to);
        let taker = Taker {
            order,
            side,
            price,
            left: shown.wrapping_add(hidden).wrapping_add(more),
            display: i64::MAX,
            rests: true,
            stays: false,
            showed: Some(shown),
        };
        self.chain(Some(taker), events, to)
    }

    /// An order that keeps its place loses lots; one with more lots is another to the market, and
    /// one with another price is moved, perhaps after it lost lots.
    pub(super) fn amend(
        &mut self,
        amend: &Amend,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let order = key(amend.uid, amend.order_id);
        let mut events = events;
        let more = amend.size.wrapping_sub(amend.size_before);
        if let Some((Event::Reduce { completed, .. }, after)) = events.split_first() {
            self.reduce(order, &events[..1], to)?;
            events = after;
            if *completed {
                return Ok(());
            }
        }
        let slot = self.find(order)?;
        if more <= 0 && self.place_of(slot).1 == amend.price {
            return Ok(());
        }
        self.move_order(order, amend.price, more.max(0), events, to)
    }

    /// Lots left an order, or all of them did.
    pub(super) fn reduce(
        &mut self,
        order: OrderKey,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        for event in events {
            match *event {
                Event::Reduce {
                    completed: true, ..
                } => {
                    let slot = self.find(order)?;
                    self.withdraw(order, slot, to);
                }
                Event::Reduce { size, .. } => self.reduce_hidden_first(order, size, to)?,
                Event::Removed { why, .. } => self.removed(order, why, to)?,
                Event::Trade { .. }
                | Event::Reject { .. }
                | Event::Triggered { .. }
                | Event::Uncrossed { .. }
                | Event::Refilled { .. } => {}
            }
        }
        Ok(())
    }

    /// Lots, not all, leave a resting order: hidden ones first.
    fn reduce_hidden_first(
        &mut self,
        order: OrderKey,
        size: i64,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        let slot = self.find(order)?;
        let by = size.wrapping_sub(self.unhide(order, size));
        if by != 0 {
            let left = self.lower(slot, by, false);
            let order = self.reference(slot);
            self.tell(to, Body::Order(OrderChange::Reduced { order, by, left }));
        }
        Ok(())
    }

    /// Tells what happens to resting orders; what is left of each taker rests before the next one
    /// comes.
    pub(super) fn chain(
        &mut self,
        mut taker: Option<Taker>,
        events: &[Event],
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        for event in events {
            match *event {
                Event::Trade { .. } => self.trade(&mut taker, event, to)?,
                Event::Reject { size, .. } => {
                    if let Some(taker) = &mut taker {
                        taker.left = taker.left.wrapping_sub(size);
                    }
                }
                Event::Removed {
                    order,
                    uid,
                    size,
                    why: Removal::Decremented,
                    ..
                } => self.decremented(&mut taker, key(uid, order), size, to)?,
                // It has left already.
                Event::Removed { order, uid, .. } if Some(key(uid, order)) == withdrawn(&taker) => {
                    taker = None;
                }
                Event::Removed {
                    order, uid, why, ..
                } => {
                    // Orders go in the order of their times, not of their prices.
                    self.is_chained = true;
                    self.removed(key(uid, order), why, to)?;
                }
                Event::Triggered { .. } | Event::Uncrossed { .. } => {
                    self.rest(taker.take(), to)?;
                    self.is_chained = true;
                    taker = self.next_taker(event)?;
                }
                Event::Refilled { order, uid, size } => {
                    let order = key(uid, order);
                    let own = taker.as_mut().filter(|taker| taker.order == order);
                    match own.and_then(|taker| taker.showed.as_mut()) {
                        Some(showed) => *showed = showed.wrapping_add(size),
                        None => self.refilled(order, size, to)?,
                    }
                }
                Event::Reduce { .. } => {}
            }
        }
        self.rest(taker, to)
    }

    /// A stop order that is executed, or a buyer's order in an auction, which rests: both orders of
    /// its trades are told as filled.
    fn next_taker(&mut self, event: &Event) -> Result<Option<Taker>, OutOfStep> {
        let (Event::Triggered {
            order,
            uid,
            action: side,
            price,
            size: left,
            ..
        }
        | Event::Uncrossed {
            order,
            uid,
            action: side,
            price,
            size: left,
            ..
        }) = *event
        else {
            return Ok(None);
        };
        let order = key(uid, order);
        let stays = matches!(event, Event::Uncrossed { .. });
        let mut display = i64::MAX;
        if !stays {
            let waited = self.waiting.remove(&order);
            display = waited.ok_or_else(|| self.unknown(order))?;
        }
        Ok(Some(Taker {
            order,
            side,
            price,
            left,
            display,
            // What may not rest is rejected.
            rests: !stays,
            stays,
            showed: None,
        }))
    }

    /// Lots left an order that met another of its owner: one that rests, or the one that takes.
    fn decremented(
        &mut self,
        taker: &mut Option<Taker>,
        order: OrderKey,
        size: i64,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
        self.is_chained = true;
        let own = taker.as_mut().filter(|taker| taker.order == order);
        match own.and_then(|taker| Some((taker.showed.as_mut()?, &mut taker.left))) {
            // It has left its book, and comes back with what is left.
            Some((showed, left)) => {
                *showed = showed.wrapping_sub(size);
                *left = left.wrapping_sub(size);
                Ok(())
            }
            None => self.reduce_hidden_first(order, size, to),
        }
    }

    fn trade(
        &mut self,
        taker: &mut Option<Taker>,
        event: &Event,
        to: &mut Tape,
    ) -> Result<(), OutOfStep> {
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
        let maker = key(maker_uid, maker_order);
        let taker = taker.as_mut().ok_or_else(|| self.unknown(maker))?;
        taker.left = taker.left.wrapping_sub(size);
        taker.showed = taker.showed.map(|showed| showed.wrapping_sub(size));
        let slot = self.find(maker)?;
        let trade = Body::Trade {
            price,
            size,
            taker_side,
            maker: self.reference(slot),
        };
        self.tell(to, trade);
        self.filled(slot, size, maker_completed, to);
        if taker.stays {
            let slot = self.find(taker.order)?;
            self.filled(slot, size, taker_completed, to);
        }
        Ok(())
    }

    /// What is left of a taker stands at the end of its queue, all of it or what it shows.
    fn rest(&mut self, taker: Option<Taker>, to: &mut Tape) -> Result<(), OutOfStep> {
        let Some(taker) = taker.filter(|taker| taker.rests && taker.left != 0) else {
            return Ok(());
        };
        let shown = taker.showed.unwrap_or(taker.left.min(taker.display));
        let hidden = taker.left.wrapping_sub(shown);
        if hidden != 0 {
            self.hidden.insert(taker.order, hidden);
        }
        self.show(taker.order, taker.side, taker.price, shown, to)
    }
}

/// The order that takes, if it rested and left its book for that.
fn withdrawn(taker: &Option<Taker>) -> Option<OrderKey> {
    let taker = taker.filter(|taker| taker.showed.is_some());
    taker.map(|taker| taker.order)
}
