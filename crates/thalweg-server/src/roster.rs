//! Which sessions are connected, and for whom.
//!
//! A session has one connection: a newer one takes its place. Under the roster's lock a newcomer
//! gets its welcome and the reports that it missed, and is entered; so the publisher, which
//! asks through its [`Directory`](crate::directory::Directory), neither overtakes a welcome nor
//! leaves a gap.
//!
//! A connection is taken out by a request to the exchange, behind all that it has sent: so
//! the orders that go with it are those that were placed before, and not those of who comes next.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::Ending;
use thalweg_exchange::session::{Role, SessionKey};

use crate::keys::Keys;
use crate::session::Session;

/// What those are told whose key is not among the new ones.
pub(crate) const WITHDRAWN: &str = "the key was withdrawn";

#[derive(Debug, Default)]
struct Tables {
    by_key: HashMap<SessionKey, Arc<Session>>,
    /// Those that want reports.
    by_user: HashMap<UserId, Vec<Arc<Session>>>,
    /// Connections of a user that ask for cancel on disconnect.
    cancelling: HashMap<UserId, usize>,
    is_closed: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Roster {
    tables: Mutex<Tables>,
    /// Raised, under the lock, whenever somebody comes or leaves.
    version: AtomicU64,
}

impl Roster {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often somebody has come or left.
    pub(crate) fn version(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in raise_version().
        self.version.load(Ordering::Acquire)
    }

    fn raise_version(&self) {
        // ORDERING: Release, pairs with the Acquire in version(). That a newcomer's is seen in time
        // rests on the lock of the exchange's tables: see the directory.
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn session(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.tables().by_key.get(&key).cloned()
    }

    pub(crate) fn of_user(&self, user: UserId) -> Box<[Arc<Session>]> {
        let tables = self.tables();
        let sessions = tables.by_user.get(&user);
        sessions.map_or_else(Box::default, |sessions| sessions.as_slice().into())
    }

    /// Enters a connection after `welcome`, in place of an older one of the same session. Older is
    /// what was taken before: a hello that was under way while the server stood still is read late,
    /// and its client has a newer connection by then.
    ///
    /// # Errors
    /// Why it is not entered.
    pub(crate) fn enter(
        &self,
        session: &Arc<Session>,
        welcome: impl FnOnce(),
    ) -> Result<(), Ending> {
        let mut tables = self.tables();
        if tables.is_closed {
            return Err(Ending::Shutdown);
        }
        let present = tables.by_key.get(&session.key);
        if present.is_some_and(|present| present.id > session.id) {
            return Err(Ending::Replaced);
        }
        self.raise_version();
        if let Some(older) = tables.by_key.insert(session.key, Arc::clone(session)) {
            tables.forget_reports(&older);
            older.outbox.end(Ending::Replaced, "");
        }
        if let Some(user) = session.user() {
            if session.wants_reports {
                let of_user = tables.by_user.entry(user).or_default();
                of_user.push(Arc::clone(session));
            }
            if session.cancels_on_disconnect {
                *tables.cancelling.entry(user).or_default() += 1;
            }
        }
        welcome();
        Ok(())
    }

    /// A connection is gone. The user whose orders go with it, if it was the last that asked for
    /// that.
    pub(crate) fn leave(&self, session: &Session) -> Option<UserId> {
        let mut tables = self.tables();
        self.raise_version();
        let is_it = |other: &Arc<Session>| other.id == session.id;
        if tables.by_key.get(&session.key).is_some_and(is_it) {
            tables.by_key.remove(&session.key);
            tables.forget_reports(session);
        }
        let user = session.user().filter(|_| session.cancels_on_disconnect)?;
        let count = tables.cancelling.get_mut(&user)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        tables.cancelling.remove(&user);
        Some(user)
    }

    /// Ends all connections, and enters none from now on.
    pub(crate) fn close(&self, why: Ending, text: &str) {
        let mut tables = self.tables();
        tables.is_closed = true;
        for session in tables.by_key.values() {
            session.outbox.end(why, text);
        }
    }

    /// The users whose orders go with connections that are not taken out any more.
    pub(crate) fn abandoned(&self) -> Vec<UserId> {
        let mut tables = self.tables();
        tables.cancelling.drain().map(|(user, _)| user).collect()
    }

    /// Ends the connections whose keys are not there any more; gives how many.
    pub(crate) fn withdraw(&self, keys: &Keys) -> usize {
        let tables = self.tables();
        let is_out =
            |session: &&Arc<Session>| session.shown.as_ref().is_none_or(|key| !keys.holds(key));
        let out = tables.by_key.values().filter(is_out);
        out.map(|session| {
            session.outbox.end(Ending::WrongKey, WITHDRAWN);
        })
        .count()
    }

    /// How many are connected in each role, in the order of [`Role::ALL`].
    pub(crate) fn counts(&self) -> [usize; 3] {
        let tables = self.tables();
        Role::ALL.map(|role| tables.by_key.keys().filter(|key| key.role == role).count())
    }

    /// Ends the connection for which most bytes wait. Returns false where there is none.
    pub(crate) fn end_largest(&self) -> bool {
        let tables = self.tables();
        let sessions = tables.by_key.values();
        let open = sessions.filter(|session| session.outbox.ending().is_none());
        let largest = open.max_by_key(|session| session.outbox.bytes());
        largest
            .map(|session| session.outbox.end_largest())
            .is_some()
    }

    /// Bytes that wait to be written, of all together.
    pub(crate) fn bytes_waiting(&self) -> usize {
        let tables = self.tables();
        tables
            .by_key
            .values()
            .map(|session| session.outbox.bytes())
            .sum()
    }
}

impl Tables {
    fn forget_reports(&mut self, session: &Session) {
        let Some(user) = session.user() else {
            return;
        };
        if let Some(of_user) = self.by_user.get_mut(&user) {
            of_user.retain(|other| other.id != session.id);
            if of_user.is_empty() {
                self.by_user.remove(&user);
            }
        }
    }
}
