//! New orders without wishes, where no order has any.

use super::Book;
use super::node::{NONE, Node};
use crate::command::{Action, OrderType, Place};
use crate::event::{Event, Events, RejectReason, UserHint};
use crate::index::Vacancy;
use crate::order_terms::ConditionalOrder;
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Book {
    /// Executes a new order that the risk check let pass. `user` comes back in events, with the
    /// order's owner. The result is a refusal where the order was rejected whole, and the rules say
    /// so.
    pub(crate) fn place(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if !place.flags.is_plain() || self.aside.is_some() {
            return self.place_with(&ConditionalOrder::from(*place), user, rules, events);
        }
        if place.order_type == OrderType::Gtc
            && place.size != 0
            && !self.crosses(place.action, place.price)
        {
            return self.rest_or_reject(place, place.size, user, rules, events);
        }
        self.take_new(place, user, rules, events)
    }

    /// An order without wishes that may trade, or has no size.
    #[inline(never)]
    fn take_new(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if self.is_taken(place, rules) {
            return reject(place, place.size, RejectReason::DuplicateId, rules, events);
        }
        match place.order_type {
            OrderType::Gtc => {
                let left = self.take_limited(place, events);
                if left == 0 {
                    return ResultCode::Success;
                }
                self.rest_or_reject(place, left, user, rules, events)
            }
            OrderType::Ioc => {
                let left = self.take_limited(place, events);
                if left != 0 {
                    let why = RejectReason::ImmediateOrCancel;
                    events.push_first(reject_event(place, left, why));
                }
                ResultCode::Success
            }
            OrderType::FokBudget => self.place_fok_budget(place, rules, events),
            OrderType::Fok if rules.fill_fok => self.place_fok(place, rules, events),
            OrderType::IocBudget if rules.fill_ioc_budget => {
                let left = self.take_within_budget(place, rules, events);
                if left != 0 {
                    let why = self.why_budget_ended(place, rules);
                    events.push_first(reject_event(place, left, why));
                }
                ResultCode::Success
            }
            OrderType::Market => {
                let limit = self.market_limit(place);
                let left = self.take_up_to(place, limit, events);
                if left != 0 {
                    let why = RejectReason::ImmediateOrCancel;
                    events.push_first(reject_event(place, left, why));
                }
                ResultCode::Success
            }
            // Quirks of the reference: rejected whole.
            OrderType::Fok => reject(place, place.size, RejectReason::FillOrKill, rules, events),
            OrderType::IocBudget => reject(place, place.size, RejectReason::Budget, rules, events),
        }
    }

    /// What is left of a new order rests, if its id is not in use.
    #[inline(always)]
    fn rest_or_reject(
        &mut self,
        place: &Place,
        left: i64,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Some(vacancy) = self.vacancy(self.key(place.uid, place.order_id)) else {
            return reject(place, left, RejectReason::DuplicateId, rules, events);
        };
        self.rest(place, left, user, vacancy);
        ResultCode::Success
    }

    /// Whether a new order is rejected for its id before it trades: else an order would be told of
    /// by the same id as another.
    #[inline]
    pub(super) fn is_taken(&self, place: &Place, rules: &Rules) -> bool {
        rules.refuse_rejected
            && place.size != 0
            && self.find(self.key(place.uid, place.order_id)).is_some()
    }

    /// Puts what is left of a new order, whose id is not in use, at the end of its queue.
    pub(super) fn rest_new(&mut self, place: &Place, left: i64, user: UserHint) -> u32 {
        let key = self.key(place.uid, place.order_id);
        let vacancy = self.vacancy(key).expect("its id is not in use");
        self.rest(place, left, user, vacancy)
    }

    /// The same where its place in the index is known.
    #[inline]
    fn rest(&mut self, place: &Place, left: i64, user: UserHint, vacancy: Vacancy) -> u32 {
        let slot = self.ladder.nodes.insert(Node {
            id: place.order_id.0,
            uid: place.uid.0,
            price: place.price,
            reserve_price: place.reserve_price,
            left,
            filled: place.size - left,
            previous: NONE,
            next: NONE,
            tag: user.0,
            action: place.action,
            flags: place.flags,
            marks: 0,
        });
        self.index.fill(vacancy, slot);
        self.ladder.append(slot);
        slot
    }

    fn place_fok_budget(
        &mut self,
        place: &Place,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let budget = i128::from(place.price);
        let limit = self.budget_limit(place, rules);
        let cost = self.cost(place.action.opposite(), limit, place.size);
        let fits = cost.is_some_and(|cost| match place.action {
            Action::Bid => cost <= budget,
            Action::Ask => cost >= budget,
        });
        if !fits {
            return reject(place, place.size, RejectReason::FillOrKill, rules, events);
        }
        self.take_up_to(place, limit, events);
        ResultCode::Success
    }

    /// An order without a size is rejected: there is nothing to fill.
    fn place_fok(&mut self, place: &Place, rules: &Rules, events: &mut Events) -> ResultCode {
        if place.size <= 0 || !self.covers(place) {
            return reject(place, place.size, RejectReason::FillOrKill, rules, events);
        }
        self.take_limited(place, events);
        ResultCode::Success
    }
}

/// Rejects what is left of a new order, even nothing: the reference tells of a budget order of no
/// size, too. Says how the command ends: if nothing traded, the order is refused.
#[cold]
fn reject(
    place: &Place,
    left: i64,
    why: RejectReason,
    rules: &Rules,
    events: &mut Events,
) -> ResultCode {
    let nothing_traded = events.is_empty();
    events.push_first(reject_event(place, left, why));
    if nothing_traded && rules.refuse_rejected {
        why.result()
    } else {
        ResultCode::Success
    }
}

pub(super) const fn reject_event(place: &Place, size: i64, why: RejectReason) -> Event {
    Event::Reject {
        order: place.order_id,
        price: place.price,
        size,
        bidder_hold_price: place.reserve_price,
        why,
    }
}
