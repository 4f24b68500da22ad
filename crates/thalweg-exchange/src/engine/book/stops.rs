//! Orders that wait outside the book until a trade reaches their trigger price.
//!
//! *Which trades count*: the symbol's last one before the order was placed, and all after it. So an
//! order whose trigger is passed already is triggered at once. (By
//! [`Rules::trigger_passed_stops`]; else only trades after it was placed count.)
//!
//! *The price band*: an order that is triggered while its price is outside the band then in force
//! is not executed but removed, with [`Removal::OutsideBand`].
//!
//! *When and in which order*: the command that trades finishes its own chain of events first. Then
//! its trades are gone through as they happened, and each sends off the orders that it reaches:
//! asks first, then bids, each the trigger that is reached first before those beyond it, then in
//! order of arrival. They are executed one after another, each reported by an [`Event::Triggered`]
//! with its own rejects and trades behind it, and its trades send off further ones, at the end of
//! the line. No order begins to wait meanwhile, so each waiting order is executed once at most, and
//! the line ends.
//!
//! *Ids*: a resting and a waiting order of one symbol (and one user, where ids are per user) never
//! share one. A stop order whose id rests or waits already is rejected whole, and any order whose
//! id waits is rejected like one whose id rests. So a waiting order has a node of its own and is in
//! the book's index: a search for a vacant id looks only once.
//!
//! *Commands on a waiting order*: cancel and reduce find it where no resting order has the id, and
//! report an [`Event::Removed`]; a move does not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::entry::reject;
use super::orders::{Node, WAITS, mask};
use super::{Book, ColdState};
use crate::command::{Action, ConditionalOrder, Place};
use crate::engine::index::OrderKey;
use crate::event::{Event, Events, RejectReason, Removal, UserHint};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// A stop order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    order: ConditionalOrder,
    trigger: i64,
    user: UserHint,
    /// Which of those with the same trigger came first.
    arrival: u64,
    /// Which of the orders that expire at the same time did.
    turn: u64,
    slot: u32,
}

impl Waiting {
    pub(super) const fn new(
        order: ConditionalOrder,
        (trigger, arrival): (i64, u64),
        turn: u64,
        (user, slot): (UserHint, u32),
    ) -> Self {
        Self {
            order,
            trigger,
            user,
            arrival,
            turn,
            slot,
        }
    }

    /// Where it is in its side's tree: what is reached first comes first.
    fn key(&self) -> (i64, u64) {
        (self.trigger ^ mask(self.side().opposite()), self.arrival)
    }

    const fn side(&self) -> Action {
        self.order.place.action
    }

    /// Reports that `size` of its lots are gone, and `left` remain.
    fn report_removed(&self, (size, left): (i64, i64), why: Removal, events: &mut Events) {
        let place = &self.order.place;
        events.push(Event::Removed {
            symbol: place.symbol,
            order: place.order_id,
            uid: place.uid,
            action: place.action,
            price: place.price,
            size,
            left,
            filled: 0,
            bidder_hold_price: place.reserve_price,
            why,
        });
    }
}

/// The stop orders of a symbol.
#[derive(Clone, Debug, Default)]
pub(super) struct Stops {
    waiting: BTreeMap<OrderKey, Waiting>,
    /// Per side, by trigger and arrival.
    triggers: [BTreeMap<(i64, u64), OrderKey>; 2],
    /// By price: those with a limit. (The worst price of a market order may be outside the band.)
    prices: BTreeSet<(i64, OrderKey)>,
    /// Those that go with their owner's session.
    with_session: BTreeSet<OrderKey>,
    /// Prices of trades of the command under way by which orders are reached, in order.
    reached_by: VecDeque<i64>,
    /// The lowest and the highest price by which orders were reached that are left over: it has an
    /// effect while such an order waits.
    left_over: Option<(i64, i64)>,
}

/// Returns the lowest and the highest price of both pairs of these.
fn both((low, high): (i64, i64), (other_low, other_high): (i64, i64)) -> (i64, i64) {
    (low.min(other_low), high.max(other_high))
}

