//! Orders with conditions beyond price, size and type: their risk check, and the settlement of stop
//! orders that were triggered.
//!
//! Terms that make no sense are refused before anything else is looked at; they depend on the
//! command and the clock alone. Then the order is checked like one without them, and its money is
//! held, or its margin asked for, from then on.

use super::Risk;
use super::limits::OwnOrder;
use crate::command::{Command, OrderType, Place};
use crate::command::{ConditionalOrder, OrderFlags, is_enough};
use crate::event::{Event, Hints};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

/// Refuses flags that do not fit the type of a new order.
#[cold]
pub(super) fn check_flags(place: &Place) -> Result<(), ResultCode> {
    if place.flags.is_post_only() && place.order_type != OrderType::Gtc {
        return Err(ResultCode::RiskPostOnlyOrderType);
    }
    Ok(())
}

impl Risk {
    /// The check of a new order with conditions.
    #[cold]
    pub(super) fn check_place_with(&mut self, order: &ConditionalOrder) -> Checked {
        let mut place = order.place;
        let has_limit = place.order_type.has_limit();
        if let Some(user) = self.users.get(place.uid) {
            self.check_id(&place, user)?;
        }
        self.check_terms(order)?;
        if order.trigger.is_some() {
            // In futures, a waiting lot is reserved for at its price whatever becomes of it.
            place.order_type = OrderType::Gtc;
        }
        self.check_place(&place, has_limit)
    }

    fn check_terms(&self, order: &ConditionalOrder) -> Result<(), ResultCode> {
        let place = &order.place;
        check_flags(place)?;
        let rests = place.order_type == OrderType::Gtc;
        let may_wait = matches!(
            place.order_type,
            OrderType::Gtc | OrderType::Ioc | OrderType::Market
        );
        if order.trigger.is_some() && !may_wait {
            return Err(ResultCode::RiskStopOrderType);
        }
        if order.display.is_some() && !rests {
            return Err(ResultCode::RiskIcebergOrderType);
        }
        if order.good_till.is_some() && !rests && order.trigger.is_none() {
            return Err(ResultCode::RiskGoodTillOrderType);
        }
        let is_plain = *order == ConditionalOrder::from(*place);
        if !is_plain && place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        if !is_plain && (place.price <= 0 || order.trigger.is_some_and(|trigger| trigger <= 0)) {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let shows_enough = |display| display >= 1 && is_enough(display, place.size);
        if !order.display.is_none_or(shows_enough) {
            return Err(ResultCode::RiskIcebergDisplay);
        }
        if order.good_till.is_some_and(|time| Some(time) <= self.clock) {
            return Err(ResultCode::RiskGoodTillPassed);
        }
        Ok(())
    }

    /// Returns the time of the last clock command since the last reset.
    #[must_use]
    pub const fn clock(&self) -> Option<i64> {
        self.clock
    }

    /// Takes note of the time, which may stand still but not go back.
    pub(super) fn set_clock(&mut self, time: i64) -> Result<(), ResultCode> {
        if self.clock.is_some_and(|last| time < last) {
            return Err(ResultCode::RiskClockWentBack);
        }
        self.clock = Some(time);
        Ok(())
    }

    /// Books what triggered stop orders did: `events` begin with the first of them.
    ///
    /// Each is settled like a command of its owner's that placed it now, but that the money for it
    /// is held since it began to wait; of futures, what was reserved for its lots at its price is
    /// what is reserved for those that rest now, so only what is gone is given back.
    #[inline]
    pub(super) fn settle_triggered(&mut self, slot: u32, events: &[Event]) {
        if !events.is_empty() {
            self.settle_each_triggered(slot, events);
        }
    }

    #[cold]
    fn settle_each_triggered(&mut self, slot: u32, events: &[Event]) {
        let symbol = self.symbols.at(slot).spec.id;
        let is_futures = self.symbols.at(slot).is_futures();
        let mut events = events;
        while let Some((
            &Event::Triggered {
                order,
                uid,
                action,
                price,
                size,
                bidder_hold_price,
                ..
            },
            after,
        )) = events.split_first()
        {
            let is_next = |event: &Event| matches!(event, Event::Triggered { .. });
            let end = after.iter().position(is_next).unwrap_or(after.len());
            let (of_order, next) = after.split_at(end);
            let own = OwnOrder::new(size);
            let command = Command::Place(Place {
                uid,
                symbol,
                order_id: order,
                order_type: OrderType::Gtc,
                action,
                price,
                reserve_price: bidder_hold_price,
                size: 0,
                flags: OrderFlags::NONE,
            });
            if is_futures {
                self.settle_events(&command, (slot, uid), own, (of_order, Hints::NONE, None));
            } else {
                self.settle_pair(&command, (slot, uid), own, (of_order, Hints::NONE));
            }
            events = next;
        }
    }
}
