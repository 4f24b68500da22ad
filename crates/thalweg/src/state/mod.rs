//! Control state: the data path reads it by one load; transitions are declared and logged.
//!
//! A [`StateCell`] holds a [`Lifecycle`]. The data path reads it, which is one load; the control
//! path changes it, which takes a lock, checks that the transition is one of the declared, logs it,
//! and wakes the threads and tasks that wait for it.
//!
//! ```
//! use thalweg::state::{Lifecycle, StateCell};
//!
//! let state = StateCell::new("gateway", Lifecycle::Starting);
//! state.change(Lifecycle::Starting, Lifecycle::Running, "the port is open")?;
//! assert!(state.is(Lifecycle::Running));          // the data path's question
//!
//! let error = state.change_to(Lifecycle::Starting, "again").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "the gateway cannot change from running to starting: from running it may change to paused, \
//!      draining or stopped",
//! );
//! let view = state.view();                        // reads, waits for states, changes nothing
//! assert_eq!(view.changes()[0].why, "the port is open");
//! # Ok::<(), thalweg::state::ChangeError>(())
//! ```
//!
//! States are flat. Where several have something in common they are members of a [`StateSet`],
//! which asks no more of the data path than a single state: [`Lifecycle::OPEN`] holds *running* and
//! *paused*.
//!
//! # State
//! `word` is the number of the present state plus `VERSION` times the number of changes so far.
//! The log and the version at which each state was entered last are behind a lock.
//!
//! # Rules
//! 1. `word` changes under the lock only, and each change makes another word of it.
//! 2. A change stores the word with a release; a read of the word acquires it.
//! 3. A thread that changes the state notifies the event count afterwards. A waiter checks the
//!    state after it has registered.
//! 4. A waiter keeps the version that it began with. It is done if the state that it sees is one
//!    that it waits for, or if one of those was entered at a later version.
//!
//! # Why it works
//! By rule 1 transitions have an order, and each was checked against the state that it left. By
//! rule 2 what was done before a change is visible to every thread that sees it or a later one,
//! since the lock hands on what came before the earlier ones. By rule 3 and the argument of
//! [`EventCount`] no waiter sleeps through a change; by rule 4 none misses a state
//! that is left again before the waiter checks.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::time::Instant;

use thalweg_measure::clock::Clock;

use crate::ring::sync::{AtomicU64, Mutex, Ordering, fault, lock, order};
use crate::wait::{EventCount, Registration, block_at_low_power, wait_until};

pub use lifecycle::{Lifecycle, StateSet};

mod lifecycle;
#[cfg(all(test, loom))]
mod models;

/// A cell that holds a state, for the part of the program that changes it. Others get a
/// [`StateView`].
///
/// # Memory ordering
/// A read ([`get`](StateView::get), [`is`](StateView::is)…) is an acquire load, a change a release:
/// a thread that sees a state sees what was done before the change to it, and before all earlier
/// ones. No order goes the other way: what a reader does after a read may come after the next
/// change. A thread that changes a state and must know that no reader acts on the old one any more
/// has to ask the readers.
///
/// # Cost
/// A read is a load of a line that only changes write (on x86-64 the same instruction as a relaxed
/// one). A change takes a lock, reads the clock, and wakes all waiters. Nothing is allocated after
/// construction.
#[derive(Debug)]
pub struct StateCell(StateView);

impl Deref for StateCell {
    type Target = StateView;

    #[inline(always)]
    fn deref(&self) -> &StateView {
        &self.0
    }
}

impl StateCell {
    /// Returns a cell in the state `initial`. `of` is the name of the thing whose state it is, for
    /// errors: "pipeline".
    pub fn new(of: &'static str, initial: Lifecycle) -> Self {
        Self(StateView::new(of, initial))
    }

    /// Returns a view for other threads, which can do everything but change the state.
    pub fn view(&self) -> &StateView {
        &self.0
    }

    /// Changes the state from `from` to `to`. `why` is for the log.
    ///
    /// # Errors
    /// [`ChangeError`] if the transition is not declared, or the present state is not `from`. If
    /// several threads change from the same state, one of them succeeds.
    pub fn change(
        &self,
        from: Lifecycle,
        to: Lifecycle,
        why: &'static str,
    ) -> Result<(), ChangeError> {
        if !from.can_change_to(to) {
            return Err(self.not_declared(from, to));
        }
        self.transit(Some(from), to, why).map(drop)
    }

    /// Changes the state from the present one to `to`, and returns the former state.
    ///
    /// # Errors
    /// [`ChangeError`] if the transition is not declared, as none to the present state is.
    pub fn change_to(&self, to: Lifecycle, why: &'static str) -> Result<Lifecycle, ChangeError> {
        self.transit(None, to, why)
    }

    /// Increments the [`version`](StateView::version) without changing the state: readers that have
    /// cached something under the old version see that they must read it again. It is no
    /// transition, is not logged, and wakes no waiter.
    pub fn bump_version(&self) {
        let book = lock(&self.0.book);
        // ORDERING: Relaxed; the word changes under the lock only.
        let word = self.0.front.word.load(Ordering::Relaxed);
        // ORDERING: Release (order::change), pairs with the Acquire in `StateView::word`.
        self.0.front.word.store(word + VERSION, order::change());
        drop(book);
    }