impl Stops {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn insert(&mut self, order: OrderKey, waiting: Waiting) {
        self.triggers[waiting.side() as usize].insert(waiting.key(), order);
        if waiting.order.place.order_type.has_limit() {
            self.prices.insert((waiting.order.place.price, order));
        }
        if waiting.order.place.flags.goes_with_session() {
            self.with_session.insert(order);
        }
        self.waiting.insert(order, waiting);
    }

    fn remove(&mut self, order: OrderKey) -> Option<Waiting> {
        let waiting = self.waiting.remove(&order)?;
        self.triggers[waiting.side() as usize].remove(&waiting.key());
        self.prices.remove(&(waiting.order.place.price, order));
        self.with_session.remove(&order);
        self.left_over = self.left_over();
        Some(waiting)
    }

    /// Gives waiting orders other slots.
    pub(super) fn relocate(&mut self, mut slot_for: impl FnMut(OrderKey, u32) -> u32) {
        for (&order, waiting) in &mut self.waiting {
            waiting.slot = slot_for(order, waiting.slot);
        }
    }

    /// The first order of a side that a trade at this price reaches.
    fn reached(&self, side: Action, price: i64) -> Option<OrderKey> {
        let reached = price ^ mask(side.opposite());
        let (&(key, _), &order) = self.triggers[side as usize].first_key_value()?;
        (key <= reached).then_some(order)
    }

    /// Returns the first order that a trade at this price reaches: asks, then bids.
    fn reached_at(&self, price: i64) -> Option<OrderKey> {
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.find_map(|side| self.reached(side, price))
    }

    /// Returns the lowest and the highest price by which orders were reached that are left over.
    fn left_over(&self) -> Option<(i64, i64)> {
        let is_reached = |price| self.reached_at(price).is_some();
        let is_left = |&(low, high): &(i64, i64)| is_reached(low) || is_reached(high);
        self.left_over.filter(is_left)
    }

    /// Returns the order that is executed next.
    fn next_reached(&mut self) -> Option<OrderKey> {
        while let Some(&price) = self.reached_by.front() {
            let order = self.reached_at(price);
            if order.is_some() {
                return order;
            }
            self.reached_by.pop_front();
        }
        None
    }

    /// Notes the prices of trades that reach orders. The trades are of one taker. Returns whether
    /// any were noted that are to be gone through.
    fn note_trades(&mut self, events: &[Event]) -> bool {
        let price = |event: &Event| match *event {
            Event::Trade { price, .. } => Some(price),
            _ => None,
        };
        let mut prices = events.iter().filter_map(price);
        // Orders that are reached are reached by the first or the last price.
        let mut ends = [prices.next(), prices.next_back()].into_iter().flatten();
        if ends.any(|price| self.reached_at(price).is_some()) {
            for price in events.iter().filter_map(price) {
                if self.reached_at(price).is_some() && self.reached_by.back() != Some(&price) {
                    self.reached_by.push_back(price);
                }
            }
        }
        !self.reached_by.is_empty()
    }

    /// Returns the orders with a limit outside a band, by price.
    fn outside(&self, (low, high): (i64, i64)) -> impl Iterator<Item = OrderKey> + '_ {
        let below = self
            .prices
            .iter()
            .take_while(move |(price, _)| *price < low);
        let [owner, id] = [i64::MAX; 2];
        let above = self.prices.range((high, OrderKey { owner, id })..);
        let above = above.skip_while(move |(price, _)| *price == high);
        below.chain(above).map(|&(_, order)| order)
    }

    /// Leaves over what the trades of an auction reach, until it has ended.
    pub(super) fn leave_reached(&mut self, events: &[Event]) {
        let before = self.left_over();
        self.note_trades(events);
        self.leave_over(before);
    }

    /// Leaves over what is reached, beside what is already.
    fn leave_over(&mut self, before: Option<(i64, i64)>) {
        let prices = self.reached_by.drain(..).map(|price| (price, price));
        self.left_over = before.into_iter().chain(prices).reduce(both);
        self.left_over = self.left_over();
    }

    /// The waiting orders: asks, then bids, each what is reached first before the others.
    fn iter(&self) -> impl Iterator<Item = &Waiting> {
        let orders = self.triggers.iter().flat_map(BTreeMap::values);
        orders.filter_map(|order| self.waiting.get(order))
    }
}

