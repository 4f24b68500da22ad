//! What the publisher remembers of the roster, so that it need not lock and search it for each
//! outcome.
//!
//! *State.* Places that hold what the roster said of a session or a user, all of one version of the
//! roster. *Rules.*
//! 1. The version is read after the exchange's tables have noted what is published; where it is
//!    another one, all places are emptied.
//! 2. What is not in its place is asked of the roster, under its lock.
//! 3. A newcomer raises the version, under that lock, before it looks at the tables.
//!
//! *Why no newcomer misses a report.* Either the tables had noted it when the newcomer looked, and
//! it was given what they had; or they noted it later, under their lock: then the newcomer's
//! version is seen (1, 3), and the roster is asked, which waits until the newcomer is in it (2).

use std::sync::Arc;

use thalweg_exchange::UserId;
use thalweg_exchange::session::SessionKey;

use crate::roster::Roster;
use crate::session::Session;

/// Places for sessions, and as many for users; more of them than that share places.
const PLACES: usize = 256;

type Place<K, V> = Option<(K, V)>;
type Connections = Box<[Arc<Session>]>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Directory {
    roster: Arc<Roster>,
    version: u64,
    sessions: Box<[Place<SessionKey, Option<Arc<Session>>>]>,
    users: Box<[Place<UserId, Connections>]>,
}

/// The place of a number: ids are often consecutive, and those of no rule do no harm.
const fn place_of(number: i64) -> usize {
    (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> (usize::BITS - 8)
}

impl Directory {
    pub(crate) fn new(roster: Arc<Roster>) -> Self {
        Self {
            version: roster.version(),
            roster,
            sessions: std::iter::repeat_with(|| None).take(PLACES).collect(),
            users: std::iter::repeat_with(|| None).take(PLACES).collect(),
        }
    }

    /// Forgets everything if the roster has changed; gives whether it has.
    #[inline]
    pub(crate) fn refresh(&mut self) -> bool {
        let version = self.roster.version();
        let has_changed = version != self.version;
        if has_changed {
            self.version = version;
            self.sessions.fill_with(|| None);
            self.users.fill_with(|| None);
        }
        has_changed
    }

    /// The connection of a session, if it has one.
    pub(crate) fn session(&mut self, key: SessionKey) -> Option<&Arc<Session>> {
        let place = &mut self.sessions[place_of(key.holder ^ i64::from(key.number) << 32)];
        if place.as_ref().is_none_or(|(of, _)| *of != key) {
            *place = Some((key, self.roster.session(key)));
        }
        place.as_ref().and_then(|(_, session)| session.as_ref())
    }

    /// The connections that want a user's reports.
    pub(crate) fn of_user(&mut self, user: UserId) -> &[Arc<Session>] {
        let place = &mut self.users[place_of(user.0)];
        if place.as_ref().is_none_or(|(of, _)| *of != user) {
            *place = Some((user, self.roster.of_user(user)));
        }
        place.as_ref().map_or(&[], |(_, sessions)| sessions)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::session::Role;

    use super::*;

    fn session(id: u64, holder: i64) -> Arc<Session> {
        Arc::new(Session::unkeyed(id, Role::Trade, holder, true))
    }

    #[test]
    fn who_comes_replaces_and_leaves_is_seen_and_places_are_shared() {
        let roster = Arc::<Roster>::default();
        let mut directory = Directory::new(Arc::clone(&roster));
        let mut seen = |session: &Arc<Session>| {
            directory.refresh();
            let ids = [
                directory.session(session.key).map(|found| found.id),
                directory
                    .of_user(UserId(session.key.holder))
                    .first()
                    .map(|found| found.id),
            ];
            assert_eq!(ids[0], ids[1]);
            ids[0]
        };
        // Enough that many share a place.
        let all: Vec<_> = (0..2_000).map(|at| session(at, at as i64)).collect();
        for one in &all {
            assert_eq!(seen(one), None);
            assert!(roster.enter(one, || ()).is_ok());
            assert_eq!(seen(one), Some(one.id));
        }
        assert!(all.iter().all(|one| seen(one) == Some(one.id)));
        let newer = session(5_000, 7);
        assert!(roster.enter(&newer, || ()).is_ok());
        assert_eq!(seen(&all[7]), Some(5_000));
        roster.leave(&all[7]);
        assert_eq!(seen(&newer), Some(5_000), "it has taken the place");
        roster.leave(&newer);
        assert_eq!(seen(&newer), None);
    }

    #[test]
    fn a_newcomer_changes_the_version_before_it_is_welcomed() {
        let roster = Roster::default();
        let before = roster.version();
        let mut at_welcome = before;
        let entered = roster.enter(&session(1, 1), || at_welcome = roster.version());
        assert!(entered.is_ok());
        assert_ne!(at_welcome, before);
    }
}