    fn transit(
        &self,
        expected: Option<Lifecycle>,
        to: Lifecycle,
        why: &'static str,
    ) -> Result<Lifecycle, ChangeError> {
        let view = &self.0;
        let at_ns = view.clock.ns(view.clock.ticks());
        let seen = fault::is("change_unlocked").then(|| view.get());
        let mut book = lock(&view.book);
        // ORDERING: Relaxed; the word changes under the lock only.
        let old = Version(view.front.word.load(Ordering::Relaxed));
        let from = seen.unwrap_or(old.state());
        if let Some(expected) = expected.filter(|&expected| expected != from) {
            return Err(ChangeError::WrongState {
                of: view.name(),
                expected,
                found: from,
                to,
            });
        }
        if !from.can_change_to(to) {
            return Err(self.not_declared(from, to));
        }
        let new = old.next(to);
        book.enter(new.number(), (from, to), at_ns, why);
        // ORDERING: Release (order::change), pairs with the Acquire in `StateView::word`: what was
        // done before the change is visible to a thread that sees it.
        view.front.word.store(new.0, order::change());
        drop(book);
        if !fault::is("change_unnotified") {
            view.event_count.notify_all();
        }
        #[cfg(feature = "tracing")]
        tracing::event!(
            target: "thalweg::state",
            tracing::Level::INFO,
            of = view.name(),
            from = from.name(),
            to = to.name(),
            why,
            "the state changed"
        );
        Ok(from)
    }

    #[cold]
    fn not_declared(&self, from: Lifecycle, to: Lifecycle) -> ChangeError {
        let of = self.name();
        ChangeError::NotDeclared { of, from, to }
    }
}

/// One change, in the word of a cell. The state is below.
const VERSION: u64 = 1 << 8;

/// A state and the number of changes before it. Two of one cell are equal only if nothing has
/// changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// Returns the state.
    #[inline(always)]
    pub fn state(self) -> Lifecycle {
        Lifecycle::from_number(self.0 as u8)
    }

    fn number(self) -> u64 {
        self.0 / VERSION
    }

    fn next(self, to: Lifecycle) -> Self {
        Self((self.number() + 1) * VERSION + to as u64)
    }
}

/// The word that every reader reads, on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Front {
    word: AtomicU64,
}

/// A view of a state, for threads that read it or wait for another; see [`StateCell`].
pub struct StateView {
    front: Front,
    book: Mutex<Book>,
    event_count: EventCount,
    of: &'static str,
    clock: Clock,
}

impl fmt::Debug for StateView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateView({}: {:?})", self.of, self.get())
    }
}

impl StateView {
    fn new(of: &'static str, initial: Lifecycle) -> Self {
        let word = AtomicU64::new(initial as u64);
        Self {
            front: Front { word },
            book: Mutex::new(Book::new()),
            event_count: EventCount::new(),
            of,
            // The first in a process takes 10 ms, which no change should.
            clock: Clock::global(),
        }
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        // ORDERING: Acquire (order::changed), pairs with the Release in `StateCell::transit` and
        // `bump_version`: what was done before the change is visible.
        self.front.word.load(order::changed())
    }

    /// Returns the name of the thing whose state it is.
    pub fn name(&self) -> &'static str {
        self.of
    }

    /// Returns the present state.
    #[inline(always)]
    pub fn get(&self) -> Lifecycle {
        self.version().state()
    }

    /// Returns whether this is the present state.
    #[inline(always)]
    pub fn is(&self, state: Lifecycle) -> bool {
        self.word() as u8 == state as u8
    }

    /// Returns whether the present state is one of a set.
    #[inline(always)]
    pub fn is_within(&self, set: StateSet) -> bool {
        set.has(self.word() as u8)
    }

    /// Returns the present state with the number of changes so far. A thread that caches something
    /// under a version checks by one comparison that it is still valid.
    #[inline(always)]
    pub fn version(&self) -> Version {
        Version(self.word())
    }

    /// Returns the last changes, oldest first. Allocates, and takes the lock that changes take.
    pub fn changes(&self) -> Vec<Change> {
        lock(&self.book).log.iter().copied().collect()
    }

    /// Blocks the thread until the state is one of `wanted` (a state or a [`StateSet`]), or has
    /// been one since the call: it may be another one again when this returns.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn wait_for(&self, wanted: impl Into<StateSet>) -> Result<(), Unreachable> {
        let check = self.check_for(wanted.into());
        let outcome = block_at_low_power(&self.event_count, None, check);
        outcome.expect("without a deadline it does not time out")
    }

    /// Works as [`wait_for`](Self::wait_for), but waits no longer than until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`]: the deadline was reached, or no declared transitions lead there any more.
    pub fn wait_for_deadline(
        &self,
        wanted: impl Into<StateSet>,
        deadline: Instant,
    ) -> Result<(), WaitError> {
        let wanted = wanted.into();
        match block_at_low_power(&self.event_count, Some(deadline), self.check_for(wanted)) {
            Ok(outcome) => outcome.map_err(WaitError::Unreachable),
            Err(_) => Err(WaitError::TimedOut {
                of: self.of,
                found: self.get(),
                wanted,
            }),
        }
    }

    /// Works as [`wait_for`](Self::wait_for), as a future. It counts the changes after this call,
    /// not after the first poll. It is cancel-safe.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn wait_for_async(
        &self,
        wanted: impl Into<StateSet>,
    ) -> impl Future<Output = Result<(), Unreachable>> + Send + Unpin {
        wait_until(
            &self.event_count,
            Registration::default(),
            self.check_for(wanted.into()),
        )
    }

    /// Returns the check of a waiter, which returns `Some` once the wait is over.
    fn check_for(
        &self,
        wanted: StateSet,
    ) -> impl FnMut() -> Option<Result<(), Unreachable>> + Send + Unpin {
        let since = self.version();
        // The last version that was checked without success.
        let mut last_checked = None;
        move || {
            let now = self.version();
            if wanted.contains(now.state()) {
                return Some(Ok(()));
            }
            if last_checked.replace(now) == Some(now) {
                return None;
            }
            let has_passed = now != since
                && lock(&self.book).has_entered(wanted, since.number())
                && !fault::is("passing_unseen");
            if has_passed {
                return Some(Ok(()));
            }
            let found = now.state();
            let of = self.of;
            (!wanted.intersects(found.reachable())).then_some(Err(Unreachable {
                of,
                found,
                wanted,
            }))
        }
    }
}

