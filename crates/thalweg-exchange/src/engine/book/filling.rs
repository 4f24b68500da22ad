//! Whether an order that must be filled whole (FOK, FOK_BUDGET) would be.
//!
//! *Cost*: a step for each level that it would take from, and where orders hide lots, a look at the
//! orders there. A budget order is refused at the first level from which on even its best price
//! would not do for all lots that are missing: otherwise who holds money for one lot could have
//! the whole book visited. Orders are looked at one by one only where an order must not meet its
//! owner's, and there are enough lots with those.

use super::Book;
use crate::command::{Place, SelfTrade};

impl Book {
    /// Whether a new order would be filled whole at prices up to `limit`, at a cost that
    /// `is_good`: which is good of each that is better, too.
    pub(super) fn is_filled(
        &self,
        place: &Place,
        limit: i64,
        is_good: impl Fn(i128) -> bool,
    ) -> bool {
        // Own orders only leave less, at worse prices.
        self.levels_fill(place, limit, &is_good)
            && (place.flags.self_trade() == SelfTrade::Allow
                || self.others_fill(place, limit, is_good))
    }

    fn levels_fill(&self, place: &Place, limit: i64, is_good: impl Fn(i128) -> bool) -> bool {
        let side = place.action.opposite();
        let mut missing = i128::from(place.size);
        let mut cost = 0_i128;
        for (slot, level) in self.ladder.levels_between(side, (i64::MIN, limit)) {
            let value = |lots: i128| lots.saturating_mul(level.price.into());
            // No lot that is missing will be better than those here.
            if !is_good(cost.saturating_add(value(missing))) {
                return false;
            }
            let lots = i128::from(level.volume) + self.hidden_at(slot, side, &level);
            if missing <= lots {
                return true;
            }
            missing -= lots;
            cost = cost.saturating_add(value(lots));
        }
        false
    }
}
