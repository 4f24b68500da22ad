//! The book's records of orders with conditions: hidden lots, expiry, stop triggers.
//!
//! *State*: of resting orders that hide lots or expire, their terms by id; when orders expire; and
//! stop orders, which wait and do not rest; and whether there is an auction. *Rules*: (1) a node
//! has a mark exactly while its order has terms, and terms exactly while it hides lots or expires,
//! or waits; (2) an order with a time to live is in `expiries` exactly while it rests or waits; (3)
//! a waiting order has a node, too, in no queue, so that the book's index knows its id; (4) there
//! is an `Aside` exactly while something is in it. Placing, moving or cancelling a plain order that
//! does not trade never looks here, whatever else is in the book.
//!
//! Found through trees: ids come from clients, and such orders are rare.

use std::collections::BTreeMap;

use super::auction::Uncrossing;
use super::stops::Stops;
use super::{Book, RestingOrder};
use crate::command::Action;
use crate::engine::index::OrderKey;

/// Mark of a node: lots of its order are hidden.
pub(super) const HIDES: u8 = 1;
/// Mark of a node: its order expires.
pub(super) const EXPIRES: u8 = 2;

/// Mark of a node: its order waits, is in no queue, and all but its key is kept in `stops`.
pub(super) const WAITS: u8 = 4;

/// The conditions of a resting order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Which of the orders with terms, and of the stop orders, came first.
    pub(super) arrival: u64,
    /// Lots shown at a time; means something while lots are hidden.
    pub(super) display: i64,
    pub(super) hidden: i64,
    /// The price at which its hidden lots are counted.
    pub(super) price: i64,
    pub(super) good_till: Option<i64>,
}

impl Terms {
    pub(super) const fn marks(&self) -> u8 {
        let hides = if self.hidden > 0 { HIDES } else { 0 };
        let expires = if self.good_till.is_some() { EXPIRES } else { 0 };
        hides | expires
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    arrivals: u64,
    pub(super) terms: BTreeMap<OrderKey, Terms>,
    /// Per side, by price: the lots that orders hide, where they hide any.
    hidden: [BTreeMap<i64, i128>; 2],
    /// By time, then by arrival.
    pub(super) expiries: BTreeMap<(i64, u64), OrderKey>,
    pub(super) stops: Stops,
    /// Orders are collected for an auction.
    pub(super) is_auction: bool,
    /// The end of the auction, while it goes on in further commands.
    pub(super) uncrossing: Option<Box<Uncrossing>>,
}

impl Aside {
    fn is_empty(&self) -> bool {
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
    pub(super) fn aside_mut(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    /// The terms of a resting order, if it has any.
    pub(super) fn terms(&self, order: OrderKey) -> Option<&Terms> {
        self.aside.as_ref()?.terms.get(&order)
    }

    /// Lots of a resting order that are not shown.
    #[inline]
    pub(super) fn hidden(&self, slot: u32) -> i64 {
        if self.ladder.nodes[slot].marks & HIDES == 0 {
            return 0;
        }
        self.look_up_hidden(slot)
    }

    #[cold]
    #[inline(never)]
    fn look_up_hidden(&self, slot: u32) -> i64 {
        let terms = self.terms(self.key_at(slot));
        terms.map_or(0, |terms| terms.hidden)
    }

    /// Writes the terms of a resting order, and its marks; forgets terms that ask for nothing.
    pub(super) fn set_terms(&mut self, slot: u32, terms: Terms) {
        let marks = terms.marks();
        let node = &mut self.ladder.nodes[slot];
        let order = node.key(self.owners);
        let (side, price) = (node.action, node.price);
        let before = std::mem::replace(&mut node.marks, marks);
        if marks == 0 && before == 0 {
            return;
        }
        let aside = self.aside_mut();
        let before = match marks {
            0 => aside.terms.remove(&order),
            _ => aside.terms.insert(order, Terms { price, ..terms }),
        };
        if let Some(before) = before {
            aside.count_hidden((side, before.price), -before.hidden);
        }
        aside.count_hidden((side, price), terms.hidden);
    }

    /// Returns the lots that the orders of a price hide.
    pub(super) fn hidden_at(&self, side: Action, price: i64) -> i128 {
        let hidden = self
            .aside
            .as_ref()
            .map(|aside| &aside.hidden[side as usize]);
        let lots = hidden.and_then(|hidden| hidden.get(&price));
        lots.copied().unwrap_or(0)
    }

    /// Forgets an order that is in no queue any more, with its terms.
    pub(super) fn discard(&mut self, slot: u32) {
        let node = &self.ladder.nodes[slot];
        if node.marks != 0 {
            let (order, side) = (node.key(self.owners), node.action);
            let aside = self.aside_mut();
            if let Some(terms) = aside.terms.remove(&order) {
                aside.count_hidden((side, terms.price), -terms.hidden);
                aside.forget_expiry(terms.good_till, terms.arrival);
            }
        }
        self.forget(slot);
    }

    /// Gives up what is kept beside the book if there is nothing in it. At the end of a command.
    pub(super) fn tidy(&mut self) {
        if self.aside.as_ref().is_some_and(|aside| aside.is_empty()) {
            self.aside = None;
        }
    }

    /// A resting order with what is kept of it beside the book.
    pub(super) fn completed(&self, mut order: RestingOrder) -> RestingOrder {
        if let Some(terms) = self.terms(self.key(order.uid, order.order_id)) {
            order.size += terms.hidden;
            order.hidden = terms.hidden;
            order.display = (terms.hidden > 0).then_some(terms.display);
            order.good_till = terms.good_till;
        }
        order
    }
}
