//! New orders without conditions that trade.

use super::Book;
use super::ladder::mask;
use super::taking::Taker;
use crate::command::{Action, OrderType, Place};
use crate::event::{Events, Made, RejectReason, UserHint};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// How far a new order came with plain makers.
#[derive(Clone, Copy)]
pub(crate) struct Crossed {
    /// Lots that are left of it.
    pub(crate) left: i64,
    /// Whether there may be more for it to take.
    pub(crate) goes_on: bool,
    /// Why it cannot be filled whole, where it must be.
    refused: Option<RejectReason>,
}

impl Book {
    /// Lets a new order with lots that [takes plainly](Place::takes_plainly) take from plain makers
    /// up to its price, as long as `pays` says that they are paid. `None`, and nothing done, where
    /// its id is taken, or orders are collected. [`Self::end_crossing`] must follow if something is
    /// left of the order, else [`Self::run_stops`].
    #[inline(always)]
    pub(crate) fn cross<const BUYS: bool>(
        &mut self,
        place: &Place,
        rules: &Rules,
        events: &mut Events,
        mut pays: impl FnMut(Made) -> bool,
    ) -> Option<Crossed> {
        if self.is_auction() || self.is_taken(place, rules) {
            return None;
        }
        if place.order_type == OrderType::Fok
            && let Err(why) = self.limit_of(place, rules, events)
        {
            return Some(Crossed {
                left: place.size,
                goes_on: false,
                refused: Some(why),
            });
        }
        let action = if BUYS { Action::Bid } else { Action::Ask };
        let terms = (place.price ^ mask(action.opposite()), place.reserve_price);
        let mut left = place.size;
        let events_max = rules.work_max();
        let pays = |made, events: &mut Events| events.len() < events_max && pays(made);
        let met = self.take_plain(action, terms, false, &mut left, events, pays);
        Some(Crossed {
            left,
            goes_on: met.is_some(),
            refused: None,
        })
    }

    /// Executes what is left of an order that crossed, whose events are all there are.
    #[inline(never)]
    pub(crate) fn end_crossing(
        &mut self,
        (place, user): (&Place, UserHint),
        crossed: Crossed,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let mut result = ResultCode::Success;
        let limit = place.price ^ mask(place.action.opposite());
        let mut taker = Taker::new(place, limit, rules, 0);
        taker.left = crossed.left;
        taker.cut = crossed.refused;
        if crossed.goes_on {
            self.take(&mut taker, events);
        }
        if taker.left != 0 {
            result = self.end_taking((place, None, (user, None)), &taker, (0, rules), events);
        }
        self.run_stops(0, rules, events);
        result
    }
}
