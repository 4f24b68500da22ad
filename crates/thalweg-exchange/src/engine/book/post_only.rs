//! Orders that must not take.
//!
//! A new one that would take is rejected whole, by an ordinary reject, and touches nothing; that is
//! looked at before self-trade prevention: an order of the same user is in its
//! way like any other. A resting one stays post-only: a move to where it would take is refused
//! with [`MatchingMoveFailedPostOnly`](crate::ResultCode::MatchingMoveFailedPostOnly), and the
//! order stays where it is, with its place in time, as exchanges do whose amendments either
//! happen whole or not at all.

use super::Book;
use super::ladder::{NO_KEY, mask};
use crate::command::Action;

impl Book {
    /// Whether an order of some lots would trade at once.
    pub(super) fn would_take(&mut self, action: Action, price: i64) -> bool {
        let side = action.opposite();
        let is_reached = self.ladder.reaches(side, price ^ mask(side));
        let key = self.ladder.best_key(side);
        is_reached && (key != NO_KEY || self.ladder.level_at(side, key).is_some())
    }
}
