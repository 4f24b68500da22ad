//! New orders that do not rest at once: they may trade, ask for something, or wait.

use super::Book;
use super::ladder::mask;
use super::node::Node;
use super::taking::Taker;
use crate::command::ConditionalOrder;
use crate::command::{Action, OrderType, Place};
use crate::engine::index::Vacancy;
use crate::event::{Event, Events, RejectReason, UserHint};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// The owner of an order, and if the order waited, its arrival.
type Origin = (UserHint, Option<u64>);

impl Book {
    /// Executes a new order with conditions.
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
            self.act_at_once(
                self.key(order.place.uid, order.place.order_id),
                rules,
                events,
            )
        } else {
            self.enter_with(order, (user, None), rules, events)
        };
        self.run_stops(first, rules, events);
        result
    }

    /// Executes a new order without conditions.
    #[inline(never)]
    pub(crate) fn place_slow(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let first = events.len();
        let result = self.enter(place, None, (user, None), rules, events);
        self.run_stops(first, rules, events);
        result
    }

    /// Executes an order with conditions that is not to wait, or no longer.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_with(
        &mut self,
        order: &ConditionalOrder,
        origin: Origin,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        self.enter(&order.place, Some(order), origin, rules, events)
    }

    /// Executes an order that is not to wait, or no longer. `asked`: its conditions, if it has any.
    #[inline(always)]
    fn enter(
        &mut self,
        place: &Place,
        asked: Option<&ConditionalOrder>,
        origin: Origin,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let first = events.len();
        if self.is_taken(place, rules) {
            let why = RejectReason::DuplicateId;
            return reject(place, place.size, why, (first, rules), events);
        }
        let is_post_only = place.flags.is_post_only() && place.size != 0;
        if is_post_only && self.would_take(place.action, place.price) {
            let why = RejectReason::PostOnly;
            return reject(place, place.size, why, (first, rules), events);
        }
        let limit = match place.order_type {
            OrderType::Gtc | OrderType::Ioc => place.price ^ mask(place.action.opposite()),
            _ => match self.limit_of(place, rules, events) {
                Ok(limit) => limit,
                Err(why) => return reject(place, place.size, why, (first, rules), events),
            },
        };
        let mut taker = Taker::new(place, limit, rules, first);
        self.take(&mut taker, events);
        if taker.left + taker.dropped == 0 {
            return ResultCode::Success;
        }
        self.end_taking((place, asked, origin), &taker, (first, rules), events)
    }

    /// Whether a new order is rejected for its id before it trades: else reports on it would have
    /// the same id as those on another order.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, place: &Place, rules: &Rules) -> bool {
        let key = self.key(place.uid, place.order_id);
        rules.refuse_rejected
            && place.size != 0
            && self.index.near_vacancy(key).is_none()
            && self.find(key).is_some()
    }

    /// The worst key that an order takes which has a budget, or the market's price, or must be
    /// filled whole; or why it may not even take.
    #[inline(never)]
    pub(super) fn limit_of(
        &mut self,
        place: &Place,
        rules: &Rules,
        events: &mut Events,
    ) -> Result<i64, RejectReason> {
        match place.order_type {
            OrderType::Market => Ok(self.market_limit(place)),
            OrderType::IocBudget if rules.fill_ioc_budget => Ok(self.budget_limit(place, rules)),
            // Quirk of the reference: rejected whole.
            OrderType::IocBudget => Err(RejectReason::Budget),
            OrderType::FokBudget => {
                let budget = i128::from(place.price);
                let limit = self.budget_limit(place, rules);
                let is_good = |cost| match place.action {
                    Action::Bid => cost <= budget,
                    Action::Ask => cost >= budget,
                };
                self.check_filled(place, limit, is_good, rules, events)?;
                Ok(limit)
            }
            _ => {
                let limit = place.price ^ mask(place.action.opposite());
                // Without a size, there is nothing to fill. And a quirk again.
                if !rules.fill_fok || place.size <= 0 {
                    return Err(RejectReason::FillOrKill);
                }
                self.check_filled(place, limit, |_| true, rules, events)?;
                Ok(limit)
            }
        }
    }

    /// Lets the unfilled rest of a new order rest, or rejects it.
    #[inline(never)]
    pub(super) fn end_taking(
        &mut self,
        (place, asked, origin): (&Place, Option<&ConditionalOrder>, Origin),
        taker: &Taker,
        (first, rules): (usize, &Rules),
        events: &mut Events,
    ) -> ResultCode {
        let Taker {
            left, dropped, cut, ..
        } = *taker;
        let why = match (cut, place.order_type) {
            _ if left == 0 => RejectReason::SelfTrade,
            (Some(why), _) => why,
            (None, OrderType::Gtc) => {
                let key = self.key(place.uid, place.order_id);
                if let Some(vacancy) = self.vacancy(key) {
                    let size = place.size - dropped;
                    self.rest((place, asked, origin), (size, left), vacancy);
                    if dropped != 0 {
                        let lost = reject_event(place, dropped, RejectReason::SelfTrade);
                        events.insert(first, lost);
                    }
                    return ResultCode::Success;
                }
                RejectReason::DuplicateId
            }
            (None, OrderType::IocBudget) => self.why_budget_ended(place, rules),
            (None, OrderType::Fok) => RejectReason::FillOrKill,
            _ => RejectReason::ImmediateOrCancel,
        };
        reject(place, left + dropped, why, (first, rules), events)
    }

    /// Puts what is left of a new order at the end of its queue, with its conditions.
    fn rest(
        &mut self,
        (place, asked, (user, arrival)): (&Place, Option<&ConditionalOrder>, Origin),
        (size, left): (i64, i64),
        vacancy: Vacancy,
    ) {
        let display = asked.and_then(|asked| asked.display);
        let shown = display.map_or(left, |display| left.min(display));
        let slot = self.ladder.nodes.insert(Node {
            left: shown,
            filled: size - left,
            ..Node::new(place, user)
        });
        self.index.fill(vacancy, slot);
        self.ladder.append(slot);
        if let Some(asked) = asked {
            self.note_terms(slot, asked, left - shown, arrival);
        }
        self.widen_if_used();
    }
}

/// Rejects lots of an order whose events begin at `first`, even none: the reference reports a
/// budget order of no size, too. Its reject comes before its trades. Says how the command ends, if
/// it is the command's order: where nothing traded, the order is refused.
#[cold]
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

const fn reject_event(place: &Place, size: i64, why: RejectReason) -> Event {
    Event::Reject {
        order: place.order_id,
        price: place.price,
        size,
        bidder_hold_price: place.reserve_price,
        why,
    }
}
