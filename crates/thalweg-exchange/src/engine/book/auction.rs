//! Call auctions: orders are collected, then all trade at one price.
//!
//! *Collecting*: no order takes, so the book may be crossed. The ladder keeps both sides apart as
//! long: its window, which they share, is shut. Stop orders wait.
//!
//! *The price* is that at which most lots trade; of those, where the fewest are left over on the
//! side that has too many; of those, the one nearest to a reference. Lots that could be bought fall
//! with the price and lots that could be sold rise with it, so the prices that are as good as the
//! best are all in a row: one of them is nearest, and no tie is left. It is found by matching the
//! lots of both sides, best price first, until they do not cross any more: what is left then at the
//! best prices decides, and no level is looked at but those that trade and two more of a side.
//!
//! *The uncross*: orders whose price is outside the band are taken out first; no price of the band
//! would uncross them. Then the best buyer meets the best seller, by price and time, as long as
//! both trade at the price, which is until the volume is done; all at that price. An iceberg order
//! displays new lots at the end of its queue, as ever. Self-trade prevention does nothing here: who
//! takes and who makes is undefined, and an order that went would change the price for all others.
//! *Why the book is not crossed afterwards*: say sellers are used up at the price p, and at an ask
//! a above p a buyer still stands. Then more could be bought at a than was traded, and more be sold
//! there than at p: at a, more would trade.
//!
//! *Steps*: a command takes as many orders out, looks at as many levels, or makes as many events as
//! one may. Where more are left, [`Uncrossing`] is kept, and the next command goes on from there.
//! Meanwhile no order comes, changes or leaves, so the result is that of one command: who could
//! take orders away after the price was found could set it by orders that never trade. Cancels are
//! refused; a mass cancel of an owner, and the end of a session, are noted, and take the orders out
//! when all trades are done. Then orders that have expired are removed, and a mass cancel of all
//! users' orders goes on.
//!
//! Then stop orders are triggered, by the last price too, in a market that goes on as ever.

use std::collections::BTreeSet;

use super::Book;
use super::orders::mask;
use crate::command::Action;
use crate::event::{Event, Events, LevelChange, RemovalReason};
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

/// The result of an auction if it ended now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indicative {
    /// The price of all trades.
    pub price: i64,
    /// Lots that would trade; above zero.
    pub volume: i64,
    /// The unfilled lots of buyers at that price; below zero, of sellers.
    pub surplus: i64,
}

/// Lots of one side at a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lots {
    pub(crate) price: i64,
    pub(crate) lots: i128,
}

/// The search for the price, which matches lots of both sides, best price first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The unfilled lots at the best prices of both sides after the trades so far.
    pub(crate) ask: Option<Lots>,
    pub(crate) bid: Option<Lots>,
    /// The worst ask and the worst bid that traded so far.
    pub(crate) worst: Option<(i64, i64)>,
    pub(crate) volume: i128,
}

/// The end of an auction that goes on in further commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncrossing {
    pub(crate) reference: Option<i64>,
    /// The search for the price, once it has begun and until it has ended.
    pub(crate) walk: Option<Walk>,
    /// The price at which orders trade, once it was found.
    pub(crate) price: Option<i64>,
    /// Owners whose orders leave after the trades, and of whom only those leave that go with a
    /// session.
    pub(crate) leaving: BTreeSet<(UserId, bool)>,
    /// A mass cancel of all orders follows.
    pub(crate) cancels_all: bool,
}

/// More than any lots, and beyond all prices.
const NO_LOTS: i128 = i128::MAX;
const ABOVE: i128 = i64::MAX as i128 + 1;
const BELOW: i128 = i64::MIN as i128 - 1;

fn price_or(lots: Option<Lots>, other: i128) -> i128 {
    lots.map_or(other, |lots| lots.price.into())
}

