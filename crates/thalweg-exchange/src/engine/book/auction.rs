//! Call auctions: orders are collected, then all trade at one price.
//!
//! *Collecting*: no order takes, so the book may be crossed. The ladder keeps both sides apart as
//! long: its window, which they share, is shut. Stop orders wait.
//!
//! *The price* is that at which most lots trade; of those, where the fewest are left over on the
//! side that has too many; of those, the one nearest to a reference. Lots that could be bought fall
//! with the price and lots that could be sold rise with it, so the prices that are as good as the
//! best are all in a row: one of them is nearest, and no tie is left.
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

use super::Book;
use super::ladder::mask;
use crate::command::Action;
use crate::event::{Event, Events, Removal};
use crate::ids::{OrderId, UserId};
use crate::rules::Rules;

/// What an auction would come to if it ended now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indicative {
    /// The price of all trades.
    pub price: i64,
    /// Lots that would trade; above zero.
    pub volume: i64,
    /// Lots that would be left of those who buy at that price; below zero, of those who sell.
    pub surplus: i64,
}

/// Prices from `low` to `high` between which no order has a limit, and what could be bought and
/// sold there.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    low: i64,
    high: i64,
    bought: i128,
    sold: i128,
}

impl Stretch {
    const fn volume(&self) -> i128 {
        if self.bought < self.sold {
            self.bought
        } else {
            self.sold
        }
    }

    const fn surplus(&self) -> i128 {
        self.bought - self.sold
    }
}

impl Book {
    /// True while orders are collected; see
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

    /// At which price and how much would trade if the auction ended now, with the price nearest to
    /// `reference`; without one, to the last trade, or else in the middle of the prices that are as
    /// good. `None` where nothing would trade.
    ///
    /// Cost: a look at each level that would trade, and at each order that hides lots.
    #[must_use]
    pub fn indicative(&self, reference: Option<i64>) -> Option<Indicative> {
        let (ask, bid) = (self.best(Action::Ask)?.price, self.best(Action::Bid)?.price);
        let sides = [self.curve(Action::Ask, bid), self.curve(Action::Bid, ask)];
        let stretches = stretches(&sides);
        let best = stretches
            .iter()
            .map(|stretch| (-stretch.volume(), stretch.surplus().abs()))
            .min()?;
        let is_best =
            |stretch: &&Stretch| (-stretch.volume(), stretch.surplus().abs()) == best && best.0 < 0;
        let low = stretches.iter().find(is_best)?.low;
        let last = stretches.iter().rfind(is_best)?;
        let middle = low + (last.high - low) / 2;
        let reference = reference.or(self.last).unwrap_or(middle);
        let price = reference.clamp(low, last.high);
        let here = |stretch: &&Stretch| stretch.low <= price && price <= stretch.high;
        let at = stretches.iter().find(here)?;
        Some(Indicative {
            price,
            volume: i64::try_from(at.volume()).ok()?,
            surplus: i64::try_from(at.surplus()).ok()?,
        })
    }

    /// Lots of each price of a side inside the band, hidden ones included, best first, up to a
    /// price of the other.
    fn curve(&self, side: Action, limit: i64) -> Vec<(i64, i128)> {
        let is_in = |price: i64| price ^ mask(side) <= limit ^ mask(side);
        let (low, high) = self.band;
        let levels = self.levels(side, usize::MAX);
        let levels = levels.take_while(|level| is_in(level.price));
        // Orders outside the band will not be there any more.
        let levels = levels.filter(|level| (low..=high).contains(&level.price));
        let mut curve: Vec<(i64, i128)> = levels
            .map(|level| (level.price, level.volume.into()))
            .collect();
        let terms = self.aside.iter().flat_map(|aside| &aside.terms);
        for (&order, terms) in terms.filter(|(_, terms)| terms.hidden > 0) {
            let Some(slot) = self.find(order) else {
                continue;
            };
            let node = &self.ladder.nodes[slot];
            let key = |price: i64| price ^ mask(side);
            let at = curve.binary_search_by_key(&key(node.price), |&(price, _)| key(price));
            if let (true, Ok(at)) = (node.action == side, at) {
                curve[at].1 += i128::from(terms.hidden);
            }
        }
        curve
    }

    /// Ends the auction: what can trade does, at one price.
    #[cold]
    pub(crate) fn uncross(&mut self, reference: Option<i64>, rules: &Rules, events: &mut Events) {
        let (low, high) = self.band;
        let is_outside = |price| price < low || price > high;
        self.remove_resting(Removal::OutsideBand, events, is_outside);
        let first = events.len();
        if let Some(found) = self.indicative(reference) {
            self.trade_at(found.price, found.volume, events);
            self.last = Some(found.price);
        }
        self.aside_mut().is_auction = false;
        self.ladder.reopen();
        if rules.trigger_passed_stops {
            self.reach_last();
        }
        self.run_stops(first, rules, events);
    }

    /// The best buyer meets the best seller until so many lots have changed hands.
    fn trade_at(&mut self, price: i64, volume: i64, events: &mut Events) {
        let mut left = volume;
        while left > 0 {
            let slot = self.head(Action::Bid);
            let buyer = self.ladder.nodes[slot];
            let all = buyer.left + self.hidden(slot);
            events.push(Event::Uncrossed {
                order: OrderId(buyer.id),
                uid: UserId(buyer.uid),
                user: buyer.user(),
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
                events.push(Event::Trade {
                    price,
                    size,
                    maker_order: OrderId(seller.id),
                    maker_uid: UserId(seller.uid),
                    maker_user: seller.user(),
                    maker_filled: seller.filled + size,
                    maker_left: seller.left + self.hidden(slot) - size,
                    maker_completed: size == seller.left && self.hidden(slot) == 0,
                    taker_completed: missing == 0 && shown == all,
                    bidder_hold_price: buyer.reserve_price,
                    taker_action: Action::Bid,
                });
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

/// The prices from the best ask to the best bid, in ascending order; none where they do not cross.
fn stretches([asks, bids]: &[Vec<(i64, i128)>; 2]) -> Vec<Stretch> {
    let mut prices: Vec<i64> = asks.iter().chain(bids).map(|&(price, _)| price).collect();
    prices.sort_unstable();
    prices.dedup();
    let (mut asks, mut bids) = (asks.iter().peekable(), bids.iter().rev().peekable());
    let mut bought: i128 = bids.clone().map(|&(_, lots)| lots).sum();
    let mut sold = 0;
    let mut all = Vec::with_capacity(2 * prices.len());
    for (at, &price) in prices.iter().enumerate() {
        while let Some((_, lots)) = asks.next_if(|ask| ask.0 <= price) {
            sold += lots;
        }
        all.push(Stretch {
            low: price,
            high: price,
            bought,
            sold,
        });
        while let Some((_, lots)) = bids.next_if(|bid| bid.0 <= price) {
            bought -= lots;
        }
        if let Some(&next) = prices.get(at + 1)
            && next - price > 1
        {
            all.push(Stretch {
                low: price + 1,
                high: next - 1,
                bought,
                sold,
            });
        }
    }
    all
}
