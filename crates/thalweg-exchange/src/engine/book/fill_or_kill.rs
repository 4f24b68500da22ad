//! Orders that must be filled whole (FOK, FOK_BUDGET): whether one would be, before it trades.
//!
//! The lots that it counts must be those that `Book::take` would take: see `taking.rs`.
//!
//! *Cost*: a step for each level that it would take from. It refuses at the first level whose price
//! could not pay for all missing lots, or for a seller not bring in enough: else an order with
//! money for one lot would scan the whole book. Orders are visited one by one only where there are
//! enough lots, and the order must not meet its owner's, or could make more events than one may.
//! Where the rules bound them, `WORK_MAX` levels are visited at most, and as many orders.

use super::Book;
use crate::command::{Place, SelfTrade};
use crate::event::{Events, RejectReason};
use crate::rules::{REFILL_WORK, Rules};

/// The numbers of visits and events that are left to an order.
struct Bounds {
    levels: usize,
    orders: usize,
    events: usize,
}

/// More would have to be visited, or the order would make more events than it may: whether it would
/// be filled whole is not known.
struct TooMuch;

impl Bounds {
    fn visit_level(&mut self) -> Result<(), TooMuch> {
        self.levels = self.levels.checked_sub(1).ok_or(TooMuch)?;
        Ok(())
    }

    fn visit_order(&mut self) -> Result<(), TooMuch> {
        self.orders = self.orders.checked_sub(1).ok_or(TooMuch)?;
        Ok(())
    }

    fn make_events(&mut self, events: i128) -> Result<(), TooMuch> {
        let events = usize::try_from(events).map_err(|_| TooMuch)?;
        self.events = self.events.checked_sub(events).ok_or(TooMuch)?;
        Ok(())
    }
}

impl Book {
    /// Checks that a new order would be filled whole at prices up to `limit`, at a total cost that
    /// `is_good` accepts; where it accepts a cost, it accepts each better one. Counts the visits.
    ///
    /// # Errors
    /// [`RejectReason::FillOrKill`], or [`RejectReason::WorkLimit`] where that is not known.
    pub(super) fn check_filled(
        &self,
        place: &Place,
        limit: i64,
        is_good: impl Fn(i128) -> bool,
        rules: &Rules,
        events: &mut Events,
    ) -> Result<(), RejectReason> {
        let max = rules.work_max();
        let mut bounds = Bounds {
            levels: max,
            orders: max,
            events: max,
        };
        let filled = self.is_filled((place, limit), &is_good, rules, &mut bounds);
        events.add_visits((max - bounds.levels) + (max - bounds.orders));
        match filled {
            Ok(true) => Ok(()),
            Ok(false) => Err(RejectReason::FillOrKill),
            Err(TooMuch) => Err(RejectReason::WorkLimit),
        }
    }

    /// Returns whether a new order would be filled whole: by the sums of levels if that is enough,
    /// else by [`others_fill`](Self::others_fill).
    fn is_filled(
        &self,
        (place, limit): (&Place, i64),
        is_good: impl Fn(i128) -> bool,
        rules: &Rules,
        bounds: &mut Bounds,
    ) -> Result<bool, TooMuch> {
        let side = place.action.opposite();
        let mut missing = i128::from(place.size);
        let (mut cost, mut orders, mut hides) = (0_i128, 0_u64, false);
        for (_, level) in self.ladder.levels_between(side, (i64::MIN, limit)) {
            bounds.visit_level()?;
            let value = |lots: i128| lots.saturating_mul(level.price.into());
            // No missing lot will have a better price than this level.
            if !is_good(cost.saturating_add(value(missing))) {
                return Ok(false);
            }
            let hidden = self.hidden_at(side, level.price);
            let lots = i128::from(level.volume) + hidden;
            hides |= hidden != 0;
            if missing <= lots {
                // Each order has a lot at least, so the missing lots trade with at most as many.
                let last =
                    u64::try_from(missing).map_or(level.orders, |lots| lots.min(level.orders));
                let may_be_much = hides || orders.saturating_add(last) > bounds.events as u64;
                let may_be_much = rules.bound_work && may_be_much;
                // Enough lots may still not fill it: some may be the owner's, or take too many
                // events. Too few never do.
                return match place.flags.self_trade() == SelfTrade::Allow && !may_be_much {
                    true => Ok(true),
                    false => self.others_fill((place, limit), is_good, bounds),
                };
            }
            orders += level.orders;
            missing -= lots;
            cost = cost.saturating_add(value(lots));
        }
        Ok(false)
    }

    /// Returns whether a new order would be filled whole by the orders that it may meet, each of
    /// which is visited.
    fn others_fill(
        &self,
        (place, limit): (&Place, i64),
        is_good: impl Fn(i128) -> bool,
        bounds: &mut Bounds,
    ) -> Result<bool, TooMuch> {
        let side = place.action.opposite();
        let mode = place.flags.self_trade();
        let mut missing = i128::from(place.size);
        let mut cost = 0_i128;
        for (slot, level) in self.ladder.levels_between(side, (i64::MIN, limit)) {
            let value = |lots: i128| lots.saturating_mul(level.price.into());
            if !is_good(cost.saturating_add(value(missing))) {
                return Ok(false);
            }
            // A taker takes the displayed lots of all orders of the level, then the hidden ones.
            let (mut lots, mut hidden, mut is_blocked) = (0_i128, 0_i128, false);
            let mut orders = self.ladder.queue(slot);
            while missing > lots
                && let Some(slot) = orders.next()
            {
                bounds.visit_order()?;
                let order = &self.ladder.nodes[slot];
                if mode != SelfTrade::Allow && order.uid == place.uid.0 {
                    is_blocked |= mode != SelfTrade::CancelMaker;
                    bounds.make_events(1)?;
                } else if !is_blocked {
                    let hides = self.hidden(slot);
                    lots += i128::from(order.left);
                    hidden += i128::from(hides);
                    // When its displayed lots are filled, a refill follows the trade.
                    let refill = if hides > 0 { REFILL_WORK } else { 0 };
                    bounds.make_events(1 + refill as i128)?;
                }
            }
            if !is_blocked && missing > lots {
                bounds.make_events(self.replenishing_events(slot, (missing - lots).min(hidden)))?;
                lots += hidden;
            }
            if missing <= lots || is_blocked {
                return Ok(missing <= lots);
            }
            missing -= lots;
            cost = cost.saturating_add(value(lots));
        }
        Ok(false)
    }
}