impl Book {
    /// Lets a stop order wait, or rejects it.
    pub(super) fn wait(
        &mut self,
        order: &ConditionalOrder,
        (trigger, user): (i64, UserHint),
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let place = &order.place;
        let id = self.key(place.uid, place.order_id);
        let Some(vacancy) = self.vacancy(id) else {
            let why = RejectReason::DuplicateId;
            return reject(place, place.size, why, (events.len(), rules), events);
        };
        let slot = self.ladder.nodes.insert(Node {
            marks: WAITS,
            ..Node::new(place, user)
        });
        self.index.fill(vacancy, slot);
        let cold = self.cold_mut();
        let arrival = cold.next_arrival();
        cold.note_expiry(order.good_till, arrival, id);
        let waiting = Waiting::new(*order, (trigger, arrival), arrival, (user, slot));
        cold.stops.insert(id, waiting);
        self.widen_if_used();
        ResultCode::Success
    }

    /// Takes out a waiting order, if it is one, to be executed or not.
    fn take_waiting(&mut self, order: OrderKey) -> Option<Waiting> {
        let waiting = self.cold.as_mut()?.stops.remove(order)?;
        self.index.remove_slot(order, waiting.slot);
        self.ladder.nodes.free(waiting.slot);
        Some(waiting)
    }

    /// Notes that the last trade reaches orders: those whose trigger it has passed.
    pub(super) fn note_last(&mut self) {
        if let (Some(price), Some(cold)) = (self.last, &mut self.cold)
            && cold.stops.reached_at(price).is_some()
        {
            cold.stops.reached_by.push_back(price);
        }
    }

    /// Executes the stop orders that the trades from the event `first` on reach, and those that
    /// theirs reach, until there are as many events as one command may have: the others are left
    /// over. So are all, while some are left over by an earlier command. The end of a command that
    /// may trade: gives up what is kept beside the book if there is nothing in it. Returns whether
    /// some may be left over.
    #[inline(always)]
    pub(crate) fn run_stops(&mut self, first: usize, rules: &Rules, events: &mut Events) -> bool {
        self.cold.is_some() && self.run_stops_cold(first, rules, events)
    }

    #[inline(never)]
    fn run_stops_cold(&mut self, first: usize, rules: &Rules, events: &mut Events) -> bool {
        if let Some(cold) = &mut self.cold
            && !cold.stops.is_empty()
            && cold.stops.note_trades(&events[first..])
        {
            self.run_reached(rules, events);
        }
        self.tidy();
        self.has_left_over()
    }

    /// Executes the stop orders that are reached by now.
    #[cold]
    #[inline(never)]
    fn run_reached(&mut self, rules: &Rules, events: &mut Events) {
        while let Some(cold) = &mut self.cold {
            let stops = &mut cold.stops;
            let (seen, left_over) = (events.len(), stops.left_over());
            let Some(next) = stops.next_reached() else {
                stops.left_over = left_over;
                break;
            };
            if left_over.is_some() || seen >= rules.work_max() {
                stops.leave_over(left_over);
                break;
            }
            if let Some(next) = self.take_waiting(next) {
                self.execute_stop(&next, rules, events);
                self.cold_mut().stops.note_trades(&events[seen..]);
            }
        }
    }

    /// Executes stop orders that are left over, as many as one command may.
    pub(crate) fn run_left_over(&mut self, rules: &Rules, events: &mut Events) {
        let Some(ColdState { stops, .. }) = self.cold.as_deref_mut() else {
            return;
        };
        let left_over = stops.left_over();
        stops.left_over = None;
        if let Some((low, high)) = left_over {
            stops.reached_by.extend([low, high]);
            self.run_stops(events.len(), rules, events);
        }
    }

