//! New orders with wishes, or where others have some.

use super::Book;
use super::careful::{Taken, Taker};
use super::ladder::mask;
use super::placing::reject_event;
use crate::command::{Action, OrderType, Place};
use crate::event::{Event, Events, RejectReason, UserHint};
use crate::order_terms::ConditionalOrder;
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Book {
    /// Executes a new order that asks for something, or comes where others did.
    #[cold]
    pub(crate) fn place_with(
        &mut self,
        order: &ConditionalOrder,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let first = events.len();
        let result = if let Some(trigger) = order.trigger {
            let result = self.wait(order, (trigger, user), rules, events);
            let is_rejected = events.len() > first;
            if is_rejected || !rules.trigger_passed_stops || self.is_auction() {
                return result;
            }
            self.reach_last();
            result
        } else {
            self.enter(order, (user, None), rules, events)
        };
        self.run_stops(first, rules, events);
        self.tidy();
        result
    }

    /// Executes an order that is not to wait, or no longer.
    pub(super) fn enter(
        &mut self,
        order: &ConditionalOrder,
        (user, arrival): (UserHint, Option<u64>),
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let place = &order.place;
        let first = events.len();
        if let Some(why) = self.why_refused(place, rules) {
            return reject(place, place.size, why, (first, rules), events);
        }
        let limit = match place.order_type {
            OrderType::IocBudget | OrderType::FokBudget => self.budget_limit(place, rules),
            OrderType::Market => self.market_limit(place),
            _ => place.price ^ mask(place.action.opposite()),
        };
        let taker = Taker::new(place, limit, rules);
        let Taken {
            left,
            dropped,
            is_cut,
        } = self.take_carefully(taker, events);
        if left + dropped == 0 {
            return ResultCode::Success;
        }
        let key = self.key(place.uid, place.order_id);
        let why = match place.order_type {
            _ if is_cut || left == 0 => RejectReason::SelfTrade,
            OrderType::Gtc if self.find(key).is_some() || self.waits(key) => {
                RejectReason::DuplicateId
            }
            OrderType::Gtc => {
                let mut order = *order;
                order.place.size -= dropped;
                self.rest_with_terms(&order, left, (user, arrival));
                if dropped != 0 {
                    let lost = reject_event(place, dropped, RejectReason::SelfTrade);
                    events.insert(first, lost);
                }
                return ResultCode::Success;
            }
            OrderType::IocBudget => self.why_budget_ended(place, rules),
            _ => RejectReason::ImmediateOrCancel,
        };
        reject(place, left + dropped, why, (first, rules), events)
    }

    /// Why a new order may not even take.
    fn why_refused(&mut self, place: &Place, rules: &Rules) -> Option<RejectReason> {
        let key = self.key(place.uid, place.order_id);
        let waits = rules.refuse_rejected && place.size != 0 && self.waits(key);
        if waits || self.is_taken(place, rules) {
            return Some(RejectReason::DuplicateId);
        }
        let is_post_only = place.flags.is_post_only() && place.size != 0;
        if is_post_only && self.would_take(place.action, place.price) {
            return Some(RejectReason::PostOnly);
        }
        let takes = match place.order_type {
            OrderType::Gtc | OrderType::Ioc | OrderType::Market => true,
            OrderType::IocBudget => rules.fill_ioc_budget,
            OrderType::Fok => {
                let limit = place.price ^ mask(place.action.opposite());
                rules.fill_fok && place.size > 0 && self.careful_cost(place, limit).is_some()
            }
            OrderType::FokBudget => {
                let budget = i128::from(place.price);
                let cost = self.careful_cost(place, self.budget_limit(place, rules));
                cost.is_some_and(|cost| match place.action {
                    Action::Bid => cost <= budget,
                    Action::Ask => cost >= budget,
                })
            }
        };
        (!takes).then_some(match place.order_type {
            OrderType::IocBudget => RejectReason::Budget,
            _ => RejectReason::FillOrKill,
        })
    }
}

/// Rejects lots of an order whose events begin at `first`: its reject comes before its trades. Says
/// how the command ends, if it is the command's order: where nothing traded, the order is refused.
pub(super) fn reject(
    place: &Place,
    size: i64,
    why: RejectReason,
    (first, rules): (usize, &Rules),
    events: &mut Events,
) -> ResultCode {
    let traded = events[first..]
        .iter()
        .any(|event| matches!(event, Event::Trade { .. }));
    events.insert(first, reject_event(place, size, why));
    if !traded && rules.refuse_rejected {
        why.result()
    } else {
        ResultCode::Success
    }
}
