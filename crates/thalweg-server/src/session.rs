//! A connection that was welcomed: who it is, and what it wants.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{QueryAnswer, ServerFrame, Symbols};
use thalweg_exchange::session::{Role, SessionKey};
use thalweg_exchange::{SymbolId, UserId};

use crate::keys::Key;
use crate::outbox::{Budget, Outbox};

/// Symbols that a session may name in its subscriptions, all together.
const INTEREST_MAX: usize = 1 << 16;

/// Queries of a session that may be without an answer.
pub(crate) const QUERIES_MAX: u32 = 64;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Session {
    /// Tells this connection from others of the same session.
    pub(crate) id: u64,
    pub(crate) key: SessionKey,
    /// The key that it showed; `None` where none are needed.
    pub(crate) shown: Option<Arc<Key>>,
    pub(crate) cancels_on_disconnect: bool,
    pub(crate) wants_reports: bool,
    pub(crate) heartbeat: Duration,
    pub(crate) outbox: Outbox,
    /// When something was last heard of it, in ms after `since`.
    heard_ms: AtomicU64,
    since: Instant,
    /// Whether the writer is not woken yet, since more commands of this read are to be executed.
    holds_answers: AtomicBool,
    /// Queries without an answer.
    queries: AtomicU32,
    /// Whether open orders are on their way: they may be many.
    lists: AtomicBool,
    interest: Mutex<Interest>,
}

/// Which market data a session wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) all: bool,
    pub(crate) symbols: BTreeSet<SymbolId>,
    /// Counts the changes.
    pub(crate) version: u64,
}

/// What differs between sessions.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) id: u64,
    pub(crate) key: SessionKey,
    pub(crate) shown: Option<Arc<Key>>,
    pub(crate) cancels_on_disconnect: bool,
    pub(crate) wants_reports: bool,
    pub(crate) heartbeat: Duration,
    pub(crate) out_bytes_max: usize,
    pub(crate) budget: Arc<Budget>,
}

impl Session {
    pub(crate) fn new(terms: Terms, now: Instant) -> Self {
        Self {
            id: terms.id,
            key: terms.key,
            shown: terms.shown,
            cancels_on_disconnect: terms.cancels_on_disconnect,
            wants_reports: terms.wants_reports,
            heartbeat: terms.heartbeat,
            outbox: Outbox::new(terms.out_bytes_max, terms.budget),
            heard_ms: AtomicU64::new(0),
            since: now,
            holds_answers: AtomicBool::new(false),
            queries: AtomicU32::new(0),
            lists: AtomicBool::new(false),
            interest: Mutex::default(),
        }
    }

    /// The user whose reports and account it may see; an administrator has none.
    pub(crate) fn user(&self) -> Option<UserId> {
        (self.key.role != Role::Admin).then_some(UserId(self.key.holder))
    }

