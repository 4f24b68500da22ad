//! Orders that wait outside the book until a trade reaches their trigger price.
//!
//! *Which trades count*: the symbol's last one before the order was placed, and all after it. So an
//! order whose trigger is passed already is triggered at once. (By
//! [`Rules::trigger_passed_stops`]; else only trades after it was placed count.)
//!
//! *The price band*: an order that is triggered while its price is outside the band then in force
//! is not executed but removed, with [`RemovalReason::OutsideBand`].
//!
//! *When and in which order*: the command that trades finishes its own chain of events first. Then
//! its trades are gone through as they happened, and each sends off the orders that it reaches:
//! asks first, then bids, each the trigger that is reached first before those beyond it, then in
//! order of arrival. They are executed one after another, each reported by an [`Event::Triggered`]
//! with its own rejects and trades behind it, and its trades send off further ones, at the end of
//! the line. No order begins to wait meanwhile, so each waiting order is executed once at most, and
//! the line ends.
//!
//! *State*: a waiting order is a node like a resting one, in no queue; its `filled` is the trigger,
//! `previous` and `next` are the arrival. What else it may have is in its [`Terms`]. Sets of slots
//! sort the orders by what they are searched for.
//!
//! *Ids*: a resting and a waiting order of one symbol (and one user, where ids are per user) never
//! share one. A stop order whose id rests or waits already is rejected whole, and any order whose
//! id waits is rejected like one whose id rests. So a waiting order is in the book's index: a
//! search for a vacant id looks only once.
//!
//! *Commands on a waiting order*: cancel and reduce find it where no resting order has the id, and
//! report an [`Event::Removed`]; a move does not.

use std::collections::VecDeque;

use super::Book;
use super::entry::reject;
use super::orders::{Node, Nodes, Terms, WAITS, mask};
use super::slot_set::SlotSet;
use crate::command::{Action, ConditionalOrder, OrderType, Place};
use crate::engine::index::{OrderKey, Vacancy};
use crate::event::{Event, Events, RejectReason, RemovalReason, UserHint};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// Mark of a waiting order: its type is [`OrderType::Ioc`].
const IOC: u8 = 8;
/// Mark of a waiting order: its type is [`OrderType::Market`].
const MARKET: u8 = 16;
/// Mark of a waiting order: it has [`Terms`], since it is to hide lots, or expires.
const HAS_TERMS: u8 = 32;

/// A stop order that waits no more.
struct Taken {
    order: ConditionalOrder,
    user: UserHint,
    /// Which of the orders that expire at the same time came first, of an order with terms.
    turn: Option<u64>,
}

/// Returns where a waiting order is in its side's set: what is reached first comes first, then what
/// came first.
fn trigger_key(node: &Node) -> (i64, u64) {
    let arrival = u64::from(node.next) << 32 | u64::from(node.previous);
    (node.filled ^ mask(node.action.opposite()), arrival)
}

/// Reports that `size` lots of a waiting order are gone, and `left` remain.
fn report_removed(
    place: &Place,
    (size, left): (i64, i64),
    why: RemovalReason,
    events: &mut Events,
) {
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

/// Reads the keys of waiting orders out of their nodes.
#[derive(Clone, Copy)]
pub(super) struct Keys<'n> {
    pub(super) nodes: &'n Nodes,
    /// As the book has it.
    pub(super) owner_mask: i64,
    /// Whether orders are searched for by price.
    pub(super) has_prices: bool,
}

impl Keys<'_> {
    fn trigger(&self, slot: u32) -> (i64, u64) {
        trigger_key(&self.nodes[slot])
    }

    fn id(&self, slot: u32) -> OrderKey {
        self.nodes[slot].key(self.owner_mask)
    }

    fn price(&self, slot: u32) -> (i64, OrderKey) {
        (self.nodes[slot].price, self.id(slot))
    }

    /// Sorts slots as [`Book::waiting`] gives their orders.
    fn sort(&self, slots: &mut [u32]) {
        slots.sort_unstable_by_key(|&slot| (self.nodes[slot].action, self.trigger(slot)));
    }
}

/// The stop orders of a symbol.
#[derive(Clone, Debug, Default)]
pub(super) struct Stops {
    /// Per side, by trigger and arrival.
    triggers: [SlotSet<(i64, u64)>; 2],
    ids: SlotSet<OrderKey>,
    /// By price: of futures, those with a limit. (The worst price of a market order may be outside
    /// the band.)
    prices: SlotSet<(i64, OrderKey)>,
    /// Those that go with their owner's session.
    with_session: SlotSet<OrderKey>,
    /// Prices of trades of the command under way by which orders are reached, in order.
    reached_by: VecDeque<i64>,
    /// The lowest and the highest price by which orders were reached that are left over: it has an
    /// effect while such an order waits.
    pub(super) left_over: Option<(i64, i64)>,
    len: usize,
}

