//! The registry of sessions that are connected, and of the users who want reports.
//!
//! A session has one connection: a newer one takes its place. Connections that have ended stay here
//! until their last bytes are written, and are found by their slot alone.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::session::{Role, SessionKey};

use crate::lock;
use crate::session::{Session, SessionId};

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Sessions {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    by_key: HashMap<SessionKey, SessionId>,
    /// Those that want reports.
    by_user: HashMap<UserId, Vec<SessionId>>,
    /// Connections of a user that ask for cancel on disconnect.
    cancelling: HashMap<UserId, usize>,
    /// The users of `by_user`, for the publisher.
    report_readers: Arc<ReportReaders>,
}

impl Sessions {
    pub(crate) fn new(report_readers: Arc<ReportReaders>) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_key: HashMap::new(),
            by_user: HashMap::new(),
            cancelling: HashMap::new(),
            report_readers,
        }
    }

    /// Returns the slot that the next session will have.
    pub(crate) fn next_id(&mut self) -> SessionId {
        if self.vacant.is_empty() {
            self.vacant.push(self.slots.len() as u32);
            self.slots.push(Slot::default());
        }
        let slot = self.vacant[self.vacant.len() - 1];
        SessionId::new(slot, self.slots[slot as usize].generation)
    }

    /// Puts a session into its [slot](Self::next_id).
    pub(crate) fn insert(&mut self, session: Box<Session>) -> SessionId {
        let id = self.next_id();
        self.vacant.pop();
        self.slots[id.slot()].session = Some(session);
        id
    }

    /// Takes a session out of its slot, which is vacant from now on.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Box<Session>> {
        self.get(id)?;
        let slot = &mut self.slots[id.slot()];
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(id.slot() as u32);
        slot.session.take()
    }

    #[inline]
    pub(crate) fn get(&mut self, id: SessionId) -> Option<&mut Session> {
        let slot = self.slots.get_mut(id.slot())?;
        let is_it = SessionId::new(id.slot() as u32, slot.generation) == id;
        slot.session.as_deref_mut().filter(|_| is_it)
    }

    /// Returns the session that has a slot now.
    pub(crate) fn id_at(&self, at: usize) -> Option<SessionId> {
        let slot = self.slots.get(at)?;
        let is_there = slot.session.is_some();
        is_there.then(|| SessionId::new(at as u32, slot.generation))
    }

    /// Returns all that are here, those that have ended too.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SessionId> + use<> {
        let slots = self.slots.iter().enumerate();
        let there = slots.filter(|(_, slot)| slot.session.is_some());
        let ids = there.map(|(at, slot)| SessionId::new(at as u32, slot.generation));
        ids.collect::<Vec<_>>().into_iter()
    }

    /// Returns the number of slots, vacant ones too.
    pub(crate) const fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.vacant.len()
    }

    pub(crate) fn of_key(&self, key: SessionKey) -> Option<SessionId> {
        self.by_key.get(&key).copied()
    }

    pub(crate) fn of_user(&self, user: UserId) -> &[SessionId] {
        self.by_user.get(&user).map_or(&[], Vec::as_slice)
    }

    /// Enters a session into the tables, in place of an older one of the same key, which is
    /// returned.
    pub(crate) fn enter(&mut self, id: SessionId) -> Option<SessionId> {
        let session = self.get(id)?;
        let key = session.terms.key;
        let user = session.user();
        let (wants_reports, cancels) = (
            session.terms.wants_reports,
            session.terms.cancels_on_disconnect,
        );
        if let Some(user) = user {
            if wants_reports {
                self.by_user.entry(user).or_default().push(id);
                self.report_readers.set(user, true);
            }
            if cancels {
                *self.cancelling.entry(user).or_default() += 1;
            }
        }
        self.by_key.insert(key, id)
    }

    /// Returns the users whose orders go with a session.
    pub(crate) fn cancelling(&self) -> impl Iterator<Item = UserId> {
        self.cancelling.keys().copied()
    }

    /// Takes a session out of the tables. Returns the user whose orders go with it, if it was the
    /// last that asked for that.
    pub(crate) fn leave(&mut self, id: SessionId) -> Option<UserId> {
        let session = self.get(id)?;
        if std::mem::replace(&mut session.has_left, true) {
            return None;
        }
        let (key, user) = (session.terms.key, session.user());
        let cancels = session.terms.cancels_on_disconnect;
        if self.by_key.get(&key) == Some(&id) {
            self.by_key.remove(&key);
        }
        let user = user?;
        if let Some(of_user) = self.by_user.get_mut(&user) {
            of_user.retain(|other| *other != id);
            if of_user.is_empty() {
                self.by_user.remove(&user);
                self.report_readers.set(user, false);
            }
        }
        if !cancels {
            return None;
        }
        let count = self.cancelling.get_mut(&user)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.cancelling.remove(&user);
        Some(user)
    }

    /// Returns the session for which most bytes of answers and reports wait, one that has ended
    /// too, if any waits. Visits all [slots](Self::slots).
    pub(crate) fn largest(&self) -> Option<SessionId> {
        let waiting = |slot: &Slot| Some(slot.session.as_ref()?.output.answers());
        let slots = self.slots.iter().enumerate();
        let lengths = slots.filter_map(|(at, slot)| Some((waiting(slot)?, at)));
        let (_, at) = lengths.max().filter(|(length, _)| *length > 0)?;
        self.id_at(at)
    }

    /// Ends all sessions. Returns them.
    pub(crate) fn end_all(&mut self, why: CloseReason) -> impl Iterator<Item = SessionId> + use<> {
        for slot in &mut self.slots {
            if let Some(session) = &mut slot.session {
                session.output.end(why, "");
            }
        }
        self.ids()
    }

    /// Returns how many are connected in each role, in the order of [`Role::ALL`].
    pub(crate) fn counts(&self) -> [usize; 3] {
        Role::ALL.map(|role| self.by_key.keys().filter(|key| key.role == role).count())
    }
}

/// The users whose reports a session wants: the publisher makes no frames for others. Sessions
/// enter and leave on the thread that publishes.
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
