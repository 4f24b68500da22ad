//! Conditions of orders: hidden lots, expiry, stop triggers. What is recorded of them beside the
//! orders' nodes.
//!
//! *State*: the [`Terms`] of orders that hide lots or expire, by id; when orders expire; the stop
//! orders, which wait and do not rest; and whether there is an auction. *Rules*: (1) a node has a
//! mark exactly if its order hides lots, expires or waits; it has terms exactly if it hides lots,
//! is to hide some once it rests, or expires; (2) an order with a time to live is in `expiries`
//! exactly while it rests or waits; (3) a waiting order has a node, too, in no queue, so that the
//! book's index knows its id; (4) after a command, there is a [`ColdState`] exactly if something is
//! in it. Placing, moving or cancelling a plain order that does not trade never looks here,
//! whatever else is in the book.
//!
//! Orders are found through trees, as ids come from clients, and such orders are rare. What an
//! iceberg order displays is computed in `icebergs.rs`; when a stop order is triggered, in
//! `stops.rs`.

use std::collections::BTreeMap;

use super::Book;
use super::auction::Uncrossing;
use super::orders::{RestingOrder, Terms, WAITS};
use super::stops::Stops;
use crate::command::{Action, ConditionalOrder};
use crate::engine::index::OrderKey;
use crate::event::{Events, RemovalReason};
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

/// The state that only conditional orders and auctions need.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdState {
    pub(super) arrivals: u64,
    pub(super) terms: BTreeMap<OrderKey, Terms>,
    /// Per side, by price: the lots that orders hide, where they hide any.
    pub(super) hidden: [BTreeMap<i64, i128>; 2],
    /// By time, then by arrival.
    pub(super) expiries: BTreeMap<(i64, u64), OrderKey>,
    pub(super) stops: Stops,
    /// Orders are collected for an auction.
    pub(super) is_auction: bool,
    /// The end of the auction, while it goes on in further commands.
    pub(super) uncrossing: Option<Box<Uncrossing>>,
}

impl ColdState {
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.stops.is_empty() && !self.is_auction
    }

    /// Counts lots that are hidden at a price from now on, or below zero, that no longer are.
    fn count_hidden(&mut self, (side, price): (Action, i64), lots: i64) {
        if lots == 0 {
            return;
        }
        let hidden = &mut self.hidden[side as usize];
        let all = hidden.entry(price).or_default();
        *all += i128::from(lots);
        if *all == 0 {
            hidden.remove(&price);
        }
    }

    pub(super) const fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    pub(super) fn note_expiry(&mut self, time: Option<i64>, arrival: u64, order: OrderKey) {
        if let Some(time) = time {
            self.expiries.insert((time, arrival), order);
        }
    }

    /// Notes the expiry of an order of a snapshot; orders that come later have a later arrival.
    pub(super) fn restore_expiry(&mut self, time: Option<i64>, turn: u32, order: OrderKey) {
        self.arrivals = self.arrivals.max(turn.into());
        self.note_expiry(time, turn.into(), order);
    }

    pub(super) fn forget_expiry(&mut self, time: Option<i64>, arrival: u64) {
        if let Some(time) = time {
            self.expiries.remove(&(time, arrival));
        }
    }
}

impl Book {
    /// Returns true while orders are collected; see
    /// [`Command::StartAuction`](crate::Command::StartAuction).
    #[must_use]
    #[inline]
    pub fn is_auction(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.is_auction)
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

    /// Returns whether stop orders are left over.
    #[inline(always)]
    pub(crate) fn has_left_over(&self) -> bool {
        let cold = self.cold.as_ref();
        cold.is_some_and(|cold| cold.stops.left_over.is_some())
    }