impl Walk {
    /// Returns whether lots at the best prices are left that trade.
    fn is_crossed(&self) -> bool {
        price_or(self.ask, ABOVE) <= price_or(self.bid, BELOW)
    }

    /// Returns the lowest and the highest price of the smallest surplus, of those between the worst
    /// ask and the worst bid that traded: at these, all of it trades.
    fn prices(
        &self,
        (low, high): (i128, i128),
        next_ask: impl FnOnce() -> Option<Lots>,
        next_bid: impl FnOnce() -> Option<Lots>,
    ) -> (i128, i128) {
        let (ask, bid) = (price_or(self.ask, ABOVE), price_or(self.bid, BELOW));
        let balanced = (low.max(bid + 1), high.min(ask - 1));
        if balanced.0 <= balanced.1 {
            return balanced;
        }
        // At every price an order is left over: buyers up to `bid`, sellers from `ask` on.
        let bought = self.bid.filter(|bid| i128::from(bid.price) >= low);
        let sold = self.ask.filter(|ask| i128::from(ask.price) <= high);
        let [bought, sold] = [bought, sold].map(|left| left.map_or(NO_LOTS, |left| left.lots));
        let first = if bought <= sold {
            low.max(price_or(next_bid(), BELOW) + 1)
        } else {
            ask
        };
        let last = if sold <= bought {
            high.min(price_or(next_ask(), ABOVE) - 1)
        } else {
            bid
        };
        (first, last)
    }

    /// Returns the lots left over at one of these prices; below zero, those of sellers.
    fn surplus(&self, price: i128) -> i128 {
        match (self.ask, self.bid) {
            (_, Some(bid)) if price <= bid.price.into() => bid.lots,
            (Some(ask), _) if price >= ask.price.into() => -ask.lots,
            _ => 0,
        }
    }
}

impl Book {
    #[cold]
    pub(crate) fn start_auction(&mut self) {
        self.cold_mut().is_auction = true;
        self.ladder.shut();
    }

    /// Returns at which price and how much would trade if the auction ended now, with the price
    /// nearest to `reference`; without one, to the last trade, or else in the middle of the prices
    /// that are as good. `None` where nothing would trade.
    ///
    /// Cost: a look at each level that would trade and at two more of each side.
    #[must_use]
    pub fn indicative(&self, reference: Option<i64>) -> Option<Indicative> {
        let mut walk = self.begin_walk();
        self.go_on(&mut walk, usize::MAX);
        self.found(&walk, reference)
    }

    fn begin_walk(&self) -> Walk {
        let [ask, bid] = [Action::Ask, Action::Bid].map(|side| self.lots_beyond(side, None).next());
        Walk {
            ask,
            bid,
            worst: None,
            volume: 0,
        }
    }

    /// Matches lots of both sides until they do not cross any more, or `most` levels were looked
    /// at. Returns how many were.
    fn go_on(&self, walk: &mut Walk, most: usize) -> usize {
        let [mut asks, mut bids] = [(Action::Ask, walk.ask), (Action::Bid, walk.bid)]
            .map(|(side, last)| self.lots_beyond(side, last.map(|last| last.price)));
        let mut levels = 0;
        while levels < most
            && walk.is_crossed()
            && let (Some(seller), Some(buyer)) = (&mut walk.ask, &mut walk.bid)
        {
            let lots = seller.lots.min(buyer.lots);
            walk.volume += lots;
            walk.worst = Some((seller.price, buyer.price));
            seller.lots -= lots;
            buyer.lots -= lots;
            let (is_sold, is_bought) = (seller.lots == 0, buyer.lots == 0);
            levels += usize::from(is_sold) + usize::from(is_bought);
            if is_sold {
                walk.ask = asks.next();
            }
            if is_bought {
                walk.bid = bids.next();
            }
        }
        levels
    }

