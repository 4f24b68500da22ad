//! Users made again from what a state snapshot has of them; see [`saved`](crate::risk::saved).

use super::{UserStatus, Users};
use crate::ids::UserId;
use crate::risk::limits::Retired;

impl Users {
    /// Adds a user who is not here yet, and was not removed either.
    pub(in crate::engine::risk) fn add_saved(&mut self, uid: UserId, status: UserStatus) -> u32 {
        // A user is suspended only if it was removed once.
        self.lost_any |= status == UserStatus::Suspended;
        self.add(uid, status)
    }

    /// Notes what is kept of a user who was removed.
    pub(in crate::engine::risk) fn add_retired(&mut self, uid: UserId, retired: Retired) {
        self.lost_any = true;
        self.retired.insert(uid, retired);
    }

    /// Counts an open order of a removed user; false where nothing is kept of such a user.
    pub(in crate::engine::risk) fn note_retired_order(&mut self, uid: UserId) -> bool {
        let retired = self.retired.get_mut(&uid);
        retired.is_some_and(|retired| {
            retired.terms.open_orders += 1;
            true
        })
    }
}
