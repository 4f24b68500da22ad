//! Infers orders that are older than the recording from recorded rows: one anonymous order for each
//! piece of volume that no known order explains.

use super::desk::Desk;
use crate::input::rows::{PriceSize, Row};
use crate::report::facts::Count;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_exchange::{Action, OrderId};

/// The degree to which a recorded row is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The row may be some messages early or late: only anonymous orders follow it.
    Loose,
    /// The row is the state after exactly this message. Known orders that the row has no room for
    /// left while they were out of view, and are removed too, the youngest first.
    Exact,
}

/// The anonymous orders of one book.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Anonymous orders of each level, oldest first.
    levels: BTreeMap<(Action, i64), Vec<OrderId>>,
    all: BTreeSet<OrderId>,
    /// The number of levels that gained anonymous volume.
    learnt: u64,
    /// The number of levels whose anonymous volume was lowered to the recorded volume.
    lowered: u64,
    /// The number of known orders that were lowered or removed because a row has no room for them.
    pub(super) corrected: u64,
}

impl Unknown {
    /// Returns whether an order stands for volume older than the recording.
    pub(super) fn is_anonymous(&self, order: OrderId) -> bool {
        self.all.contains(&order)
    }

    /// Returns how many levels were learnt and lowered.
    pub(super) fn level_counts(&self) -> [Count; 2] {
        [
            Count::new("levels_learnt", self.learnt),
            Count::new("levels_lowered", self.lowered),
        ]
    }

    /// Takes lots off the anonymous orders of a level, the oldest first, and returns how many were
    /// taken.
    pub(super) fn take(&mut self, desk: &mut Desk, action: Action, price: i64, lots: i64) -> i64 {
        let mut wanted = lots;
        for &order in self.levels.get(&(action, price)).into_iter().flatten() {
            wanted -= desk.reduce(order, wanted);
        }
        lots - wanted
    }

    /// Sets the anonymous volume of every level in view to the volume that the row leaves
    /// unexplained. Volume that would trade at once is not learnt: the sides of a loose row may be
    /// apart.
    pub(super) fn learn(&mut self, desk: &mut Desk, row: &Row, trust: Trust) {
        for action in [Action::Bid, Action::Ask] {
            let recorded = side(row, action);
            let Some(&(worst, _)) = recorded.last() else {
                continue;
            };
            let recorded: BTreeMap<i64, i64> = recorded.iter().copied().collect();
            let mut ours: BTreeMap<i64, i64> = desk
                .levels(action)
                .take_while(|&(price, _)| !is_worse(action, price, worst))
                .collect();
            for &price in recorded.keys() {
                ours.entry(price).or_insert(0);
            }
            for (price, size) in ours {
                let wanted = recorded.get(&price).copied().unwrap_or(0);
                self.adjust(desk, action, price, wanted - size, trust);
            }
        }
    }

    fn adjust(&mut self, desk: &mut Desk, action: Action, price: i64, by: i64, trust: Trust) {
        if by > 0 {
            if desk.crosses(action, price) {
                return;
            }
            let order = desk.rest_anonymous(action, price, by);
            self.levels.entry((action, price)).or_default().push(order);
            self.all.insert(order);
            self.learnt += 1;
        } else if by < 0 {
            let taken = self.take(desk, action, price, -by);
            self.lowered += u64::from(taken > 0);
            let mut over = -by - taken;
            if trust == Trust::Exact && over > 0 {
                for order in desk.orders_youngest_first(action, price) {
                    let gone = desk.reduce(order, over);
                    over -= gone;
                    self.corrected += u64::from(gone > 0);
                }
            }
        }
    }
}

/// Returns the levels of one side of a row.
pub(super) fn side(row: &Row, action: Action) -> &[PriceSize] {
    match action {
        Action::Bid => &row.bids,
        Action::Ask => &row.asks,
    }
}

/// Returns whether a price lies deeper in its book than another.
pub(super) fn is_worse(action: Action, price: i64, than: i64) -> bool {
    match action {
        Action::Bid => price < than,
        Action::Ask => price > than,
    }
}
