//! The users whose reports a session wants: the publisher makes no frames for others.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_exchange::UserId;

use crate::lock;

/// See the [module](self). Sessions enter and leave on the thread that publishes.
#[derive(Debug, Default)]
pub(crate) struct ReportReaders {
    users: Mutex<HashSet<UserId>>,
    changes: AtomicU64,
}

impl ReportReaders {
    /// Sets whether a session wants the reports of a user.
    pub(crate) fn set(&self, user: UserId, is_wanted: bool) {
        let mut users = lock(&self.users);
        match is_wanted {
            true => users.insert(user),
            false => users.remove(&user),
        };
        // ORDERING: Relaxed; both sides are the same thread.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn has(&self, user: UserId) -> bool {
        let users = lock(&self.users);
        users.contains(&user)
    }
}

/// The last user who was looked up. Most reports in a row are for one user.
#[derive(Debug, Default)]
pub(crate) struct LastReader {
    user: UserId,
    is_wanted: bool,
    /// The number of changes, and 1, when the user was looked up; 0 before.
    looked_up_at: u64,
}

impl LastReader {
    /// Returns whether a session wants the reports of a user.
    #[inline]
    pub(crate) fn wants(&mut self, readers: &ReportReaders, user: UserId) -> bool {
        // ORDERING: Relaxed, as in `ReportReaders::set`.
        let now = readers.changes.load(Ordering::Relaxed) + 1;
        if self.user != user || self.looked_up_at != now {
            (self.user, self.looked_up_at) = (user, now);
            self.is_wanted = readers.has(user);
        }
        self.is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_who_looked_before() {
        let (readers, mut last) = (ReportReaders::default(), LastReader::default());
        let mut wants = |user| last.wants(&readers, UserId(user));
        assert!(!wants(0) && !wants(7));
        readers.set(UserId(7), true);
        assert!(wants(7) && !wants(0) && wants(7));
        readers.set(UserId(7), false);
        assert!(!wants(7));
    }
}