/// Returns the lowest and the highest price of both pairs of these.
fn both((low, high): (i64, i64), (other_low, other_high): (i64, i64)) -> (i64, i64) {
    (low.min(other_low), high.max(other_high))
}

impl Stops {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, slot: u32, keys: Keys<'_>) {
        let node = &keys.nodes[slot];
        self.len += 1;
        self.triggers[node.action as usize].insert(slot, |slot| keys.trigger(slot));
        self.ids.insert(slot, |slot| keys.id(slot));
        if keys.has_prices && node.marks & MARKET == 0 {
            self.prices.insert(slot, |slot| keys.price(slot));
        }
        if node.flags.is_cancel_on_disconnect() {
            self.with_session.insert(slot, |slot| keys.id(slot));
        }
    }

    fn remove(&mut self, slot: u32, keys: Keys<'_>) {
        let node = &keys.nodes[slot];
        self.len -= 1;
        self.triggers[node.action as usize].remove(slot, |slot| keys.trigger(slot));
        self.ids.remove(slot, |slot| keys.id(slot));
        if keys.has_prices && node.marks & MARKET == 0 {
            self.prices.remove(slot, |slot| keys.price(slot));
        }
        if node.flags.is_cancel_on_disconnect() {
            self.with_session.remove(slot, |slot| keys.id(slot));
        }
        self.left_over = self.left_over(keys.nodes);
    }

    /// Gives waiting orders other slots, in which their nodes are already.
    pub(super) fn relocate(&mut self, slots: &[u32], keys: Keys<'_>) {
        *self = Self {
            reached_by: std::mem::take(&mut self.reached_by),
            left_over: self.left_over,
            ..Self::default()
        };
        for &slot in slots {
            self.insert(slot, keys);
        }
    }

    /// Returns the first order of a side that a trade at this price reaches.
    fn reached(&self, nodes: &Nodes, side: Action, price: i64) -> Option<u32> {
        let reached = price ^ mask(side.opposite());
        let slot = self.triggers[side as usize].first(|(bound, _)| bound <= reached)?;
        (trigger_key(&nodes[slot]).0 <= reached).then_some(slot)
    }

    /// Returns the first order that a trade at this price reaches: asks, then bids.
    fn reached_at(&self, nodes: &Nodes, price: i64) -> Option<u32> {
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.find_map(|side| self.reached(nodes, side, price))
    }

    /// Returns the lowest and the highest price by which orders were reached that are left over.
    fn left_over(&self, nodes: &Nodes) -> Option<(i64, i64)> {
        let is_reached = |price| self.reached_at(nodes, price).is_some();
        let is_left = |&(low, high): &(i64, i64)| is_reached(low) || is_reached(high);
        self.left_over.filter(is_left)
    }

    /// Returns the order that is executed next.
    fn next_reached(&mut self, nodes: &Nodes) -> Option<u32> {
        while let Some(&price) = self.reached_by.front() {
            let order = self.reached_at(nodes, price);
            if order.is_some() {
                return order;
            }
            self.reached_by.pop_front();
        }
        None
    }

    /// Notes the prices of trades that reach orders. The trades are of one taker. Returns whether
    /// any were noted that are to be gone through.
    fn note_trades(&mut self, nodes: &Nodes, events: &[Event]) -> bool {
        let price = |event: &Event| match *event {
            Event::Trade { price, .. } => Some(price),
            _ => None,
        };
        let mut prices = events.iter().filter_map(price);
        // Orders that are reached are reached by the first or the last price.
        let mut ends = [prices.next(), prices.next_back()].into_iter().flatten();
        if ends.any(|price| self.reached_at(nodes, price).is_some()) {
            for price in events.iter().filter_map(price) {
                let is_noted = self.reached_by.back() == Some(&price);
                if !is_noted && self.reached_at(nodes, price).is_some() {
                    self.reached_by.push_back(price);
                }
            }
        }
        !self.reached_by.is_empty()
    }

    /// Returns the orders with a limit outside a band, by price.
    fn outside(&self, (low, high): (i64, i64), keys: Keys<'_>) -> impl Iterator<Item = u32> {
        let price = move |slot: u32| keys.nodes[slot].price;
        let below = self
            .prices
            .iter()
            .take_while(move |&slot| price(slot) < low);
        let [owner, id] = [i64::MAX; 2];
        let last = (high, OrderKey { owner, id });
        let above = self.prices.from(last, move |slot| keys.price(slot));
        below.chain(above.skip_while(move |&slot| price(slot) == high))
    }

    /// Returns the orders of one owner, or those that go with his session, by id; where ids are not
    /// per user, all that others have, too.
    fn of(&self, owner: UserId, goes: bool, keys: Keys<'_>) -> impl Iterator<Item = u32> {
        let set = if goes { &self.with_session } else { &self.ids };
        let owner = owner.0 & keys.owner_mask;
        let first = OrderKey {
            owner,
            id: i64::MIN,
        };
        let orders = set.from(first, move |slot| keys.id(slot));
        orders.take_while(move |&slot| keys.id(slot).owner == owner)
    }

    /// Leaves over what is reached, beside what is already.
    fn leave_over(&mut self, nodes: &Nodes, before: Option<(i64, i64)>) {
        let prices = self.reached_by.drain(..).map(|price| (price, price));
        self.left_over = before.into_iter().chain(prices).reduce(both);
        self.left_over = self.left_over(nodes);
    }

    /// Returns the waiting orders: asks, then bids, each what is reached first before the others.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.triggers.iter().flat_map(SlotSet::iter)
    }
}