/// A cell logs this many of the last changes.
pub const LOG_CAPACITY: usize = 32;

/// One transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The number of the transition, from 1 on. Transitions that the log does not hold are missing.
    pub number: u64,
    /// The state before.
    pub from: Lifecycle,
    /// The state after.
    pub to: Lifecycle,
    /// The time of the change, in ns of the process's clock. It does not decrease.
    pub at_ns: u64,
    /// The cause of the change, or the part of the program that made it.
    pub why: &'static str,
}

/// The part of a cell that is behind its lock.
#[derive(Debug)]
struct Book {
    /// For each state, at which version it was entered last; the initial one at 0.
    entered: [u64; Lifecycle::ALL.len()],
    changes: u64,
    log: VecDeque<Change>,
}

impl Book {
    fn new() -> Self {
        Self {
            entered: [0; Lifecycle::ALL.len()],
            changes: 0,
            log: VecDeque::with_capacity(LOG_CAPACITY),
        }
    }

    fn enter(
        &mut self,
        version: u64,
        (from, to): (Lifecycle, Lifecycle),
        at_ns: u64,
        why: &'static str,
    ) {
        self.entered[to as usize] = version;
        self.changes += 1;
        // Another thread may have read its clock before, and have the lock later.
        let at_ns = self.log.back().map_or(at_ns, |last| at_ns.max(last.at_ns));
        if self.log.len() == LOG_CAPACITY {
            self.log.pop_front();
        }
        self.log.push_back(Change {
            number: self.changes,
            from,
            to,
            at_ns,
            why,
        });
    }

    /// Returns whether one of these states was entered after a version.
    fn has_entered(&self, set: StateSet, since: u64) -> bool {
        let mut states = set.states();
        states.any(|state| self.entered[state as usize] > since)
    }
}

/// The reason why a state was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// No such transition is declared.
    NotDeclared {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The present state, from which it was to change.
        from: Lifecycle,
        /// The state that it was to change to.
        to: Lifecycle,
    },
    /// The present state is not the one from which it was to change.
    WrongState {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state from which it was to change.
        expected: Lifecycle,
        /// The state in which it is.
        found: Lifecycle,
        /// The state that it was to change to.
        to: Lifecycle,
    },
}

/// The error where no declared transitions lead from the present state to one that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// The name of the thing whose state it is.
    pub of: &'static str,
    /// The state in which it is.
    pub found: Lifecycle,
    /// The states that were waited for.
    pub wanted: StateSet,
}

/// The reason why a wait with a deadline ended before a wanted state was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// No declared transitions lead to a wanted state any more.
    Unreachable(Unreachable),
    /// No wanted state was entered before the deadline.
    TimedOut {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state in which it is.
        found: Lifecycle,
        /// The states that were waited for.
        wanted: StateSet,
    },
}

errors! {
    ChangeError {
        Self::NotDeclared { of, from, to } =>
            "the {of} cannot change from {from} to {to}: from {from} it may change to {}",
            from.next();
        Self::WrongState { of, expected, found, to } =>
            "the {of} is {found}, not {expected}: it did not change to {to}";
    }
    Unreachable {
        Self { of, found, wanted } =>
            "the {of} is {found} and will never be {wanted}: from {found} it gets to {}",
            found.reachable();
    }
    WaitError {
        Self::Unreachable(unreachable) => "{unreachable}";
        Self::TimedOut { of, found, wanted } =>
            "the {of} was still {found}, not {wanted}, at the deadline";
    }
}
