//! What one command's events do to a book, taker by taker.

use super::builder::OutOfStep;
use super::message::{Body, OrderChange};
use super::shadow::{SymbolFeed, Telling};
use crate::command::{Action, OrderType, Place};
use crate::event::Event;
use crate::ids::OrderId;
use crate::order_terms::ConditionalOrder;

/// The order that takes, until it rests or is gone.
#[derive(Clone, Copy)]
pub(super) struct Taker {
    order: OrderId,
    side: Action,
    price: i64,
    /// Lots that neither traded nor were rejected so far.
    left: i64,
    /// Lots that it shows at most when it rests.
    display: i64,
    /// Whether what is left may rest.
    rests: bool,
    /// The slot of an order that rested before and was moved, unless part of it is hidden.
    moved: Option<u32>,
}

impl Taker {
    fn new(place: &Place, display: Option<i64>) -> Self {
        Self {
            order: place.order_id,
            side: place.action,
            price: place.price,
            left: place.size,
            display: display.unwrap_or(i64::MAX),
            rests: place.order_type == OrderType::Gtc,
            moved: None,
        }
    }
}

impl SymbolFeed {
    pub(super) fn place(
        &mut self,
        place: &Place,
        events: &[Event],
        to: &mut Telling<'_>,
    ) -> Result<(), OutOfStep> {
        self.chain(Some(Taker::new(place, None)), events, to)
    }

    /// A stop order is nobody's business before it is triggered.
    pub(super) fn place_with(
        &mut self,
        order: &ConditionalOrder,
        events: &[Event],
        to: &mut Telling<'_>,
    ) -> Result<(), OutOfStep> {
        let taker = Taker::new(&order.place, order.display);
        if order.trigger.is_none() {
            return self.chain(Some(taker), events, to);
        }
        self.waiting.insert(taker.order.0, taker.display);
        self.chain(None, events, to)
    }

    pub(super) fn move_order(
        &mut self,
        order: OrderId,
        price: i64,
        events: &[Event],
        to: &mut Telling<'_>,
    ) -> Result<(), OutOfStep> {
        let slot = self.find(order)?;
        let (side, left) = self.reprice(slot, price);
        self.tell(to, Body::Order(OrderChange::Moved { order, price, left }));
        let taker = Taker {
            order,
            side,
            price,
            left,
            display: i64::MAX,
            rests: false,
            moved: Some(slot),
        };
        self.chain(Some(taker), events, to)
    }

    /// Tells what happens to resting orders; what is left of each taker rests before the next one
    /// comes.
    pub(super) fn chain(
        &mut self,
        mut taker: Option<Taker>,
        events: &[Event],
        to: &mut Telling<'_>,
    ) -> Result<(), OutOfStep> {
        for event in events {
            match *event {
                Event::Trade { .. } => self.trade(&mut taker, event, to)?,
                Event::Reject { size, .. } => {
                    if let Some(taker) = &mut taker {
                        taker.left = taker.left.wrapping_sub(size);
                    }
                }
                Event::Removed { order, .. } => self.removed(order, to)?,
                Event::Triggered {
                    order,
                    action,
                    price,
                    size,
                    ..
                } => {
                    self.rest(taker.take(), to);
                    let display = self.waiting.remove(&order.0);
                    self.is_chained = true;
                    taker = Some(Taker {
                        order,
                        side: action,
                        price,
                        left: size,
                        display: display.ok_or_else(|| self.unknown(order))?,
                        // What may not rest is rejected.
                        rests: true,
                        moved: None,
                    });
                }
                Event::Refilled { order, size } => self.refilled(order, size, to)?,
                Event::Reduce { .. } => {}
            }
        }
        self.rest(taker, to);
        Ok(())
    }

    fn trade(
        &mut self,
        taker: &mut Option<Taker>,
        event: &Event,
        to: &mut Telling<'_>,
    ) -> Result<(), OutOfStep> {
        let Event::Trade {
            price,
            size,
            maker_order: maker,
            maker_completed,
            taker_completed,
            taker_action: taker_side,
            ..
        } = *event
        else {
            return Ok(());
        };
        let taker = taker.as_mut().ok_or_else(|| self.unknown(maker))?;
        taker.left = taker.left.wrapping_sub(size);
        let trade = Body::Trade {
            price,
            size,
            taker_side,
            taker: taker.order,
            maker,
        };
        self.tell(to, trade);
        let slot = self.find(maker)?;
        self.filled(slot, maker, size, maker_completed, to);
        if let Some(slot) = taker.moved {
            self.filled(slot, taker.order, size, taker_completed, to);
        }
        Ok(())
    }

    fn rest(&mut self, taker: Option<Taker>, to: &mut Telling<'_>) {
        if let Some(taker) = taker.filter(|taker| taker.rests && taker.left != 0) {
            self.show(
                taker.order,
                taker.side,
                taker.price,
                taker.left.min(taker.display),
                to,
            );
        }
    }
}