    /// Returns whether stop orders are left over.
    #[inline(always)]
    pub(crate) fn has_left_over(&self) -> bool {
        let cold = self.cold.as_ref();
        cold.is_some_and(|cold| cold.stops.left_over.is_some())
    }

    /// Returns the lowest and the highest price by which stop orders were reached that are left
    /// over.
    pub(crate) fn left_over(&self) -> Option<(i64, i64)> {
        self.cold.as_ref()?.stops.left_over()
    }

    /// Has stop orders left over that were reached by these prices, the lowest and the highest.
    /// Returns false where none waits that is reached.
    pub(crate) fn restore_left_over(&mut self, prices: (i64, i64)) -> bool {
        let stops = &mut self.cold_mut().stops;
        stops.left_over = Some(prices);
        stops.left_over().is_some()
    }

    /// Executes the stop order that has just begun to wait, if its trigger is passed. One that is
    /// rejected whole is refused as if it had no trigger. Where others are left over, it is left
    /// over with them.
    pub(super) fn act_at_once(
        &mut self,
        order: OrderKey,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        let first = events.len();
        let is_passed = |waiting: &Waiting| {
            let reaches = |price| waiting.key().0 <= price ^ mask(waiting.side().opposite());
            self.last.is_some_and(reaches)
        };
        let waiting = self.cold.as_ref().map(|cold| &cold.stops.waiting);
        if !waiting.is_some_and(|waiting| waiting.get(&order).is_some_and(is_passed)) {
            return ResultCode::Success;
        }
        if let Some(left_over) = self.left_over() {
            let last = self.last.map(|price| (price, price));
            let prices = last.into_iter().chain([left_over]).reduce(both);
            self.cold_mut().stops.left_over = prices;
            return ResultCode::Success;
        }
        let Some(next) = self.take_waiting(order) else {
            return ResultCode::Success;
        };
        let result = self.execute_stop(&next, rules, events);
        if result.is_refusal() {
            events.remove(first);
        }
        result
    }

    /// Says how it ends.
    #[cold]
    fn execute_stop(&mut self, next: &Waiting, rules: &Rules, events: &mut Events) -> ResultCode {
        let good_till = next.order.good_till;
        self.cold_mut().forget_expiry(good_till, next.turn);
        let place = &next.order.place;
        let (low, high) = self.band;
        if place.order_type.has_limit() && !(low..=high).contains(&place.price) {
            next.report_removed((place.size, 0), Removal::OutsideBand, events);
            return ResultCode::Success;
        }
        events.push(Event::Triggered {
            order: place.order_id,
            uid: place.uid,
            action: place.action,
            price: place.price,
            size: place.size,
            bidder_hold_price: place.reserve_price,
        });
        let origin = (next.user, Some(next.turn));
        self.enter_with(&next.order, origin, rules, events)
    }

    /// Takes `by` lots off the waiting order of a slot; all of them, or more, cancel it.
    #[cold]
    pub(super) fn reduce_waiting(&mut self, slot: u32, by: i64, events: &mut Events) -> ResultCode {
        let order = self.key_at(slot);
        let stops = &mut self.cold_mut().stops;
        let Some(waiting) = stops.waiting.get_mut(&order) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let size = &mut waiting.order.place.size;
        if by < *size {
            *size -= by;
            let left = *size;
            waiting.report_removed((by, left), Removal::Reduced, events);
        } else {
            self.remove_waiting(order, Removal::Cancelled, events);
            self.tidy();
        }
        ResultCode::Success
    }

    /// Takes a waiting order out, if it is one, and reports why.
    pub(super) fn remove_waiting(&mut self, order: OrderKey, why: Removal, events: &mut Events) {
        if let Some(waiting) = self.take_waiting(order) {
            let good_till = waiting.order.good_till;
            self.cold_mut().forget_expiry(good_till, waiting.turn);
            waiting.report_removed((waiting.order.place.size, 0), why, events);
        }
    }

