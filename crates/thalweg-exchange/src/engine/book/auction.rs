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
//! would uncross them. Then the best buyer meets the best seller, by price and time, until the
//! volume is done; all at that price. An iceberg order shows new lots at the end of its queue, as
//! ever. Self-trade prevention does nothing here: who takes and who makes is undefined, and an
//! order that went would change the price for all others. *Why the book is not crossed afterwards*:
//! say sellers are used up at the price p, and at an ask a above p a buyer still stands. Then more
//! could be bought at a than was traded, and more be sold there than at p: at a, more would trade.
//!
//! Then stop orders are triggered, by the last price too, in a market that goes on as ever.

use super::ladder::mask;
use super::{Book, Level};
use crate::command::Action;
use crate::event::{Event, Events, LevelChange, Removal};
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
#[derive(Clone, Copy, Debug)]
struct Lots {
    price: i128,
    lots: i128,
}

/// The unfilled lots at the best prices of both sides after all trades that are possible.
#[derive(Clone, Copy, Debug)]
struct Left {
    ask: Option<Lots>,
    bid: Option<Lots>,
}

/// More than any lots, and beyond all prices.
const NO_LOTS: i128 = i128::MAX;
const ABOVE: i128 = i64::MAX as i128 + 1;
const BELOW: i128 = i64::MIN as i128 - 1;

impl Left {
    fn ask_price(&self) -> i128 {
        self.ask.map_or(ABOVE, |ask| ask.price)
    }

    fn bid_price(&self) -> i128 {
        self.bid.map_or(BELOW, |bid| bid.price)
    }

    /// The lowest and the highest price of the smallest surplus, of those between the worst ask and
    /// the worst bid that traded: at these, all of it trades.
    fn prices(
        &self,
        (low, high): (i128, i128),
        next_ask: impl FnOnce() -> Option<Lots>,
        next_bid: impl FnOnce() -> Option<Lots>,
    ) -> (i128, i128) {
        let (ask, bid) = (self.ask_price(), self.bid_price());
        let balanced = (low.max(bid + 1), high.min(ask - 1));
        if balanced.0 <= balanced.1 {
            return balanced;
        }
        // At every price an order is left over: buyers up to `bid`, sellers from `ask` on.
        let bought = self.bid.filter(|bid| bid.price >= low);
        let sold = self.ask.filter(|ask| ask.price <= high);
        let [bought, sold] = [bought, sold].map(|left| left.map_or(NO_LOTS, |left| left.lots));
        let first = if bought <= sold {
            low.max(next_bid().map_or(BELOW, |next| next.price) + 1)
        } else {
            ask
        };
        let last = if sold <= bought {
            high.min(next_ask().map_or(ABOVE, |next| next.price) - 1)
        } else {
            bid
        };
        (first, last)
    }

    /// Returns the lots left over at one of these prices; below zero, those of sellers.
    fn surplus(&self, price: i128) -> i128 {
        match (self.ask, self.bid) {
            (_, Some(bid)) if price <= bid.price => bid.lots,
            (Some(ask), _) if price >= ask.price => -ask.lots,
            _ => 0,
        }
    }
}