impl Book {
    fn stops(&self) -> Option<(&Stops, Keys<'_>)> {
        let keys = Keys {
            nodes: &self.ladder.nodes,
            owner_mask: self.owner_mask,
            has_prices: self.is_futures(),
        };
        Some((&self.cold.as_ref()?.stops, keys))
    }

    fn stops_mut(&mut self) -> Option<(&mut Stops, Keys<'_>)> {
        let keys = Keys {
            nodes: &self.ladder.nodes,
            owner_mask: self.owner_mask,
            has_prices: self.is_futures(),
        };
        Some((&mut self.cold.as_mut()?.stops, keys))
    }

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
        let arrival = self.cold_mut().next_arrival();
        self.add_waiting(order, (trigger, arrival), arrival, (user, vacancy));
        self.widen_if_used();
        ResultCode::Success
    }

    /// Lets a stop order wait, the last of those with its trigger. `turn`: which of the orders that
    /// expire at the same time it is.
    pub(super) fn add_waiting(
        &mut self,
        order: &ConditionalOrder,
        (trigger, arrival): (i64, u64),
        turn: u64,
        (user, vacancy): (UserHint, Vacancy),
    ) {
        let place = &order.place;
        let has_terms = order.display.is_some() || order.good_till.is_some();
        let kind = match place.order_type {
            OrderType::Ioc => IOC,
            OrderType::Market => MARKET,
            _ => 0,
        };
        let slot = self.ladder.add_unqueued(Node {
            filled: trigger,
            previous: arrival as u32,
            next: (arrival >> 32) as u32,
            marks: WAITS | kind | if has_terms { HAS_TERMS } else { 0 },
            ..Node::new(place, user)
        });
        self.index.fill(vacancy, slot);
        let id = self.key_at(slot);
        let cold = self.cold_mut();
        cold.note_expiry(order.good_till, turn, id);
        if has_terms {
            let terms = Terms {
                arrival: turn,
                display: order.display.unwrap_or_default(),
                hidden: 0,
                price: place.price,
                good_till: order.good_till,
            };
            cold.terms.insert(id, terms);
        }
        if let Some((stops, keys)) = self.stops_mut() {
            stops.insert(slot, keys);
        }
    }

    /// Returns the stop order in a slot, with its turn if it has terms.
    fn stop_at(&self, slot: u32) -> (ConditionalOrder, Option<u64>) {
        let node = &self.ladder.nodes[slot];
        let order_type = match node.marks & (IOC | MARKET) {
            0 => OrderType::Gtc,
            IOC => OrderType::Ioc,
            _ => OrderType::Market,
        };
        let has_terms = node.marks & HAS_TERMS != 0;
        let terms = has_terms.then(|| self.terms(node.key(self.owner_mask)));
        let terms = terms.flatten();
        let order = ConditionalOrder {
            place: Place {
                uid: UserId(node.uid),
                symbol: self.spec.id,
                order_id: OrderId(node.id),
                order_type,
                action: node.action,
                price: node.price,
                reserve_price: node.reserve_price,
                size: node.left,
                flags: node.flags,
            },
            trigger: Some(node.filled),
            display: terms.and_then(|terms| (terms.display > 0).then_some(terms.display)),
            good_till: terms.and_then(|terms| terms.good_till),
        };
        (order, terms.map(|terms| terms.arrival))
    }

    /// Takes out a waiting order, to be executed or not.
    fn take_waiting(&mut self, slot: u32) -> Taken {
        let (order, turn) = self.stop_at(slot);
        let user = self.ladder.nodes[slot].user();
        let id = self.key_at(slot);
        if let Some((stops, keys)) = self.stops_mut() {
            stops.remove(slot, keys);
        }
        if let Some(turn) = turn {
            let cold = self.cold_mut();
            cold.terms.remove(&id);
            cold.forget_expiry(order.good_till, turn);
        }
        self.index.remove_slot(id, slot);
        self.ladder.nodes.free(slot);
        Taken { order, user, turn }
    }

    /// Notes that the last trade reaches orders: those whose trigger it has passed.
    pub(super) fn note_last(&mut self) {
        if let Some(price) = self.last
            && let Some((stops, keys)) = self.stops_mut()
            && stops.reached_at(keys.nodes, price).is_some()
        {
            stops.reached_by.push_back(price);
        }
    }

    /// Leaves over what the trades of an auction reach, until it has ended.
    pub(super) fn leave_reached(&mut self, events: &[Event]) {
        if let Some((stops, keys)) = self.stops_mut() {
            let before = stops.left_over(keys.nodes);
            stops.note_trades(keys.nodes, events);
            stops.leave_over(keys.nodes, before);
        }
    }

    /// Does as [`run_stops`](Self::run_stops) says, where something is kept beside the book.
    #[inline(never)]
    pub(super) fn run_stops_cold(
        &mut self,
        first: usize,
        rules: &Rules,
        events: &mut Events,
    ) -> bool {
        if let Some((stops, keys)) = self.stops_mut()
            && !stops.is_empty()
            && stops.note_trades(keys.nodes, &events[first..])
        {
            self.run_reached(rules, events);
        }
        self.drop_empty_cold_state();
        self.has_left_over()
    }

    /// Executes the stop orders that are reached by now.
    #[cold]
    #[inline(never)]
    fn run_reached(&mut self, rules: &Rules, events: &mut Events) {
        while let Some((stops, Keys { nodes, .. })) = self.stops_mut() {
            let (seen, left_over) = (events.len(), stops.left_over(nodes));
            let Some(next) = stops.next_reached(nodes) else {
                stops.left_over = left_over;
                break;
            };
            if left_over.is_some() || seen >= rules.work_max() {
                stops.leave_over(nodes, left_over);
                break;
            }
            let next = self.take_waiting(next);
            self.execute_stop(&next, rules, events);
            if let Some((stops, keys)) = self.stops_mut() {
                stops.note_trades(keys.nodes, &events[seen..]);
            }
        }
    }

    /// Executes stop orders that are left over, as many as one command may.
    pub(crate) fn run_left_over(&mut self, rules: &Rules, events: &mut Events) {
        let Some((stops, keys)) = self.stops_mut() else {
            return;
        };
        let left_over = stops.left_over(keys.nodes);
        stops.left_over = None;
        if let Some((low, high)) = left_over {
            stops.reached_by.extend([low, high]);
            self.run_stops(events.len(), rules, events);
        }
    }

    /// Returns the lowest and the highest price by which stop orders were reached that are left
    /// over.
    pub(crate) fn left_over(&self) -> Option<(i64, i64)> {
        let (stops, keys) = self.stops()?;
        stops.left_over(keys.nodes)
    }

    /// Has stop orders left over that were reached by these prices, the lowest and the highest.
    /// Returns false where none waits that is reached.
    pub(crate) fn restore_left_over(&mut self, prices: (i64, i64)) -> bool {
        self.cold_mut().stops.left_over = Some(prices);
        self.left_over().is_some()
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
        let Some(slot) = self.find(order) else {
            return ResultCode::Success;
        };
        let node = &self.ladder.nodes[slot];
        let reaches = |price| trigger_key(node).0 <= price ^ mask(node.action.opposite());
        if !self.last.is_some_and(reaches) {
            return ResultCode::Success;
        }
        if let Some(left_over) = self.left_over() {
            let last = self.last.map(|price| (price, price));
            let prices = last.into_iter().chain([left_over]).reduce(both);
            self.cold_mut().stops.left_over = prices;
            return ResultCode::Success;
        }
        let next = self.take_waiting(slot);
        let result = self.execute_stop(&next, rules, events);
        if result.is_refusal() {
            events.remove(first);
        }
        result
    }

    /// Says how it ends.
    #[cold]
    fn execute_stop(&mut self, next: &Taken, rules: &Rules, events: &mut Events) -> ResultCode {
        let place = &next.order.place;
        let (low, high) = self.band;
        if place.order_type.has_limit() && !(low..=high).contains(&place.price) {
            report_removed(place, (place.size, 0), RemovalReason::OutsideBand, events);
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
        self.enter_with(&next.order, (next.user, next.turn), rules, events)
    }

    /// Takes `by` lots off the waiting order of a slot; all of them, or more, cancel it.
    #[cold]
    pub(super) fn reduce_waiting(&mut self, slot: u32, by: i64, events: &mut Events) -> ResultCode {
        let size = &mut self.ladder.nodes[slot].left;
        if by < *size {
            *size -= by;
            let left = *size;
            let place = self.stop_at(slot).0.place;
            report_removed(&place, (by, left), RemovalReason::Reduced, events);
        } else {
            self.remove_waiting(slot, RemovalReason::Cancelled, events);
            self.drop_empty_cold_state();
        }
        ResultCode::Success
    }

    /// Takes a waiting order out, and reports why.
    pub(super) fn remove_waiting(&mut self, slot: u32, why: RemovalReason, events: &mut Events) {
        let place = self.take_waiting(slot).order.place;
        report_removed(&place, (place.size, 0), why, events);
    }

    /// Takes out the waiting orders, as [`waiting`](Self::waiting) gives them, `most` of them at
    /// most.
    pub(super) fn remove_all_waiting(
        &mut self,
        (why, most): (RemovalReason, usize),
        events: &mut Events,
    ) {
        let stops = self.stops().into_iter();
        let slots: Vec<u32> = stops
            .flat_map(|(stops, _)| stops.iter())
            .take(most)
            .collect();
        for slot in slots {
            self.remove_waiting(slot, why, events);
        }
    }

    /// Takes out waiting orders with a limit outside the band, `most` of them at most, in the order
    /// in which [`waiting`](Self::waiting) gives them.
    pub(super) fn remove_waiting_outside(
        &mut self,
        (why, most): (RemovalReason, usize),
        events: &mut Events,
    ) {
        let Some((stops, keys)) = self.stops() else {
            return;
        };
        let mut slots: Vec<u32> = stops.outside(self.band, keys).take(most).collect();
        keys.sort(&mut slots);
        for slot in slots {
            self.remove_waiting(slot, why, events);
        }
    }

    /// Returns whether an order with a limit outside the band waits.
    pub(super) fn waits_outside(&self) -> bool {
        let stops = self.stops();
        stops.is_some_and(|(stops, keys)| stops.outside(self.band, keys).next().is_some())
    }

    /// Takes out the waiting orders of one owner, or those that go with his session, in the same
    /// order. Visits no others, where ids are per user.
    pub(super) fn remove_waiting_of(
        &mut self,
        uid: UserId,
        (why, is_end): (RemovalReason, bool),
        events: &mut Events,
    ) {
        let Some((stops, keys)) = self.stops() else {
            return;
        };
        let mut slots: Vec<u32> = stops.of(uid, is_end, keys).collect();
        let visited = slots.len();
        slots.retain(|&slot| keys.nodes[slot].uid == uid.0);
        events.add_visits(visited - slots.len());
        keys.sort(&mut slots);
        for slot in slots {
            self.remove_waiting(slot, why, events);
        }
    }

    /// Returns whether an order of this owner waits; where ids are not per user, of any.
    pub(super) fn may_wait(&self, uid: UserId) -> bool {
        let stops = self.stops();
        stops.is_some_and(|(stops, keys)| stops.of(uid, false, keys).next().is_some())
    }

    /// Returns the waiting orders of one owner, in the order of [`waiting`](Self::waiting). Cost:
    /// those orders, sorted; where ids are not per user, a look at every order that waits.
    pub(crate) fn waiting_of(&self, uid: UserId, most: usize) -> Vec<ConditionalOrder> {
        let Some((stops, keys)) = self.stops() else {
            return Vec::new();
        };
        let orders = stops.of(uid, false, keys);
        let own = orders.filter(|&slot| keys.nodes[slot].uid == uid.0);
        let mut slots: Vec<u32> = own.take(most).collect();
        keys.sort(&mut slots);
        slots.iter().map(|&slot| self.stop_at(slot).0).collect()
    }

    /// Returns the stop orders that wait: asks, then bids, each what is reached first before the
    /// others, then in order of arrival.
    pub fn waiting(&self) -> impl Iterator<Item = ConditionalOrder> {
        let stops = self.stops().into_iter();
        let slots = stops.flat_map(|(stops, _)| stops.iter());
        slots.map(|slot| self.stop_at(slot).0)
    }
}
