//! The users whose orders are to be compared with those that the exchange has open: at the start,
//! when they are followed first, and where their reports were lost.
//!
//! The exchange lists the open orders of a user at one place in the drop copy. A few users are
//! asked for at a time, which bounds what waits there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use thalweg_exchange::UserId;
use thalweg_exchange::durable::Reports;
use thalweg_exchange::session::{Role, SessionKey};
use thalweg_server::OpenOrderLists;
use tokio::sync::Notify;

use super::lock;

/// Users that are asked for at a time.
const ASKED_MAX: usize = 8;

/// A user whose list is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The last sequence of the gateway's session that had been executed before the list.
    pub(super) executed: i64,
    /// It is asked for once more after this one.
    pub(super) is_again: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    asked: BTreeMap<UserId, Asked>,
    wanted: BTreeSet<UserId>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Lists {
    exchange: OpenOrderLists,
    reports: Reports,
    /// The number of the gateway's sessions.
    number: u32,
    waiting: Mutex<Waiting>,
    compared: Notify,
}

impl Lists {
    pub(super) fn new(exchange: OpenOrderLists, reports: Reports, number: u32) -> Self {
        Self {
            exchange,
            reports,
            number,
            waiting: Mutex::default(),
            compared: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Returns the last sequence of a user's session with the gateway that was executed.
    pub(super) fn executed(&self, user: UserId) -> i64 {
        let key = SessionKey::new(Role::Trade, user.0, self.number);
        self.reports.session(key).last_executed.0 as i64
    }

    /// Has a user's orders compared with a list that is made from now on.
    pub(super) fn want(&self, user: UserId) {
        let mut waiting = self.lock();
        if let Some(asked) = waiting.asked.get_mut(&user) {
            asked.is_again = true;
            return;
        }
        waiting.wanted.insert(user);
        self.ask(&mut waiting);
    }

    fn ask(&self, waiting: &mut Waiting) {
        while waiting.asked.len() < ASKED_MAX
            && let Some(user) = waiting.wanted.pop_first()
        {
            let asked = Asked {
                executed: self.executed(user),
                is_again: false,
            };
            waiting.asked.insert(user, asked);
            self.exchange.ask(user);
        }
    }

    /// Asks again for all that are on their way: the drop copy has dropped entries. What had been
    /// executed stays that of the first time, since it may be the first list that comes.
    pub(super) fn ask_again(&self) {
        let asked: Vec<UserId> = self.lock().asked.keys().copied().collect();
        asked.into_iter().for_each(|user| self.exchange.ask(user));
    }

    /// Returns the user's place, if its list is waited for.
    pub(super) fn asked(&self, user: UserId) -> Option<Asked> {
        self.lock().asked.get(&user).copied()
    }

    /// A user was compared with the list that was waited for.
    pub(super) fn done(&self, user: UserId) {
        let mut waiting = self.lock();
        if waiting.asked.remove(&user).is_some_and(|one| one.is_again) {
            waiting.wanted.insert(user);
        }
        self.ask(&mut waiting);
        drop(waiting);
        self.compared.notify_waiters();
    }

    /// Returns whether no list is waited for.
    pub(super) fn is_done(&self) -> bool {
        let waiting = self.lock();
        waiting.asked.is_empty() && waiting.wanted.is_empty()
    }

    /// Returns whether a user's list is waited for.
    pub(super) fn has(&self, user: UserId) -> bool {
        let waiting = self.lock();
        waiting.asked.contains_key(&user) || waiting.wanted.contains(&user)
    }

    /// Waits until no list of a user is waited for.
    pub(super) async fn compared(&self, user: UserId) {
        loop {
            let compared = self.compared.notified();
            if !self.has(user) {
                return;
            }
            compared.await;
        }
    }
}