impl Book {
    /// Returns true while orders are collected; see
    /// [`Command::StartAuction`](crate::Command::StartAuction).
    #[must_use]
    #[inline]
    pub fn is_auction(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.is_auction)
    }

    #[cold]
    pub(crate) fn start_auction(&mut self) {
        self.aside_mut().is_auction = true;
        self.ladder.shut();
    }

    /// Returns at which price and how much would trade if the auction ended now, with the price
    /// nearest to `reference`; without one, to the last trade, or else in the middle of the prices
    /// that are as good. `None` where nothing would trade.
    ///
    /// Cost: a look at each level that would trade and at two more of each side, and where orders
    /// hide lots, at the orders there.
    #[must_use]
    pub fn indicative(&self, reference: Option<i64>) -> Option<Indicative> {
        let [mut asks, mut bids] = [Action::Ask, Action::Bid].map(|side| self.lots_in_band(side));
        let (mut ask, mut bid) = (asks.next(), bids.next());
        let (mut volume, mut worst) = (0, None);
        while let (Some(seller), Some(buyer)) = (&mut ask, &mut bid)
            && seller.price <= buyer.price
        {
            let lots = seller.lots.min(buyer.lots);
            volume += lots;
            worst = Some((seller.price, buyer.price));
            seller.lots -= lots;
            buyer.lots -= lots;
            let (is_sold, is_bought) = (seller.lots == 0, buyer.lots == 0);
            if is_sold {
                ask = asks.next();
            }
            if is_bought {
                bid = bids.next();
            }
        }
        let left = Left { ask, bid };
        let (low, high) = left.prices(worst?, || asks.next(), || bids.next());
        let middle = low + (high - low) / 2;
        let reference = reference.or(self.last).map_or(middle, i128::from);
        let price = reference.clamp(low, high);
        Some(Indicative {
            price: i64::try_from(price).ok()?,
            volume: i64::try_from(volume).ok()?,
            surplus: i64::try_from(left.surplus(price)).ok()?,
        })
    }

    /// Lots of each price of a side inside the band, hidden ones included, best first: orders
    /// outside will not be there any more.
    fn lots_in_band(&self, side: Action) -> impl Iterator<Item = Lots> + '_ {
        let levels = self.ladder.levels_within(side, self.band);
        levels.map(move |(slot, level)| Lots {
            price: level.price.into(),
            lots: i128::from(level.volume) + self.hidden_at(slot, side, &level),
        })
    }

    /// Lots that the orders of a level hide.
    pub(super) fn hidden_at(&self, slot: u32, side: Action, level: &Level) -> i128 {
        let Some(aside) = &self.aside else {
            return 0;
        };
        if level.orders < aside.terms.len() as u64 {
            let orders = self.ladder.queue(slot);
            return orders.map(|order| i128::from(self.hidden(order))).sum();
        }
        let hidden = aside.terms.iter().filter(|(_, terms)| terms.hidden > 0);
        let here = hidden.filter(|&(&order, _)| {
            let order = self.find(order).map(|slot| &self.ladder.nodes[slot]);
            order.is_some_and(|order| (order.action, order.price) == (side, level.price))
        });
        here.map(|(_, terms)| i128::from(terms.hidden)).sum()
    }

    /// Ends the auction: what can trade does, at one price.
    #[cold]
    pub(crate) fn uncross(&mut self, reference: Option<i64>, rules: &Rules, events: &mut Events) {
        let every = (Removal::OutsideBand, usize::MAX);
        self.remove_resting(every, events, Some(self.band));
        let first = events.len();
        if let Some(found) = self.indicative(reference) {
            self.trade_at(found.price, found.volume, events);
            self.last = Some(found.price);
        }
        self.aside_mut().is_auction = false;
        self.ladder.reopen();
        if rules.trigger_passed_stops {
            self.note_last();
        }
        self.run_stops(first, rules, events);
    }

    /// Matches the best buyer with the best seller until `volume` lots have changed hands.
    fn trade_at(&mut self, price: i64, volume: i64, events: &mut Events) {
        let mut left = volume;
        while left > 0 {
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
            let shown = buyer.left.min(left);
            let mut missing = shown;
            while missing > 0 {
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
                    taker_completed: missing == 0 && shown == all,
                    bidder_hold_price: buyer.reserve_price,
                    taker_action: Action::Bid,
                });
                let level = LevelChange::unread(self.spec.id, Action::Ask, seller.price);
                events.note_level(level);
                self.fill(slot, size, events);
            }
            self.fill(slot, shown, events);
            left -= shown;
        }
    }

    /// The order of a side that is first in time at the best price; there must be one.
    fn head(&mut self, side: Action) -> u32 {
        let key = self.ladder.find_best_key(side);
        let level = self.ladder.level_of(side, key ^ mask(side));
        self.ladder.nodes[level].next
    }
}