    /// Takes out the waiting orders, as [`waiting`](Self::waiting) gives them, `most` of them at
    /// most.
    pub(super) fn remove_all_waiting(
        &mut self,
        (why, most): (Removal, usize),
        events: &mut Events,
    ) {
        let places = self.waiting().map(|order| &order.place);
        let key = |place: &Place| self.key(place.uid, place.order_id);
        let orders: Vec<OrderKey> = places.map(key).take(most).collect();
        for order in orders {
            self.remove_waiting(order, why, events);
        }
    }

    /// Takes out waiting orders with a limit outside the band, `most` of them at most, in the order
    /// in which [`waiting`](Self::waiting) gives them.
    pub(super) fn remove_waiting_outside(
        &mut self,
        (why, most): (Removal, usize),
        events: &mut Events,
    ) {
        let Some(cold) = &self.cold else {
            return;
        };
        let stops = &cold.stops;
        let mut orders: Vec<OrderKey> = stops.outside(self.band).take(most).collect();
        orders.sort_unstable_by_key(|order| {
            let waiting = &stops.waiting[order];
            (waiting.side(), waiting.key())
        });
        for order in orders {
            self.remove_waiting(order, why, events);
        }
    }

    /// Returns whether an order with a limit outside the band waits.
    pub(super) fn waits_outside(&self) -> bool {
        let mut stops = self.cold.iter().map(|cold| &cold.stops);
        stops.any(|stops| stops.outside(self.band).next().is_some())
    }

    /// Takes out the waiting orders of one owner, or those that go with his session, in the same
    /// order. Visits no others, where ids are per user.
    pub(super) fn remove_waiting_of(
        &mut self,
        uid: UserId,
        (why, is_end): (Removal, bool),
        events: &mut Events,
    ) {
        let Some(ColdState { stops, .. }) = self.cold.as_deref() else {
            return;
        };
        let [first, last] = [i64::MIN, i64::MAX].map(|id| self.key(uid, OrderId(id)));
        let mut orders: Vec<OrderKey> = match is_end {
            true => stops.with_session.range(first..=last).copied().collect(),
            false => stops
                .waiting
                .range(first..=last)
                .map(|(order, _)| *order)
                .collect(),
        };
        let visited = orders.len();
        orders.retain(|order| stops.waiting[order].order.place.uid == uid);
        events.add_visits(visited - orders.len());
        orders.sort_unstable_by_key(|order| {
            let waiting = &stops.waiting[order];
            (waiting.side(), waiting.key())
        });
        for order in orders {
            self.remove_waiting(order, why, events);
        }
    }

    /// Returns whether an order of this owner waits; where ids are not per user, of any.
    pub(super) fn may_wait(&self, uid: UserId) -> bool {
        let [first, last] = [i64::MIN, i64::MAX].map(|id| self.key(uid, OrderId(id)));
        let mut stops = self.cold.iter().map(|cold| &cold.stops.waiting);
        stops.any(|waiting| waiting.range(first..=last).next().is_some())
    }

    /// The waiting orders of one owner, in the order of [`waiting`](Self::waiting). Cost: those
    /// orders, sorted; where ids are not per user, a look at every order that waits.
    pub(crate) fn waiting_of(&self, uid: UserId, most: usize) -> Vec<&ConditionalOrder> {
        let [first, last] = [i64::MIN, i64::MAX].map(|id| self.key(uid, OrderId(id)));
        let stops = self.cold.iter().map(|cold| &cold.stops.waiting);
        let orders = stops.flat_map(|waiting| waiting.range(first..=last));
        let waiting = orders.map(|(_, waiting)| waiting);
        let own = waiting.filter(|waiting| waiting.order.place.uid == uid);
        let mut wanted: Vec<&Waiting> = own.take(most).collect();
        wanted.sort_unstable_by_key(|waiting| (waiting.side(), waiting.key()));
        wanted.iter().map(|waiting| &waiting.order).collect()
    }

    /// Returns the stop orders that wait: asks, then bids, each what is reached first before the
    /// others, then in order of arrival.
    pub fn waiting(&self) -> impl Iterator<Item = &ConditionalOrder> {
        let stops = self.cold.iter().flat_map(|cold| cold.stops.iter());
        stops.map(|waiting| &waiting.order)
    }
}