    pub(super) fn cold_mut(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    /// Returns the terms of a resting order, if it has any.
    pub(super) fn terms(&self, order: OrderKey) -> Option<&Terms> {
        self.cold.as_ref()?.terms.get(&order)
    }

    /// Writes the terms of a resting order, and its marks; forgets terms that ask for nothing.
    pub(super) fn set_terms(&mut self, slot: u32, terms: Terms) {
        let marks = terms.marks();
        let node = &mut self.ladder.nodes[slot];
        let order = node.key(self.owner_mask);
        let (side, price) = (node.action, node.price);
        let before = std::mem::replace(&mut node.marks, marks);
        if marks == 0 && before == 0 {
            return;
        }
        let cold = self.cold_mut();
        let before = match marks {
            0 => cold.terms.remove(&order),
            _ => cold.terms.insert(order, Terms { price, ..terms }),
        };
        if let Some(before) = before {
            cold.count_hidden((side, before.price), -before.hidden);
        }
        cold.count_hidden((side, price), terms.hidden);
    }

    /// Forgets an order that is in no queue any more, with its terms.
    pub(super) fn forget_with_terms(&mut self, slot: u32) {
        let node = &self.ladder.nodes[slot];
        if node.marks != 0 {
            let (order, side) = (node.key(self.owner_mask), node.action);
            let cold = self.cold_mut();
            if let Some(terms) = cold.terms.remove(&order) {
                cold.count_hidden((side, terms.price), -terms.hidden);
                cold.forget_expiry(terms.good_till, terms.arrival);
            }
        }
        self.forget(slot);
    }

    /// Gives up what is kept beside the book if there is nothing in it. At the end of a command.
    pub(super) fn drop_empty_cold_state(&mut self) {
        if self.cold.as_ref().is_some_and(|cold| cold.is_empty()) {
            self.cold = None;
        }
    }

    /// A resting order with what is kept of it beside the book.
    pub(super) fn with_terms(&self, mut order: RestingOrder) -> RestingOrder {
        if let Some(terms) = self.terms(self.key(order.uid, order.order_id)) {
            order.size += terms.hidden;
            order.hidden = terms.hidden;
            order.display = terms.display_in_use();
            order.good_till = terms.good_till;
        }
        order
    }

    /// Notes the conditions of an order that came to rest with `hidden` hidden lots.
    pub(super) fn note_terms(
        &mut self,
        slot: u32,
        asked: &ConditionalOrder,
        hidden: i64,
        arrival: Option<u64>,
    ) {
        let good_till = asked.good_till;
        if asked.display.is_none() && good_till.is_none() {
            return;
        }
        let key = self.key_at(slot);
        let cold = self.cold_mut();
        let arrival = arrival.unwrap_or_else(|| cold.next_arrival());
        cold.note_expiry(good_till, arrival, key);
        let terms = Terms {
            arrival,
            display: asked.display.unwrap_or_default(),
            hidden,
            price: self.ladder.nodes[slot].price,
            good_till,
        };
        self.set_terms(slot, terms);
    }
}

// Expiry: orders that live until a time, by the clock of the log. They leave their book by time,
// then in the order in which they came, whether they rest or, as stop orders, still wait.

impl Book {
    fn first_expiry(&self) -> Option<i64> {
        let expiries = &self.cold.as_ref()?.expiries;
        expiries.first_key_value().map(|(&(time, _), _)| time)
    }

    /// Returns whether something expires at or before `time`.
    pub(crate) fn expires_by(&self, time: i64) -> bool {
        self.first_expiry().is_some_and(|first| first <= time)
    }

    /// Notes when the first order expires, if that is sooner than what is noted. Returns what was
    /// noted before, and the new time.
    pub(crate) fn note_first_expiry(&mut self) -> Option<(Option<i64>, i64)> {
        let first = self.first_expiry()?;
        let is_sooner = self.noted_expiry.is_none_or(|due| first < due);
        is_sooner.then(|| (self.noted_expiry.replace(first), first))
    }

    /// Forgets when the first order expires, and returns what was noted.
    pub(crate) const fn take_noted_expiry(&mut self) -> Option<i64> {
        self.noted_expiry.take()
    }

    /// Takes out what expires at or before `time`, until there are `max` events. Cost: a few steps
    /// in trees for each.
    pub(crate) fn expire(&mut self, time: i64, max: usize, events: &mut Events) {
        while events.len() < max && self.expires_by(time) {
            let cold = self.cold_mut();
            let Some((_, order)) = cold.expiries.pop_first() else {
                break;
            };
            match self.find(order) {
                Some(slot) if self.ladder.nodes[slot].marks & WAITS == 0 => {
                    self.remove(slot, RemovalReason::Expired, events);
                }
                Some(slot) => self.remove_waiting(slot, RemovalReason::Expired, events),
                None => {}
            }
        }
        self.drop_empty_cold_state();
    }

    /// Returns when which orders expire, resting and waiting ones, as they would go; their owners
    /// where ids are per user, else 0.
    pub fn expiries(&self) -> impl Iterator<Item = (i64, UserId, OrderId)> + '_ {
        let expiries = self.cold.iter().flat_map(|cold| &cold.expiries);
        expiries.map(|(&(time, _), order)| (time, UserId(order.owner), OrderId(order.id)))
    }
}