    /// Returns the price after all trades that are possible; `None` if there are none.
    fn found(&self, walk: &Walk, reference: Option<i64>) -> Option<Indicative> {
        let worst = walk.worst.map(|(ask, bid)| (ask.into(), bid.into()))?;
        let next = |side, last: Option<Lots>| self.lots_beyond(side, Some(last?.price)).next();
        let next_ask = || next(Action::Ask, walk.ask);
        let (low, high) = walk.prices(worst, next_ask, || next(Action::Bid, walk.bid));
        let middle = low + (high - low) / 2;
        let reference = reference.or(self.last).map_or(middle, i128::from);
        let price = reference.clamp(low, high);
        Some(Indicative {
            price: i64::try_from(price).ok()?,
            volume: i64::try_from(walk.volume).ok()?,
            surplus: i64::try_from(walk.surplus(price)).ok()?,
        })
    }

    /// Returns lots of each price of a side inside the band, hidden ones included, best first, from
    /// behind the price `last` on: orders outside will not be there any more.
    fn lots_beyond(&self, side: Action, last: Option<i64>) -> impl Iterator<Item = Lots> + '_ {
        let (low, high) = self.band;
        let (best, worst) = match side {
            Action::Ask => (low, high),
            Action::Bid => (high, low),
        };
        let first = match last {
            Some(last) => (last ^ mask(side)).checked_add(1),
            None => Some(best ^ mask(side)),
        };
        let keys = first.map(|first| (first, worst ^ mask(side)));
        let levels = keys.into_iter();
        let levels = levels.flat_map(move |keys| self.ladder.levels_between(side, keys));
        levels.map(move |(_, level)| Lots {
            price: level.price,
            lots: i128::from(level.volume) + self.hidden_at(side, level.price),
        })
    }

    /// Ends the auction, or goes on with that as far as one command may: what can trade does, at
    /// one price. Returns whether a mass cancel of all orders follows; `None` where the end goes
    /// on.
    #[cold]
    pub(crate) fn uncross(
        &mut self,
        reference: Option<i64>,
        rules: &Rules,
        events: &mut Events,
    ) -> Option<bool> {
        let begun = self.cold_mut().uncrossing.take();
        let mut progress = begun.unwrap_or_else(|| {
            Box::new(Uncrossing {
                reference,
                ..Uncrossing::default()
            })
        });
        let is_done = self.uncross_on(&mut progress, rules.work_max(), events);
        let cold = self.cold_mut();
        if !is_done {
            cold.uncrossing = Some(progress);
            self.leave_reached(events);
            return None;
        }
        cold.is_auction = false;
        self.ladder.reopen();
        if rules.trigger_passed_stops {
            self.note_last();
        }
        self.run_stops(0, rules, events);
        Some(progress.cancels_all)
    }

    /// Returns whether no orders are left that trade, or leave.
    fn uncross_on(&mut self, progress: &mut Uncrossing, most: usize, events: &mut Events) -> bool {
        if self.remove_outside(most, events) {
            return false;
        }
        if progress.price.is_none() {
            let begun = progress.walk.take();
            let mut walk = begun.unwrap_or_else(|| self.begin_walk());
            let levels = self.go_on(&mut walk, most);
            events.add_visits(levels);
            if walk.is_crossed() {
                progress.walk = Some(walk);
                return false;
            }
            let found = self.found(&walk, progress.reference);
            progress.price = found.map(|found| found.price);
        }
        if let Some(price) = progress.price
            && !self.trade_at(price, most, events)
        {
            return false;
        }
        while let Some((uid, is_end)) = progress.leaving.pop_first() {
            if events.len() >= most {
                progress.leaving.insert((uid, is_end));
                return false;
            }
            let why = match is_end {
                true => RemovalReason::Disconnected,
                false => RemovalReason::CancelAll,
            };
            self.remove_of(uid, why, events);
        }
        true
    }

    /// Returns whether the end of an auction goes on: no order comes, changes or leaves.
    #[inline]
    pub(crate) fn is_uncrossing(&self) -> bool {
        self.uncrossing().is_some()
    }

    /// Has the orders of an owner leave, all or those that go with his session, when the end of the
    /// auction is done. Returns false where none goes on.
    pub(crate) fn postpone_leaving(&mut self, uid: UserId, why: RemovalReason) -> bool {
        if !self.is_uncrossing() {
            return false;
        }
        self.keep_owners();
        let has_orders = self.may_have_orders_of(uid);
        let progress = self.cold_mut().uncrossing.as_mut();
        if let Some(progress) = progress.filter(|_| has_orders) {
            progress
                .leaving
                .insert((uid, why == RemovalReason::Disconnected));
        }
        true
    }

    /// Has a mass cancel of all orders follow the end of the auction. Returns false where none goes
    /// on.
    pub(crate) fn postpone_cancel_all(&mut self) -> bool {
        let cold = self.cold.as_mut();
        let progress = cold.and_then(|cold| cold.uncrossing.as_mut());
        progress
            .map(|progress| progress.cancels_all = true)
            .is_some()
    }

    /// Returns the end of the auction, if it goes on.
    pub(crate) fn uncrossing(&self) -> Option<&Uncrossing> {
        self.cold.as_ref()?.uncrossing.as_deref()
    }

    /// Has the end of the auction go on from here.
    pub(crate) fn restore_uncrossing(&mut self, progress: Uncrossing) {
        self.cold_mut().uncrossing = Some(Box::new(progress));
    }

    /// Matches the best buyer with the best seller until one of them does not trade at the price.
    /// Returns false, and leaves others over, once there are `most` events.
    fn trade_at(&mut self, price: i64, most: usize, events: &mut Events) -> bool {
        while self.trades_at(price, Action::Bid) && self.trades_at(price, Action::Ask) {
            if events.len() >= most {
                return false;
            }
            self.last = Some(price);
            let slot = self.head(Action::Bid);
            let buyer = self.ladder.nodes[slot];
            let all = buyer.left + self.hidden(slot);
            events.push(Event::Uncrossed {
                order: OrderId(buyer.id),
                uid: UserId(buyer.uid),
                action: buyer.action,
                price: buyer.price,
                size: all,
                filled: buyer.filled,
                bidder_hold_price: buyer.reserve_price,
            });
            let mut missing = buyer.left;
            loop {
                let slot = self.head(Action::Ask);
                let seller = self.ladder.nodes[slot];
                let size = missing.min(seller.left);
                missing -= size;
                events.hint_next(seller.user());
                events.push(Event::Trade {
                    price,
                    size,
                    maker_order: OrderId(seller.id),
                    maker_uid: UserId(seller.uid),
                    maker_filled: seller.filled + size,
                    maker_left: seller.left + self.hidden(slot) - size,
                    maker_completed: size == seller.left && self.hidden(slot) == 0,
                    taker_completed: missing == 0 && buyer.left == all,
                    bidder_hold_price: buyer.reserve_price,
                    taker_action: Action::Bid,
                });
                let level = LevelChange::unread(self.spec.id, Action::Ask, seller.price);
                events.note_level(level);
                self.fill(slot, size, events);
                if missing == 0 || events.len() >= most || !self.trades_at(price, Action::Ask) {
                    break;
                }
            }
            self.fill(slot, buyer.left - missing, events);
        }
        true
    }

    /// Returns whether the best order of a side trades at this price.
    fn trades_at(&mut self, price: i64, side: Action) -> bool {
        let best = self.ladder.find_best_price(side);
        best.is_some_and(|best| best ^ mask(side) <= price ^ mask(side))
    }

    /// Returns the order of a side that is first in time at the best price; there must be one.
    fn head(&mut self, side: Action) -> u32 {
        let key = self.ladder.find_best_key(side);
        let level = self.ladder.level_of(side, key ^ mask(side));
        self.ladder.nodes[level].next
    }
}