    /// The name of the key that it showed.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.shown.as_ref().map(|key| key.name.as_str())
    }

    /// Something came.
    pub(crate) fn hear(&self, now: Instant) {
        let ms = now.saturating_duration_since(self.since).as_millis() as u64;
        // ORDERING: Relaxed, pairs with the load in silent_for(); a number and nothing else.
        self.heard_ms.store(ms, Ordering::Relaxed);
    }

    /// Nothing of it is read until it is heard again: no silence of its own. Its answers leave.
    pub(crate) fn leave_unread(&self) {
        self.release_answers();
        self.note_unread();
    }

    /// Nothing of it is read until it is heard again.
    pub(crate) fn note_unread(&self) {
        // ORDERING: Relaxed, pairs with the load in silent_for().
        self.heard_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// How long nothing came, while the server has read all there was.
    pub(crate) fn silent_for(&self, now: Instant) -> Duration {
        // ORDERING: Relaxed, pairs with the store in hear().
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(self.since)
            .saturating_sub(heard)
    }

    /// Stops waking the writer for new answers, until [`release_answers`](Self::release_answers).
    pub(crate) fn hold_answers(&self) {
        // ORDERING: Relaxed, pairs with the load in wake(); a hint alone.
        self.holds_answers.store(true, Ordering::Relaxed);
    }

    /// Wakes the writer if answers were held, and for new ones from now on.
    pub(crate) fn release_answers(&self) {
        // ORDERING: Relaxed, pairs with the load in wake(). Who pushes after the writer has looked
        // sees it by the outbox's lock, which the writer held in between.
        if self.holds_answers.swap(false, Ordering::Relaxed) {
            self.outbox.wake();
        }
    }

    /// Wakes the writer, unless answers are held.
    pub(crate) fn wake(&self) {
        // ORDERING: Relaxed, pairs with the store in release_answers().
        if !self.holds_answers.load(Ordering::Relaxed) {
            self.outbox.wake();
        }
    }

    fn interest_mut(&self) -> MutexGuard<'_, Interest> {
        self.interest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds symbols. False where they would be too many.
    pub(crate) fn subscribe(&self, symbols: &Symbols<'_>) -> bool {
        let mut interest = self.interest_mut();
        interest.all |= symbols.is_all();
        interest.symbols.extend(symbols.iter());
        interest.version += 1;
        drop(interest);
        self.outbox.wake();
        self.interest_mut().symbols.len() <= INTEREST_MAX
    }

    /// Returns how many symbols it has subscribed to by name.
    pub(crate) fn symbols(&self) -> usize {
        self.interest_mut().symbols.len()
    }

    /// Takes symbols away; all of them, with the subscription to all. A symbol that is named has no
    /// effect on that.
    pub(crate) fn unsubscribe(&self, symbols: &Symbols<'_>) {
        let mut interest = self.interest_mut();
        if symbols.is_all() {
            interest.all = false;
            interest.symbols.clear();
        }
        for symbol in symbols.iter() {
            interest.symbols.remove(&symbol);
        }
        interest.version += 1;
        drop(interest);
        self.outbox.wake();
    }

    /// Gives the answer to a query.
    pub(crate) fn answer_query(&self, answer: &QueryAnswer) {
        // ORDERING: Relaxed, pairs with the other side in begin_query(); a count alone.
        self.queries.fetch_sub(1, Ordering::Relaxed);
        self.outbox.push(&ServerFrame::QueryAnswer(answer.clone()));
        self.outbox.wake();
    }

    /// Counts a query, which [`answer_query`](Self::answer_query) ends. False where too many have
    /// no answer; it is counted all the same.
    pub(crate) fn begin_query(&self) -> bool {
        // ORDERING: Relaxed, pairs with the other side in answer_query().
        self.queries.fetch_add(1, Ordering::Relaxed) < QUERIES_MAX
    }

    /// Begins a query for open orders, unless one is under way.
    pub(crate) fn begin_list(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in end_list(); a flag alone.
        !self.lists.swap(true, Ordering::Relaxed)
    }

    /// Open orders were answered, or refused.
    pub(crate) fn end_list(&self) {
        // ORDERING: Relaxed, pairs with the swap in begin_list().
        self.lists.store(false, Ordering::Relaxed);
    }

    /// What it wants, if that changed since a version.
    pub(crate) fn interest(&self, since: u64) -> Option<Interest> {
        let interest = self.interest_mut();
        (interest.version != since).then(|| interest.clone())
    }
}

#[cfg(test)]
impl Session {
    /// A holder's first session, without a key.
    pub(crate) fn unkeyed(id: u64, role: Role, holder: i64, wants_reports: bool) -> Self {
        let terms = Terms {
            id,
            key: SessionKey::new(role, holder, 0),
            shown: None,
            cancels_on_disconnect: false,
            wants_reports,
            heartbeat: Duration::from_secs(1),
            out_bytes_max: 1 << 20,
            budget: Arc::new(Budget::new(1 << 30)),
        };
        Self::new(terms, Instant::now())
    }
}
