//! The users whose orders are to be compared with those that the exchange has open: at the start,
//! when they are followed first, and where their reports were lost.
//!
//! The exchange lists the open orders of a user at one place in the drop copy. A few users are
//! asked for at a time, which bounds what waits there. Each question has a token: a list with a
//! lower one may be of a place before the question, and answers nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use thalweg_exchange::UserId;
use thalweg_exchange::durable::Reports;
use thalweg_exchange::session::{Role, SessionKey};
use thalweg_server::{ExchangeHandle, OpenOrdersOf};
use tokio::sync::Notify;

use crate::lock;

/// Users that are asked for at a time.
const ASKED_MAX: usize = 8;

/// A user whose list is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The token of the question.
    pub(super) token: u64,
    /// The last sequence of the gateway's session that had been executed before the list.
    pub(super) executed: i64,
    /// It is asked for once more after this one.
    is_again: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    asked: BTreeMap<UserId, Asked>,
    wanted: BTreeSet<UserId>,
    /// The wanted ones, the one that has waited longest in front.
    queue: VecDeque<UserId>,
    /// The token of the next question.
    next: u64,
}

impl Waiting {
    fn push(&mut self, user: UserId) {
        if self.wanted.insert(user) {
            self.queue.push_back(user);
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ReconciliationQueue {
    exchange: ExchangeHandle,
    reports: Reports,
    /// The number of the gateway's sessions.
    number: u32,
    waiting: Mutex<Waiting>,
    compared: Notify,
}

impl ReconciliationQueue {
    pub(super) fn new(exchange: ExchangeHandle, reports: Reports, number: u32) -> Self {
        Self {
            exchange,
            reports,
            number,
            waiting: Mutex::default(),
            compared: Notify::new(),
        }
    }

    /// Returns the last sequence of a user's session with the gateway that was executed.
    pub(super) fn executed(&self, user: UserId) -> i64 {
        let key = SessionKey::new(Role::Trade, user.0, self.number);
        self.reports.session(key).last_executed.0 as i64
    }

    /// Has a user's orders compared with a list that is made from now on. Returns its token, or one
    /// below it and above those of all lists that were asked for before.
    pub(super) fn want(&self, user: UserId) -> u64 {
        let mut waiting = lock(&self.waiting);
        let token = waiting.next;
        if let Some(asked) = waiting.asked.get_mut(&user) {
            asked.is_again = true;
            return token;
        }
        waiting.push(user);
        self.ask(&mut waiting);
        token
    }

    fn ask(&self, waiting: &mut Waiting) {
        while waiting.asked.len() < ASKED_MAX
            && let Some(user) = waiting.queue.pop_front()
        {
            waiting.wanted.remove(&user);
            let token = waiting.next;
            waiting.next += 1;
            let asked = Asked {
                token,
                executed: self.executed(user),
                is_again: false,
            };
            waiting.asked.insert(user, asked);
            self.exchange.ask_open_orders(user, token);
        }
    }

    /// Asks again for all that are on their way: the drop copy has dropped entries. What had been
    /// executed stays that of the first time, since it may be the first list that comes.
    pub(super) fn ask_again(&self) {
        for (user, asked) in &lock(&self.waiting).asked {
            self.exchange.ask_open_orders(*user, asked.token);
        }
    }

    /// Returns the question that a list answers, if it is waited for.
    pub(super) fn answered(&self, list: &OpenOrdersOf) -> Option<Asked> {
        let asked = lock(&self.waiting).asked.get(&list.user).copied();
        asked.filter(|asked| list.token >= asked.token)
    }

    /// A user was compared with the list that was waited for.
    pub(super) fn done(&self, user: UserId) {
        let mut waiting = lock(&self.waiting);
        if waiting.asked.remove(&user).is_some_and(|one| one.is_again) {
            waiting.push(user);
        }
        self.ask(&mut waiting);
        drop(waiting);
        self.compared.notify_waiters();
    }

    /// Returns whether no list is waited for.
    pub(super) fn is_done(&self) -> bool {
        let waiting = lock(&self.waiting);
        waiting.asked.is_empty() && waiting.wanted.is_empty()
    }

    /// Returns whether a user's list is waited for.
    pub(super) fn has(&self, user: UserId) -> bool {
        let waiting = lock(&self.waiting);
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
