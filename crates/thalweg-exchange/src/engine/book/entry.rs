//! Order entry: new orders, and resting ones that get another price or size.
//!
//! A new order rests at once, trades, is rejected, or waits for its trigger.

use super::Book;
use super::icebergs::displayed;
use super::ladder::NO_KEY;
use super::orders::{Node, WAITS, mask};
use super::taking::Taker;
use crate::command::{Action, Amend, ConditionalOrder, OrderType, Place};
use crate::engine::index::Vacancy;
use crate::event::{Event, Events, MovedOrder, RejectReason, UserHint};
use crate::ids::{OrderId, UserId};
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
        if taker.left + taker.decremented == 0 {
            return ResultCode::Success;
        }
        self.end_taking((place, asked, origin), &taker, (first, rules), events)
    }

    /// Returns whether a new order is rejected for its id before it trades: else reports on it
    /// would have the same id as those on another order.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, place: &Place, rules: &Rules) -> bool {
        let key = self.key(place.uid, place.order_id);
        rules.refuse_rejected
            && place.size != 0
            && self.index.near_vacancy(key).is_none()
            && self.find(key).is_some()
    }

    /// Returns the worst key that an order takes which has a budget, or the market's price, or must
    /// be filled whole; or why it may not even take.
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
            left,
            decremented,
            ended_by,
            ..
        } = *taker;
        let why = match (ended_by, place.order_type) {
            _ if left == 0 => RejectReason::SelfTrade,
            (Some(why), _) => why,
            (None, OrderType::Gtc) => {
                let key = self.key(place.uid, place.order_id);
                if let Some(vacancy) = self.vacancy(key) {
                    let size = place.size - decremented;
                    self.rest((place, asked, origin), (size, left), vacancy);
                    if decremented != 0 {
                        let lost = reject_event(place, decremented, RejectReason::SelfTrade);
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
        reject(place, left + decremented, why, (first, rules), events)
    }

    /// Puts what is left of a new order at the end of its queue, with its conditions.
    fn rest(
        &mut self,
        (place, asked, (user, arrival)): (&Place, Option<&ConditionalOrder>, Origin),
        (size, left): (i64, i64),
        vacancy: Vacancy,
    ) {
        let display = asked.and_then(|asked| asked.display);
        let displayed = displayed(left, display);
        let slot = self.ladder.nodes.insert(Node {
            left: displayed,
            filled: size - left,
            ..Node::new(place, user)
        });
        self.index.fill(vacancy, slot);
        self.ladder.append(slot);
        if let Some(asked) = asked {
            self.note_terms(slot, asked, left - displayed, arrival);
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

// New orders that rest at once: the fast path.

impl Book {
    /// Executes a new order that the risk check let pass. `user` comes back in events, with the
    /// order's owner. The result is a refusal where the order was rejected whole, and the rules say
    /// so.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if place.order_type == OrderType::Gtc && place.flags.is_plain() {
            self.place_plain(place, user, rules, events)
        } else {
            self.place_slow(place, user, rules, events)
        }
    }

    #[inline(never)]
    fn place_plain(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if self.rest_at_once(place, user) {
            return ResultCode::Success;
        }
        self.place_slow(place, user, rules, events)
    }

    /// The fast path: a limit order that does not trade rests near the market. False, and nothing
    /// done, for an order that needs the slow path.
    #[inline(always)]
    pub(crate) fn rest_at_once(&mut self, place: &Place, user: UserHint) -> bool {
        let opposite = place.action.opposite();
        if place.size == 0
            || place.order_type != OrderType::Gtc
            || !place.flags.is_plain()
            || !self
                .ladder
                .is_beyond(opposite, place.price ^ mask(opposite))
        {
            return false;
        }
        let key = self.key(place.uid, place.order_id);
        let Some(vacancy) = self.index.near_vacancy(key) else {
            return false;
        };
        let Some(spot) = self.ladder.spot(place.price) else {
            return false;
        };
        vacancy.fill(spot.slot());
        spot.put(place, user);
        true
    }
}

// Post-only orders.
//
// A new one that would take is rejected whole, by an ordinary reject, and touches nothing; that is
// looked at before self-trade prevention: an order of the same user is in its
// way like any other. A resting one stays post-only: a move to where it would take is refused
// with `MatchingMoveFailedPostOnly`, and the
// order stays where it is, with its place in time, as exchanges do whose amendments either
// happen whole or not at all.

impl Book {
    /// Returns whether an order of some lots would trade at once.
    fn would_take(&mut self, action: Action, price: i64) -> bool {
        let side = action.opposite();
        let is_reached = self.ladder.reaches(side, price ^ mask(side));
        let key = self.ladder.best_key(side);
        is_reached && (key != NO_KEY || self.ladder.level_at(side, key).is_some())
    }
}

// Moves: a resting order gets another price.

impl Book {
    /// Gives an order another price: it matches as a taker, and what is left rests at the tail.
    /// `checked` is the result of the risk check; it counts only if there is such an order.
    #[inline(always)]
    pub(crate) fn move_order(
        &mut self,
        (uid, order_id): (UserId, OrderId),
        price: i64,
        checked: ResultCode,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Some(slot) = self.find_own(uid, order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = &self.ladder.nodes[slot];
        if order.marks & WAITS != 0 {
            return ResultCode::MatchingUnknownOrderId;
        }
        if checked.is_refusal() {
            return checked;
        }
        let mut moved = MovedOrder {
            action: order.action,
            price: order.price,
            left: order.left,
            filled: order.filled,
        };
        let is_marked = order.marks != 0;
        if let Some(code) = self.check_move(order, price) {
            return code;
        }
        if self.crosses(moved.action, price) | is_marked || !self.ladder.shift(slot, price) {
            // Hidden lots move, too.
            moved.left += self.hidden(slot);
            let code = self.move_far(slot, price, rules, events);
            if code != ResultCode::Success {
                return code;
            }
        }
        events.set_moved(moved);
        if self.is_futures() {
            events.set_top_of_book(self.top_of_book());
        }
        ResultCode::Success
    }

    /// Moves a plain order inside the window that takes nothing, to a price which covers an ask's
    /// fee where that is asked for; returns how it stood. `PAIR`: in a pair. `None`, and nothing
    /// done, for a move that needs the slow path.
    #[inline(always)]
    pub(crate) fn shift<const PAIR: bool>(
        &mut self,
        owner: (UserId, OrderId),
        price: i64,
    ) -> Option<MovedOrder> {
        let slot = self.near_own(owner.0, owner.1)?.slot;
        let order = &self.ladder.nodes[slot];
        let moved = MovedOrder {
            action: order.action,
            price: order.price,
            left: order.left,
            filled: order.filled,
        };
        let is_above = PAIR & (price > order.reserve_price) & (order.action == Action::Bid);
        let key = price ^ mask(order.action);
        if order.marks != 0
            || is_above
            || !self.ladder.is_beyond(moved.action.opposite(), !key)
            || !self.ladder.shift(slot, price)
        {
            return None;
        }
        Some(moved)
    }

    /// Returns whether an order of this side would take at this price.
    #[inline]
    pub(super) fn crosses(&mut self, side: Action, price: i64) -> bool {
        let opposite = side.opposite();
        self.ladder.reaches(opposite, price ^ mask(opposite))
    }

    /// Moves an order that trades, or to where the window ends.
    #[cold]
    fn move_far(
        &mut self,
        slot: u32,
        price: i64,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let Node { action, flags, .. } = self.ladder.nodes[slot];
        if flags.is_post_only() && self.would_take(action, price) {
            return ResultCode::MatchingMoveFailedPostOnly;
        }
        self.reenter(slot, (price, 0), rules, events)
    }

    /// A pair's bid may not leave its reserve price, nor its ask the price that covers the fee.
    #[inline]
    pub(super) fn check_move(&self, order: &Node, price: i64) -> Option<ResultCode> {
        // Both bounds are lower bounds of keys; the side is chosen by a mask, not by a branch.
        let side = mask(order.action);
        let reserve = if self.bids_bounded {
            !order.reserve_price
        } else {
            i64::MIN
        };
        let bound = self.ask_floor ^ ((self.ask_floor ^ reserve) & side);
        (price ^ side < bound).then(|| refused_move(order.action))
    }
}

#[cold]
const fn refused_move(side: Action) -> ResultCode {
    match side {
        Action::Bid => ResultCode::MatchingMoveFailedPriceOverRiskLimit,
        Action::Ask => ResultCode::MatchingMoveFailedPriceLowerThanFee,
    }
}

// Amendments: a resting order gets another size, with or without another price.
//
// The risk check, which knows no orders, has held money for the lots that the command says are
// more; so an order that is not as the command says is left alone. All that can be refused is
// looked at before anything is changed.

impl Book {
    /// Amends an order whose further lots are held for.
    #[cold]
    pub(crate) fn amend(
        &mut self,
        amend: &Amend,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let whose = (amend.uid, amend.order_id);
        let Some(slot) = self.find_resting(amend.uid, amend.order_id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let order = self.ladder.nodes[slot];
        let size = order.left + self.hidden(slot) + order.filled;
        let is_held_for = order.action == Action::Ask
            || !self.bids_bounded
            || order.reserve_price == amend.reserve_price;
        if order.action != amend.action || size != amend.size_before || !is_held_for {
            return ResultCode::MatchingAmendMismatch;
        }
        let more = amend.size - size;
        if amend.size <= order.filled {
            return self.reduce(whose, i64::MAX, events);
        }
        if more < 0 && amend.price == order.price {
            return self.reduce(whose, -more, events);
        }
        let moved = MovedOrder {
            action: order.action,
            price: order.price,
            left: size - order.filled + more.max(0),
            filled: order.filled,
        };
        if more == 0 && amend.price == order.price {
            events.set_moved(moved);
            return ResultCode::Success;
        }
        if more > 0 && !self.display_allows(slot, amend.size) {
            return ResultCode::RiskIcebergDisplay;
        }
        if let Some(code) = self.check_move(&order, amend.price) {
            return code;
        }
        if order.flags.is_post_only() && self.would_take(order.action, amend.price) {
            return ResultCode::MatchingMoveFailedPostOnly;
        }
        events.set_moved(moved);
        if more < 0 {
            self.reduce(whose, -more, events);
        }
        self.reenter(slot, (amend.price, more.max(0)), rules, events)
    }
}
